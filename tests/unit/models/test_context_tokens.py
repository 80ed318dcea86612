"""Every model says how long its context is, if that is known, so that long conversations can be cut to it."""

from antiphon.config import Ollama
from antiphon.models.builtin import BuiltinModel
from antiphon.models.cascade.cascade import make_profile
from antiphon.models.providers import gemini_profiles, realtime_profiles
from antiphon.models.providers.ollama import OllamaModel
from antiphon.models.providers.references import parse
from antiphon.models.text_live import profile_of
from tests.fakes.gates import Gate


def test_the_vendors_voice_models_know_their_context() -> None:
    assert gemini_profiles.profile_for("gemini-3.8-live").context_tokens == 131_072
    realtime = realtime_profiles.profile_for("gpt-realtime-2")
    assert realtime.context_tokens == 28_000, "the window of 32,768 has to hold an answer of 4,096, too"


async def test_a_text_model_passes_its_context_on_to_the_model_around_it() -> None:
    model = OllamaModel(parse("ollama:qwen3"), {}, Ollama(num_ctx=8_192))
    try:
        assert profile_of(model).context_tokens == 8_192
        assert make_profile(model, None).context_tokens == 8_192
    finally:
        await model.aclose()


def test_the_offline_assistant_reads_any_conversation() -> None:
    tokens = profile_of(BuiltinModel(Gate().executor.registry)).context_tokens
    assert tokens is not None
    assert tokens > 1_000_000
