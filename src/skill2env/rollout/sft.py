"""Conversations for supervised fine-tuning, and a warning where imitating them would teach to go in circles.

Small models are known to collapse when they are trained on records that repeat themselves, so every conversation is
looked at for loops (the same call again and again) and repetition (the same words again and again), and what was found
is reported of the set.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from skill2env.errors import UserError
from skill2env.records import canonical_json
from skill2env.rollout.records import TRAJECTORY_FILE, Rollout
from skill2env.rollout.stats import LOOP_REPEATS, longest_loop
from skill2env.rollout.trajectory import Step, read_trajectory
from skill2env.store.files import write_text

GRAM = 8
"""Words of one window of the repetition measure."""
FEWEST_GRAMS = 40
"""Shorter texts repeat themselves by nature."""
REPETITIVE = 0.5
"""Share of repeated windows from which on a text counts as repetitive."""


class Selection(StrEnum):
    """Which rollouts become conversations."""

    ALL = "all"
    """Every graded one."""
    PASSING = "passing"
    """Those that passed."""


@dataclass(slots=True)
class SftReport:
    """What was written, and what is odd about it."""

    written: int = 0
    failed: int = 0
    """Graded rollouts that did not pass and were not asked for."""
    unreadable: list[str] = field(default_factory=list[str])
    """Ids of rollouts without a trajectory that can be read."""
    looping: list[str] = field(default_factory=list[str])
    """Ids of conversations with a loop."""
    repetitive: list[str] = field(default_factory=list[str])
    """Ids of conversations that repeat their own words."""

    @property
    def suspicious(self) -> float:
        """Share of conversations with a loop or repetition; 0 when there are none."""
        return len({*self.looping, *self.repetitive}) / self.written if self.written else 0.0


def write_sft(
    folder: Path,
    rollouts: Sequence[Rollout],
    to: Path,
    *,
    selection: Selection = Selection.PASSING,
    leave_out: bool = False,
) -> SftReport:
    """Write one conversation a line.

    Each is ``id``, ``task``, ``passed``, ``r_v``, and ``messages`` as chat completions have them.

    Args:
        folder: the folder of the rollouts.
        rollouts: what it holds, or a part of it.
        to: the file.
        selection: which of them.
        leave_out: leave out what loops or repeats itself; it is reported either way.

    Raises:
        InfraError: boundary ``storage``.
    """
    report = SftReport()
    lines: list[str] = []
    for item in sorted(rollouts, key=lambda item: (item.task, item.group, item.attempt)):
        if item.outcome is None:
            continue
        if selection is Selection.PASSING and not item.passed:
            report.failed += 1
            continue
        try:
            steps = read_trajectory(folder / item.place / TRAJECTORY_FILE)
        except UserError:
            report.unreadable.append(item.id)
            continue
        if _odd(item.id, steps, report) and leave_out:
            continue
        line = {
            "id": item.id,
            "task": item.task,
            "passed": item.passed,
            "r_v": item.outcome,
            "messages": messages_of(steps),
        }
        lines.append(canonical_json(line) + "\n")
    report.written = len(lines)
    write_text(to, "".join(lines))
    return report


def messages_of(steps: Iterable[Step]) -> list[dict[str, Any]]:
    """A conversation: what the agent says and calls between two results is one message of the assistant."""
    messages: list[dict[str, Any]] = []
    waiting: list[str] = []
    calls = 0
    for step in steps:
        if step.source == "tool":
            messages.append(
                {"role": "tool", "tool_call_id": waiting.pop(0) if waiting else "", "content": step.text}
            )
            continue
        if step.source != "agent":
            messages.append({"role": "system" if step.source == "system" else "user", "content": step.text})
            continue
        if not messages or messages[-1]["role"] != "assistant":
            messages.append({"role": "assistant", "content": ""})
            waiting = []
        said = messages[-1]
        if not step.name:
            said["content"] = f"{said['content']}\n{step.text}" if said["content"] else step.text
            continue
        calls += 1
        waiting.append(f"call-{calls}")
        function = {"name": step.name, "arguments": step.text}
        said.setdefault("tool_calls", []).append(
            {"id": waiting[-1], "type": "function", "function": function}
        )
    return messages


def repetition(text: str) -> float:
    """Share of windows of `GRAM` words that stood in the text before; 0 for short texts."""
    words = text.split()
    grams = Counter(tuple(words[at : at + GRAM]) for at in range(len(words) - GRAM + 1))
    total = grams.total()
    return 1 - len(grams) / total if total >= FEWEST_GRAMS else 0.0


def _odd(ident: str, steps: Sequence[Step], report: SftReport) -> bool:
    loops = longest_loop(steps) >= LOOP_REPEATS
    repeats = repetition(" ".join(step.text for step in steps if step.source == "agent")) >= REPETITIVE
    if loops:
        report.looping.append(ident)
    if repeats:
        report.repetitive.append(ident)
    return loops or repeats
