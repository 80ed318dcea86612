"""How words sound, roughly: enough to find the name that a recogniser misheard.

"Lice" is far from "lights" in its letters and near in its sound. The key keeps the consonants, by what they sound like,
and whether a vowel is a light or a dark one. With one key for all vowels, a "bedroom" would be a "bathroom".
"""

import re
from functools import lru_cache
from typing import Final

from rapidfuzz import fuzz

MIN_SPELLED_ALIKE: Final = 45
"""Words with fewer letters in common are other words, however similar their keys are: "ear" and "oar"."""
MIN_SOUND: Final = 85
SOUND_WEIGHT: Final = 0.96
"""A match by sound counts a little less than the same match by letters."""
REMEMBERED: Final = 4_096

_RULES: Final = tuple(
    (re.compile(pattern), sound)
    for pattern, sound in (
        (r"[^a-z]", ""),
        (r"^(?:kn|gn|pn)", "n"),
        (r"^wr", "r"),
        (r"^ps", "s"),
        (r"^x", "s"),
        (r"mb$", "m"),
        (r"tch|ch", "C"),
        (r"[st]ion", "Sn"),
        (r"sch|sh", "S"),
        (r"ph", "f"),
        (r"th", "T"),
        (r"wh", "w"),
        (r"(?<=[aiou])gh(?=t)", ""),
        (r"gh$", ""),
        (r"dge?", lambda match: "j" if len(match.group()) > 1 else "d"),
        (r"sc(?=[eiy])", "s"),
        (r"c(?=[eiy])", "s"),
        (r"ck|c|q", "k"),
        (r"ge(?=$|[aou])", "j"),
        (r"x", "ks"),
        (r"z", "s"),
        (r"(?<=[a-zCST])es?$", lambda match: "s" if match.group().endswith("s") else ""),
        (r"(?<=[aeou])[wy]", ""),
        (r"(?!^y)[aeiouy]+", lambda match: "I" if match.group()[0] in "eiy" else "A"),
        (r"(?<=.)h", ""),
        (r"(.)\1+", r"\1"),
    )
)


@lru_cache(REMEMBERED)
def sound_of(word: str) -> str:
    """Returns the key of a word, or of several that are written without spaces."""
    key = word.lower()
    for pattern, sound in _RULES:
        key = pattern.sub(sound, key)
    return key


def similarity(said: str, name: str) -> float:
    """Compares words by their letters or by their sound, whichever is more alike, from 0 to 100."""
    spelled = fuzz.ratio(said, name)
    if spelled < MIN_SPELLED_ALIKE or spelled == 100:
        return spelled
    sound = fuzz.ratio(_sound(said), _sound(name), score_cutoff=MIN_SOUND)
    return max(spelled, SOUND_WEIGHT * sound)


@lru_cache(REMEMBERED)
def _sound(text: str) -> str:
    """Returns the keys of all words. Spaces do not count: "shop in" is "shopping"."""
    return "".join(map(sound_of, text.split()))
