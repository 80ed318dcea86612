"""The models of each energy level, as the settings name them."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from antiphon.compose import ladders
from antiphon.compose.app import App, open_app
from antiphon.compose.ladders import (
    NoVoiceError,
    TextModels,
    VoiceModels,
    open_text_models,
    open_voice_models,
)
from antiphon.compose.probing import configured_models
from antiphon.compose.rungs import text_rungs, voice_rungs
from antiphon.compose.voice import Speech, Voice
from antiphon.config import Settings, load
from antiphon.errors import AntiphonError
from antiphon.models.base import ModelError
from antiphon.models.live import LiveContext, LiveProfile, ModelFactory
from antiphon.models.local_first import LocalFirstModel
from antiphon.models.unavailable import UnavailableModel
from antiphon.speech.base import SpeechError, SpeechUnreachable
from antiphon.speech.workers import Workers
from antiphon.tools.spec import Mode
from antiphon.transcript import Transcript
from tests.fakes.voice import PerfectRecognizer, Tones, Vocabulary

pytestmark = pytest.mark.real_time

GEMINI = "gemini-live:gemini-3.8-live"
OPENAI = "openai-realtime:gpt-realtime-2"
LOCAL_PROFILE = LiveProfile("cascade (builtin)", hears=True, output_hz=22_050, needs_network=False, tool_schemas="x")

Load = Callable[[str], Settings]


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Loads settings from the text of a file. All providers have a key."""
    for variable in ("GEMINI_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(variable, "k")

    def read(toml: str) -> Settings:
        (tmp_path / "antiphon.toml").write_text(f'{toml}\n[storage]\nurl = "memory"')
        return load(None, {"ANTIPHON_DATA_DIR": str(tmp_path / "data")}, tmp_path)

    return read


class LocalVoice:
    """Stands in for the speech engines, which take seconds to load. Some attempts to open them may fail."""

    def __init__(self, *failures: AntiphonError) -> None:
        self.failures = list(failures)
        self.opened: list[Settings] = []

    @asynccontextmanager
    async def open(self, settings: Settings, model: Any, *args: Any) -> AsyncIterator[Voice]:
        self.opened.append(settings)
        if self.failures:
            raise self.failures.pop(0)
        speech = Speech(PerfectRecognizer(Vocabulary()), Tones(), Workers(threads=1))
        try:
            yield Voice(ModelFactory(LOCAL_PROFILE, lambda: UnavailableModel(LOCAL_PROFILE, ModelError("no"))), speech)
        finally:
            await speech.workers.aclose()


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> LocalVoice:
    local = LocalVoice()
    monkeypatch.setattr(ladders, "open_voice", local.open)
    return local


@asynccontextmanager
async def opened(
    settings: Settings, said: list[str] | None = None, *, is_needed: bool = False
) -> AsyncIterator[tuple[App, TextModels, VoiceModels | None]]:
    said = [] if said is None else said
    async with AsyncExitStack() as stack:
        app = await stack.enter_async_context(open_app(settings))
        texts = await open_text_models(app, stack)
        voices = await open_voice_models(app, texts, stack, announce=said.append, is_needed=is_needed)
        yield app, texts, voices


def names_of(models: TextModels | VoiceModels | None) -> dict[int, str]:
    assert models is not None
    return {level: factory.profile.name for level, factory in models.factories.items()}


@pytest.mark.parametrize(
    ("toml", "text", "voice"),
    [
        ("", {2: "builtin", 1: "builtin"}, {3: "cascade", 2: "cascade", 1: "cascade"}),
        (
            f'[model]\ntext = "ollama:q"\nvoice = "{GEMINI}"',
            {2: "ollama:q", 1: "builtin"},
            {3: GEMINI, 2: GEMINI, 1: "cascade"},
        ),
        (
            f'[ladder.voice]\n3 = "{GEMINI}"\n1 = "{OPENAI}"\n[ladder.text]\n1 = "ollama:q"',
            {2: "builtin", 1: "ollama:q"},
            {3: GEMINI, 2: GEMINI, 1: OPENAI},
        ),
        (
            f'[model]\nvoice = "{OPENAI}"\n[ladder.voice]\n2 = "{GEMINI}"',
            {2: "builtin", 1: "builtin"},
            {3: OPENAI, 2: GEMINI, 1: "cascade"},
        ),
        (f'[model]\nvoice = "none"\n[ladder.voice]\n3 = "{GEMINI}"', {2: "builtin", 1: "builtin"}, {}),
    ],
)
def test_levels_that_are_not_set_have_a_default(
    read: Load, toml: str, text: dict[int, str], voice: dict[int, str]
) -> None:
    settings = read(toml)
    assert (text_rungs(settings), voice_rungs(settings)) == (text, voice)


async def test_a_model_that_two_levels_name_is_opened_once(read: Load, local: LocalVoice) -> None:
    async with opened(read(f'[model]\ntext = "ollama:q"\nvoice = "{GEMINI}"')) as (app, texts, voices):
        assert names_of(voices) == {3: GEMINI, 2: GEMINI, 1: "cascade (ollama:q)"}
        assert voices is not None
        assert voices.rungs[3] is voices.rungs[2]
        assert [each.name for each in voices.healths] == [GEMINI]
        assert names_of(texts) == {2: "ollama:q", 1: "builtin"}
        assert texts.best.factory.health is app.model_health
        assert texts.rungs[1].factory.health is not app.model_health
    assert len(local.opened) == 1


async def test_all_text_models_share_one_offline_assistant(read: Load, local: LocalVoice) -> None:
    async with opened(read('[model]\ntext = "ollama:q"')) as (_, texts, _):
        assert isinstance(texts.best.model, LocalFirstModel)
        assert texts.best.model.assistant is texts.assistant
        assert texts.rungs[1].model is texts.assistant


async def test_the_cascade_has_all_levels_where_it_is_the_voice(read: Load, local: LocalVoice) -> None:
    async with opened(read("")) as (_, texts, voices):
        assert names_of(voices) == {3: "cascade (builtin)", 2: "cascade (builtin)", 1: "cascade (builtin)"}
        assert names_of(texts) == {2: "builtin", 1: "builtin"}
        assert len(texts.opened) == 1
        assert voices is not None
        assert voices.healths == []
        assert voices.speech is voices.best.speech is not None


async def test_without_a_local_voice_the_live_model_has_all_levels(read: Load, local: LocalVoice) -> None:
    local.failures = [SpeechError("There are no model files.")]
    said: list[str] = []
    async with opened(read(f'[model]\nvoice = "{GEMINI}"'), said) as (_, _, voices):
        assert names_of(voices) == {3: GEMINI, 2: GEMINI, 1: GEMINI}
        assert voices is not None
        assert voices.speech is None
    assert said == ["Loading the voice…", "Voice level 1 cannot use cascade: There are no model files."]


async def test_only_a_voice_that_the_settings_name_is_waited_for(
    read: Load, local: LocalVoice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ladders, "VOICE_RETRY_S", (0.0, 0.0))
    unreachable = SpeechUnreachable("wyoming:tcp://box:1 cannot be reached.")
    local.failures = [unreachable]
    async with opened(read(f'[model]\nvoice = "{GEMINI}"')) as (_, _, voices):
        assert names_of(voices)[1] == GEMINI
    local.failures = [unreachable, unreachable]
    async with opened(read(f'[ladder.voice]\n3 = "{GEMINI}"\n1 = "cascade"')) as (_, _, voices):
        assert names_of(voices)[1] == "cascade (builtin)"


async def test_a_model_without_a_key_is_announced_and_refuses_to_connect(
    read: Load, local: LocalVoice, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = read(f'[ladder.voice]\n3 = "{GEMINI}"\n1 = "{OPENAI}"')
    monkeypatch.delenv("GEMINI_API_KEY")
    said: list[str] = []
    async with opened(settings, said) as (_, _, voices):
        assert names_of(voices) == {3: GEMINI, 2: GEMINI, 1: OPENAI}
        assert voices is not None
        context = LiveContext("", Transcript(), (), (), Mode.VOICE)
        with pytest.raises(ModelError, match="Set GEMINI_API_KEY"):
            await voices.best.factory.make().connect(context)
    assert said == [f"Voice levels 3 and 2 cannot use {GEMINI}: {GEMINI} needs an API key. Set GEMINI_API_KEY."]


async def test_a_server_without_any_voice_says_so_once(
    read: Load, local: LocalVoice, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = read(f'[model]\nvoice = "{GEMINI}"')
    monkeypatch.delenv("GEMINI_API_KEY")
    local.failures = [SpeechError("There are no model files.")]
    said: list[str] = []
    async with opened(settings, said):
        pass
    assert said[1:] == [f"There is no voice, only text: {GEMINI} needs an API key. Set GEMINI_API_KEY."]


async def test_a_voice_that_is_needed_is_an_error_if_it_is_missing(
    read: Load, local: LocalVoice, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = read(f'[model]\nvoice = "{GEMINI}"')
    monkeypatch.delenv("GEMINI_API_KEY")
    with pytest.raises(ModelError, match="Set GEMINI_API_KEY"):
        async with opened(settings, is_needed=True):
            pass
    with pytest.raises(NoVoiceError, match=r'model\.voice is "none"'):
        async with opened(read('[model]\nvoice = "none"'), is_needed=True):
            pass


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ('[ladder.text]\n1 = "gpt-5"', 'ladder.text.1: there is no model "gpt-5". Write '),
        ('[ladder.text]\n2 = "openai:"', 'ladder.text.2: "openai:" does not say which model.'),
        (f'[ladder.text]\n1 = "{GEMINI}"', f'ladder.text.1: "{GEMINI}" is a model for voice.'),
        ('[ladder.voice]\n2 = "azure-realtime:mine"', 'ladder.voice.2: "azure-realtime:mine" does not say where.'),
        ('[model]\ntext = "gpt-5"', 'there is no model "gpt-5". Write '),
    ],
)
async def test_a_wrong_name_is_an_error_that_says_where_it_is(
    read: Load, local: LocalVoice, toml: str, told: str
) -> None:
    with pytest.raises(AntiphonError) as raised:
        async with opened(read(toml)):
            pass
    assert str(raised.value).startswith(told)


async def test_a_missing_key_of_a_text_model_names_its_level(
    read: Load, local: LocalVoice, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = read('[ladder.text]\n1 = "openai:gpt-5"')
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(AntiphonError, match=r"^ladder\.text\.1: openai:gpt-5 needs an API key. Set OPENAI_API_KEY\.$"):
        async with opened(settings):
            pass


async def test_the_chosen_voice_is_that_of_the_best_model(read: Load, local: LocalVoice) -> None:
    settings = read(f'[ladder.voice]\n3 = "{GEMINI}"\n2 = "{OPENAI}"\n[speech]\nvoice = "Puck"')
    async with opened(settings) as (_, _, voices):
        assert voices is not None
        assert voices.rungs[3].factory.profile.voices[0] == "Puck"
        assert "Puck" not in voices.rungs[2].factory.profile.voices
        assert next(iter(voices.best.voices)).id == "Puck"
    assert local.opened[0].speech.voice == "heart"


async def test_clients_do_not_see_the_address_of_a_model(read: Load, local: LocalVoice) -> None:
    async with opened(read('[model]\ntext = "ollama:http://box:11434#q"')) as (_, texts, voices):
        assert names_of(texts)[2] == "ollama:q"
        assert names_of(voices)[3] == "cascade (ollama:q)"


@pytest.mark.parametrize(
    ("toml", "tested"),
    [
        ("", ["builtin"]),
        (f'[model]\ntext = "ollama:q"\nvoice = "{GEMINI}"', ["ollama:q", GEMINI]),
        (
            f'[ladder.voice]\n3 = "{GEMINI}"\n2 = "{OPENAI}"\n[ladder.text]\n2 = "openai:gpt-5"\n1 = "ollama:q"',
            ["openai:gpt-5", "ollama:q", GEMINI, OPENAI],
        ),
    ],
)
def test_the_models_of_all_levels_are_tested_once(read: Load, toml: str, tested: list[str]) -> None:
    assert configured_models(read(toml)) == tested
