"""Decides whether a user's own words mean yes or no. Code decides this, never a model: a yes releases a held call.

The whole text must be made of words of consent, or the whole of refusal. Anything else in it ("yes, but change the
time", "the page says yes") makes it neither, and then it is an ordinary turn.
"""

import re
from typing import Final

MAX_CHARS: Final = 60

_IT_IS: Final = "(?:that is|that's|thats|it is|it's)"
_DONT: Final = "(?:do not|don't|dont)"

_YES: Final = "|".join(
    (
        "y|yes|yeah|yea|yep|yup|aye|sure|sure thing|ok|okay|all right|alright|absolutely|certainly|of course",
        "definitely|by all means|affirmative|confirm(?:ed)?|i confirm(?: it| that)?|agreed|i agree|approved?|correct",
        f"{_IT_IS} (?:right|correct|fine|ok|okay|good)|(?:sounds|looks) (?:good|right|great|fine)",
        "go ahead|go for it|proceed|do it|do that|do so|please do|please do (?:it|that|so)",
        "(?:yes|yeah|yep|sure) (?:thanks|thank you|i do|i would|you (?:can|may|should)|it is|that is)",
        "i am sure|i'm sure",
    )
)
_NO: Final = "|".join(
    (
        # "don't" counts only on its own, since "don't stop" is not a refusal.
        f"{_DONT}(?=$| please| no)|{_DONT} (?:do|run|send) (?:it|that|this)|i {_DONT} want (?:that|it|to)",
        "n|no|nope|nah|never|negative|no (?:thanks|thank you|way)|wrong|incorrect",
        "(?:absolutely|definitely|certainly|of course|please|probably|better|rather|i'd rather|i would rather) not",
        "not (?:now|yet|today|this time|really|quite)|i(?: have|'ve)? changed my mind",
        f"{_IT_IS} (?:wrong|incorrect|not right|not correct)",
        "(?:cancel|stop|abort)(?: it| that| this)?|never ?mind|forget (?:it|that|about it)|(?:leave|drop|skip) it",
        "wait|wait a (?:minute|moment|second)|hold on|hang on",
    )
)
_BEFORE: Final = "please|oh|ah|um+|uh+|er+m?|hm+|well|then|just"
_AFTER: Final = "please|now|then"


def _said_with(words: str) -> re.Pattern[str]:
    # "and" and "um" at the end are a sentence that was not finished, so they may only stand before something.
    return re.compile(rf"(?:(?:{_BEFORE}) )*(?:{words})(?:(?: and)? (?:{words}|{_AFTER}))*")


_SAYS_YES: Final = _said_with(_YES)
_SAYS_NO: Final = _said_with(_NO)


def verdict(text: str) -> bool | None:
    """Returns True for a clear yes, False for a clear no, None for everything else."""
    if len(text) > MAX_CHARS or "?" in text:
        return None
    words = " ".join(re.sub(r"[.,!;…—–]", " ", text.lower().replace("’", "'")).split())
    if _SAYS_YES.fullmatch(words):
        return True
    if _SAYS_NO.fullmatch(words):
        return False
    return None
