"""Which recorded cases show something well: to a reader of reports, and to a verifier that runs few of them."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# The values here are tagged JSON of any shape; `cases.well_formed` checks them where they come in.

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from skill2env.authors.code.behaviour import Behaviour
from skill2env.authors.code.cases import Case, input_names
from skill2env.records import digest_of


def is_public(behaviour: Behaviour, case_id: str) -> bool:
    """True for a command, or a call of a function whose name says that others may call it."""
    case = behaviour.cases[case_id]
    return case.kind == "command" or not any(part.startswith("_") for part in case.name.split("."))


def spread_over_targets(ids: AbstractSet[str], near: AbstractSet[str], behaviour: Behaviour) -> list[str]:
    """Order cases so that the first few of them are of as many functions and scripts as possible, near ones first.

    Few inputs of each function notice most of what may go wrong in it; many of one notice little more.
    """
    ranks: dict[str, int] = {}
    ranked: list[tuple[int, str]] = []
    for i in sorted(ids, key=lambda i: (i not in near, i not in behaviour.observed, digest_of(i))):
        target = behaviour.cases[i].target
        ranks[target] = ranks.get(target, 0) + 1
        ranked.append((ranks[target] * (1 if i in near else 3), i))
    return [i for _, i in sorted(ranked, key=lambda item: item[0])]


def spread(behaviour: Behaviour, ranked: Sequence[str], count: int) -> list[str]:
    """Up to `count` cases: other outcomes before equal ones, the skill's own and other entry points first."""
    left = [i for i in ranked if can_be_shown(behaviour.cases[i])][: 8 * count]
    found: list[str] = []
    while left and len(found) < count:
        shapes = {shape(behaviour.outcomes[i]) for i in found}
        targets = {behaviour.cases[i].target for i in found}
        best = min(
            left,
            key=lambda i: (
                shape(behaviour.outcomes[i]) in shapes,
                i not in behaviour.observed,
                behaviour.cases[i].target in targets,
                left.index(i),
            ),
        )
        left.remove(best)
        found.append(best)
    return found


def shape(outcome: Any) -> str:
    """Equal for outcomes that look alike to a reader: the names of written files do not matter."""
    files = outcome.get("files", {})
    return digest_of(
        [sorted(files.values()), {key: value for key, value in outcome.items() if key != "files"}]
    )


_PORTABLE = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9._-]*/?)+")


def can_be_shown(case: Case) -> bool:
    """True when the names of its input files can be stored on every system, so that a report can hold them."""
    names = input_names([list(case.args), list(case.kwargs.values())])
    return all(name == "." or _PORTABLE.fullmatch(name) for name in names)
