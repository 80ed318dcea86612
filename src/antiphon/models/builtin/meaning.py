"""Finds the tool that a request is for by its meaning: by how near it is to requests whose tool is known.

The known requests are the examples that tools bring along, one reading of each of their templates, and everyday
sentences that ask for none of them. A kernel ridge regression over their embeddings gives every tool a score. It was
chosen over the nearest example: of SLURP's development sentences it finds the tool of 240 that no template matches,
where the nearest example finds 132, with the same number of mistakes. Words in common, and neutral words in place of
numbers and places, were tried beside it and made it no better.
"""

import hashlib
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

from antiphon.sentences.phrases import Phrase

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WIDTH: Final = 3.0
"""How fast the influence of an example falls with its distance."""
RIDGE: Final = 0.3
"""How much a single example is distrusted."""
VERSION: Final = 1
"""Part of the name of a cache file; to be raised when its content changes."""

Example = tuple[str | None, str]
"""The tool that a sentence asks for, None if it asks for none; and the sentence."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """How well a text fits each tool, and none of them."""

    scores: Mapping[str | None, float]

    def best(self, tools: Container[str]) -> str | None:
        """Returns the best of these tools; None if none of them was learned."""
        known = [tool for tool in self.scores if tool is not None and tool in tools]
        return max(known, key=lambda tool: self.scores[tool], default=None)

    def lead(self, tool: str, tools: Container[str]) -> float:
        """Returns by how much a tool leads these tools and "none of them": about 1 for an example of it, below 0 if
        another is better."""
        others = [score for each, score in self.scores.items() if each != tool and (each is None or each in tools)]
        return self.scores[tool] - max(others, default=0.0)

    def nearest(self, tools: Container[str]) -> list[str]:
        """Returns these tools, the best first."""
        known = [tool for tool in self.scores if tool is not None and tool in tools]
        return sorted(known, key=lambda tool: -self.scores[tool])


class Meaning:
    """The fitted examples. It is immutable, so all conversations can share it."""

    def __init__(
        self, tools: Sequence[str | None], vectors: "NDArray[np.float32]", weights: "NDArray[np.float32]"
    ) -> None:
        self._tools = tools
        """The columns of the weights."""
        self._vectors = vectors
        self._weights = weights

    @classmethod
    def fit(cls, examples: Sequence[Example], vectors: "NDArray[np.float32]") -> "Meaning":
        import numpy as np

        tools = sorted({tool for tool, _ in examples}, key=lambda tool: tool or "")
        wanted = np.array([[float(tool == each) for each in tools] for tool, _ in examples], np.float32)
        kernel = _kernel(vectors, vectors) + RIDGE * np.eye(len(examples), dtype=np.float32)
        return cls(tools, vectors, np.linalg.solve(kernel, wanted).astype(np.float32))

    @classmethod
    def load(cls, path: Path) -> "Meaning | None":
        """Reads what `save` wrote; None if there is no such file, or it cannot be read."""
        import numpy as np

        try:
            with np.load(path, allow_pickle=False) as stored:
                tools = [str(tool) or None for tool in stored["tools"]]
                return cls(tools, stored["vectors"].astype(np.float32), stored["weights"])
        except (OSError, ValueError, KeyError):
            return None

    def save(self, path: Path) -> None:
        """Writes the file, and removes those of other examples."""
        import numpy as np

        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial.npz")
        tools = np.array([tool or "" for tool in self._tools])
        np.savez(partial, tools=tools, vectors=self._vectors, weights=self._weights)
        partial.replace(path)
        for other in path.parent.glob("examples-*.npz"):
            if other != path:
                other.unlink(missing_ok=True)

    def rank(self, vector: "NDArray[np.float32]") -> Ranking:
        import numpy as np

        # Not by `@`: for a product this small OpenBLAS wakes threads on all cores that spin afterwards, and the
        # embedding of the next text takes 16 ms of processor time instead of 4.
        kernel = np.exp(WIDTH * (np.einsum("ij,j->i", self._vectors, vector) - 1))
        scores = np.einsum("i,ij->j", kernel, self._weights)
        return Ranking(dict(zip(self._tools, scores.tolist(), strict=True)))


def _kernel(left: "NDArray[np.float32]", right: "NDArray[np.float32]") -> "NDArray[np.float32]":
    import numpy as np

    similar: NDArray[np.float32] = np.exp(WIDTH * (left @ right.T - 1))
    return similar


def normalize(text: str) -> str:
    """Returns the text as it is embedded: a recogniser writes no punctuation, so nothing has any."""
    return " ".join(word for word, _, _ in Phrase(text).words())


def cache_file(folder: Path, examples: Sequence[Example], model: str) -> Path:
    """Names the file for these examples."""
    digest = hashlib.sha256(repr((VERSION, model, WIDTH, RIDGE, list(examples))).encode()).hexdigest()
    return folder / f"examples-{digest[:16]}.npz"


def with_unrelated(examples: Mapping[str, Sequence[str]]) -> list[Example]:
    """Returns the examples of tools with those that ask for none of them."""
    known = [(tool, normalize(text)) for tool, texts in examples.items() for text in texts]
    others = [(tool if tool in examples else None, normalize(text)) for tool, text in _unrelated()]
    return list({text: (tool, text) for tool, text in [*others, *known]}.values())


@cache
def _unrelated() -> tuple[tuple[str, str], ...]:
    """Reads the sentences. Those below a "[name]" belong to that tool, where there is one."""
    tool, found = "", list[tuple[str, str]]()
    lines = resources.files(__package__).joinpath("unrelated.txt").read_text(encoding="utf-8").splitlines()
    for line in lines:
        if line.startswith("["):
            tool = line.strip("[]")
        elif line and not line.startswith("#"):
            found.append((tool, line))
    return tuple(found)
