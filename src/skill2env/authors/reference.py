"""Authors by reference: ``module:attribute`` or ``path/to/file.py:attribute``, for code that no package announces.

What is named is the user's own program and is run as part of this one, as an entry point would be. Whatever goes wrong
while it is loaded is told in one sentence, because the reader is the one who wrote it or can ask who did.
"""

import hashlib
import importlib.util
import sys
from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from skill2env.authors.protocol import Author
from skill2env.errors import InfraError, UserError

if TYPE_CHECKING:
    from skill2env.authors.registry import AuthorSettings

SUFFIX = ".py"
FORM = "MODULE:FACTORY or FILE.py:FACTORY"


def is_reference(name: str) -> bool:
    """Whether a name of an author points to code instead of standing in a table."""
    return ":" in name


def made_by(load: Callable[[], Any], settings: "AuthorSettings", what: str) -> Author:
    """Load a factory of somebody else's and have it make an author.

    Args:
        load: gives the factory, which takes `settings`.
        settings: what the user said.
        what: how the user called it, for messages.

    Raises:
        UserError: it cannot be loaded or called, or gives something that is no `Author`.
        InfraError: the factory says that the surroundings failed.
    """
    try:
        author = load()(settings)
        if isinstance(author, Author):
            return author
    except (UserError, InfraError):
        raise
    except Exception as error:  # whatever an author's own code may raise: it is told, never a traceback
        raise UserError(
            f"the author {what} cannot be made: {type(error).__name__}: {error}",
            hint="It is a function or class that takes AuthorSettings and returns an Author; see docs/authors.md.",
        ) from error
    raise UserError(
        f"the factory {what} gave no author but {type(author).__name__}",
        hint="It needs identity, plan and create; see src/skill2env/authors/protocol.py.",
    )


def factory_at(reference: str) -> Any:
    """What a reference points to.

    Args:
        reference: ``module:attribute``, or ``path/to/file.py:attribute`` relative to the working folder. Dots in the
            attribute lead on.

    Raises:
        UserError: there is no such file, module or attribute, or its code fails while it is imported.
    """
    place, _, attribute = reference.rpartition(":")
    if not place or not attribute:
        raise UserError(f"{reference!r} names no author", hint=f"Write {FORM}.")
    try:
        module = _module_of(Path(place).expanduser()) if place.endswith(SUFFIX) else import_module(place)
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(
            f"{place} cannot be imported: {type(error).__name__}: {error}",
            hint=f"Write {FORM}; a module must be installed beside skill2env, or lie on PYTHONPATH.",
        ) from error
    try:
        return attrgetter(attribute)(module)
    except AttributeError:
        raise UserError(f"{place} holds no {attribute!r}", hint=f"Write {FORM}.") from None


def _module_of(path: Path) -> ModuleType:
    """Import a file under a name of its own; modules beside it can be imported from it."""
    path = path.absolute()
    if not path.is_file():
        raise UserError(f"there is no file {path}", hint=f"Write {FORM}.")
    # Two files of one name are two modules, and the same file is imported once.
    name = f"skill2env_author_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None  # the suffix is one that the interpreter knows
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    # At the end, so that a file beside it never stands in for an installed package.
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    sys.modules[name] = module  # dataclasses look their module up there
    try:
        specification.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
