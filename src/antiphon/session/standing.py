"""How a session stands, as another process finds it."""

from antiphon.session.preferences import Preferences
from antiphon.storage.conversations import VoiceCall


class Standing(Preferences):
    """What the record of a session has as its `state`."""

    listening: bool = False
    """Whether it listens when no answer is under way."""
    answers: int = 0
    """Answers up to now, without the one under way."""
    call: VoiceCall | None = None
    """The call that goes on, once something was said in it."""
    settled_seq: int = 0
    """The last turn in the store when nothing was under way."""
    is_answering: bool = False
    """Whether the user's first turn after that one may still be waiting for its answer, or for that to be heard."""
