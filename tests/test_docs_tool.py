"""scripts/docs.py: dead links and stale blocks are found, code blocks and other hosts are left alone."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "docs.py"


@pytest.fixture(scope="module")
def docs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_tool", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def page(docs: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(docs, "ROOT", tmp_path)
    (tmp_path / "other.md").write_text("# One title: with `code`\n\n## Same\n\n## Same\n")
    return tmp_path / "page.md"


@pytest.mark.parametrize(
    "link",
    [
        "[x](other.md)",
        "[x](other.md#one-title-with-code)",
        "[x](other.md#same-1)",
        "[x](#here)",
        "[x](https://example.org/nowhere)",
        "```\n[x](missing.md)\n```",
    ],
)
def test_live_links_pass(docs: ModuleType, page: Path, link: str) -> None:
    text = f"# Here\n\n{link}\n"
    page.write_text(text)
    assert not list(docs.broken_links(page, text))


@pytest.mark.parametrize("link", ["[x](missing.md)", "![x](missing.png)", "[x](other.md#same-2)"])
def test_dead_links_are_named(docs: ModuleType, page: Path, link: str) -> None:
    (problem,) = docs.broken_links(page, f"# Here\n\n{link}\n")
    assert "page.md" in problem
    assert link.partition("(")[2].rstrip(")") in problem


def test_a_link_inside_the_page_needs_its_heading(docs: ModuleType, page: Path) -> None:
    page.write_text("# Here\n")
    assert not list(docs.broken_links(page, "[x](#here)"))
    assert list(docs.broken_links(page, "[x](#there)"))


def test_stale_blocks_are_filled(docs: ModuleType) -> None:
    stale = "before\n<!-- generated: skips -->\nwas here before\n<!-- end generated -->\nafter\n"
    filled = docs.fill(stale)
    assert "was here before" not in filled
    assert "`needs_account`" in filled
    assert filled.startswith("before\n")
    assert filled.endswith("after\n")
    assert docs.fill(filled) == filled


def test_a_block_that_nobody_generates_is_an_error(docs: ModuleType) -> None:
    with pytest.raises(KeyError):
        docs.fill("<!-- generated: nothing -->\n<!-- end generated -->")
