"""Tells what somebody wants to be reminded of."""

from typing import Final

from antiphon.words.reported import to_second_person

_VERB_LIST: Final = """
    add answer apply arrange ask attend back bake be book bring brush buy call cancel catch change charge check
    clean close collect congratulate contact cook copy deliver do download drink drive drop eat email empty exercise
    feed file fill find finish fix follow get give go hang have help invite join keep leave let lock look mail make
    meet message move mow open order pack pay phone pick plan plant practice practise prepare press print publish
    put read register remove renew repair reply report reserve respond rest return review ring run save say schedule
    see sell send set sign sleep stand start stop stretch study submit swim take talk tell test text thank throw
    transfer try turn unplug update vacuum visit vote wait wake walk wash watch water wish work wrap write
"""
_VERBS: Final = frozenset(_VERB_LIST.split())
"""How a task begins that can follow "to". The same words rarely begin the name of something."""


def speak_task(message: str) -> str:
    """Tells a message of the user to the user: "to call your mother", or in quotation marks: “dentist”."""
    told = to_second_person(message)
    first = message.split(maxsplit=1)[0].lower() if message.strip() else ""
    return f"to {told.rstrip('.!')}" if first in _VERBS else f"“{told}”"
