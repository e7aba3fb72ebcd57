"""The verdict of the specification's own reference validator, as information and never as a gate.

The validator is a demonstration program: it rejects most public skills and crashes on odd bytes. Both stay in here, and
where the optional package ``skills-ref`` is not installed nothing is said.
"""

import contextlib
import io
from importlib import import_module
from pathlib import Path
from typing import Any

from skill2env.ingest.quirks import note
from skill2env.records import Diagnostic

_MAX_CHARS = 1_000_000


def upstream_verdict(root: Path, entry: str, text: str) -> list[Diagnostic]:
    """One diagnostic with the validator's verdict; none when it is not installed.

    Args:
        root: the skill's folder, for the comparison with the name; nothing is read from it.
        entry: name of the entry file.
        text: its content, as it was decoded here.
    """
    try:
        reader: Any = import_module("skills_ref.parser")
        validator: Any = import_module("skills_ref.validator")
    except ImportError:
        return []
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            values, _ = reader.parse_frontmatter(text[:_MAX_CHARS])
            problems = [str(problem) for problem in validator.validate_metadata(values, root)]
    except Exception as error:  # whatever it raises is its own affair
        said = str(error).split("\n", 1)[0] or type(error).__name__
        return [note("upstream-validator", f"rejects: {said}", entry)]
    said = "rejects: " + "; ".join(problems) if problems else "valid"
    return [note("upstream-validator", said, entry)]
