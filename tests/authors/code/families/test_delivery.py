"""The grader of deliveries: what it believes, and that a delivery of nothing or of nonsense earns nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from skill2env.authors.code.templates import grade_delivery

ORDERS: dict[str, Any] = {
    "order-01": {"files": {"in.csv": "a\nb\n"}, "result": {"exit": 0, "stdout": "2 rows\n"}},
    "order-02": {"files": {"in.csv": "a\nc\n"}, "result": {"exit": 0, "stdout": "2 rows\n"}},
    "order-03": {"files": {"in.csv": "x\n"}, "result": {"value": [1.5, {"k": True}]}},
}


def deliver(outbox: Path, *, results: Any, summary: Any, files: bool = True) -> Path:
    for name, order in ORDERS.items():
        (outbox / name).mkdir(parents=True)
        for file, text in order["files"].items() if files else ():
            (outbox / name / file).write_text(text)
    (outbox / "results.json").write_text(results if isinstance(results, str) else json.dumps(results))
    (outbox / "summary.json").write_text(summary if isinstance(summary, str) else json.dumps(summary))
    return outbox


RIGHT = {name: order["result"] for name, order in ORDERS.items()}
SUMMARY = {
    "orders": 3,
    "lines": {"order-01": 2, "order-02": 2, "order-03": 1},
    "same": [["order-01", "order-02"]],
}


def test_the_whole_delivery(tmp_path: Path) -> None:
    assert grade_delivery.score(ORDERS, deliver(tmp_path, results=RIGHT, summary=SUMMARY)) == [1, 1, 1]


def test_equal_meaning_in_another_form(tmp_path: Path) -> None:
    results = {**RIGHT, "order-01": {"stdout": "2 rows", "exit": 0.0}}
    outbox = deliver(tmp_path, results=results, summary=SUMMARY)
    (outbox / "order-03" / "in.csv").write_bytes(b"\xef\xbb\xbfx  \r\n\n")
    assert grade_delivery.score(ORDERS, outbox) == [1, 1, 1]


@pytest.mark.parametrize("junk", ["", "{", "[]", "3", "null", "[" * 5000, '{"order-01": 1, "orders": true}'])
def test_nonsense(tmp_path: Path, junk: str) -> None:
    outbox = deliver(tmp_path, results=junk, summary=junk, files=False)
    assert grade_delivery.score(ORDERS, outbox) == [0, 0, 0]


def test_nothing(tmp_path: Path) -> None:
    assert grade_delivery.score(ORDERS, tmp_path) == [0, 0, 0]


@pytest.mark.parametrize(
    ("left", "right"),
    [(True, 1), (1, "1"), ([1], [1, 2]), ({"a": 1}, {"b": 1}), (None, 0), ("a", "b"), ("a\n\nb", "a\nb")],
)
def test_what_is_not_the_same(left: Any, right: Any) -> None:
    assert not grade_delivery.same(left, right)
    assert not grade_delivery.same(right, left)
