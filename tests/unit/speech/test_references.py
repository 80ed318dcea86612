import pytest

from antiphon.security.addresses import OPENAI_URL
from antiphon.speech.base import SpeechError
from antiphon.speech.references import (
    SPEAKERS,
    Local,
    OpenAIServer,
    Reference,
    SpeechReferenceError,
    WyomingServer,
    needs_network,
    parse_stt,
    parse_tts,
    parse_uri,
)

REMOTE = [
    ("wyoming:tcp://127.0.0.1:10300", WyomingServer("127.0.0.1", 10300)),
    ("wyoming:tcp://box.local:10200", WyomingServer("box.local", 10200)),
    ("wyoming:tcp://[::1]:10300", WyomingServer("::1", 10300)),
    ("openai:gpt-transcribe", OpenAIServer("gpt-transcribe")),
    ("openai:http://box:8080/v1#whisper", OpenAIServer("whisper", "http://box:8080/v1")),
    ("openai:https://box/v1#org/whisper:large", OpenAIServer("org/whisper:large", "https://box/v1")),
]


@pytest.mark.parametrize(("text", "reference"), [("moonshine", Local.MOONSHINE), *REMOTE])
def test_a_recognizer_reference_round_trips_through_its_settings_form(text: str, reference: Reference) -> None:
    assert parse_stt(text) == reference
    assert str(reference) == text


@pytest.mark.parametrize(("text", "reference"), [*((engine, engine) for engine in SPEAKERS), *REMOTE])
def test_a_synthesizer_reference_round_trips_through_its_settings_form(text: str, reference: Reference) -> None:
    assert parse_tts(text) == reference
    assert str(reference) == text


def test_none_disables_the_synthesizer() -> None:
    assert parse_tts("none") is None


def test_a_trailing_slash_makes_no_difference() -> None:
    assert parse_stt("openai:http://box:8080/v1/#m") == parse_stt("openai:http://box:8080/v1#m")
    assert parse_stt("wyoming:tcp://box:10300/") == parse_stt("wyoming:tcp://box:10300")


NONSENSE = [
    ("", "there is no engine"),
    ("whisper", "there is no engine"),
    ("Moonshine", "there is no engine"),
    ("moonshine:base", "there is no engine"),
    ("wyoming", "wyoming:tcp://HOST:PORT"),
    ("wyoming:", "wyoming:tcp://HOST:PORT"),
    ("wyoming:box:10300", 'Write "wyoming:tcp://box:10300"'),
    ("wyoming:tcp://box", 'Write "tcp://box:10300"'),
    ("wyoming:tcp://box:", 'Write "tcp://box:10300"'),
    ("wyoming:tcp://:10300", 'Write "tcp://HOST:PORT"'),
    ("wyoming:tcp://a b:10300", 'Write "tcp://HOST:PORT"'),
    ("wyoming:http://box:10300", 'Write "tcp://HOST:PORT"'),
    ("wyoming:unix:///run/piper.sock", 'Write "tcp://HOST:PORT"'),
    ("wyoming:tcp://box:port", "not the address of a server"),
    ("wyoming:tcp://box:99999", "not the address of a server"),
    ("wyoming:tcp://[::1:10300", "not the address of a server"),
    ("wyoming:tcp://box:10300/asr", 'Write "tcp://box:10300"'),
    ("wyoming:tcp://me@box:10300", "no user names"),
    ("openai:", 'Write "openai:MODEL"'),
    ("openai:http://box/v1", 'Write "openai:http://box/v1#MODEL"'),
    ("openai:http://box/v1#", "does not say which model"),
    ("openai:whisper 1", "spaces"),
    ("openai:a\nb", "spaces"),
    ("openai:ftp://box/v1#m", "must start with http"),
    ("openai:http://#m", "must start with http"),
    ("openai:http://box:port/v1#m", "not the address of a server"),
]


@pytest.mark.parametrize(("text", "says"), NONSENSE)
def test_an_invalid_reference_is_refused_with_a_suggestion(text: str, says: str) -> None:
    for parse in (parse_stt, parse_tts):
        with pytest.raises(SpeechReferenceError, match=says) as refused:
            parse(text)
        assert "\n" not in str(refused.value)
        assert str(refused.value).startswith(f"speech.{parse.__name__.removeprefix('parse_')}: ")


@pytest.mark.parametrize("text", ["piper", "none"])
def test_a_synthesizer_is_refused_as_a_recognizer(text: str) -> None:
    with pytest.raises(SpeechReferenceError, match=r'that recognises speech. Write "moonshine"'):
        parse_stt(text)


def test_a_recognizer_is_refused_as_a_synthesizer() -> None:
    with pytest.raises(SpeechReferenceError, match=r'that speaks. Write "hibari".* or "none"'):
        parse_tts("moonshine")


@pytest.mark.parametrize("address", ["https://me:s3cret@box/v1", "https://box/v1?key=s3cret"])
def test_a_secret_in_an_address_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(SpeechReferenceError, match="OPENAI_API_KEY") as refused:
        parse_stt(f"openai:{address}#m")
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("address", ["tcp://me:s3cret@box:10300", "tcp://me:s3cret@box"])
def test_a_password_for_a_wyoming_server_is_not_repeated(address: str) -> None:
    with pytest.raises(SpeechReferenceError) as refused:
        parse_uri(address)
    assert "s3cret" not in str(refused.value)


def test_openais_own_server_is_opened_with_its_key() -> None:
    server = OpenAIServer("gpt-transcribe")
    assert server.base_url == OPENAI_URL
    assert server.key({"OPENAI_API_KEY": " k1\n"}) == "k1"


def test_openais_own_server_is_not_used_without_a_key() -> None:
    with pytest.raises(SpeechError, match="Set OPENAI_API_KEY"):
        OpenAIServer("gpt-transcribe").key({"OPENAI_API_KEY": " "})


def test_a_self_hosted_server_may_need_no_key() -> None:
    assert OpenAIServer("m", "http://box/v1").key({}) is None


def test_an_invalid_key_is_refused_and_not_repeated() -> None:
    with pytest.raises(SpeechError, match="OPENAI_API_KEY") as refused:
        OpenAIServer("m", "http://box/v1").key({"OPENAI_API_KEY": "s3cret\x00"})
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "is_elsewhere"),
    [
        ("moonshine", False),
        ("wyoming:tcp://127.0.0.1:10300", False),
        ("wyoming:tcp://[::1]:10300", False),
        ("wyoming:tcp://box:10300", True),
        ("openai:gpt-transcribe", True),
        ("openai:https://box/v1#m", True),
        ("openai:http://localhost:8080/v1#m", False),
    ],
)
def test_an_engine_on_another_machine_needs_the_network(text: str, is_elsewhere: bool) -> None:
    assert needs_network(parse_stt(text)) is is_elsewhere
