"""Instructions: every voice quotes its metrics word for word and leaves nothing unfilled."""

import itertools
import re

import pytest

from skill2env.authors.code.cases import Case
from skill2env.authors.code.families.repair import WORDS
from skill2env.authors.code.instruction import symptom, write_instruction
from skill2env.authors.code.report import Shown
from skill2env.axes import Complexity, Expertise, Persona, Tone
from skill2env.records import Axes

SHOWN = [
    Shown(1, Case("function", "m.py", "f"), "f(5)", "'medium'\n", "'light'\n"),
    Shown(
        2,
        Case("command", "m.py"),
        "python3 m.py --input in.csv",
        "exit code 0\na\nb\n",
        "exit code 0\na\nc\n",
        has_input=True,
    ),
]


FIELDS = {
    "tool": "toy",
    "dir": "/app/toy",
    "cases": "two reported cases",
    "libraries": "its standard library only",
}
EXAMPLES = [symptom(item) for item in SHOWN]


def axes(complexity: str, persona: str, tone: str, expertise: str) -> Axes:
    return Axes(
        archetype="repair", verifier_pattern="behavioural", complexity=complexity,
        persona=persona, tone=tone, expertise=expertise,
    )  # fmt: skip


@pytest.mark.parametrize("tone", [*Tone, "whispered"])
@pytest.mark.parametrize("expertise", [*Expertise, "wizard"])
def test_every_voice_is_complete(tone: str, expertise: str) -> None:
    for (persona, complexity), seed in itertools.product(
        zip([*Persona, "ghost"], itertools.cycle(Complexity), strict=False), range(3)
    ):
        text, metrics = write_instruction(
            WORDS, FIELDS, EXAMPLES, axes(complexity, persona, tone, expertise), seed
        )
        assert [metric.name for metric in metrics] == list(WORDS.musts)
        assert all(metric.sentence in text for metric in metrics)
        assert "/app/toy/reports" in text
        assert "two reported cases" in text
        assert not re.search(r"\{\w*\}", text)
        assert not re.search(r"\.\.|  |\n\n\n", text)
        assert text.endswith("\n")


def test_seed_decides_and_repeats() -> None:
    chosen = axes(Complexity.SHORT, Persona.ANALYST, Tone.FRIENDLY, Expertise.PRACTITIONER)
    texts = [write_instruction(WORDS, FIELDS, EXAMPLES, chosen, seed)[0] for seed in [*range(12), 0]]
    assert len(set(texts)) > 4
    assert texts[0] == texts[-1]


def test_one_example_is_told_and_several_are_listed() -> None:
    chosen = axes(Complexity.DEEP, Persona.ANALYST, Tone.TERSE, Expertise.OUTSIDER)
    listed, _ = write_instruction(WORDS, FIELDS, EXAMPLES, chosen, 1, details="| a |\n|---|")
    told, _ = write_instruction(WORDS, FIELDS, EXAMPLES[:1], chosen, 1)
    assert "python3 m.py" in listed
    assert "| a |\n|---|\n\n- " in listed
    assert "python3 m.py" not in told
    assert "For example: " in told


@pytest.mark.parametrize(
    ("now", "right", "said"),
    [
        ("1\n", "2\n", "gives `1` where `2` is right"),
        ("a\nb\n", "a\n", "has the line `b` too much"),
        ("a\n", "a\nb\n", "lacks the line `b`"),
        ("x" * 400, "y", "something other than its `expected.txt`"),
        ("`a`\n", "b\n", "something other"),
    ],
)
def test_symptoms(now: str, right: str, said: str) -> None:
    assert said in symptom(Shown(3, Case("function", "m.py", "f"), "f()", now, right))


def test_long_calls_are_named_by_their_program() -> None:
    item = Shown(3, Case("function", "m.py", "f"), f"f({'x' * 200})", "1", "2")
    assert symptom(item) == "`reports/case-03/run.py` gives `1` where `2` is right."
