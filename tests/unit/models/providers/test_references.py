import pytest

from antiphon.models.base import ModelError
from antiphon.models.providers.references import (
    GEMINI_URL,
    ModelReference,
    ModelReferenceError,
    Provider,
    known_context_tokens,
    parse,
    parse_images,
    parse_voice,
)
from antiphon.security.addresses import OPENAI_URL

LOCAL = "openai:http://127.0.0.1:11434/v1#qwen3"


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("builtin", ModelReference(Provider.BUILTIN)),
        ("openai:gpt-5", ModelReference(Provider.OPENAI, "gpt-5")),
        ("openai:ft:gpt-5:us::7p4l", ModelReference(Provider.OPENAI, "ft:gpt-5:us::7p4l")),
        (LOCAL, ModelReference(Provider.OPENAI, "qwen3", "http://127.0.0.1:11434/v1")),
        (
            "openai:https://llm.example/v1#org/m:8b",
            ModelReference(Provider.OPENAI, "org/m:8b", "https://llm.example/v1"),
        ),
        ("ollama:qwen3:8b", ModelReference(Provider.OLLAMA, "qwen3:8b")),
        ("ollama:http://box:11434#qwen3:8b", ModelReference(Provider.OLLAMA, "qwen3:8b", "http://box:11434")),
        ("ollama:hf.co/org/model:Q4", ModelReference(Provider.OLLAMA, "hf.co/org/model:Q4")),
        ("gemini:gemini-3-flash", ModelReference(Provider.GEMINI, "gemini-3-flash")),
    ],
)
def test_a_reference_round_trips_through_its_settings_form(text: str, reference: ModelReference) -> None:
    assert parse(text) == reference
    assert str(reference) == text


def test_a_trailing_slash_makes_no_difference() -> None:
    assert parse("openai:http://box:8080/v1/#m") == parse("openai:http://box:8080/v1#m")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "there is no model"),
        ("gpt-5", "there is no model"),
        ("anthropic:claude", "there is no model"),
        ("builtin:x", "there is no model"),
        ("OpenAI:gpt-5", "there is no model"),
        ("openai:", 'Write "openai:NAME"'),
        ("openai:http://box/v1", 'Write "openai:http://box/v1#NAME"'),
        ("openai:http://box/v1#", "does not say which model"),
        ("openai:gpt 5", "spaces"),
        ("ollama:a\nb", "spaces"),
        ("openai:ftp://box/v1#m", "must start with http"),
        ("openai:http://#m", "not the address"),
        ("openai:http://box:port/v1#m", "not the address"),
        ("openai:http://box:99999/v1#m", "not the address"),
        ("openai:http://a b/v1#m", "not the address"),
        ("gemini:http://box:11434#m", "openai:URL#NAME"),
        ("ollama:http://box:11434", 'Write "ollama:http://box:11434#NAME"'),
        ("ollama:http://box:11434/v1#m", 'Write "ollama:http://box:11434#m"'),
        ("ollama:http://box:11434/api/#m", 'Write "ollama:http://box:11434#m"'),
    ],
)
def test_an_invalid_reference_is_refused_with_a_suggestion(text: str, says: str) -> None:
    with pytest.raises(ModelReferenceError, match=says):
        parse(text)


@pytest.mark.parametrize("address", ["https://me:s3cret@box/v1", "https://box/v1?key=s3cret"])
def test_a_secret_in_an_address_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(ModelReferenceError, match="OPENAI_API_KEY") as refused:
        parse(f"openai:{address}#m")
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "url", "variable"),
    [("openai:gpt-5", OPENAI_URL, "OPENAI_API_KEY"), ("gemini:g", GEMINI_URL, "GEMINI_API_KEY")],
)
def test_a_providers_own_server_needs_its_key(text: str, url: str, variable: str) -> None:
    endpoint = parse(text).endpoint({variable: " k1\n"})
    assert (endpoint.url, endpoint.api_key) == (url, "k1")


@pytest.mark.parametrize(("text", "variable"), [("openai:gpt-5", "OPENAI_API_KEY"), ("gemini:g", "GEMINI_API_KEY")])
def test_a_missing_key_is_asked_for_by_name(text: str, variable: str) -> None:
    with pytest.raises(ModelError, match=f"Set {variable}") as refused:
        parse(text).endpoint({variable: " "})
    assert not refused.value.retryable


def test_a_key_invalid_in_a_header_is_refused_without_showing_it() -> None:
    with pytest.raises(ModelError, match="OPENAI_API_KEY") as refused:
        parse("openai:gpt-5").endpoint({"OPENAI_API_KEY": "sk-ключ"})
    assert "ключ" not in str(refused.value)


@pytest.mark.parametrize("text", [LOCAL, "openai:http://box:8080/v1#m", "ollama:qwen3"])
def test_a_self_hosted_server_needs_no_key(text: str) -> None:
    assert parse(text).endpoint({}).api_key is None


def test_a_self_hosted_server_may_have_a_key() -> None:
    assert parse(LOCAL).endpoint({"OPENAI_API_KEY": "k1"}).api_key == "k1"


def test_a_key_is_not_shown() -> None:
    assert "k1" not in repr(parse("openai:gpt-5").endpoint({"OPENAI_API_KEY": "k1"}))


@pytest.mark.parametrize(
    ("host", "url"),
    [
        (None, "http://127.0.0.1:11434"),
        ("", "http://127.0.0.1:11434"),
        ("box", "http://box:11434"),
        ("box:8080", "http://box:8080"),
        (":8080", "http://127.0.0.1:8080"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("[::]:11435", "http://[::1]:11435"),
        ("http://box", "http://box"),
        ("https://box.example/ollama/", "https://box.example/ollama"),
    ],
)
def test_ollamas_address_comes_from_its_own_variable(host: str | None, url: str) -> None:
    env = {} if host is None else {"OLLAMA_HOST": host}
    assert parse("ollama:qwen3").endpoint(env).url == url


def test_an_invalid_ollama_host_is_named() -> None:
    with pytest.raises(ModelError, match="OLLAMA_HOST"):
        parse("ollama:qwen3").endpoint({"OLLAMA_HOST": "box:many"})


@pytest.mark.parametrize(
    ("address", "is_loopback"),
    [
        ("http://127.0.0.1:8080/v1", True),
        ("http://127.8.0.1/v1", True),
        ("http://[::1]:8080/v1", True),
        ("http://localhost:8080/v1", True),
        ("http://llm.localhost/v1", True),
        ("http://192.168.0.4/v1", False),
        ("https://localhost.example/v1", False),
    ],
)
def test_loopback_is_distinguished_from_the_network(address: str, is_loopback: bool) -> None:
    assert parse(f"openai:{address}#m").endpoint({}).is_loopback is is_loopback


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("gemini-live:gemini-3.8-live", ModelReference(Provider.GEMINI_LIVE, "gemini-3.8-live")),
        ("openai-realtime:gpt-realtime-2", ModelReference(Provider.OPENAI_REALTIME, "gpt-realtime-2")),
        (
            "gemini-live:https://127.0.0.1:8443#gemini-3.8-live",
            ModelReference(Provider.GEMINI_LIVE, "gemini-3.8-live", "https://127.0.0.1:8443"),
        ),
        (
            "azure-realtime:https://mine.openai.azure.com#rt",
            ModelReference(Provider.AZURE_REALTIME, "rt", "https://mine.openai.azure.com"),
        ),
    ],
)
def test_a_voice_model_round_trips_through_its_settings_form(text: str, reference: ModelReference) -> None:
    assert parse_voice(text) == reference
    assert str(reference) == text


@pytest.mark.parametrize("text", ["cascade", "none"])
def test_the_cascade_and_no_voice_are_no_models_of_a_provider(text: str) -> None:
    assert parse_voice(text) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "there is no model"),
        ("gemini-live", "there is no model"),
        ("gemini-live:", 'Write "gemini-live:NAME"'),
        ("openai:gpt-5", "is a model for text"),
        ("builtin", "is a model for text"),
        ("azure-realtime:rt", 'Write "azure-realtime:https://RESOURCE#rt"'),
        ("gemini-live:ws://box#m", "must start with http"),
    ],
)
def test_a_wrong_voice_model_is_explained(text: str, says: str) -> None:
    with pytest.raises(ModelReferenceError, match=says):
        parse_voice(text)


def test_a_voice_model_is_not_a_text_model() -> None:
    with pytest.raises(ModelReferenceError, match="is a model for voice"):
        parse("gemini-live:gemini-3.8-live")


@pytest.mark.parametrize(
    ("text", "variable"),
    [
        ("gemini-live:m", "GEMINI_API_KEY"),
        ("openai-realtime:m", "OPENAI_API_KEY"),
        ("azure-realtime:https://x.example#m", "AZURE_OPENAI_API_KEY"),
    ],
)
def test_a_voice_model_needs_its_key(text: str, variable: str) -> None:
    reference = parse_voice(text)
    assert reference is not None
    with pytest.raises(ModelError, match=f"needs an API key. Set {variable}"):
        reference.endpoint({})
    assert reference.endpoint({variable: "k"}).api_key == "k"


def test_a_voice_model_on_this_machine_needs_no_key() -> None:
    reference = parse_voice("openai-realtime:http://127.0.0.1:8821/v1#m")
    assert reference is not None
    assert reference.endpoint({}).api_key is None


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("openai:gpt-4o-mini", 128_000),
        ("openai:gpt-5", 400_000),
        ("gemini:gemini-3-flash", 1_048_576),
        ("openai:something-new", None),
        ("openai:http://127.0.0.1:8080/v1#gpt-4o", None),
    ],
)
def test_the_context_of_a_vendors_own_model_is_known(text: str, tokens: int | None) -> None:
    assert known_context_tokens(parse(text)) == tokens


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("", None),
        ("openai:gpt-image-2.5-flare", ModelReference(Provider.OPENAI, "gpt-image-2.5-flare")),
        ("openai:http://box:8080/v1#flux", ModelReference(Provider.OPENAI, "flux", "http://box:8080/v1")),
        ("gemini:gemini-3.1-flash-image", ModelReference(Provider.GEMINI, "gemini-3.1-flash-image")),
        ("gemini:https://proxy.example#m", ModelReference(Provider.GEMINI, "m", "https://proxy.example")),
    ],
)
def test_a_model_for_images_is_named_like_one_for_text(text: str, reference: ModelReference | None) -> None:
    assert parse_images(text) == reference


@pytest.mark.parametrize("text", ["dall-e-3", "ollama:flux", "builtin", "openai:", "gemini-live:x", "openai:http://b"])
def test_anything_else_is_no_model_for_images(text: str) -> None:
    with pytest.raises(ModelReferenceError, match=r"^images\.model: "):
        parse_images(text)
