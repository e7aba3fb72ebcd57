"""What stands after FROM is exchanged, and nothing else."""

import pytest

from skill2env.errors import UserError
from skill2env.sandbox import catalog
from skill2env.sandbox.bindings import Binding, Named, rewrite
from skill2env.sandbox.dockerfile import BuildFailed

OURS = "localhost:5000/skill2env/{}@sha256:" + "a" * 64
PUBLIC = "debian:bookworm-slim@sha256:" + "b" * 64


def to_public(named: Named) -> Binding:
    return Binding(PUBLIC, named.base)


def to_ours(named: Named) -> Binding:
    return Binding(OURS.format(named.base))


@pytest.mark.parametrize("name", catalog.CATALOG)
def test_there_and_back_gives_the_same_bytes(name: str) -> None:
    text = f"# a comment\nFROM {OURS.format(name)}\nRUN useradd agent && \\\n    true\nWORKDIR /app\n"
    public = rewrite(text, to_public)
    lines = public.split("\n")
    assert lines[1:3] == [f"# skill2env base: {name}", f"FROM {PUBLIC}"]
    assert lines[3].startswith("RUN apt-get update && ")
    for package in catalog.lookup(name).packages:
        assert (f" {package} " in lines[3]) is (package not in ("apt", "bash", "usr-is-merged"))
    assert lines[4:] == text.split("\n")[2:]
    assert rewrite(public, to_ours) == text
    assert rewrite(public, to_public) == public, "again changes nothing"


def test_stages_flags_case_and_endings_stay() -> None:
    text = (
        f"from --platform=linux/amd64 {OURS.format('build-bookworm')} AS Compile\nRUN make\n\n"
        f"FROM compile as more\nFROM scratch\nFROM {OURS.format('debian-bookworm')}\n"
        f"RUN <<END\nFROM debian:12\nEND"
    )
    seen: list[Named] = []

    def choose(named: Named) -> Binding:
        seen.append(named)
        return Binding("x:1")

    changed = rewrite(text, choose)
    assert [named.base for named in seen] == ["build-bookworm", "debian-bookworm"]
    assert changed.split("\n")[0] == "from --platform=linux/amd64 x:1 AS Compile"
    assert changed.split("\n")[3:] == [
        "FROM compile as more",
        "FROM scratch",
        "FROM x:1",
        "RUN <<END",
        "FROM debian:12",
        "END",
    ]


def test_a_public_image_without_a_mark_means_what_it_stands_for() -> None:
    assert rewrite("FROM debian:12\n", to_ours) == f"FROM {OURS.format('debian-bookworm')}\n"
    seen: list[Named] = []
    rewrite("FROM python:3.12", lambda named: seen.append(named) or Binding(named.reference))
    assert seen == [Named("python:3.12", "")]


def test_an_edited_public_binding_is_left_as_it_is() -> None:
    public = rewrite(f"FROM {OURS.format('data-bookworm')}\n", to_public).replace(" jq ", " jq gawk ")
    assert " gawk " in rewrite(public, to_ours)


def test_what_cannot_be_read_is_said() -> None:
    with pytest.raises(BuildFailed):
        rewrite("FROM\n", to_ours)
    with pytest.raises(UserError, match="line 1: FROM stands on several lines"):
        rewrite("FROM \\\n  debian:12\n", to_ours)
