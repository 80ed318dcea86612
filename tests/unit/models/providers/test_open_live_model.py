"""Voice models of providers are opened by the settings, and say what is wrong before anything is connected."""

import pytest

from antiphon.config import Model
from antiphon.models.base import ModelError
from antiphon.models.live import LiveContext
from antiphon.models.providers import open_live_model
from antiphon.models.providers.references import ModelReference, parse_voice
from antiphon.tools.spec import Mode
from antiphon.transcript import Transcript

KEYS = {"GEMINI_API_KEY": "k", "OPENAI_API_KEY": "k", "AZURE_OPENAI_API_KEY": "k"}
NAMES = ["gemini-live:gemini-3.8-live", "openai-realtime:gpt-realtime-2", "azure-realtime:https://x.example#mine"]


def reference(name: str) -> ModelReference:
    parsed = parse_voice(name)
    assert parsed is not None
    return parsed


@pytest.mark.parametrize("name", NAMES)
def test_a_model_with_a_key_hears_and_speaks(name: str) -> None:
    factory, problem = open_live_model(reference(name), KEYS, Model())
    assert problem is None
    assert factory.profile.hears
    assert factory.profile.output_hz == 24_000
    assert factory.profile.needs_network
    assert factory.profile.name.startswith(name.partition(":")[0])


@pytest.mark.parametrize("name", NAMES)
async def test_a_model_without_a_key_says_so_whenever_it_is_connected(name: str) -> None:
    factory, problem = open_live_model(reference(name), {}, Model())
    assert problem is not None
    model = factory.make()
    with pytest.raises(ModelError, match=r"needs an API key\. Set "):
        await model.connect(LiveContext("", Transcript(), (), (), Mode.VOICE))
    await model.close()
    assert [event async for event in model.events()] == []


@pytest.mark.parametrize(
    ("name", "voice", "first"), [(NAMES[0], "kore", "Kore"), (NAMES[1], "cedar", "cedar"), (NAMES[2], "ash", "ash")]
)
def test_the_configured_voice_is_the_default_one(name: str, voice: str, first: str) -> None:
    usual, _ = open_live_model(reference(name), KEYS, Model())
    factory, _ = open_live_model(reference(name), KEYS, Model(), voice)
    assert factory.profile.voices[0] == first
    assert sorted(factory.profile.voices) == sorted(usual.profile.voices)


@pytest.mark.parametrize("name", NAMES)
def test_a_voice_that_the_model_does_not_have_is_explained(name: str) -> None:
    with pytest.raises(ModelError, match=r'has no voice "joe", which speech\.voice names\. The nearest is "'):
        open_live_model(reference(name), KEYS, Model(), "joe")
