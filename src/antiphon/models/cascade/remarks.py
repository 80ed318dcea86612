"""What people say over an answer: nothing, a word that lets it go on, a word that stops it, or something to answer."""

import re
from collections.abc import Iterable
from enum import Enum, auto
from typing import Final

MIN_CLEAR_FRAMES: Final = 4
"""How many frames of clear speech (0.13 s) a few words need. Real words of one syllable had 9 or more, and 7 by a voice
that whispers. Of the six laughs, sneezes and grunts in which the recogniser found words, four had 3 or fewer."""
MAX_FEW_WORDS: Final = 3
MIN_CONSONANTS: Final = 2
"""How many consonants other than h, m, n, w and y one or two unknown words need. "Uh-huh" and "mm-hmm" are recognised
as "A high", "Mem", "Him" or "Ahoy", since they are no words."""
MAX_ECHOED_WORDS: Final = 4
"""How long a text is at most that counts as a stop because it ends with one: "And stop it" was a "stop it"."""
SURE_WORDS: Final = 4
"""How many words are enough to interrupt before the sound has stopped. The beginning of an "okay" may be any word."""


class Remark(Enum):
    NOTHING = auto()
    """A noise, or a sound without words."""
    BACKCHANNEL = auto()
    """It shows that somebody listens, and wants no answer."""
    STOP = auto()
    """The answer is not wanted any more. There is nothing to answer."""
    WORDS = auto()


BACKCHANNELS: Final = (
    *("okay", "ok", "o k", "kay", "right", "write", "all right", "alright", "yeah", "yes", "yep", "yup", "ya", "sure"),
    *("of course", "so", "well", "mm", "mmm", "hm", "hmm", "mhm", "mm hm", "mm hmm", "uh", "uh huh", "um", "huh", "ah"),
    *("aha", "a ha", "oh", "ooh", "ha", "haha", "he", "hehe", "heh", "wow", "cool", "nice", "great", "good", "fine"),
    *("i see", "got it", "gotcha", "i got it", "makes sense", "that makes sense", "fair enough", "understood"),
    *("thanks", "thank you", "thanks a lot", "thank you very much", "very good", "interesting", "really", "exactly"),
    *("true", "indeed", "perfect", "lovely", "thats right", "thats good"),
)
"""Some are what the recogniser writes for them: "write" for a "right", "kay" for the end of an "okay"."""
STOPS: Final = (
    *("stop", "stop it", "stop that", "stop talking", "stop there", "enough", "thats enough"),
    *("be quiet", "quiet", "silence", "hush", "shush", "shut up", "thats all", "that will do", "thatll do"),
)
COURTESIES: Final = ("please", "now", "okay", "ok", "hey", "oh", "just", "thanks", "thank you", "no", "alright")
"""What people add to a stop."""
SHORT_REQUESTS: Final = frozenset(
    (
        *("again", "but", "go", "hello", "help", "hey", "hi", "hold", "how", "louder", "more", "never", "next", "no"),
        *("nope", "not", "now", "or", "quieter", "skip", "slower", "wait", "what", "when", "where", "which", "who"),
        *("whose", "why", "wrong"),
    )
)
"""Words that interrupt although they are short: people begin a correction, a question or a command with them."""


def split(text: str) -> list[str]:
    return re.findall(r"\w+", re.sub("['\u2019]", "", text.lower()))


def judge(text: str, clear_frames: int, *, is_reply: bool = False, is_echoed: bool = False) -> Remark:
    """Judges what was recognised over an answer.

    `is_reply`: the answer asks something, so that a yes replies to it. `is_echoed`: the microphone hears the answer, so
    that the words may begin with a remainder of it.
    """
    words = split(text)
    said = " ".join(words)
    if not words:
        return Remark.NOTHING
    if _STOP.fullmatch(said) or (is_echoed and len(words) <= MAX_ECHOED_WORDS and _ECHOED_STOP.search(said)):
        return Remark.STOP
    if _BACKCHANNEL.fullmatch(said):
        return Remark.WORDS if is_reply else Remark.BACKCHANNEL
    if len(words) <= MAX_FEW_WORDS and clear_frames < MIN_CLEAR_FRAMES:
        return Remark.NOTHING
    is_known = len(words) > 2 or not said.isascii() or not SHORT_REQUESTS.isdisjoint(words)
    if not is_known and _consonants(said) < MIN_CONSONANTS:
        return Remark.NOTHING
    return Remark.WORDS


def is_noise(text: str, clear_frames: int) -> bool:
    """Whether a text that was recognised while no answer plays is a word that somebody found in a noise."""
    return len(split(text)) < 2 and clear_frames < MIN_CLEAR_FRAMES


def _consonants(said: str) -> int:
    """Counts the consonants that a sound without words does not have."""
    return len(re.findall(r"[bcdfjklpqrstvxz0-9]|g(?!h)", re.sub(r"(.)\1", r"\1", said)))


def _sequence(phrases: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, phrases), key=len, reverse=True))


_BACKCHANNEL: Final = re.compile(rf"(?:{_sequence(BACKCHANNELS)})(?: (?:{_sequence(BACKCHANNELS)}))*")
_STOP: Final = re.compile(
    rf"(?:(?:{_sequence(COURTESIES)}) )*(?:{_sequence(STOPS)})(?: (?:{_sequence((*STOPS, *COURTESIES))}))*"
)
_ECHOED_STOP: Final = re.compile(r"(?<!dont )\b(?:s?top(?: it| that)?|quiet|enough|shut up)$")
