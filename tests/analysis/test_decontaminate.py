"""Planted overlaps are found, with the passages, and nothing else is."""

import importlib.util
import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skill2env.analysis.decontaminate import decontaminate, statement
from skill2env.analysis.documents import Document, read_documents
from skill2env.analysis.filtering import CANARY_FILE, canary_of, write_filtered
from skill2env.analysis.overlaps import grams_of_texts, join, shared_spans
from skill2env.analysis.reading import read_corpus
from skill2env.analysis.records import Corpus, Notes, TaskRecord
from skill2env.errors import UserError
from skill2env.similarity import containment, jaccard, shingles

WORDS = [f"w{chr(97 + at % 26)}{chr(97 + at // 26)}" for at in range(400)]
MARK = "0b1c2d3e-1111-4222-8333-abcdefabcdef"


def prose(seed: int, length: int = 60) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=length))


def task(key: str, instruction: str = "", **given: Any) -> TaskRecord:
    return TaskRecord(key=key, folder=Path("nowhere"), name=key, instruction=instruction, **given)


@given(
    st.lists(st.lists(st.sampled_from("abcde"), max_size=12).map(" ".join), max_size=6),
    st.lists(st.lists(st.sampled_from("abcde"), max_size=12).map(" ".join), max_size=6),
)
@settings(max_examples=60, deadline=None)
def test_the_join_is_exact(ones: list[str], others: list[str]) -> None:
    found = {
        (pair.one, pair.other): pair
        for pair in join(grams_of_texts(ones, 3), grams_of_texts(others, 3), jaccard=0.5, containment=0.7)
    }
    for at, one in enumerate(ones):
        for place, other in enumerate(others):
            mine, theirs = shingles(one, 3), shingles(other, 3)
            wanted = bool(mine and theirs) and (
                jaccard(mine, theirs) >= 0.5
                or containment(mine, theirs) >= 0.7
                or containment(theirs, mine) >= 0.7
            )
            assert ((at, place) in found) is wanted
            if wanted:
                assert found[at, place].jaccard == pytest.approx(jaccard(mine, theirs))
                assert found[at, place].contained == pytest.approx(containment(theirs, mine))


def test_passages() -> None:
    shared = prose(1, 20)
    (span,) = shared_spans(f"Before it. {shared.upper()}, and after", f"Other words: {shared}. End", 13)
    assert span.words == 20
    assert span.text == shared.upper()
    assert shared_spans(prose(2), prose(3), 13) == ()


def test_planted_contamination_is_found_and_nothing_else() -> None:
    items = [Document(f"i{at}", prose(at)) for at in range(200)]
    planted = {f"t{at}": f"Do this. {items[at].instruction} Thank you." for at in range(0, 100, 5)}
    tasks = [task(f"t{at}", planted.get(f"t{at}", prose(1000 + at))) for at in range(100)]
    found = decontaminate(Corpus("c", tuple(tasks)), items)
    assert set(found.removed) == planted.keys()
    assert all(flag.spans and flag.containment == 1 and flag.kind == "words" for flag in found.flags)
    assert "20 tasks are left out" in statement(found)
    assert decontaminate(Corpus("c", tuple(tasks[1:5])), items).flags == ()


def test_texts_are_looked_for_in_every_part_and_parts_in_their_own() -> None:
    text = prose(5)
    tasks = (task("a", tests=text), task("b", solution=text), task("c", rubric=text))
    found = decontaminate(Corpus("c", tasks), [Document("i", text)])
    assert [(flag.task, flag.field) for flag in found.flags] == [("a", "tests"), ("b", "solution")]
    only = decontaminate(Corpus("c", tasks), [Document("i", prose(6), tests=text)])
    assert [(flag.task, flag.field) for flag in only.flags] == [("a", "tests")]


PROGRAM = """import csv, json
{t} = {{}}
for {r} in csv.DictReader(open("{f}")):
    if {r}["{c}"].strip() == "":
        continue
    {t}.setdefault({r}["{c}"], []).append(float({r}["{v}"]))
for key, values in sorted({t}.items()):
    print(key, sum(values) / len(values), max(values), min(values))
json.dump({t}, open("{o}", "w"))
"""


def test_one_strategy_in_other_words_is_found(make_task: Any, tmp_path: Path) -> None:
    one = PROGRAM.format(t="totals", r="row", f="sales.csv", c="region", v="amount", o="out.json")
    two = PROGRAM.format(t="lengths", r="entry", f="fish.tsv", c="species", v="cm", o="fish.json")
    (make_task("a", instruction=prose(1)) / "solution/solve.py").write_text(one)
    make_task("b", instruction=prose(2))
    (make_task("x", dataset="bench", instruction=prose(3)) / "solution/solve.py").write_text(two)
    items = read_documents(tmp_path / "bench", Notes())
    found = decontaminate(read_corpus(tmp_path / "data"), items, held_out=["cybersecurity"])
    by_strategy = [flag for flag in found.flags if flag.kind == "strategy"]
    assert [(flag.task, flag.item) for flag in by_strategy] == [("a", "bench/x")]
    assert by_strategy[0].jaccard == 1
    assert found.held_out is True
    assert decontaminate(read_corpus(tmp_path / "data"), items, held_out=["ledger"]).held_out is False


def test_canaries_are_seen_and_written(make_task: Any, tmp_path: Path) -> None:
    canary = f"BENCHMARK DATA. canary string {MARK}"
    make_task("a", tests=f"# {canary}\n{prose(1)}")
    make_task("b", tests=prose(2))
    corpus = read_corpus(tmp_path / "data")
    found = decontaminate(corpus, [Document("i", f"{prose(9)}\n{canary}")])
    assert [(flag.task, flag.kind, flag.spans) for flag in found.flags] == [("a", "canary", (MARK,))]
    assert found.canaries == 1
    out = tmp_path / "clean"
    assert write_filtered(corpus, found.removed, out, canary=canary_of("c")) == 1
    assert sorted(path.name for path in out.iterdir()) == ["b"]
    assert canary_of("c") in (out / "b" / CANARY_FILE).read_text()
    assert decontaminate(read_corpus(out), []).canaries == 1
    with pytest.raises(UserError, match="exists already"):
        write_filtered(corpus, (), out)


def test_benchmarks_in_every_form(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    notes = Notes()
    (tmp_path / "lines.txt").write_text("first text\n\nsecond text\n")
    (tmp_path / "blocks.txt").write_text("one\ntwo\n---\nthree\n")
    rows = [{"id": "p", "question": "why"}, {"text": ""}]
    (tmp_path / "rows.jsonl").write_text("\n".join([*map(json.dumps, rows), "{", '"bare"']))
    library: Any = parquet
    library.write_table(pyarrow.table({"prompt": ["do it"], "solution": ["done"]}), tmp_path / "t.parquet")
    assert [d.instruction for d in read_documents(tmp_path / "lines.txt", notes)] == [
        "first text",
        "second text",
    ]
    assert [d.instruction for d in read_documents(tmp_path / "blocks.txt", notes)] == ["one\ntwo", "three"]
    assert [d.instruction for d in read_documents(tmp_path / "rows.jsonl", notes)] == ["why", "", "bare"]
    assert read_documents(tmp_path / "t.parquet", notes)[0].solution == "done"
    assert len(read_documents(tmp_path, Notes())) == 8
    assert {item.code for item in notes.found} == {"document-empty", "line-not-json"}
    (tmp_path / "none").mkdir()
    assert read_documents(tmp_path / "none", notes) == ()
    assert notes.found[-1].code == "benchmark-empty"
    (tmp_path / "bad.parquet").write_text("no")
    for bad in ("bad.parquet", "nothing", "x.csv"):
        with pytest.raises(UserError):
            read_documents(tmp_path / bad, notes)


def test_precision_and_recall_of_planted_contamination(repository: Path) -> None:
    specification = importlib.util.spec_from_file_location(
        "planted_contamination", repository / "benchmarks/planted.py"
    )
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["planted_contamination"] = module
    specification.loader.exec_module(module)
    table = {(level, share, by): (p, r) for level, share, by, p, r in module.contamination_table(tasks=60)}
    assert all(precision == 1 for precision, _ in table.values())
    assert table["verbatim", 0.2, "words"][1] == 1
    assert table["reworded", 0.2, "words"][1] == 0, "n-grams do not see rewording"
    assert table["reworded", 0.2, "strategy"][1] > 0.9
    assert table["a word in 8 replaced", 0.2, "both"][1] > 0.9
