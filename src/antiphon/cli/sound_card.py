"""The microphone and the loudspeaker of this machine, through PortAudio."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from antiphon.audio.resample import Resampler
from antiphon.errors import AntiphonError
from antiphon.sound_format import MICROPHONE_HZ, SPEECH_HZ

BLOCKS_PER_S: Final = 50
PLAYED_BYTES: Final = 2 * (SPEECH_HZ // BLOCKS_PER_S)
FORMAT: Final = {"channels": 1, "dtype": "int16"}


class SoundCardError(AntiphonError):
    """This machine has no usable microphone or loudspeaker."""

    code = "sound_card"


@dataclass(frozen=True, slots=True)
class Device:
    name: str
    hz: int
    """Its native rate."""
    is_default: bool
    """Whether it is the default device."""


def load_portaudio() -> Any:
    """Imports `sounddevice`, which is an optional dependency. Raises `SoundCardError`."""
    try:
        return import_module("sounddevice")
    except ModuleNotFoundError:
        problem = "a microphone needs the package sounddevice, which is not installed. Run: pip install 'antiphon[mic]'"
    except OSError:
        problem = "the package sounddevice needs the PortAudio library. On Debian and Ubuntu: apt install libportaudio2"
    except Exception as error:
        # PortAudio enumerates devices on import, which fails in various ways without a sound system.
        problem = f"this machine has no sound system that can be used: {error}."
    raise SoundCardError(problem)


class SystemSoundCard:
    """The default devices. Those that do not support the wire's rates run at their native rate."""

    def __init__(self, portaudio: Any, sleep: Callable[[float], None] = time.sleep) -> None:
        self._portaudio = portaudio
        self._sleep = sleep

    def check(self) -> None:
        """Raises `SoundCardError` unless there are an input and an output device."""
        for kind in ("input", "output"):
            with self._explaining(kind):
                self._portaudio.query_devices(kind=kind)

    def inputs(self) -> list[Device]:
        """All input devices."""
        try:
            usual = self._portaudio.query_devices(kind="input")["index"]
        except (self._portaudio.PortAudioError, ValueError):
            usual = None
        return [
            Device(each["name"], int(each["default_samplerate"]), each["index"] == usual)
            for each in self._portaudio.query_devices()
            if each["max_input_channels"] > 0
        ]

    @contextmanager
    def open(self, hear: Callable[[bytes], None], play: Callable[[int], bytes]) -> Iterator[None]:
        """Implements `antiphon.client.call.SoundCard`. Raises `SoundCardError`."""
        with ExitStack() as stack:
            with self._explaining("input"):
                stack.enter_context(self._microphone(hear))
            with self._explaining("output"):
                stack.enter_context(self._loudspeaker(play))
            yield

    def record(self, seconds: float) -> bytes:
        """Records PCM16 mono at 16,000 Hz. Raises `SoundCardError`."""
        heard = bytearray()
        with self._explaining("input"), self._microphone(heard.extend):
            self._sleep(seconds)
        return bytes(heard)

    def _microphone(self, hear: Callable[[bytes], None]) -> Any:
        hz = self._rate("input", MICROPHONE_HZ)
        resampler = Resampler(hz, MICROPHONE_HZ)

        def take(indata: Any, frames: int, time: Any, status: Any) -> None:
            if pcm := resampler.push(bytes(indata)):
                hear(pcm)

        return self._portaudio.RawInputStream(
            samplerate=hz, blocksize=hz // BLOCKS_PER_S, latency="low", callback=take, **FORMAT
        )

    def _loudspeaker(self, play: Callable[[int], bytes]) -> Any:
        hz = self._rate("output", SPEECH_HZ)
        resampler, made = Resampler(SPEECH_HZ, hz), bytearray()

        def give(outdata: Any, frames: int, time: Any, status: Any) -> None:
            size = len(outdata)
            while len(made) < size:
                made.extend(resampler.push(play(PLAYED_BYTES)))
            outdata[:] = bytes(made[:size])
            del made[:size]

        return self._portaudio.RawOutputStream(
            samplerate=hz, blocksize=hz // BLOCKS_PER_S, latency="low", callback=give, **FORMAT
        )

    def _rate(self, kind: str, wanted_hz: int) -> int:
        """The wanted rate if the device supports it, else its native rate."""
        check = getattr(self._portaudio, f"check_{kind}_settings")
        try:
            check(samplerate=wanted_hz, **FORMAT)
        except (self._portaudio.PortAudioError, ValueError):
            return int(self._portaudio.query_devices(kind=kind)["default_samplerate"])
        return wanted_hz

    @contextmanager
    def _explaining(self, kind: str) -> Iterator[None]:
        try:
            yield
        except (self._portaudio.PortAudioError, ValueError) as error:
            name = "microphone" if kind == "input" else "loudspeaker"
            raise SoundCardError(
                f"no {name} can be used on this machine ({error}). `antiphon doctor --mic` lists the devices."
            ) from error
