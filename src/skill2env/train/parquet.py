"""Exported rollouts as Parquet with a card, for sharing and for trainers that read tables.

Columns are the fields of a line of `export`; metrics, segments and diagnostics keep their structure.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skill2env.errors import UserError
from skill2env.store.files import staged_folder, storage, write_text
from skill2env.train.reward import RewardConfig


def write_parquet(lines: Sequence[dict[str, Any]], to: Path, config: RewardConfig) -> Path:
    """Write lines of `export` to `to`, and a card beside it.

    Returns:
        The card: README.md in the folder of the file, in the form that dataset hubs read.

    Raises:
        UserError: pyarrow is missing.
        InfraError: boundary ``storage``.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UserError(
            "Parquet needs the package pyarrow, which is not installed",
            hint="install skill2env[parquet], or give a name that ends in .jsonl",
        ) from None
    arrow: Any = pyarrow
    parquet: Any = pyarrow.parquet
    table = arrow.Table.from_pylist([_row(line) for line in lines], schema=_schema(arrow))
    with staged_folder(to.parent) as stage, storage("writing", to):
        parquet.write_table(table, stage / to.name, compression="zstd")
        (stage / to.name).replace(to)
    card = to.parent / "README.md"
    write_text(card, _card(lines, to, config))
    return card


def _schema(arrow: Any) -> Any:
    text, whole, number, truth = arrow.string(), arrow.int64(), arrow.float64(), arrow.bool_()
    segment = arrow.struct([
        ("tokens", arrow.list_(arrow.int32())), ("mask", arrow.list_(arrow.int8())), ("log_probs", arrow.list_(number)),
    ])  # fmt: skip
    told = arrow.struct([(name, text) for name in ("code", "severity", "message", "where")])
    return arrow.schema([
        *((name, text) for name in ("id", "group", "task", "task_digest", "status")),
        *((name, whole) for name in ("attempt", "step")),
        *((name, number) for name in ("r_v", "score", "r", "advantage")),
        *((name, truth) for name in ("passed", "rubric", "usable")),
        ("metrics", arrow.map_(text, number)),
        ("segments", arrow.list_(segment)),
        ("diagnostics", arrow.list_(told)),
    ])  # fmt: skip


def _row(line: dict[str, Any]) -> dict[str, Any]:
    metrics = line["metrics"]
    return {**line, "metrics": None if metrics is None else sorted(metrics.items())}


def _card(lines: Sequence[dict[str, Any]], to: Path, config: RewardConfig) -> str:
    groups = {line["group"] for line in lines}
    tasks = sorted({line["task"] for line in lines})
    usable = len({line["group"] for line in lines if line["usable"]})
    graded = [line["r_v"] for line in lines if line["r_v"] is not None]
    shown = "\n".join(f"- `{task}`" for task in tasks[:200])
    more = f"\n- and {len(tasks) - 200} more" if len(tasks) > 200 else ""
    mean = f"{sum(graded) / len(graded):.3f}" if graded else "none"
    passed = sum(bool(line["passed"]) for line in lines)
    with_tokens = sum(bool(line["segments"]) for line in lines)
    return f"""---
configs:
- config_name: default
  data_files: {to.name}
tags:
- rollouts
- reinforcement-learning
- skill2env
---

# Rollouts

{len(lines)} rollouts in {len(groups)} groups of one task each, {usable} of them usable for training. Mean r_V {mean};
{passed} passed (all named metrics equal 1); {with_tokens} have token ids and log-probabilities of the sampling policy.

Reward: policy `{config.policy.value}`, lambda {config.rubric_weight:g}. A group's rewards were made together; `r` and
`advantage` are empty where a rollout takes no part. The columns are explained in skill2env's docs/training.md.

Rollouts were written by agents working on untrusted tasks. Licences of the tasks apply to what is quoted from them.

## Tasks

{shown}{more}
"""
