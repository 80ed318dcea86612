"""The seam to an embedding model."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from antiphon.errors import AntiphonError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class EmbeddingError(AntiphonError):
    """The embedding model cannot be loaded."""

    code = "embedding"


class Embedder(Protocol):
    """One embedder serves all sessions of a process."""

    @property
    def name(self) -> str: ...

    async def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Returns one row of unit length per text, so that the product of two rows is their similarity. It does not
        block the event loop."""
        ...

    def embed_now(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Does the same in this thread."""
        ...

    async def aclose(self) -> None: ...
