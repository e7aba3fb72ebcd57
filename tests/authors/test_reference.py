"""Authors of the user's own, named by module or by file."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from skill2env.authors import registry
from skill2env.authors.protocol import Author
from skill2env.authors.reference import factory_at, is_reference
from skill2env.authors.registry import AuthorSettings, make_author
from skill2env.authors.scripted import ScriptedAuthor
from skill2env.errors import Boundary, InfraError, UserError

OWN = """
from dataclasses import dataclass
from own_words import LABEL
from skill2env.authors.scripted import ScriptedAuthor

@dataclass(frozen=True, slots=True)
class Choice:
    label: str

def make(settings):
    return ScriptedAuthor(label=Choice(LABEL).label + settings.model)

class Table:
    make = staticmethod(make)
"""


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Path]:
    """A file with an author, and a module beside it; the interpreter forgets both afterwards."""
    before, path = set(sys.modules), list(sys.path)
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "own_words.py").write_text('LABEL = "mine"\n')
    yield tmp_path / "own.py"
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if name.startswith(("own", "skill2env_author_")):
            del sys.modules[name]


def test_a_file_with_what_lies_beside_it(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    author = make_author(f"{own}:make", AuthorSettings(model="m"))
    assert author.identity == ScriptedAuthor(label="minem").identity
    monkeypatch.chdir(own.parent)
    assert factory_at("own.py:make") is factory_at(f"{own}:make"), "the same file is imported once"
    assert factory_at("./own.py:Table.make") is factory_at("own.py:make")
    assert sys.path[-1] == str(own.parent), "behind everything that is installed"


def test_a_module(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(own.parent))
    assert make_author("own:make", AuthorSettings()).identity == ScriptedAuthor(label="mine").identity


def test_sessions_are_recorded_as_for_every_author(own: Path, tmp_path: Path) -> None:
    author = make_author(f"{own}:make", AuthorSettings(record_to=tmp_path / "rec"))
    assert author.identity == ScriptedAuthor(label="mine").identity
    assert not isinstance(author, ScriptedAuthor)


def test_agents_of_harbor_and_names_of_the_table_are_no_references() -> None:
    assert not is_reference("scripted")
    with pytest.raises(UserError) as caught:
        make_author("harbor:no-such-agent", AuthorSettings(model="m"))
    assert "import" not in caught.value.message


@pytest.mark.parametrize(
    ("reference", "text", "message"),
    [
        ("{}:gone", OWN, "holds no 'gone'"),
        ("{}:", OWN, "names no author"),
        ("{}x.py:make", OWN, "there is no file"),
        (":make", OWN, "names no author"),
        ("no_such_module_of_ours:make", OWN, "cannot be imported: ModuleNotFoundError"),
        ("..relative:make", OWN, "cannot be imported: TypeError"),
        ("{}:make", "def make(:\n", "cannot be imported: SyntaxError"),
        ("{}:make", "raise SystemExit(3)\n", "cannot be imported: SystemExit: 3"),
        ("{}:make", "import no_such_module_of_ours\n", "cannot be imported: ModuleNotFoundError"),
        ("{}:make", "def make():\n    pass\n", "cannot be made: TypeError: make"),
        ("{}:make", "def make(settings):\n    raise KeyError('secretary')\n", "cannot be made: KeyError"),
        ("{}:make", "def make(settings):\n    return 7\n", "gave no author but int"),
        ("{}:make", "make = 7\n", "cannot be made: TypeError"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(own: Path, reference: str, text: str, message: str) -> None:
    own.write_text(text)
    with pytest.raises(UserError, match=message) as caught:
        make_author(reference.format(own), AuthorSettings())
    assert caught.value.hint


def test_its_own_errors_pass_through(own: Path) -> None:
    own.write_text(
        "from skill2env.errors import Boundary, InfraError, UserError\n"
        "def user(settings):\n    raise UserError('the table is empty', hint='fill it')\n"
        "def infra(settings):\n    raise InfraError(Boundary.STORAGE, 'the disk is full')\n"
    )
    with pytest.raises(UserError, match=r"^the table is empty$"):
        make_author(f"{own}:user", AuthorSettings())
    with pytest.raises(InfraError, match="the disk is full") as caught:
        make_author(f"{own}:infra", AuthorSettings())
    assert caught.value.boundary is Boundary.STORAGE


def test_a_broken_entry_point_is_told_likewise(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        name = "outside"

        def load(self) -> Author:
            raise ImportError("its package is half installed")

    monkeypatch.setattr(registry, "entry_points", lambda group: [Point()])
    with pytest.raises(UserError, match="the author outside cannot be made: ImportError: its package"):
        make_author("outside", AuthorSettings())
