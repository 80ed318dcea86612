"""The voice of the settings, and what is said if it cannot be had."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Literal

import pytest

from antiphon.authoring.adapters import adapt_for_openai_chat
from antiphon.compose import ladders, open_speech, open_voice
from antiphon.compose import voice as voice_module
from antiphon.config import Model, Settings, Speech, Storage, load
from antiphon.errors import AntiphonError
from antiphon.models.background import BackgroundTasks
from antiphon.models.base import Event, Prompt, TextModel, TextProfile
from antiphon.models.builtin import BuiltinModel
from antiphon.models.cascade.cascade import Cascade
from antiphon.models.cascade.turn import Turn
from antiphon.models.completeness import Completeness
from antiphon.models.health import ModelHealth
from antiphon.models.live import LiveContext
from antiphon.models.local_first import LocalFirstModel
from antiphon.protocol.limits import SPEECH_HZ
from antiphon.serve import run_server
from antiphon.speech.base import SpeechBusy, SpeechError, Urgency
from antiphon.speech.wyoming_server import serve_wyoming
from antiphon.tools.spec import Mode
from antiphon.transcript import Transcript
from tests.fakes.scripted import ScriptedModel
from tests.fakes.talking_tools import Box, talking_tools
from tests.fakes.voice import PerfectRecognizer, Tones, Vocabulary

pytestmark = pytest.mark.real_time

NOBODY = "wyoming:tcp://127.0.0.1:9"
MODELS = ("moonshine-base-en", "joe", "silero-vad", "smart-turn")


@pytest.fixture
def settings(tmp_path: Path, models_dir: Path) -> Settings:
    """With all models, as links: a test may take one away."""
    for model in MODELS:
        folder = tmp_path / "models" / model
        folder.mkdir(parents=True)
        for file in (models_dir / model).iterdir():
            (folder / file.name).symlink_to(file)
    # What the engines have made of them is not made again.
    (tmp_path / "models" / "cache").symlink_to(models_dir / "cache")
    return Settings(tmp_path, tmp_path, storage=Storage(url="memory"))


def judge(text: str) -> Completeness:
    return Completeness.UNKNOWN


def take_away(settings: Settings, model: str) -> None:
    for file in (settings.models_dir / model).iterdir():
        file.unlink()


async def open_and_close(settings: Settings) -> None:
    async with open_voice(settings, ScriptedModel([]), judge, ModelHealth()):
        pass


async def reason(settings: Settings) -> str:
    """Why there is no voice."""
    before = asyncio.all_tasks()
    with pytest.raises(AntiphonError) as raised:
        await open_and_close(settings)
    assert asyncio.all_tasks() == before, "something goes on by itself"
    return str(raised.value)


async def test_the_configured_voice_recognizes_and_speaks(settings: Settings) -> None:
    async with open_voice(settings, ScriptedModel([]), judge, ModelHealth()) as voice:
        profile = voice.factory.profile
        assert profile.hears
        assert profile.speaks
        assert profile.output_hz == SPEECH_HZ
        sample = await voice.synthesize("Hello!", None, 1.0)
        assert 0.3 * 2 * SPEECH_HZ < len(sample) < 2 * 2 * SPEECH_HZ
        assert len(await voice.synthesize("Hello!", "nobody", 2.0)) < len(sample)


async def test_without_a_synthesizer_it_recognizes_speech_and_answers_in_text(settings: Settings) -> None:
    settings = replace(settings, speech=Speech(tts="none"))
    async with open_voice(settings, ScriptedModel([]), judge, ModelHealth()) as voice:
        profile = voice.factory.profile
        assert profile.hears
        assert not profile.speaks


@pytest.mark.parametrize("model", MODELS)
async def test_a_missing_model_is_reported_with_the_command_that_gets_it(settings: Settings, model: str) -> None:
    take_away(settings, model)
    told = await reason(replace(settings, speech=Speech(tts="piper")) if model == "joe" else settings)
    assert "antiphon models pull" in told
    assert "\n" not in told


@pytest.mark.parametrize("model", ["silero-vad", "smart-turn"])
async def test_a_damaged_model_is_reported_too(settings: Settings, model: str) -> None:
    (file,) = (settings.models_dir / model).iterdir()
    file.unlink()
    file.write_bytes(b"not a model")
    told = await reason(settings)
    assert "damaged" in told
    assert "antiphon models pull" in told


@pytest.mark.parametrize("speech", [Speech(stt=NOBODY), Speech(tts=NOBODY), Speech(stt=NOBODY, tts=NOBODY)])
async def test_an_unreachable_server_is_reported(settings: Settings, speech: Speech) -> None:
    told = await reason(replace(settings, speech=speech))
    assert told == f"{NOBODY} cannot be reached. Check that a Wyoming server is running there."


def load_with(settings: Settings, toml: str) -> Settings:
    """The settings of somebody who has written this file."""
    file = settings.project_dir / "antiphon.toml"
    file.write_text(f"[speech]\n{toml}\n")
    return load(file, {"ANTIPHON_DATA_DIR": str(settings.data_dir)})


async def told_of(settings: Settings, toml: str) -> str:
    """What the settings, or else the voice, say of it."""
    with pytest.raises(AntiphonError) as raised:
        await open_and_close(load_with(settings, toml))
    return str(raised.value)


MISTAKES = [
    ("short_silence_ms = -1", "speech.short_silence_ms is -1; it must be a number of milliseconds from 100 to 5000."),
    ("long_silence_ms = 9000", "speech.long_silence_ms is 9000; it must be a number of milliseconds from 100 to 5000."),
    ('long_silence_ms = "long"', 'speech.long_silence_ms is "long"; it must be a number of milliseconds'),
    ("short_silence_ms = 1200", "speech.short_silence_ms is 1200; it must be at most speech."),
    ("long_silence_ms = 100", "speech.long_silence_ms is 100; it must be at least speech."),
    ("middle_silence_ms = 120", "speech.middle_silence_ms is 120; it must be at least speech.short_silence_ms, which"),
    ("unfinished_silence_ms = 500", "speech.unfinished_silence_ms is 500; it must be at least speech.long_silence_ms,"),
    ("middle_silence_ms = 950", "speech.middle_silence_ms is 950; it must be at most speech.long_silence_ms, which"),
    ('stt = "whisper"', 'speech.stt is "whisper"; it must be "moonshine", "wyoming:tcp://HOST:PORT", '),
    ('tts = "espeak"', 'speech.tts is "espeak"; it must be "hibari", "piper", "kokoro", "wyoming:tcp://HOST:PORT", '),
    ("tts = true", 'speech.tts is true; it must be "hibari", '),
    ('stt = "wyoming:tcp://box"', 'speech.stt: "tcp://box" has no port. Write "tcp://box:10300", for example.'),
    ('tts = "wyoming:box:10200"', 'speech.tts: "wyoming:box:10200" has no scheme. Write "wyoming:tcp://'),
    ('stt = "openai:http://box/v1"', 'speech.stt: "openai:http://box/v1" does not say which model. Write "'),
    (
        'tts = "openai:ftp://box/v1#m"',
        'speech.tts: "ftp://box/v1" is not the address of a server. It must start with http',
    ),
    (
        'interim_captions = "sometimes"',
        'speech.interim_captions is "sometimes"; it must be "auto", "always" or "never".',
    ),
    ('voice = ""', 'speech.voice is ""; it must be a voice of the engine, such as "heart".'),
    ('voice = "hart"', 'hibari has no voice "hart", which speech.voice names. The nearest is "heart".'),
    ('tts = "piper"\nvoice = "joey"', 'piper has no voice "joey", which speech.voice names. The nearest is "joe"; '),
]


@pytest.mark.parametrize(("toml", "told"), MISTAKES, ids=[toml for toml, _ in MISTAKES])
async def test_a_mistake_in_the_speech_settings_is_reported_in_a_line_that_names_it(
    settings: Settings, toml: str, told: str
) -> None:
    said = await told_of(settings, toml)
    assert told in said
    assert "\n" not in said


async def test_a_voice_without_its_configuration_is_reported_with_what_its_folder_needs(settings: Settings) -> None:
    folder = settings.models_dir / "anna"
    folder.mkdir()
    (folder / "anna.onnx").symlink_to(next((settings.models_dir / "joe").glob("*.onnx")))
    said = await told_of(settings, 'tts = "piper"\nvoice = "anna"')
    assert said.startswith('piper has no voice "anna"')
    assert said.endswith(f"its *.onnx and *.onnx.json must be in {folder}.")


async def test_a_voice_the_server_lacks_is_reported(settings: Settings) -> None:
    async with serve_wyoming("tcp://127.0.0.1:0", PerfectRecognizer(Vocabulary()), Tones()) as uri:
        engines = f'stt = "wyoming:{uri}"\ntts = "wyoming:{uri}"'
        said = await told_of(settings, f'{engines}\nvoice = "ana"')
        assert said == f'wyoming:{uri} has no voice "ana", which speech.voice names. The nearest is "anna".'
        # What nobody has set is no mistake.
        await open_and_close(load_with(settings, engines))
        await open_and_close(load_with(settings, f'{engines}\nvoice = "anna"'))


@pytest.mark.parametrize(
    ("when", "stt", "are_told"),
    [
        ("auto", "moonshine", True),
        ("never", "moonshine", False),
        ("auto", "openai:https://box/v1#m", False),
        ("always", "openai:https://box/v1#m", True),
        ("auto", "openai:http://localhost:1/v1#m", True),
    ],
)
async def test_interim_captions_are_enabled_where_they_cost_nothing(
    settings: Settings, when: Literal["auto", "always", "never"], stt: str, are_told: bool
) -> None:
    settings = replace(settings, speech=Speech(stt=stt, tts="none", interim_captions=when))
    async with open_speech(settings) as speech:
        if are_told:
            # There is nothing to recognise in it, which takes no request.
            assert await speech.recognizer.recognize(b"", Urgency.IDLE) == ""
        else:
            with pytest.raises(SpeechBusy):
                await speech.recognizer.recognize(b"", Urgency.IDLE)


async def prepare(settings: Settings, model: TextModel, text: str) -> None:
    """Lets a cascade guess that the user has said this."""
    async with open_voice(settings, model, judge, ModelHealth()) as voice:
        cascade = voice.factory.make()
        assert isinstance(cascade, Cascade)
        tools = [adapt_for_openai_chat(tool.spec) for tool in talking_tools().values()]
        await cascade.connect(LiveContext("", Transcript(), (), tools, Mode.VOICE))
        assert voice.speech is not None
        cascade.on_guess(Turn("m1", voice.speech.recognizer, BackgroundTasks()), text)
        await asyncio.sleep(0.01)
        await cascade.close()


@pytest.mark.parametrize(
    ("when", "needs_network", "thinks_ahead"),
    [("auto", False, True), ("auto", True, False), ("always", True, True), ("never", False, False)],
)
async def test_answers_are_prepared_where_that_costs_nothing(
    settings: Settings, when: Literal["auto", "always", "never"], needs_network: bool, thinks_ahead: bool
) -> None:
    settings = replace(settings, model=Model(think_ahead=when), speech=Speech(tts="none"))
    model = ScriptedModel([], profile=TextProfile("priced", needs_network=needs_network))
    await prepare(settings, model, "what time is it")
    assert bool(model.prompts) == thinks_ahead


class CountingAssistant(BuiltinModel):
    """Counts the prompts that it answers."""

    asked = 0

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        self.asked += 1
        async for event in super().reply(prompt):
            yield event


@pytest.mark.parametrize(("text", "is_prepared"), [("what time is it in Tokyo", True), ("why is the sky blue", False)])
async def test_answers_of_the_offline_assistant_are_prepared_beside_a_paid_model(
    settings: Settings, text: str, is_prepared: bool
) -> None:
    settings = replace(settings, speech=Speech(tts="none"))
    paid = ScriptedModel([], profile=TextProfile("priced", needs_network=True))
    assistant = CountingAssistant(Box(talking_tools()))
    await prepare(settings, LocalFirstModel(assistant, paid), text)
    assert (bool(assistant.asked), paid.prompts) == (is_prepared, [])


WITHOUT = """
import asyncio, sys
from pathlib import Path

sys.modules[sys.argv[1]] = None
from antiphon.compose import open_voice
from antiphon.config import Settings, Speech
from antiphon.errors import AntiphonError
from antiphon.models.builtin import BuiltinModel


async def main() -> None:
    settings = Settings(Path(sys.argv[2]), Path(sys.argv[2]), speech=Speech(stt=sys.argv[3], tts=sys.argv[3]))
    try:
        async with open_voice(settings, None, lambda text: False, None):
            pass
    except AntiphonError as error:
        print(error)


asyncio.run(main())
"""


@pytest.mark.parametrize("package", ["onnxruntime", "numpy", "soxr"])
def test_a_missing_package_is_reported_with_what_installs_it(package: str, settings: Settings) -> None:
    arguments = [package, str(settings.data_dir), NOBODY]
    run = subprocess.run([sys.executable, "-c", WITHOUT, *arguments], capture_output=True, text=True, check=True)
    assert run.stdout == (
        f"the voice needs the package {package}, which is not installed. Run: pip install 'antiphon[local]'\n"
    )
    assert run.stderr == ""


def test_the_missing_package_of_another_engine_is_reported_by_name(settings: Settings) -> None:
    arguments = ["wyoming", str(settings.data_dir), NOBODY]
    run = subprocess.run([sys.executable, "-c", WITHOUT, *arguments], capture_output=True, text=True, check=True)
    assert run.stdout == (
        f"{NOBODY} needs the package wyoming, which is not installed. Run: pip install 'antiphon[local]'\n"
    )


class Closing(Tones):
    is_closed = False

    async def aclose(self) -> None:
        self.is_closed = True


async def test_an_engine_is_closed_if_the_other_fails_to_open(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    tones = Closing()

    async def fail(*args: object) -> PerfectRecognizer:
        raise SpeechError("There are no ears.")

    async def open_slowly(*args: object) -> Tones:
        await asyncio.sleep(0.1)
        return tones

    monkeypatch.setattr(voice_module, "_open_recognizer", fail)
    monkeypatch.setattr(voice_module, "open_synthesizer", open_slowly)
    with pytest.raises(SpeechError, match="no ears"):
        async with open_speech(settings):
            pass
    assert tones.is_closed


async def test_engines_are_closed_at_the_end(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    tones = Closing()

    async def hear(*args: object) -> PerfectRecognizer:
        return PerfectRecognizer(Vocabulary())

    async def speak(*args: object) -> Tones:
        return tones

    monkeypatch.setattr(voice_module, "_open_recognizer", hear)
    monkeypatch.setattr(voice_module, "open_synthesizer", speak)
    async with open_speech(settings) as speech:
        assert speech.synthesizer is tones
        assert not tones.is_closed
    assert tones.is_closed
    with pytest.raises(SpeechError):
        await speech.workers.run(lambda abandoned: None)


async def announcements(settings: Settings) -> AsyncIterator[str]:
    """What a server says until it listens; then it is stopped."""
    lines: asyncio.Queue[str] = asyncio.Queue()
    stop = asyncio.Event()
    running = asyncio.create_task(
        run_server(settings, port=0, announce=lines.put_nowait, handles_signals=False, stop=stop)
    )
    try:
        line = ""
        while not line.startswith("Try it"):
            line = await asyncio.wait_for(lines.get(), 30)
            yield line
    finally:
        stop.set()
        await running


@pytest.mark.parametrize(
    ("speech", "why"),
    [(Speech(), "antiphon models pull"), (Speech(stt=NOBODY, tts=NOBODY), "cannot be reached")],
    ids=["no model", "no server"],
)
async def test_a_server_whose_voice_fails_continues_in_text_and_says_why(
    settings: Settings, speech: Speech, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ladders, "VOICE_RETRY_S", ())
    if speech.stt == "moonshine":
        take_away(settings, "moonshine-base-en")
    said = [line async for line in announcements(replace(settings, speech=speech))]
    (told,) = [line for line in said if "voice" in line and why in line]
    assert told.startswith("There is no voice, only text: ")
    assert "\n" not in told
    assert any(line.startswith("Antiphon listens on http://127.0.0.1:") for line in said)
    assert not any(line.startswith("Voice: ") for line in said)


async def test_an_engine_that_starts_later_than_the_server_is_waited_for(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    monkeypatch.setattr(ladders, "VOICE_RETRY_S", (0.05,) * 200)
    uri = f"tcp://127.0.0.1:{unused_tcp_port}"
    waiting = replace(settings, speech=Speech(stt=f"wyoming:{uri}", tts=f"wyoming:{uri}"))
    said: list[str] = []
    async with AsyncExitStack() as stack:
        async for line in announcements(waiting):
            if "Trying again" in line and not any("Trying again" in each for each in said):
                await stack.enter_async_context(serve_wyoming(uri, PerfectRecognizer(Vocabulary()), Tones()))
            said.append(line)
    assert said[1].endswith(" cannot be reached. Check that a Wyoming server is running there. Trying again in 0.05 s.")
    assert any(line.startswith("Voice: ") for line in said)


async def test_a_server_configured_without_voice_does_not_look_for_one(settings: Settings) -> None:
    settings = replace(settings, model=Model(voice="none"), speech=Speech(stt=NOBODY, tts=NOBODY))
    said = [line async for line in announcements(settings)]
    assert not any("voice" in line.lower() for line in said)


class Namer(PerfectRecognizer):
    """Keeps the names that it was told to expect."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self.preferred: SimpleQueue[list[str]] = SimpleQueue()

    def prefer(self, phrases: Iterable[str]) -> None:
        self.preferred.put(list(phrases))

    def preferring(self, phrases: Iterable[str]) -> "Namer":
        raise NotImplementedError


async def test_the_recognizer_is_told_which_names_to_expect_and_told_again_when_they_change(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    namer = Namer(Vocabulary())
    devices = ["Desk lamp"]

    async def hear(*args: object) -> Namer:
        return namer

    async def names() -> list[str]:
        return list(devices)

    monkeypatch.setattr(voice_module, "_open_recognizer", hear)
    monkeypatch.setattr(voice_module, "NAMES_EVERY_S", 0.01)
    settings = replace(settings, speech=Speech(tts="none", words=("Roomba",)))
    async with open_voice(settings, ScriptedModel([]), judge, ModelHealth(), names):
        assert await asyncio.to_thread(namer.preferred.get, timeout=5) == ["Roomba", "Desk lamp"]
        await asyncio.sleep(0.05)
        devices.append("Carport")
        assert await asyncio.to_thread(namer.preferred.get, timeout=5) == ["Roomba", "Desk lamp", "Carport"]
    assert namer.preferred.empty()
