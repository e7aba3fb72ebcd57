"""Deliveries in parts: the reference solution restores every text, whatever was sent twice or damaged."""

import json
import random
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skill2env.authors.code.families.parts import ENCODINGS, cut, encode
from skill2env.authors.code.templates import operate

LINE = st.text(alphabet="ab,;\\n\"' \t0\u00e9\u20ac\U0001f600", max_size=8)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LINE, min_size=3, max_size=12), st.integers(0, 10_000))
def test_everything_is_restored(tmp_path: Path, lines: list[str], seed: int) -> None:
    text = "".join(f"{line}\n" for line in lines)
    parts = cut("order-01", "in.csv", text, random.Random(seed))
    (tmp_path / "parts").mkdir(exist_ok=True)
    listed: list[dict[str, object]] = []
    for number, part in enumerate(parts):
        name = f"p-{number}.txt"
        (tmp_path / "parts" / name).write_text(part.sent, encoding="utf-8", newline="")
        listed.append({"part": name, **part.facts})
    (tmp_path / "parts.json").write_text(json.dumps(listed), encoding="utf-8")
    assert operate.restored(tmp_path) == {("order-01", "in.csv"): text}


def test_every_encoding_changes_or_keeps_what_it_should() -> None:
    sent = {name: encode("a\u00e9\nb\\n\n", name) for name in ENCODINGS}
    assert sent["plain"] == "a\u00e9\nb\\n\n"
    assert all(operate.decoded(text, name) == "a\u00e9\nb\\n\n" for name, text in sent.items())
    assert len(set(sent.values())) == len(ENCODINGS)


def test_some_parts_come_twice_once_damaged() -> None:
    rng = random.Random(1)
    text = "".join(f"line {n},{n * n}\n" for n in range(40))
    parts = [part for _ in range(20) for part in cut("o", "f", text, rng)]
    places = [(part.facts["first_line"], part.facts["last_line"], part.facts["sha256"]) for part in parts]
    assert len(set(places)) < len(places)
