"""How a session stands, as another process finds it."""

from antiphon.session.preferences import Preferences
from antiphon.storage.conversations import VoiceCall


class Standing(Preferences):
    """What the record of a session has as its `state`."""

    listening: bool = False
    """Whether it listens when no answer is under way."""
    answers: int = 0
    """Answers up to now. One more may have begun of which the record does not know."""
    call: VoiceCall | None = None
    """The call that goes on, once something was said in it."""
    settled_seq: int = 0
    """The last turn when nothing was under way. A user's turn after it may still be waiting for its answer."""
