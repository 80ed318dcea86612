"""What a client has set for its session."""

from msgspec import Struct
from msgspec.structs import asdict

from antiphon.protocol.client_messages import Settings
from antiphon.protocol.server_messages import SettingsUpdated


class Preferences(Struct):
    theme: str | None = None
    voice_speed: int = 100
    volume: int = 80
    voice: str | None = None
    greeting: bool = True
    captions: bool = True

    def change(self, wanted: Settings) -> SettingsUpdated:
        """Applies what is given; the codec has checked it all before, so it is all or nothing."""
        for name, value in asdict(wanted).items():
            if value is not None:
                setattr(self, name, value)
        return SettingsUpdated(**asdict(self))
