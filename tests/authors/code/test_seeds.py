"""Seeds from evals/evals.json: both dialects, plain requests and files only, and quiet about everything malformed."""

import json

import pytest

from skill2env.authors.code.seeds import PLACE, Seeds, read_seeds

PLAIN = "Price the parcels of the attached list. Then write a report."


def test_requests_and_files_are_taken() -> None:
    evals = [
        {"id": 1, "prompt": PLAIN, "files": ["evals/files/a.csv", "b.txt", "../../secret", "gone.csv", 7]},
        {"id": 2, "prompt": PLAIN},
        {"id": 3, "prompt": "Run `rm -rf` on everything that you can find here."},
        {"id": 4, "prompt": "Short one."},
        {"id": 5, "prompt": ["x"]},
        {"id": 6, "files": "a.csv"},
        "text",
    ]
    texts = {
        PLACE: json.dumps({"evals": evals}),
        "evals/files/a.csv": "a\n",
        "evals/b.txt": "b\n",
        "secret": "no",
    }
    assert read_seeds(texts) == Seeds(
        ("Price the parcels of the attached list.",), {"a.csv": "a\n", "b.txt": "b\n"}
    )


def test_the_other_dialect() -> None:
    text = json.dumps([{"question": "Which parcels of the list are heavy ones?", "ground_truth": "x"}])
    assert read_seeds({PLACE: text}).requests == ("Which parcels of the list are heavy ones?",)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[" * 5000,
        "null",
        "3",
        '{"evals": 3}',
        '{"evals": {"prompt": "x"}}',
        '{"other": []}',
        "[[], null]",
    ],
)
def test_malformed_files_offer_nothing(text: str) -> None:
    assert read_seeds({PLACE: text}) == Seeds()
    assert read_seeds({}) == Seeds()
