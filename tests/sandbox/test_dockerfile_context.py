"""Which files a COPY means: ignore rules, patterns, links."""

import io
import re
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill2env.sandbox.context import Context, Ignore, archive, clean, fingerprint, pattern_regex
from skill2env.sandbox.instructions import BuildFailed, Place

HERE = Place(3, "COPY it")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "context"
    for name in (
        "app/main.py",
        "app/data/a.csv",
        "app/data/b.csv",
        "app/.hidden",
        "README.md",
        "notes/x.txt",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (tmp_path / "secret.txt").write_text("secret")
    return root


def names(context: Context, source: str) -> list[str]:
    return [entry.name for found in context.select(source, HERE) for entry in found.entries]


def test_a_folder_means_its_content(folder: Path) -> None:
    expected = [".", ".hidden", "data", "data/a.csv", "data/b.csv", "main.py"]
    assert (
        names(Context(folder), "app/")
        == names(Context(folder), "/app")
        == names(Context(folder), "./app/.")
        == expected
    )


def test_patterns_match_names_not_folders_below(folder: Path) -> None:
    assert names(Context(folder), "app/data/*.csv") == ["a.csv", "b.csv"]
    assert names(Context(folder), "app/data/[a]?csv") == ["a.csv"]
    assert names(Context(folder), "**/*.csv") == ["a.csv", "b.csv"]
    with pytest.raises(BuildFailed, match="no such file"):
        names(Context(folder), "*.csv")


@pytest.mark.parametrize("source", ["../secret.txt", "app/../../secret.txt", "/../secret.txt", ".."])
def test_nothing_outside_of_the_context(folder: Path, source: str) -> None:
    with pytest.raises(BuildFailed, match=r"outside of the build context|no such file"):
        names(Context(folder), source)


def test_links_in_the_path_are_followed_inside_only(folder: Path) -> None:
    (folder / "in").symlink_to("app/data")
    (folder / "out").symlink_to("../secret.txt")
    (folder / "up").symlink_to("..")
    (folder / "loop").symlink_to("loop")
    (folder / "gone").symlink_to("nowhere")
    context = Context(folder)
    assert names(context, "in") == [".", "a.csv", "b.csv"]
    assert names(context, "in/a.csv") == ["a.csv"]
    for source in ("out", "up/secret.txt", "up"):
        with pytest.raises(BuildFailed, match="out of the build context"):
            names(context, source)
    for source in ("loop", "gone"):
        with pytest.raises(BuildFailed, match="no such file"):
            names(context, source)


def test_links_inside_a_folder_stay_links(folder: Path) -> None:
    (folder / "app/link").symlink_to("/etc/passwd")
    (link,) = [e for e in Context(folder).select("app", HERE)[0].entries if e.name == "link"]
    assert (link.kind, link.link) == ("link", "/etc/passwd")


def test_ignored_files_are_not_there(folder: Path) -> None:
    (folder / ".dockerignore").write_text("# remark\n\nnotes\n**/*.csv\n!app/data/b.csv\n.*\n")
    context = Context(folder)
    assert names(context, ".") == [
        ".",
        "README.md",
        "app",
        "app/.hidden",
        "app/data",
        "app/data/b.csv",
        "app/main.py",
    ]
    for source in ("notes", "app/data/a.csv", ".dockerignore"):
        with pytest.raises(BuildFailed, match="excluded"):
            names(context, source)


def test_an_exception_brings_back_a_file_of_an_ignored_folder(folder: Path) -> None:
    (folder / ".dockerignore").write_text("app\n!app/main.py\n")
    assert names(Context(folder), "app") == [".", "main.py"]


def test_a_dockerfile_may_have_its_own_ignore_file(folder: Path) -> None:
    (folder / ".dockerignore").write_text("*")
    (folder / "Dockerfile.dockerignore").write_text("app\nnotes\n*ignore\n")
    assert names(Context(folder), ".") == [".", "README.md"]


def test_fingerprint_sees_content_mode_and_name_and_nothing_else(folder: Path) -> None:
    def now() -> list[str]:
        return list(fingerprint(Context(folder).select("app", HERE)))

    before = now()
    (folder / "app/main.py").touch()
    assert now() == before
    (folder / "app/main.py").chmod(0o755)
    changed = now()
    assert changed != before
    (folder / "app/main.py").write_text("other")
    assert now() != changed


def test_archive_has_one_owner_and_time(folder: Path) -> None:
    entries = Context(folder).select("app", HERE)[0].entries
    data = archive(((e.name, e) for e in entries), uid=5, gid=6, mode=0o640, mtime=99, place=HERE)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        members = {member.name: member for member in tar}
    assert {(m.uid, m.gid, m.mtime) for m in members.values()} == {(5, 6, 99)}
    assert members["main.py"].mode == 0o640
    assert members["data"].mode == 0o750, "a folder stays passable for those who may read"


pieces = st.lists(st.sampled_from(["a", "b", ".x", "a.py", "long name"]), min_size=1, max_size=4).map(
    "/".join
)
patterns = st.text(st.sampled_from("ab.*?[]^!/\\ -"), max_size=12)


@given(st.lists(patterns, max_size=4), pieces)
def test_ignore_rules_never_fail(lines: list[str], path: str) -> None:
    assert Ignore(lines).hides(path) in (True, False)


@given(pieces)
def test_a_name_ignores_itself_and_what_it_holds(path: str) -> None:
    rules = Ignore([path])
    assert rules.hides(path)
    assert rules.hides(f"{path}/below/it")
    assert not rules.hides(f"{path}x")
    assert not Ignore([path, f"!{path}"]).hides(path)


@given(pieces, pieces)
def test_two_stars_match_any_depth(above: str, name: str) -> None:
    rule = pattern_regex(f"**/{name}")
    assert rule.fullmatch(name)
    assert rule.fullmatch(f"{above}/{name}")


@given(patterns, pieces)
def test_one_star_stays_in_its_folder(pattern: str, path: str) -> None:
    if "**" in pattern or ("[" in pattern and "/" in pattern):  # a slash in a class is none of the path's
        return
    try:
        rule = pattern_regex(pattern)
    except ValueError as error:
        assert "pattern" in str(error) or "class" in str(error)  # noqa: PT017
        return
    if rule.fullmatch(path):
        assert path.count("/") == pattern.replace("\\/", "/").count("/")


@given(st.text(st.sampled_from("./ab"), max_size=12))
def test_clean_paths_never_climb_unseen(path: str) -> None:
    assert not clean(path).startswith("/")
    assert not re.search(r"[^.]/\.\.(/|$)", clean(path))
