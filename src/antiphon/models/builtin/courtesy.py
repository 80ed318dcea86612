"""The polite words around a request, which a grammar need not know: "hey, could you tell me …, please"."""

import re
from typing import Final

from antiphon.sentences.phrases import Phrase

MAX_LEFT_OFF: Final = 4
"""At either end."""

_BEFORE: Final = re.compile(
    r"\s*(?:please|kindly|hey|hi|hello|good (?:morning|afternoon|evening)|antiphon|computer|"
    r"ok|okay|alright|all right|right|so|well|oh|um+|uh+|er+m?|hm+|now|then|and|actually|listen|just|"
    r"(?:can|could|will|would) you(?: please)?|tell me|let me know|do you (?:happen to )?know|"
    r"i(?:'d|’d| would) like (?:you to|to know)|i (?:want|need) (?:you to|to know))(?:[\s,.!:]+|\Z)",
    re.IGNORECASE,
)
_AFTER: Final = re.compile(
    r"[\s,.!]{0,3}\b(?:please|thanks|thank you|(?:can|could|will|would) you)[\s,.!?]{0,3}\Z", re.IGNORECASE
)


def without_courtesy(said: str) -> list[Phrase]:
    """What was said with more and more of the polite words left off, beginning with none.

    Which of them belong to the request, the grammar decides: "tell me" does in "tell me a joke".
    """
    said = said.strip()
    starts, ends = [0], [len(said)]
    for _ in range(MAX_LEFT_OFF):
        if (match := _BEFORE.match(said, starts[-1])) and match.end() < len(said):
            starts.append(match.end())
        if (match := _AFTER.search(said, 0, ends[-1])) and match.start() > 0:
            ends.append(match.start())
    texts = (said[start:end] for start in starts for end in ends if start < end)
    return [Phrase(text) for text in dict.fromkeys(texts)] or [Phrase(said)]
