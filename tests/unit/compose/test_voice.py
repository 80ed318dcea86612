"""The voice of the settings, and what is said if it cannot be had."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from antiphon.compose import open_speech, open_voice
from antiphon.compose import voice as voice_module
from antiphon.config import Model, Settings, Speech, Storage
from antiphon.errors import AntiphonError
from antiphon.protocol.limits import SPEECH_HZ
from antiphon.serve import run_server
from antiphon.speech.base import SpeechError
from tests.fakes.scripted import ScriptedModel
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


def take_away(settings: Settings, model: str) -> None:
    for file in (settings.models_dir / model).iterdir():
        file.unlink()


async def open_and_close(settings: Settings) -> None:
    async with open_voice(settings, ScriptedModel([]), lambda text: False):
        pass


async def reason(settings: Settings) -> str:
    """Why there is no voice."""
    before = asyncio.all_tasks()
    with pytest.raises(AntiphonError) as raised:
        await open_and_close(settings)
    assert asyncio.all_tasks() == before, "something goes on by itself"
    return str(raised.value)


async def test_the_voice_of_the_settings_hears_and_speaks(settings: Settings) -> None:
    async with open_voice(settings, ScriptedModel([]), lambda text: False) as voice:
        profile = voice.make_model().profile
        assert profile.hears
        assert profile.speaks
        assert profile.output_hz == SPEECH_HZ
        sample = await voice.make_sample("Hello!", None, 1.0)
        assert 0.3 * 2 * SPEECH_HZ < len(sample) < 2 * 2 * SPEECH_HZ
        assert len(await voice.make_sample("Hello!", "nobody", 2.0)) < len(sample)


async def test_without_a_mouth_it_hears_and_writes(settings: Settings) -> None:
    settings = replace(settings, speech=Speech(tts="none"))
    take_away(settings, "joe")
    async with open_voice(settings, ScriptedModel([]), lambda text: False) as voice:
        profile = voice.make_model().profile
        assert profile.hears
        assert not profile.speaks


@pytest.mark.parametrize("model", MODELS)
async def test_a_model_that_is_missing_is_told_with_what_gets_it(settings: Settings, model: str) -> None:
    take_away(settings, model)
    told = await reason(settings)
    assert "antiphon models pull" in told
    assert "\n" not in told


@pytest.mark.parametrize("model", ["silero-vad", "smart-turn"])
async def test_a_model_that_is_damaged_is_told_too(settings: Settings, model: str) -> None:
    (file,) = (settings.models_dir / model).iterdir()
    file.unlink()
    file.write_bytes(b"not a model")
    told = await reason(settings)
    assert "damaged" in told
    assert "antiphon models pull" in told


@pytest.mark.parametrize("speech", [Speech(stt=NOBODY), Speech(tts=NOBODY), Speech(stt=NOBODY, tts=NOBODY)])
async def test_a_server_that_is_not_there_is_told(settings: Settings, speech: Speech) -> None:
    told = await reason(replace(settings, speech=speech))
    assert told == f"{NOBODY} cannot be reached. Check that a Wyoming server is running there."


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
        async with open_voice(settings, None, lambda text: False):
            pass
    except AntiphonError as error:
        print(error)


asyncio.run(main())
"""


@pytest.mark.parametrize("package", ["onnxruntime", "numpy", "soxr"])
def test_a_package_that_is_missing_is_told_with_what_installs_it(package: str, settings: Settings) -> None:
    arguments = [package, str(settings.data_dir), NOBODY]
    run = subprocess.run([sys.executable, "-c", WITHOUT, *arguments], capture_output=True, text=True, check=True)
    assert run.stdout == (
        f"the voice needs the package {package}, which is not installed. Run: pip install 'antiphon[local]'\n"
    )
    assert run.stderr == ""


def test_the_package_of_another_engine_is_told_with_its_name(settings: Settings) -> None:
    arguments = ["wyoming", str(settings.data_dir), NOBODY]
    run = subprocess.run([sys.executable, "-c", WITHOUT, *arguments], capture_output=True, text=True, check=True)
    assert run.stdout == (
        f"{NOBODY} needs the package wyoming, which is not installed. Run: pip install 'antiphon[local]'\n"
    )


class Closing(Tones):
    is_closed = False

    async def aclose(self) -> None:
        self.is_closed = True


async def test_an_engine_is_closed_if_the_other_cannot_be_had(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    tones = Closing()

    async def fail(*args: object) -> PerfectRecognizer:
        raise SpeechError("There are no ears.")

    async def open_slowly(*args: object) -> Tones:
        await asyncio.sleep(0.1)
        return tones

    monkeypatch.setattr(voice_module, "_open_recognizer", fail)
    monkeypatch.setattr(voice_module, "_open_synthesizer", open_slowly)
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
    monkeypatch.setattr(voice_module, "_open_synthesizer", speak)
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
        run_server(settings, port=0, announce=lines.put_nowait, obeys_signals=False, stop=stop)
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
async def test_a_server_without_its_voice_goes_on_in_text_and_says_why(
    settings: Settings, speech: Speech, why: str
) -> None:
    if speech.stt == "moonshine":
        take_away(settings, "joe")
    said = [line async for line in announcements(replace(settings, speech=speech))]
    (told,) = [line for line in said if "voice" in line and why in line]
    assert told.startswith("There is no voice, only text: ")
    assert "\n" not in told
    assert any(line.startswith("Antiphon listens on http://127.0.0.1:") for line in said)
    assert not any(line.startswith("Voice: ") for line in said)


async def test_a_server_that_is_to_have_no_voice_does_not_look_for_one(settings: Settings) -> None:
    settings = replace(settings, model=Model(voice="none"), speech=Speech(stt=NOBODY, tts=NOBODY))
    said = [line async for line in announcements(settings)]
    assert not any("voice" in line.lower() for line in said)
