"""The static pages: everything is there, nothing of a task becomes code, nothing is loaded from elsewhere."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from skill2env.verify.many import Verified
from skill2env.verify.report.outcome import Outcome, outcome_of
from skill2env.verify.report.page import asset, policy_hash, write_pages
from skill2env.verify.report.panes import panes_of, visible

HOSTILE = "<script>alert(1)</script><img src=x onerror=a()>\"'`{{ 7*7 }}{% raw %}\u202ereversed\u200b\x1b[31m\r\n</pre>"


class Tags(HTMLParser):
    """Collects elements and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def _tags(text: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = Tags()
    parser.feed(text)
    return parser.tags


def _write(folder: Path, outcomes: list[Outcome]) -> None:
    write_pages(folder, outcomes, level="strict", sandbox="namespace")


def test_pages_say_what_the_gates_said(outcomes: list[Outcome], tmp_path: Path) -> None:
    _write(tmp_path / "html", outcomes)
    index = (tmp_path / "html/index.html").read_text()
    assert [path.name for path in sorted((tmp_path / "html/tasks").iterdir())] == [
        "away.html",
        "bad.html",
        "good.html",
    ]
    assert 'href="tasks/bad.html"' in index
    assert 'data-status="rejected" data-reason="oracle_failed"' in index
    page = (tmp_path / "html/tasks/bad.html").read_text()
    for text in (
        "earns only sum = 0",
        "Mend it.",
        "gate oracle ended it",
        "1 of 2 wrong versions",
        "m2",
        "survived",
    ):
        assert text in page
    for title in ("Skill", "Instruction", "World", "Verifier", "Rubric", "Solution"):
        assert f"<h3>{title}</h3>" in page
    assert "awk" in page


def test_nothing_of_a_task_becomes_code(verified: Callable[..., Verified], tmp_path: Path) -> None:
    item = verified("bad")
    for path in (
        "instruction.md",
        "tests/rubric.md",
        "solution/solve.sh",
        "environment/numbers.txt",
        "task.toml",
    ):
        (item.path / path).write_text(HOSTILE, newline="")
    odd = item.path / "tests" / 'x"><script>y'
    odd.write_text(HOSTILE)
    finding = item.verdict.gates[1].findings[0].model_copy(update={"message": HOSTILE, "where": HOSTILE})
    gate = item.verdict.gates[1].model_copy(
        update={"findings": (finding,), "message": HOSTILE, "values": {HOSTILE: HOSTILE}}
    )
    verdict = item.verdict.model_copy(update={"gates": (gate,), "message": HOSTILE})
    hostile = Verified(item.path, verdict, name=HOSTILE, exhibits=item.exhibits)
    _write(tmp_path / "html", [outcome_of(hostile)])
    for page in (tmp_path / "html").rglob("*.html"):
        text = page.read_text()
        scripts = re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL)
        assert all(script == asset("filter.js") for script in scripts)
        for tag, attributes in _tags(text):
            assert tag not in ("img", "iframe", "object", "link", "form")
            assert not [name for name in attributes if name.startswith("on") or name == "src"]
        assert "\u202e" not in text
        assert "\x1b" not in text
        assert "U+202E" in text
        assert "{{ 7*7 }}" in text


def test_the_policy_allows_nothing_but_our_own(outcomes: list[Outcome], tmp_path: Path) -> None:
    _write(tmp_path / "html", outcomes)
    for page in (tmp_path / "html").rglob("*.html"):
        metas = [attributes for tag, attributes in _tags(page.read_text()) if tag == "meta"]
        (policy,) = [a["content"] or "" for a in metas if a.get("http-equiv") == "Content-Security-Policy"]
        assert policy.startswith("default-src 'none'")
        assert f"style-src '{policy_hash(asset('style.css'))}'" in policy
        script = policy_hash(asset("filter.js")) if page.name == "index.html" else "none"
        assert f"script-src '{script}'" in policy


def test_a_later_report_replaces_the_earlier_one_and_nothing_else(
    outcomes: list[Outcome], tmp_path: Path
) -> None:
    folder = tmp_path / "html"
    _write(folder, outcomes)
    (folder / "notes.txt").write_text("mine")
    _write(folder, outcomes[:1])
    assert sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()) == [
        "index.html",
        "notes.txt",
        "tasks/good.html",
    ]
    other = tmp_path / "site"
    (other / "tasks").mkdir(parents=True)
    (other / "index.html").write_text("somebody's own")
    (other / "tasks/keep.html").write_text("somebody's own")
    _write(other, outcomes[:1])
    assert (other / "tasks/keep.html").exists()


def test_pages_of_one_name_are_told_apart(verified: Callable[..., Verified], tmp_path: Path) -> None:
    items = [verified(name, "good") for name in ("x/Task", "y/task", "z/...")]
    _write(tmp_path / "html", [outcome_of(item) for item in items])
    assert {p.name for p in (tmp_path / "html/tasks").iterdir()} == {
        "task.html",
        "task-2.html",
        "task-3.html",
    }


def test_the_same_report_has_the_same_bytes(outcomes: list[Outcome], tmp_path: Path) -> None:
    for name in ("one", "two"):
        _write(tmp_path / name, outcomes)
    pages = [
        sorted(p.relative_to(tmp_path / n) for p in (tmp_path / n).rglob("*.html")) for n in ("one", "two")
    ]
    assert pages[0] == pages[1]
    assert all((tmp_path / "one" / p).read_bytes() == (tmp_path / "two" / p).read_bytes() for p in pages[0])


def test_panes_read_whatever_lies_there(verified: Callable[..., Verified], tmp_path: Path) -> None:
    task = verified("good").path
    (task / "solution/link").symlink_to("/etc/passwd")
    (task / "environment/blob").write_bytes(b"\0" * 100)
    (task / "environment/long.txt").write_text("x" * 100_000)
    shown = {file.path: file for pane in panes_of(task) for file in pane.files}
    assert shown["solution/link"].note == "a link to /etc/passwd"
    assert shown["environment/blob"].note == "100 bytes that are no text"
    assert len(shown["environment/long.txt"].text) == 32 * 1024
    assert panes_of(tmp_path / "absent")[0].note


def test_the_skill_is_shown_when_it_is_given(verified: Callable[..., Verified]) -> None:
    task = verified("good").path
    digest = "sha256:" + "0" * 64
    (skill,) = [pane for pane in panes_of(task, {digest: "Count every crate."}) if pane.title == "Skill"]
    assert skill.files[0].text == "Count every crate."
    assert "--skills" in panes_of(task)[0].note


@pytest.mark.parametrize(
    ("text", "shown"), [("a<b\n", "a&lt;b\n"), ("\u200b", "U+200B"), ("\r", "CR"), ("\U000e0041", "U+E0041")]
)
def test_what_people_cannot_see_is_named(text: str, shown: str) -> None:
    assert shown in visible(text)
