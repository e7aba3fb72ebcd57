"""Libraries that only some analyses need, and what to say where they are missing."""

from importlib.util import find_spec

from skill2env.errors import UserError


def require_analyze() -> None:
    """Make sure that scikit-learn and SciPy are there.

    Raises:
        UserError: they are not.
    """
    _require("sklearn", "scipy")


def require_charts() -> None:
    """Make sure that matplotlib is there.

    Raises:
        UserError: it is not.
    """
    _require("matplotlib")


def _require(*names: str) -> None:
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise UserError(
            f"this analysis needs {' and '.join(missing)}", hint="pip install 'skill2env[analyze]'"
        )
