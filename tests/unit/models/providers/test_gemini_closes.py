"""How the end of a connection to Gemini Live is told: its kind, and one sentence."""

import asyncio

import pytest

from antiphon.models.base import FailureKind, ModelError
from antiphon.models.live import Closed, CloseKind, GoAway, InputTranscript, OutputText, TurnComplete
from antiphon.models.providers.connect_errors import Place
from antiphon.models.providers.gemini_closes import explain_close
from antiphon.models.providers.gemini_live import MAX_UNREADABLE
from tests.fakes.gemini_server import KEY
from tests.fakes.gemini_talk import COMPLETE, hears, speaks, talking

PLACE = Place("gemini", "https://server", "GEMINI_API_KEY", KEY)
QUOTA = "You exceeded your current quota, please check your plan and billing details. For more information on this e"
LATE = (
    "Connection aborted because the client failed to close the connection after receiving a GoAway signal once the "
    "session duration expired"
)
UNKNOWN = "models/gemini-3 is not found for API version v1beta, or is not supported for bidiGenerateContent. Call ListM"


@pytest.mark.parametrize(
    ("code", "reason", "opening", "resuming", "open_"),
    [
        # How the setup is refused, how a resumed session is refused, and how an open session ends.
        (1000, "", CloseKind.INTENDED, CloseKind.INTENDED, CloseKind.INTENDED),
        (1001, "", CloseKind.TRANSIENT, CloseKind.TRANSIENT, CloseKind.TRANSIENT),
        (1006, "abnormal closure [internal]", CloseKind.TRANSIENT, CloseKind.TRANSIENT, CloseKind.TRANSIENT),
        (1012, "", CloseKind.TRANSIENT, CloseKind.TRANSIENT, CloseKind.TRANSIENT),
        (
            1008,
            "BidiGenerateContent session not found",
            CloseKind.CONFIGURATION,
            CloseKind.DEAD_HANDLE,
            CloseKind.TRANSIENT,
        ),
        (1007, "Invalid session handle", CloseKind.CONFIGURATION, CloseKind.DEAD_HANDLE, CloseKind.TRANSIENT),
        (1008, "Requested entity was not found.", CloseKind.CONFIGURATION, CloseKind.DEAD_HANDLE, CloseKind.TRANSIENT),
        (1008, LATE[:123], CloseKind.GO_AWAY, CloseKind.GO_AWAY, CloseKind.GO_AWAY),
        (1008, "The operation was aborted.", CloseKind.TRANSIENT, CloseKind.TRANSIENT, CloseKind.TRANSIENT),
        (1008, UNKNOWN, CloseKind.CONFIGURATION, CloseKind.CONFIGURATION, CloseKind.CONFIGURATION),
        (
            1008,
            "Operation is not implemented, or supported, or enabled.",
            CloseKind.CONFIGURATION,
            CloseKind.CONFIGURATION,
            CloseKind.CONFIGURATION,
        ),
        (
            1007,
            "Request contains an invalid argument.",
            CloseKind.CONFIGURATION,
            CloseKind.DEAD_HANDLE,
            CloseKind.CONFIGURATION,
        ),
        (
            1007,
            "Thinking level is not supported for this model",
            CloseKind.CONFIGURATION,
            CloseKind.CONFIGURATION,
            CloseKind.CONFIGURATION,
        ),
        (
            1007,
            "Function response scheduling is not supported for this model",
            CloseKind.CONFIGURATION,
            CloseKind.CONFIGURATION,
            CloseKind.CONFIGURATION,
        ),
        (
            1007,
            "API key not valid. Please pass a valid API key.",
            CloseKind.CONFIGURATION,
            CloseKind.CONFIGURATION,
            CloseKind.CONFIGURATION,
        ),
        (
            1011,
            "Deadline expired before operation could complete.",
            CloseKind.TRANSIENT,
            CloseKind.TRANSIENT,
            CloseKind.TRANSIENT,
        ),
        (1011, "The service is currently unavailable.", CloseKind.TRANSIENT, CloseKind.TRANSIENT, CloseKind.TRANSIENT),
        (1011, "Internal error encountered.", CloseKind.TRANSIENT, CloseKind.TRANSIENT, CloseKind.TRANSIENT),
        (1011, "", CloseKind.TRANSIENT, CloseKind.TRANSIENT, CloseKind.TRANSIENT),
        (1011, QUOTA, CloseKind.QUOTA, CloseKind.QUOTA, CloseKind.QUOTA),
        (
            1011,
            "Resource has been exhausted (e.g. check quota).",
            CloseKind.QUOTA,
            CloseKind.QUOTA,
            CloseKind.QUOTA,
        ),
        (1011, "RESOURCE_EXHAUSTED", CloseKind.QUOTA, CloseKind.QUOTA, CloseKind.QUOTA),
    ],
)
def test_a_close_is_classified_by_its_code_and_its_text(
    code: int, reason: str, opening: CloseKind, resuming: CloseKind, open_: CloseKind
) -> None:
    def kind(*, is_open: bool, was_resumed: bool) -> CloseKind:
        error = explain_close(code, reason, PLACE, is_open=is_open, was_resumed=was_resumed)
        assert "gemini" in str(error)
        return error.close_kind

    assert kind(is_open=False, was_resumed=False) is opening
    assert kind(is_open=False, was_resumed=True) is resuming
    assert kind(is_open=True, was_resumed=False) is open_


@pytest.mark.parametrize(
    ("code", "reason", "sentence"),
    [
        (1007, f"API key {KEY} not valid.", "gemini refused the API key. Check GEMINI_API_KEY."),
        (1008, UNKNOWN, "There is no model gemini at this server, or it has no live mode. Check model.voice."),
        (
            1011,
            "RESOURCE_EXHAUSTED",
            "gemini accepts nothing more for now, since a limit of the account is reached: RESOURCE_EXHAUSTED",
        ),
        (1006, "", "The connection to gemini was lost. Check the network, or try again."),
        (1007, "Bad.", "gemini refused what it was sent (1007): Bad."),
        (1013, "Try again later", "gemini closed the connection (1013): Try again later"),
    ],
)
def test_a_close_is_told_in_one_sentence(code: int, reason: str, sentence: str) -> None:
    assert str(explain_close(code, reason, PLACE, is_open=True, was_resumed=False)) == sentence


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (1000, "", CloseKind.INTENDED),
        (1011, "Internal error encountered.", CloseKind.TRANSIENT),
        (1011, QUOTA, CloseKind.QUOTA),
        (1008, LATE[:123], CloseKind.GO_AWAY),
        (1007, "Request contains an invalid argument.", CloseKind.CONFIGURATION),
    ],
)
async def test_a_close_is_the_last_event(code: int, reason: str, kind: CloseKind) -> None:
    async with talking() as talk:
        talk.model.respond("t", "hello")
        await talk.says(speaks("Hel"))
        await talk.client.close(code, reason)
        await asyncio.wait_for(talk.reading, 5)
        assert talk.events[0] == OutputText("t", "Hel")
        closed = talk.events[-1]
        assert isinstance(closed, Closed)
        assert closed.kind is kind
        assert TurnComplete("t") not in talk.events
        with pytest.raises(ModelError, match="is closed"):
            talk.model.respond("u", "hello?")


async def test_a_lost_connection_is_transient() -> None:
    async with talking() as talk:
        await talk.client.cut()
        await asyncio.wait_for(talk.reading, 5)
        (closed,) = talk.events
        assert isinstance(closed, Closed)
        assert (closed.kind, closed.retryable) == (CloseKind.TRANSIENT, True)
        assert "was lost" in closed.reason


@pytest.mark.parametrize(("code", "reason"), [(1000, ""), (1001, ""), (1011, "Deadline expired before"), (0, "")])
async def test_an_announced_end_is_a_go_away(code: int, reason: str) -> None:
    async with talking() as talk:
        await talk.says({"goAway": {"timeLeft": "9.5s"}})
        assert talk.take() == [GoAway(9_500)]
        await (talk.client.close(code, reason) if code else talk.client.cut())
        await asyncio.wait_for(talk.reading, 5)
        (closed,) = talk.events
        assert isinstance(closed, Closed)
        assert closed.kind is CloseKind.GO_AWAY


@pytest.mark.parametrize(("left", "ms"), [("50s", 50_000), ("0.25s", 250), ("soon", 0), (None, 0), ("-3s", 0)])
async def test_the_time_that_is_left_is_read(left: str | None, ms: int) -> None:
    async with talking() as talk:
        await talk.says({"goAway": {} if left is None else {"timeLeft": left}})
        assert talk.events == [GoAway(ms)]


async def test_words_that_were_heard_are_told_before_the_end() -> None:
    async with talking() as talk:
        await talk.says(hears("What's the"), speaks("It is"))
        await talk.client.cut()
        await asyncio.wait_for(talk.reading, 5)
        *_, heard, closed = talk.events
        assert isinstance(closed, Closed)
        assert isinstance(heard, InputTranscript)
        assert (heard.text, heard.is_final) == ("What's the", True)


# Messages that cannot be read.

GARBAGE = [
    "no JSON",
    "[]",
    "7",
    "null",
    '"text"',
    '{"error": {"code": 429, "message": "quota"}}',
    '{"server_content": {"turn_complete": true}}',
    '{"serverContent": 7}',
    '{"serverContent": {"modelTurn": {"parts": [{"inlineData": {"data": "###", "mimeType": "x"}}]}}}',
    '{"toolCall": {"functionCalls": "x"}}',
    "[" * 100_000,
    '{"unknownKind": {}}',
]


@pytest.mark.parametrize("garbage", GARBAGE)
async def test_an_unreadable_message_does_not_end_the_conversation(garbage: str) -> None:
    async with talking() as talk:
        await talk.says(garbage)
        talk.model.respond("t", "hello")
        await talk.says(speaks("Hi"), COMPLETE)
        assert talk.kinds[-4:] == ["OutputText", "OutputAudio", "GenerationComplete", "TurnComplete"]


async def test_a_server_that_sends_nothing_else_is_given_up() -> None:
    async with talking() as talk:
        for _ in range(MAX_UNREADABLE + 1):
            await talk.says("{]")
        await asyncio.wait_for(talk.reading, 5)
        (closed,) = talk.events
        assert isinstance(closed, Closed)
        assert "sends messages that cannot be read" in closed.reason


async def test_an_error_with_a_code_ends_the_connection() -> None:
    async with talking() as talk:
        await talk.says({"code": 429, "message": "Resource has been exhausted", "status": "RESOURCE_EXHAUSTED"})
        await asyncio.wait_for(talk.reading, 5)
        (closed,) = talk.events
        assert isinstance(closed, Closed)
        assert closed.kind is CloseKind.QUOTA


async def test_a_message_beyond_the_limit_ends_the_connection() -> None:
    async with talking() as talk:
        await talk.says('{"pad": "' + "x" * (17 * 1024 * 1024) + '"}')
        await asyncio.wait_for(talk.reading, 5)
        (closed,) = talk.events
        assert isinstance(closed, Closed)
        assert closed.kind is CloseKind.TRANSIENT


async def test_a_megabyte_is_within_the_limit() -> None:
    async with talking() as talk:
        await talk.says('{"goAway": {"timeLeft": "1s"}, "pad": "' + "x" * 2_000_000 + '"}')
        assert talk.events == [GoAway(1_000)]


def test_a_failure_of_the_account_is_a_rate_limit() -> None:
    error = explain_close(1011, QUOTA, PLACE, is_open=True, was_resumed=False)
    assert (error.rate_limited, error.kind) == (True, FailureKind.RATE_LIMITED)
