"""Judgements as JSON lines, one a rollout, sorted by id."""

import json
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from skill2env.errors import UserError
from skill2env.judge.records import Judgement
from skill2env.records import canonical_json
from skill2env.store.files import write_text


def write_judgements(path: Path, judgements: Iterable[Judgement]) -> None:
    """Write a file in full or not at all; the same judgements give the same bytes.

    Raises:
        InfraError: boundary ``storage``.
    """
    ordered = sorted(judgements, key=lambda item: item.id)
    write_text(path, "".join(canonical_json(item) + "\n" for item in ordered))


def read_judgements(path: Path) -> list[Judgement]:
    """Read such a file.

    Raises:
        UserError: it cannot be read, a line is no judgement, or a rollout is judged twice.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"the judgements {path} cannot be read: {error}", hint="skill2env judge run"
        ) from error
    found: dict[str, Judgement] = {}
    for number, line in enumerate(lines, 1):
        try:
            item = Judgement.model_validate(json.loads(line))
        except (ValueError, ValidationError) as error:
            raise UserError(f"{path}:{number} is no judgement: {str(error)[:200]}") from error
        if item.id in found:
            raise UserError(f"{path}:{number}: {item.id} is judged twice")
        found[item.id] = item
    return list(found.values())
