"""The state controller: the one way in which a tool's result changes a session."""

from dataclasses import dataclass

from antiphon.telemetry.log import get_logger
from antiphon.tools.result import After, Intent, IntentType

MAX_PENDING_MESSAGE_CHARS = 200

log = get_logger(__name__)


@dataclass(slots=True)
class StateController:
    """Holds what the intents of a session's tools have asked for. The session reads it and acts."""

    voice_active: bool = False
    ending: After | None = None
    """When the voice session is to end, once a tool has asked for it."""
    suppress_audio: bool = False
    suppress_transcript: bool = False
    pending_message: str | None = None

    def apply(self, intent: object) -> bool:
        """Whether the intent was valid and is in force now. A refused one is logged and changes nothing."""
        problem = self._apply(intent) if isinstance(intent, Intent) else "it is not an Intent"
        if problem is not None:
            # Not the whole intent: its message is what somebody is told.
            kind = intent.type if isinstance(intent, Intent) else type(intent).__name__
            log.warning("intent_refused", intent=kind, problem=problem)
        return problem is None

    def end_turn(self) -> None:
        """Suppressing is for one turn only."""
        self.suppress_audio = False
        self.suppress_transcript = False

    def _apply(self, intent: Intent) -> str | None:
        """Applies the intent, or says what is wrong with it."""
        match intent:
            case Intent(type=IntentType.END_VOICE_SESSION, after=after):
                if after not in tuple(After):
                    return f"after must be one of {', '.join(After)}"
                if not self.voice_active:
                    return "there is no voice session to end"
                self.ending = After(after)
            case Intent(type=IntentType.SUPPRESS_AUDIO, value=bool(value)):
                self.suppress_audio = value
            case Intent(type=IntentType.SUPPRESS_TRANSCRIPT, value=bool(value)):
                self.suppress_transcript = value
            case Intent(type=IntentType.SET_PENDING_MESSAGE, message=str(message)):
                if not 0 < len(message) <= MAX_PENDING_MESSAGE_CHARS:
                    return f"message must have 1 to {MAX_PENDING_MESSAGE_CHARS} characters"
                self.pending_message = message
            case Intent(type=type) if type in tuple(IntentType):
                return "its value is missing or of the wrong type"
            case _:
                return "its type is unknown"
        return None
