"""Biases the recogniser towards names that people are likely to say: devices, rooms, words of the settings, and what
one user has: lists, their items, and titles of the knowledge base.

The names are a trie of tokens. While the network decodes, tokens that begin a name get a bonus, and those that continue
one that was begun get a larger one. Of 24 names of devices in four synthetic voices ("Turn on the …", 96 clips):

| bonus to begin, to continue | right, clean | with white noise at 10 dB | word errors of 25 other sentences |
|-----------------------------|--------------|---------------------------|-----------------------------------|
| none                        | 72           | 27                        | 0.5 %                             |
| 1 and 2                     | 78           | 30                        | 0.5 %                             |
| 2 and 4                     | 82           | 38                        | 0.5 %                             |
| 2 and 6 (this)              | 85           | 46                        | 0.5 %                             |
| 3 and 7                     | 88           | 52                        | 2.0 %                             |

No other device was taken for one of them in 32 clips. Names of lists ("What's on my Costco list?"), items ("Put
gochujang on my shopping list.") and titles ("What do my notes say about the Quarkus migration?") in four voices
(`bench/names.py`):

| bias                                                | lists | items | titles | wrong words of 25 other sentences |
|-----------------------------------------------------|-------|-------|--------|-----------------------------------|
| none                                                | 47/96 | 19/96 | 9/48   | 18/800                            |
| 12 of each kind                                     | 62/96 | 26/96 | 18/48  | 19/800                            |
| and 100 titles of everyday words ("Budget review")  | 62/96 | 26/96 | 18/48  | 19/800                            |

Comparing the sound of the recognised words with the names afterwards repairs one or two of the clips: by then, what was
heard is lost.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from antiphon.speech.engines.moonshine.tokens import Tokens

BEGIN: Final = 2.0
CONTINUE: Final = 6.0
"""Bonuses in logits."""
MAX_PHRASES: Final = 2_000
MAX_PHRASE_CHARS: Final = 60
MIN_PHRASE_CHARS: Final = 4
"""A shorter name is a part of too many words."""


class _Node:
    __slots__ = ("children", "ids")

    def __init__(self) -> None:
        self.children: dict[int, _Node] = {}
        self.ids: NDArray[np.int64] = np.zeros(0, np.int64)
        """The tokens of the children, to index logits with."""

    def grow(self, token: int) -> "_Node":
        return self.children.setdefault(token, _Node())

    def freeze(self) -> None:
        self.ids = np.fromiter(self.children, np.int64, len(self.children))
        for child in self.children.values():
            child.freeze()


class Bias:
    """It is not changed after it is made, so threads may share it."""

    def __init__(self, tokens: Tokens, phrases: Iterable[str]) -> None:
        self._root = _Node()
        usable = (" ".join(phrase.split()) for phrase in phrases)
        wanted = dict.fromkeys(each for each in usable if MIN_PHRASE_CHARS <= len(each) <= MAX_PHRASE_CHARS)
        for phrase in list(wanted)[:MAX_PHRASES]:
            # In a sentence most names are not capitalised.
            for form in {phrase, phrase.lower()}:
                node = self._root
                for token in tokens.split(form):
                    node = node.grow(token)
        self._root.freeze()

    def __bool__(self) -> bool:
        return bool(self._root.children)

    def follow(self, *others: "Bias") -> "Following":
        """Returns the state for one utterance, with the names of others, too."""
        return Following([each._root for each in (self, *others)])


class Following:
    """Which names the tokens of one utterance have begun."""

    def __init__(self, roots: Sequence[_Node]) -> None:
        self._roots = roots
        self._begun: list[_Node] = []

    def choose_all(self, logits: NDArray[np.float32], guessed: Sequence[int]) -> list[int]:
        """Chooses the token of each row, up to the first that is not as guessed."""
        chosen: list[int] = []
        for row, guess in zip(logits, (*guessed, None), strict=True):
            token = self._choose(row)
            chosen.append(token)
            self._accept(token)
            if token != guess:
                break
        return chosen

    def _choose(self, logits: NDArray[np.float32]) -> int:
        """Returns the most likely token, with the bonuses."""
        bonus = logits.copy()
        for root in self._roots:
            bonus[root.ids] = logits[root.ids] + BEGIN
        for node in self._begun:
            bonus[node.ids] = logits[node.ids] + CONTINUE
        return int(bonus.argmax())

    def _accept(self, token: int) -> None:
        self._begun = [
            node.children[token]
            for node in (*self._roots, *self._begun)
            if token in node.children and node.children[token].children
        ]
