"""`antiphon talk`: speaks a recording to a server and shows the answer, or holds a conversation."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.markup import escape

from antiphon.cli.display import TurnDisplay, draw
from antiphon.cli.options import UsageError
from antiphon.cli.target import Target, explain_untrusted
from antiphon.cli.waking import Silence, WakingSoundCard, run_until_silent
from antiphon.client import Disconnected, Incoming, Mode, Session, Untrusted
from antiphon.client.asking import start_listening
from antiphon.client.call import Call, SoundCard
from antiphon.client.speaking import end_of_speech_ms, say
from antiphon.config import Settings
from antiphon.protocol import server_messages as s
from antiphon.protocol.client_messages import AudioForm, Feature, Hello
from antiphon.protocol.limits import MICROPHONE_HZ, SPEECH_HZ
from antiphon.speech.base import needs_extra

if TYPE_CHECKING:
    from antiphon.audio.wake_word import WakeWord

MAX_FILE_S: Final = 60
OPENING_S: Final = 10.0
"""How long a server may take until it listens."""
RECORDED: Final = Hello(audio=AudioForm.BINARY)
LIVE: Final = Hello(audio=AudioForm.BINARY, features=(Feature.HOLD,))
"""A call by microphone can hold an answer and go on with it. A recording has nobody who listens."""

Tell = Callable[[Incoming], None]


def say_file(settings: Settings, target: Target, file: Path, save: Path | None) -> None:
    if save is not None and save.suffix.lower() != ".wav" and not save.is_dir():
        raise UsageError(f"the answer can be saved only as a WAV file. Give --save a name such as {save.stem}.wav.")
    pcm = read_speech(file)
    if save is not None:
        _check_place(save, file)
    with explain_untrusted():
        asyncio.run(_say(settings, target, pcm, save, _console()))


def call(settings: Settings, target: Target, wake_word: str | None = None) -> None:
    waker = None if wake_word is None else _load_wake_word(wake_word)
    with needs_extra("local", "a microphone"):
        from antiphon.cli.sound_card import SystemSoundCard, load_portaudio

    card = SystemSoundCard(load_portaudio())
    card.check()
    with explain_untrusted():
        if waker is None:
            asyncio.run(converse(settings, target, card, _console()))
        else:
            asyncio.run(converse_when_woken(settings, target, card, waker, _console()))


def list_wake_words() -> None:
    with needs_extra("wake", "--wake-word"):
        from antiphon.audio.wake_word import WAKE_WORDS, WakeWord

    console = _console()
    for name in WAKE_WORDS:
        console.print(f"{name}: say “{WakeWord(name).phrase}”", markup=False)


def _load_wake_word(name: str) -> "WakeWord":
    with needs_extra("wake", "--wake-word"):
        from antiphon.audio.wake_word import WakeWord

    return WakeWord(name)


def _console() -> Console:
    return Console(highlight=False, soft_wrap=True)


def read_speech(file: Path) -> bytes:
    """Reads a WAV file in the format of the protocol. Raises `AntiphonError` if it contains no usable sound."""
    with needs_extra("local", "to read a WAV file"):
        from antiphon.audio.pcm import duration_ms
        from antiphon.audio.resample import resample
        from antiphon.audio.wav import read_wav

    if file.is_dir():
        raise UsageError(f"{file} is a folder, not a WAV file.")
    sound, hz = read_wav(file)
    if duration_ms(sound, hz) > MAX_FILE_S * 1000:
        seconds = duration_ms(sound, hz) / 1000
        raise UsageError(f"{file} has {seconds:.0f} seconds of sound. At most {MAX_FILE_S} can be said at once.")
    pcm = resample(sound, hz, MICROPHONE_HZ)
    if not pcm:
        raise UsageError(f"{file} has no sound in it.")
    if not end_of_speech_ms(pcm):
        raise UsageError(f"{file} is silent, or too quiet to be heard.")
    return pcm


async def converse(settings: Settings, target: Target, card: SoundCard, console: Console) -> None:
    """Holds a conversation until the server ends it, or until Ctrl-C."""
    async with AsyncExitStack() as stack:
        session = await _open(settings, target, stack, console, LIVE, reconnect=True)
        console.print("You can talk now. Press Ctrl-C to end the call.")
        await Call(session, card, _teller(console)).run()


async def converse_when_woken(
    settings: Settings, target: Target, card: SoundCard, waker: "WakeWord", console: Console
) -> None:
    """Holds a conversation each time the wake word is said, until Ctrl-C. Between them no session is open."""
    async with AsyncExitStack() as stack:
        found = await _find_server(settings, target, stack, console)
        waking = WakingSoundCard(card, waker)
        with waking.running():
            while True:
                console.print(f"Say “{waker.phrase}” to begin. Press Ctrl-C to leave.", markup=False)
                await waking.wait()
                console.print("Listening.")
                async with found.connect(mode=Mode.VOICE, hello=LIVE) as session:
                    await start_listening(session)
                    silence, show = Silence(asyncio.get_running_loop().time), _teller(console)

                    def tell(incoming: Incoming, silence: Silence = silence, show: Tell = show) -> None:
                        silence.take(incoming)
                        show(incoming)

                    await run_until_silent(Call(session, waking, tell), silence)


def _teller(console: Console) -> Tell:
    """Returns a function that shows what arrives in a call."""
    display = TurnDisplay(console)

    def tell(incoming: Incoming) -> None:
        display.show(incoming)
        if isinstance(incoming, s.TurnMetrics) and incoming.total_ms is not None:
            console.print(f"[dim]     ({incoming.total_ms:.0f} ms)[/]")

    return tell


async def _say(settings: Settings, target: Target, pcm: bytes, save: Path | None, console: Console) -> None:
    async with AsyncExitStack() as stack:
        session = await _open(settings, target, stack, console, RECORDED, reconnect=False)
        exchange = await say(session, pcm, TurnDisplay(console).show)
        for line in draw(exchange):
            console.print(line, markup=False)
        if exchange.questions:
            console.print("Nothing was done, because a recording cannot answer. Use --mic to say yes or no.")
        if save is not None:
            _save(exchange.pcm, save, console)


async def _open(
    settings: Settings, target: Target, stack: AsyncExitStack, console: Console, hello: Hello, *, reconnect: bool
) -> Session:
    """Opens a listening session with the given server, or with the one in the settings; otherwise with our own."""
    try:
        session = await stack.enter_async_context(target.connect(mode=Mode.VOICE, hello=hello, reconnect=reconnect))
    except Disconnected as error:
        if target.is_chosen or isinstance(error, Untrusted):
            raise
        own = await _start_server(settings, target, stack, console)
        session = await stack.enter_async_context(own.connect(mode=Mode.VOICE, hello=hello, reconnect=reconnect))
    await start_listening(session)
    return session


async def _find_server(settings: Settings, target: Target, stack: AsyncExitStack, console: Console) -> Target:
    """Returns a server that answers: the given one, the one in the settings, or our own."""
    try:
        async with target.connect(mode=Mode.VOICE, hello=LIVE):
            return target
    except Disconnected as error:
        if target.is_chosen or isinstance(error, Untrusted):
            raise
        return await _start_server(settings, target, stack, console)


async def _start_server(settings: Settings, target: Target, stack: AsyncExitStack, console: Console) -> Target:
    from antiphon.serve import serving

    console.print(f"[dim]No server answers at {escape(target.url)}, so this call started its own.[/]")
    with _progress(console) as announce:
        return target.moved_to(await stack.enter_async_context(serving(settings, voice=True, announce=announce)))


@contextmanager
def _progress(console: Console) -> Iterator[Callable[[str], None]]:
    """Shows the progress of a start, with a spinner at a terminal."""
    if not console.is_terminal:
        yield lambda line: console.print(line, style="dim") if line.endswith("…") else None
        return
    with console.status("Starting…") as status:
        yield lambda line: status.update(line) if line.endswith("…") else None


def _check_place(save: Path, file: Path) -> None:
    """Checks the target before the recording is sent, since a turn takes long and cannot be repeated exactly."""
    if save.is_dir():
        raise UsageError(f"the answer cannot be saved as {save}, which is a folder.")
    if not save.absolute().parent.is_dir():
        raise UsageError(f"the answer cannot be saved as {save}: there is no folder {save.absolute().parent}.")
    if save.exists() and save.samefile(file):
        raise UsageError(f"the answer would overwrite {file}. Give --save another name.")


def _save(pcm: bytes, save: Path, console: Console) -> None:
    from antiphon.sound_format import write_wav

    if not pcm:
        console.print("The answer has no sound, so nothing was saved.")
        return
    try:
        save.write_bytes(write_wav(pcm, SPEECH_HZ))
    except OSError as error:
        raise UsageError(f"the answer cannot be saved as {save}: {error.strerror}.") from None
    console.print(f"Saved {len(pcm) / 2 / SPEECH_HZ:.1f} seconds as {escape(str(save))}.")
