"""The verdict of the specification's own reference validator, as information and never as a gate.

The validator is a demonstration program: it rejects most public skills and crashes on odd bytes. Both stay in here.
"""

import contextlib
import io
from pathlib import Path

from skill2env.ingest.quirks import note
from skill2env.records import Diagnostic


def upstream_verdict(root: Path) -> list[Diagnostic]:
    """One diagnostic with the validator's verdict; none when the optional package ``skills-ref`` is not installed."""
    try:
        from skills_ref import validate  # pyright: ignore[reportMissingImports, reportUnknownVariableType]
    except ImportError:
        return []
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            problems = [str(p) for p in validate(root)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    except Exception as error:  # whatever it raises is its own affair
        return [note("upstream-validator", f"it fails with {type(error).__name__}")]
    return [note("upstream-validator", "valid" if not problems else "rejects: " + "; ".join(problems)[:200])]
