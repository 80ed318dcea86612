"""What a test of a live model finds out, over the providers' own SDKs and servers on loopback."""

import asyncio
from collections.abc import Callable, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from antiphon.compose.probing import configured_models, probe_model
from antiphon.config import Model, Settings
from antiphon.models.base import ModelError
from antiphon.models.live import LiveModel, ModelFactory
from antiphon.models.probe.live import LiveProbe
from antiphon.models.probe.questions import ASK_TIME, CLOCK_NAME, SPOKEN_QUESTION
from antiphon.models.probe.report import Mark, Report
from antiphon.models.providers.gemini_live import GeminiLive
from antiphon.models.providers.openai_realtime import OpenAIRealtime, azure_endpoint, openai_endpoint
from antiphon.transcript import Message, ToolMessage, UserMessage
from tests.fakes.gemini_model import ConversingServer, speech
from tests.fakes.gemini_server import Client, GeminiServer, gemini_client
from tests.fakes.realtime_server import RealtimeServer, ServedSession
from tests.fakes.vendor_answers import Call, End, Output, Say, Stall
from tests.fakes.with_server import WithServer

GEMINI_38 = "gemini-3.8-live"
GEMINI_31 = "gemini-3.1-flash-live-preview"


def knows(messages: Sequence[Message], asked: dict[str, Any]) -> Sequence[Output]:
    """Calls the tool when it is asked for the time, and tells its result."""
    if messages[-1] == UserMessage(ASK_TIME):
        return [Call(CLOCK_NAME, {"timezone": "Tokyo"})]
    return [Say("It is 21:47 in Tokyo." if isinstance(messages[-1], ToolMessage) else "Hello, my friend.")]


async def probe(model: LiveModel, *, question: bytes | None = None, limit_s: float = 60) -> Report:
    factory = ModelFactory(model.profile, lambda: model)
    tried = LiveProbe(factory, question=question, why_no_question="no voice.", tell=lambda step: None, limit_s=limit_s)
    return await tried.run()


def marks(report: Report) -> dict[str, Mark]:
    return {finding.check: finding.mark for finding in report.findings}


def texts(report: Report) -> dict[str, str]:
    return {finding.check: finding.text for finding in report.findings}


def openai(server: RealtimeServer) -> LiveModel:
    return WithServer(OpenAIRealtime(openai_endpoint("gpt-realtime-2", server.url, "sk-local")), server)


def azure(server: RealtimeServer) -> LiveModel:
    return WithServer(OpenAIRealtime(azure_endpoint("mine", server.origin, "az-local")), server)


def gemini(server: GeminiServer, name: str = GEMINI_38) -> LiveModel:
    return WithServer(GeminiLive(gemini_client(name)), server)


@pytest.mark.parametrize("connect", [openai, azure])
async def test_everything_about_a_good_realtime_model_is_found(connect: Callable[[RealtimeServer], LiveModel]) -> None:
    server = RealtimeServer(knows, hears=[SPOKEN_QUESTION], usage=(12, 34))
    report = await probe(connect(server), question=speech(1))
    assert report.ok
    assert set(marks(report).values()) == {Mark.GOOD}
    assert list(marks(report)) == [
        "answers",
        "connects",
        "first audio",
        "speaks",
        "transcript of answers",
        "usage",
        "hears",
        "answer to speech",
        "transcript of speech",
        "tool call",
        "arguments",
        "tool result",
        "resumption",
        "longest connection",
        "voices",
    ]
    found = texts(report)
    assert found["usage"] == "12 tokens in, 34 out"
    assert found["transcript of speech"] == f'"{SPOKEN_QUESTION}"'
    assert found["longest connection"] == "60 minutes; then a new one takes over"
    assert found["voices"] == "10; the default is marin"


@pytest.mark.parametrize(("name", "waits"), [(GEMINI_38, False), (GEMINI_31, True)])
async def test_everything_about_a_good_gemini_model_is_found(name: str, waits: bool) -> None:
    server = ConversingServer(reply=knows, hears=[SPOKEN_QUESTION], transcribes="late", waits_for_tools=waits)
    report = await probe(gemini(server, name), question=speech(1))
    found = marks(report)
    assert report.ok
    good = ("first audio", "hears", "transcript of speech", "tool call", "arguments", "tool result", "voices")
    assert {check: found[check] for check in good} == dict.fromkeys(good, Mark.GOOD)
    # This server offers no handles.
    assert found["resumption"] is Mark.FAIR


async def test_a_handle_and_an_announced_end_are_told() -> None:
    class Announcing(ConversingServer):
        async def _converse(self, client: Client) -> None:
            original = client.send

            async def send(message: Any) -> None:
                await original(message)
                if "setupComplete" in message:
                    await original({"sessionResumptionUpdate": {"newHandle": "h1", "resumable": True}})
                    await original({"goAway": {"timeLeft": "50s"}})

            client.send = send  # type: ignore[method-assign]
            await super()._converse(client)

    server = Announcing(reply=knows, hears=(), transcribes="never", waits_for_tools=False)
    found = texts(await probe(gemini(server)))
    assert found["resumption"] == "a handle was offered"
    assert found["end of connection"] == "the server announced it, 50 s ahead"


async def test_without_a_voice_to_ask_with_hearing_is_not_tried() -> None:
    report = await probe(openai(RealtimeServer(knows)))
    assert (marks(report)["hears"], texts(report)["hears"]) == (Mark.UNKNOWN, "not tried: no voice.")
    assert "transcript of speech" not in marks(report)


async def test_a_model_without_transcripts_of_speech_is_told_with_what_to_set() -> None:
    report = await probe(openai(RealtimeServer(knows, hears=[SPOKEN_QUESTION], transcript="never")), question=speech(1))
    assert (marks(report)["hears"], marks(report)["transcript of speech"]) == (Mark.GOOD, Mark.FAIR)
    assert "model.transcription" in report.advice[0]


async def test_a_wrong_transcript_is_shown_beside_the_question() -> None:
    server = RealtimeServer(knows, hears=["Watch the cattle of France."])
    report = await probe(openai(server), question=speech(1))
    assert marks(report)["transcript of speech"] is Mark.FAIR
    assert texts(report)["transcript of speech"] == f'"Watch the cattle of France." for "{SPOKEN_QUESTION}"'


async def test_a_model_that_does_not_notice_speech_is_found_out() -> None:
    report = await probe(openai(RealtimeServer(knows)), question=bytes(32_000))
    assert report.ok
    assert (marks(report)["hears"], marks(report)["tool result"]) == (Mark.BAD, Mark.GOOD)


async def test_a_server_that_hears_without_end_is_given_up() -> None:
    class Hearing(ConversingServer):
        async def _converse(self, client: Client) -> None:
            whispering: asyncio.Task[None] | None = None
            original = client.receive

            async def whisper() -> None:
                while True:
                    await client.say(inputTranscription={"text": "and "})
                    await asyncio.sleep(1)

            async def receive() -> Any:
                nonlocal whispering
                message = await original()
                if whispering is None and "realtimeInput" in message:
                    whispering = asyncio.create_task(whisper())
                return {"realtimeInput": {}} if "realtimeInput" in message else message

            client.receive = receive  # type: ignore[method-assign]
            try:
                await super()._converse(client)
            finally:
                if whispering is not None:
                    whispering.cancel()

    server = Hearing(reply=knows, hears=(), transcribes="never", waits_for_tools=False)
    report = await probe(gemini(server), question=speech(1), limit_s=10)
    assert (report.ok, marks(report)["hears"]) == (True, Mark.BAD)


async def test_a_model_that_makes_no_call_is_found_out() -> None:
    report = await probe(openai(RealtimeServer(lambda messages, asked: [Say("I cannot tell.")])))
    assert (report.ok, texts(report)["tool call"]) == (True, "it made none")
    assert "tool result" not in marks(report)


async def test_a_result_that_is_not_used_is_found_out() -> None:
    def forgets(messages: Sequence[Message], asked: dict[str, Any]) -> Sequence[Output]:
        return [Say("I forgot.")] if isinstance(messages[-1], ToolMessage) else knows(messages, asked)

    assert marks(await probe(openai(RealtimeServer(forgets))))["tool result"] is Mark.BAD


async def test_a_step_that_fails_is_told_and_the_others_are_tried() -> None:
    def fails(messages: Sequence[Message], asked: dict[str, Any]) -> Sequence[Output]:
        if messages[-1] == UserMessage(ASK_TIME):
            return [End("failed", {"type": "failed", "error": {"code": "server_error"}})]
        return knows(messages, asked)

    report = await probe(openai(RealtimeServer(fails)))
    assert report.ok
    assert (marks(report)["tool call"], marks(report)["voices"]) == (Mark.BAD, Mark.GOOD)


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (HTTPStatus.UNAUTHORIZED, "Incorrect API key", "refused the API key. Check OPENAI_API_KEY."),
        (HTTPStatus.NOT_FOUND, "The model does not exist.", "was not found at http://"),
        (HTTPStatus.TOO_MANY_REQUESTS, "Rate limit", "accepts no more sessions for now"),
    ],
)
async def test_a_refusal_is_one_sentence(status: HTTPStatus, body: str, sentence: str) -> None:
    report = await probe(openai(RealtimeServer(refuses_upgrade=(status, body))))
    (finding,) = report.findings
    assert (report.ok, finding.check, finding.mark) == (False, "answers", Mark.BAD)
    assert sentence in finding.text


@pytest.mark.parametrize(
    ("code", "reason", "sentence"),
    [
        (1007, "API key not valid. Please pass a valid API key.", "refused the API key. Check GEMINI_API_KEY."),
        (1011, "You exceeded your current quota, please check your plan.", "accepts nothing more for now"),
    ],
)
async def test_a_close_of_gemini_is_one_sentence(code: int, reason: str, sentence: str) -> None:
    async def refuse(client: Client) -> None:
        await client.receive()
        await client.close(code, reason)

    report = await probe(gemini(GeminiServer(refuse)))
    (finding,) = report.findings
    assert (report.ok, sentence in finding.text) == (False, True)


async def test_a_server_that_never_opens_a_session_is_given_up() -> None:
    async def stay_silent(session: ServedSession) -> None:
        return

    report = await probe(openai(RealtimeServer(greets=stay_silent)))
    assert (report.ok, "did not open a session" in report.findings[-1].text) == (False, True)


@pytest.mark.parametrize(("limit_s", "told"), [(5, "within 5 seconds"), (60, "within 30 seconds")])
async def test_a_model_that_never_answers_is_given_up(limit_s: float, told: str) -> None:
    report = await probe(openai(RealtimeServer(lambda messages, asked: [Stall()])), limit_s=limit_s)
    assert (report.ok, told in report.findings[-1].text) == (False, True)


async def test_a_connection_that_is_lost_is_made_again_for_the_next_step() -> None:
    def drops(messages: Sequence[Message], asked: dict[str, Any]) -> Sequence[Output]:
        if messages[-1] == UserMessage(SPOKEN_QUESTION):
            first.session.drop()
            return [Stall()]
        return knows(messages, asked)

    first, second = RealtimeServer(drops, hears=[SPOKEN_QUESTION]), RealtimeServer(knows)
    models = [openai(first), openai(second)]
    factory = ModelFactory(models[0].profile, lambda: models.pop(0))
    report = await LiveProbe(factory, question=speech(1), tell=lambda step: None, limit_s=60).run()
    assert (models, report.ok) == ([], True)
    assert (marks(report)["hears"], marks(report)["tool result"]) == (Mark.BAD, Mark.GOOD)


async def test_a_missing_key_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    settings = Settings(tmp_path, tmp_path)
    with pytest.raises(ModelError, match=r"needs an API key\. Set GEMINI_API_KEY\."):
        await probe_model(settings, f"gemini-live:{GEMINI_38}", tell=lambda step: None, limit_s=5)


def test_the_configured_models_are_the_text_model_and_a_providers_voice(tmp_path: Path) -> None:
    live = Settings(tmp_path, tmp_path, model=Model(text="ollama:qwen3", voice="openai-realtime:gpt-realtime-2"))
    assert configured_models(live) == ["ollama:qwen3", "openai-realtime:gpt-realtime-2"]
    assert configured_models(Settings(tmp_path, tmp_path)) == ["builtin"]
