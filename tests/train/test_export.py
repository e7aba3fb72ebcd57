"""Exported lines, as JSON and as Parquet, hold the same."""

import json
from pathlib import Path
from typing import Any

import pytest

from skill2env.cli import main as cli
from skill2env.rollout.records import RECORD_FILE, TOKENS_FILE, Rollout, RolloutStatus

pytestmark = pytest.mark.filterwarnings("error")
TOKENS = [
    {"prompts": [[1, 2], [1, 2, 3, 9]], "completions": [[3], [4, 5]], "log_probs": [[-0.5], [-0.25, -1.0]]}
]


@pytest.fixture
def rollouts(tmp_path: Path) -> Path:
    """Two groups: one that is whole, and one whose second rollout the machine prevented."""
    for group, outcomes in (("one", (1.0, 0.5)), ("two", (0.0, None))):
        for attempt, outcome in enumerate(outcomes):
            place = Path("trials") / f"task-{group}" / group / f"{attempt:03d}"
            folder = tmp_path / "R" / place
            folder.mkdir(parents=True)
            made = Rollout(
                group=group, attempt=attempt, task=f"org/{group}", task_digest=f"sha256:{group}", agent="a",
                status=RolloutStatus.ERROR if outcome is None else RolloutStatus.VALID,
                metrics=None if outcome is None else {"left": outcome, "right": 1.0 if outcome else 0.0},
                outcome=outcome, place=place.as_posix(),
            )  # fmt: skip
            (folder / RECORD_FILE).write_text(made.model_dump_json())
            (folder / TOKENS_FILE).write_text(json.dumps(TOKENS))
    return tmp_path / "R"


def export(rollouts: Path, to: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert cli.run(["rollout", "export", str(rollouts), "--to", str(to), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_lines(rollouts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    to = tmp_path / "train.jsonl"
    found = export(rollouts, to, capsys)
    assert found == {"rollouts": 4, "groups": 2, "usable": 1, "dropped_terms": 0, "with_tokens": 4}
    first, second, third, fourth = map(json.loads, to.read_text().splitlines())
    assert (first["r"], second["r"], first["advantage"], second["advantage"]) == (1.0, 0.75, 0.125, -0.125)
    assert [third["usable"], fourth["usable"], fourth["r_v"]] == [False, False, None]
    assert fourth["diagnostics"][0]["code"] == "rollout-missing"
    (segment,) = first["segments"]
    assert segment == {
        "tokens": [1, 2, 3, 9, 4, 5],
        "mask": [0, 0, 1, 0, 1, 1],
        "log_probs": [0, 0, -0.5, 0, -0.25, -1],
    }
    before = to.read_bytes()
    export(rollouts, to, capsys)
    assert to.read_bytes() == before


def test_parquet_holds_the_same_and_has_a_card(
    rollouts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parquet: Any = pytest.importorskip("pyarrow.parquet", reason="the extra 'parquet' is not installed")
    lines, to = tmp_path / "train.jsonl", tmp_path / "data" / "train.parquet"
    assert export(rollouts, to, capsys) == export(rollouts, lines, capsys)
    wanted = [json.loads(line) for line in lines.read_text().splitlines()]
    found = parquet.read_table(to).to_pylist()
    for row in found:
        row["metrics"] = None if row["metrics"] is None else dict(row["metrics"])
    assert found == wanted
    card = (to.parent / "README.md").read_text()
    assert "4 rollouts in 2 groups" in card
    assert "1 of them usable" in card
    assert "data_files: train.parquet" in card
    assert "`org/one`" in card
