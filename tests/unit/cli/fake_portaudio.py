"""The package `sounddevice` as far as it is used here, for machines without sound: a test runs the streams."""

from collections.abc import Callable
from types import SimpleNamespace, TracebackType
from typing import Any


class PortAudioError(Exception):
    pass


class Stream:
    """Runs only while it is open."""

    def __init__(self, samplerate: int, callback: Callable[..., None], **rest: Any) -> None:
        self.hz, self.callback, self.rest = samplerate, callback, rest
        self.is_open = False

    def __enter__(self) -> "Stream":
        self.is_open = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.is_open = False

    def hear(self, pcm: bytes) -> None:
        self.callback(memoryview(pcm), len(pcm) // 2, None, None)

    def play(self, frames: int) -> bytes:
        outdata = bytearray(2 * frames)
        self.callback(memoryview(outdata), frames, None, None)
        return bytes(outdata)


def device(name: str, index: int, *, inputs: int = 0, outputs: int = 0, hz: float = 44_100.0) -> dict[str, Any]:
    return {
        "name": name,
        "index": index,
        "max_input_channels": inputs,
        "max_output_channels": outputs,
        "default_samplerate": hz,
    }


MICROPHONE = device("Desk microphone", 0, inputs=1, hz=48_000.0)
SPEAKERS = device("Speakers", 1, outputs=2, hz=48_000.0)


class FakePortAudio(SimpleNamespace):
    PortAudioError = PortAudioError

    def __init__(self, *devices: dict[str, Any], knows_rates: bool = True, room: bytes = b"") -> None:
        """Devices that do not know a rate have only their own. `room` is what is heard as soon as somebody listens."""
        super().__init__()
        self.devices = list(devices)
        self.knows_rates = knows_rates
        self.room = room
        self.streams: dict[str, Stream] = {}

    def query_devices(self, kind: str | None = None) -> Any:
        if kind is None:
            return self.devices
        found = next((each for each in self.devices if each[f"max_{kind}_channels"]), None)
        if found is None:
            raise PortAudioError("Error querying device -1")
        return found

    def check_input_settings(self, samplerate: int, **rest: Any) -> None:
        if not self.knows_rates:
            raise PortAudioError("Invalid sample rate [PaErrorCode -9997]")

    check_output_settings = check_input_settings

    def RawInputStream(self, **options: Any) -> Stream:
        stream = self._open("input", options)
        if self.room:
            stream.hear(self.room)
        return stream

    def RawOutputStream(self, **options: Any) -> Stream:
        return self._open("output", options)

    def _open(self, kind: str, options: dict[str, Any]) -> Stream:
        self.query_devices(kind)
        self.streams[kind] = stream = Stream(**options)
        return stream
