"""The models under the `LiveModel` contract tests, and the rules that the events of all of them obey.

A provider is tested with a server on loopback, on the same virtual loop (`tests/fakes/with_server.py`): a wait of a
minute takes no time there either.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Literal

from antiphon.models.base import (
    CallRequested,
    Event,
    MessageComplete,
    Prompt,
    StopReason,
    TextDelta,
    TextProfile,
)
from antiphon.models.builtin import BuiltinModel
from antiphon.models.live import (
    Closed,
    GenerationComplete,
    InputTranscript,
    Interrupted,
    LiveEvent,
    LiveModel,
    LiveProfile,
    OutputAudio,
    OutputText,
    TurnComplete,
    TurnStarted,
    Usage,
)
from antiphon.models.providers.gemini_live import GeminiLive
from antiphon.models.providers.openai_realtime import (
    OpenAIRealtime,
    RealtimeEndpoint,
    azure_endpoint,
    openai_endpoint,
)
from antiphon.models.text_live import TextLiveModel
from antiphon.tools.call import ToolCall
from antiphon.transcript import AssistantMessage, Message, ToolMessage, UserMessage
from tests.fakes import paced, vendor_answers
from tests.fakes.continuous import ContinuousLive, Provider
from tests.fakes.gemini_model import ConversingServer, Transcribes, speech
from tests.fakes.gemini_server import gemini_client
from tests.fakes.paced import Listener, Paced
from tests.fakes.realtime_server import RealtimeServer
from tests.fakes.scripted_live import PROFILE, WAITING, Call, HangUp, Hear, Pause, Say, ScriptedLive, Step
from tests.fakes.talking_tools import Box, talking_tools
from tests.fakes.voice import FakeEngines, Tones
from tests.fakes.with_server import WithServer

ANSWER: Final = [OutputText, GenerationComplete, TurnComplete]
BESIDE: Final = (OutputAudio, Usage)
"""Parts of an answer that have no fixed place among the others."""
CALL: Final = ToolCall("call_0123456789", "get_time", {"timezone": "Tokyo"})
FRAME: Final = bytes(640)
"""20 ms of microphone audio."""
SECOND: Final = 50 * FRAME
LOUD_SECOND: Final = 400 * (20 * b"\x00\x40" + 20 * b"\x00\xc0")
"""A tone, which counts as speech."""


class Turn(StrEnum):
    """What the user says, named by the kind of answer that it gets."""

    WORDS = "hello"
    CALL = "what time is it in Tokyo?"


@dataclass
class Subject:
    model: LiveModel
    given: Callable[[], Sequence[Message]]
    """The conversation as the model knew it when it last started or continued an answer."""
    speech: Callable[[str], bytes] = lambda text: SECOND
    """A text as a microphone picks it up. A model that is not listened to by a recogniser takes anything."""


Make = Callable[..., Subject]


class GreetingModel:
    """A text model that calls a tool when it is asked for the time, and greets otherwise."""

    profile = TextProfile("clerk", needs_network=False)

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        last = prompt.messages[-1]
        if last == UserMessage(Turn.CALL):
            yield CallRequested(CALL)
            yield MessageComplete(StopReason.CALLS)
            return
        for word in ("It's noon there." if isinstance(last, ToolMessage) else "Hello there, my friend.").split():
            yield TextDelta(f"{word} ")
        yield MessageComplete(StopReason.DONE)


def make_text(*turns: Turn) -> Subject:
    paced = Paced(GreetingModel())
    return Subject(TextLiveModel(paced), lambda: paced.prompts[-1].messages)


def make_builtin(*turns: Turn) -> Subject:
    paced = Paced(BuiltinModel(Box(talking_tools())))
    return Subject(TextLiveModel(paced), lambda: paced.prompts[-1].messages)


def make_cascade(*turns: Turn) -> Subject:
    fakes, paced = FakeEngines(), Paced(GreetingModel())
    model = fakes.cascade(paced, Tones())
    return Subject(model, lambda: paced.prompts[-1].messages, lambda text: SECOND + fakes.words.say(text))


def scripted(profile: LiveProfile, transcript: Literal["before", "late", "after", "never"]) -> Make:
    def make(*turns: Turn) -> Subject:
        script: list[Step] = []
        for turn in turns:
            script += [Hear(turn, transcript=transcript)]
            script += [Call(CALL.name, CALL.args, CALL.id)] if turn is Turn.CALL else []
            script += [Say("Hello there, my friend.")]
        model = ScriptedLive(script, profile=profile)
        return Subject(model, lambda: model.prompts[-1])

    return make


def continuous(profile: LiveProfile, transcript: Literal["before", "late", "after", "never"], *, is_cut: bool) -> Make:
    """Makes models whose first connection is lost in the middle of its first answer, if it is cut."""

    def make(*turns: Turn) -> Subject:
        script: list[Step] = []
        for turn in turns:
            script += [Hear(turn, transcript=transcript)]
            script += [Call(CALL.name, CALL.args, CALL.id)] if turn is Turn.CALL else []
            script += [Say("Hello there, my friend.", first_text_ms=20)]
        cut: list[Step] = [Hear(turn, transcript=transcript) for turn in turns[:1]]
        is_call = Turn.CALL in turns[:1]
        cut += [Pause(200) if is_call else Say("Hello there, ", audio_ms=848, goes_on=True), HangUp()]
        provider = Provider(*([cut] if is_cut else []), script, profile=profile)
        return Subject(ContinuousLive(provider), lambda: provider.last.prompts[-1], lambda text: LOUD_SECOND)

    return make


def answer(messages: Sequence[Message], asked: dict[str, Any]) -> Sequence[vendor_answers.Output]:
    """Calls a tool when it is asked for the time, says what it is told to say, and greets otherwise."""
    if instructions := asked.get("instructions"):
        return [vendor_answers.Say(instructions.partition(vendor_answers.VERBATIM)[2])]
    if messages[-1] == UserMessage(Turn.CALL):
        return [vendor_answers.Call(CALL.name, CALL.args, CALL.id or "")]
    return [vendor_answers.Say("It's noon." if isinstance(messages[-1], ToolMessage) else "Hello there, my friend.")]


def gemini(
    name: str, transcribes: Transcribes = "before", *, waits_for_tools: bool, reply: vendor_answers.Reply = answer
) -> Make:
    def make(*turns: Turn) -> Subject:
        server = ConversingServer(reply=reply, hears=turns, transcribes=transcribes, waits_for_tools=waits_for_tools)
        model = WithServer(GeminiLive(gemini_client(name)), server)
        return Subject(model, lambda: server.given, lambda text: speech())

    return make


def make_realtime(
    endpoint: Callable[[RealtimeServer], RealtimeEndpoint],
    transcript: Literal["before", "late", "after", "never"] = "late",
) -> Make:
    def make(*turns: Turn) -> Subject:
        server = RealtimeServer(answer, hears=turns, transcript=transcript)
        model = WithServer(OpenAIRealtime(endpoint(server)), server)
        return Subject(model, lambda: server.prompts[-1], lambda text: LOUD_SECOND)

    return make


GEMINI_38: Final = "gemini-3.8-live"
GEMINI_THINKING: Final = "gemini-3.8-live-extended-thinking"
GEMINI_31: Final = "gemini-3.1-flash-live-preview"
GEMINI_25: Final = "gemini-2.5-flash-native-audio-preview-12-2025"


def openai_at(server: RealtimeServer) -> RealtimeEndpoint:
    return openai_endpoint("gpt-realtime-2", server.url, "sk-local")


def azure_at(server: RealtimeServer) -> RealtimeEndpoint:
    return azure_endpoint("my-deployment", server.origin, "az-local")


MODELS: Final[dict[str, Make]] = {
    "text": make_text,
    "builtin": make_builtin,
    "cascade": make_cascade,
    "scripted": scripted(WAITING, "before"),
    "native": scripted(PROFILE, "late"),
    "continuous, scripted": continuous(WAITING, "before", is_cut=False),
    "continuous, native": continuous(PROFILE, "late", is_cut=False),
    "continuous, scripted, connection lost": continuous(WAITING, "before", is_cut=True),
    "continuous, native, connection lost": continuous(PROFILE, "late", is_cut=True),
    "gemini 3.8": gemini(GEMINI_38, waits_for_tools=False),
    "gemini extended thinking": gemini(GEMINI_THINKING, waits_for_tools=False),
    "gemini 3.1": gemini(GEMINI_31, waits_for_tools=True),
    "gemini 2.5": gemini(GEMINI_25, waits_for_tools=False),
    "openai": make_realtime(openai_at),
    "azure": make_realtime(azure_at),
}
HEARING: Final[dict[str, Make]] = {
    "cascade": make_cascade,
    "scripted": scripted(WAITING, "before"),
    "native, transcript before": scripted(PROFILE, "before"),
    "native, transcript late": scripted(PROFILE, "late"),
    "native, transcript after": scripted(PROFILE, "after"),
    "native, no transcript": scripted(PROFILE, "never"),
    "continuous, scripted": continuous(WAITING, "before", is_cut=False),
    "continuous, native": continuous(PROFILE, "late", is_cut=False),
    "continuous, scripted, connection lost": continuous(WAITING, "before", is_cut=True),
    "continuous, native, connection lost": continuous(PROFILE, "late", is_cut=True),
    "continuous, native, connection lost, transcript after": continuous(PROFILE, "after", is_cut=True),
    "continuous, native, connection lost, no transcript": continuous(PROFILE, "never", is_cut=True),
    "gemini 3.8, transcript before": gemini(GEMINI_38, "before", waits_for_tools=False),
    "gemini 3.8, transcript late": gemini(GEMINI_38, "late", waits_for_tools=False),
    "gemini 3.1, transcript after": gemini(GEMINI_31, "after", waits_for_tools=True),
    "gemini 2.5, no transcript": gemini(GEMINI_25, "never", waits_for_tools=False),
    "openai, transcript before": make_realtime(openai_at, "before"),
    "openai, transcript late": make_realtime(openai_at, "late"),
    "openai, transcript after": make_realtime(openai_at, "after"),
    "openai, no transcript": make_realtime(openai_at, "never"),
    "azure": make_realtime(azure_at),
}


@asynccontextmanager
async def listening(model: LiveModel, *history: Message, answers: bool = True) -> AsyncIterator[Listener]:
    """Opens a connection, and checks the order of its events at the end of the test."""
    async with paced.listening(model, *history, answers=answers) as talk:
        yield talk
    check_order(talk.events, talk.is_asked)


def check_order(events: Sequence[LiveEvent], is_asked: Callable[[str], bool]) -> None:
    """Checks the rules that the events of every model obey. `is_asked` is true for turns that were not spoken."""
    begun, over = set[str](), set[str]()
    for event in events:
        turn: Any = getattr(event, "turn", None)
        if isinstance(event, InputTranscript):
            assert not event.is_final or event.text, "a final transcript has words"
        if isinstance(event, OutputAudio):
            assert event.pcm, "a piece of audio has samples"
        if turn in over:
            may_follow = isinstance(event, InputTranscript | Interrupted)
            assert may_follow, f"{event} came after the end of its turn"
        if isinstance(event, TurnStarted):
            assert turn not in begun, f"{event} came after a part of its turn"
            begun.add(turn)
        elif turn is not None and not (isinstance(event, InputTranscript) and not event.is_final):
            is_empty = isinstance(event, TurnComplete)
            assert turn in begun or is_asked(turn) or is_empty, f"{event} came before its turn was begun"
            begun.add(turn)
        if isinstance(event, TurnComplete):
            over.add(turn)
    assert Closed not in [type(event) for event in events[:-1]]
    for counted in (TurnStarted, TurnComplete, GenerationComplete):
        turns = Counter(event.turn for event in events if isinstance(event, counted))
        assert max(turns.values(), default=0) <= 1, f"more than one {counted.__name__} of a turn"


async def ask_for_a_tool(talk: Listener) -> str:
    turn = await talk.ask(Turn.CALL)
    assert talk.events[-1] == talk.calls
    return turn


def answers_among(messages: Sequence[Message]) -> list[str]:
    """The texts of the assistant's messages."""
    return [message.text.strip() for message in messages if isinstance(message, AssistantMessage)]
