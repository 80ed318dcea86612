"""The state of a session as another process finds it."""

from msgspec import Struct
from msgspec.structs import asdict

from antiphon.continuity.upstream import UpstreamState
from antiphon.protocol.client_messages import Settings
from antiphon.protocol.server_messages import SettingsUpdated
from antiphon.storage.conversations import VoiceCall


class Preferences(Struct):
    """What a client has set for its session."""

    theme: str | None = None
    voice_speed: int = 100
    volume: int = 80
    voice: str | None = None
    greeting: bool = True
    captions: bool = True

    @property
    def speed(self) -> float:
        """The speed of speech, of which 1 is the usual."""
        return self.voice_speed / 100

    def change(self, wanted: Settings) -> SettingsUpdated:
        """Applies what is given. The codec has checked all of it before, so it is all or nothing."""
        for name, value in asdict(wanted).items():
            if value is not None:
                setattr(self, name, value)
        return SettingsUpdated(**asdict(self))


class ResumeState(Preferences):
    """The `state` in the record of a session."""

    listening: bool = False
    """Whether the session listens when no turn is under way."""
    turns: int = 0
    """How many turns there were, without the one under way."""
    call: VoiceCall | None = None
    """The call that goes on."""
    is_recording_wanted: bool = False
    """Whether the user wants the calls of this conversation to be recorded."""
    settled_seq: int = 0
    """The number of the last stored message when no turn was under way."""
    is_answering: bool = False
    """Whether the first turn after that message may still lack its answer, or its answer may not have been heard."""
    is_busy: bool = False
    """Whether an answer is being made or spoken."""
    upstream: UpstreamState = UpstreamState()
    """What the models of another process need to go on where these have left."""
