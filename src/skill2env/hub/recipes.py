"""Recipes: lists of pinned sources that build a corpus with one command, shipped as data or given as a file."""

import tomllib
from importlib import resources
from pathlib import Path

from skill2env.errors import UserError
from skill2env.hub.folder import parse_config
from skill2env.hub.records import SourceSpec

_FOLDER = "data"
_SUFFIX = ".recipe.toml"


def names() -> list[str]:
    """Names of the recipes that are shipped, sorted."""
    folder = resources.files("skill2env.hub") / _FOLDER
    return sorted(item.name.removesuffix(_SUFFIX) for item in folder.iterdir() if item.name.endswith(_SUFFIX))


def read_recipe(name: str) -> list[SourceSpec]:
    """Sources of a recipe.

    Args:
        name: of a shipped recipe, or path of a TOML file with ``[[source]]`` tables like those of ``hub.toml``.

    Raises:
        UserError: there is no such recipe, or it is not understood.
    """
    if name in names():
        text = (resources.files("skill2env.hub") / _FOLDER / f"{name}{_SUFFIX}").read_text(encoding="utf-8")
    else:
        path = Path(name)
        if not path.is_file():
            raise UserError(
                f"there is no recipe {name}", hint=f"shipped: {', '.join(names())}; or give a TOML file"
            )
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"cannot read {path}: {error}") from None
    try:
        return list(parse_config(tomllib.loads(text), f"recipe {name}").source)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"recipe {name} is no TOML: {error}") from None
