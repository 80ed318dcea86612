"""What all providers of live models share: queued input, turns and limits."""

import asyncio
from collections.abc import Callable

import pytest

from antiphon.models.base import FailureKind, ModelError
from antiphon.models.live import (
    Closed,
    CloseKind,
    GenerationComplete,
    InputTranscript,
    LiveEvent,
    OutputAudio,
    OutputText,
    ToolAnswer,
    ToolCalls,
    TurnComplete,
    TurnFailed,
    TurnStarted,
    UpstreamError,
)
from antiphon.models.providers.upstream import (
    INPUT_HZ,
    MAX_ANSWER_AUDIO_S,
    MAX_QUEUED_AUDIO_S,
    MAX_TRANSCRIPT_CHARS,
    WRITE_S,
    Outgoing,
    Turns,
    Upstream,
)
from antiphon.tools.call import ToolCall

SECOND = bytes(2 * INPUT_HZ)


class Wire:
    """Keeps what is written, as soon as the network accepts it."""

    def __init__(self) -> None:
        self.written: list[object] = []
        self.accepts = asyncio.Event()
        self.outgoing = Outgoing(self.write, "model")

    async def write(self, item: object) -> None:
        await self.accepts.wait()
        self.written.append(item)

    def put(self, text: str) -> None:
        self.outgoing.put(lambda: self.write(text))


# Queued input.


async def test_input_is_written_in_its_order() -> None:
    wire = Wire()
    wire.put("first")
    wire.outgoing.put_audio(b"12")
    wire.put("last")
    wire.accepts.set()
    running = asyncio.create_task(wire.outgoing.run())
    await asyncio.sleep(1)
    assert wire.written == ["first", b"12", "last"]
    wire.outgoing.put_audio(b"34")
    await asyncio.sleep(1)
    assert wire.written[3:] == [b"34"]
    running.cancel()


async def test_audio_is_written_at_once_if_nothing_waits_before_it() -> None:
    wire = Wire()
    now: list[bytes] = []

    def write_now(pcm: bytes) -> bool:
        if wire.accepts.is_set():
            now.append(pcm)
        return wire.accepts.is_set()

    wire.outgoing = Outgoing(wire.write, "model", write_now)
    wire.outgoing.put_audio(b"before the task runs")
    wire.accepts.set()
    running = asyncio.create_task(wire.outgoing.run())
    await asyncio.sleep(1)
    assert (wire.written, now) == ([b"before the task runs"], [])
    wire.outgoing.put_audio(b"at once")
    assert now == [b"at once"]
    wire.put("text")
    wire.outgoing.put_audio(b"after the text")
    wire.accepts.clear()
    await asyncio.sleep(1)
    wire.outgoing.put_audio(b"after it")
    wire.accepts.set()
    await asyncio.sleep(1)
    assert wire.written[1:] == ["text", b"after the text", b"after it"]
    assert now == [b"at once"]
    running.cancel()


async def test_audio_waits_for_a_network_that_takes_none() -> None:
    wire = Wire()
    wire.outgoing = Outgoing(wire.write, "model", lambda pcm: False)
    running = asyncio.create_task(wire.outgoing.run())
    await asyncio.sleep(1)
    wire.outgoing.put_audio(b"12")
    wire.outgoing.put_audio(b"34")
    wire.accepts.set()
    await asyncio.sleep(1)
    assert wire.written == [b"12", b"34"]
    running.cancel()


async def test_the_oldest_audio_is_dropped_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    wire = Wire()
    wire.put("before")
    for number in range(int(MAX_QUEUED_AUDIO_S) + 10):
        wire.outgoing.put_audio(bytes([number]) + SECOND[1:])
    wire.put("after")
    wire.accepts.set()
    running = asyncio.create_task(wire.outgoing.run())
    await asyncio.sleep(1)
    before, *audio, after = wire.written
    assert (before, after) == ("before", "after")
    assert len(audio) == MAX_QUEUED_AUDIO_S
    assert isinstance(audio[0], bytes)
    assert audio[0][0] == 10
    assert capsys.readouterr().out.count("model_input_dropped") == 1
    running.cancel()


async def test_a_network_that_accepts_nothing_is_given_up() -> None:
    wire = Wire()
    wire.put("text")
    running = asyncio.create_task(wire.outgoing.run())
    await asyncio.sleep(WRITE_S - 1)
    assert not running.done()
    await asyncio.sleep(2)
    assert isinstance(running.exception(), TimeoutError)


async def test_waiting_for_input_takes_as_long_as_it_takes() -> None:
    wire = Wire()
    running = asyncio.create_task(wire.outgoing.run())
    await asyncio.sleep(3_600)
    assert not running.done()
    running.cancel()


# Turns.


@pytest.fixture
def events() -> list[LiveEvent]:
    return []


@pytest.fixture
def turns(events: list[LiveEvent]) -> Turns:
    return Turns(events.append, name="model", output_hz=24_000, answer_within_s=30)


async def test_a_dropped_answer_is_silent(turns: Turns, events: list[LiveEvent]) -> None:
    first = turns.ask("a")
    turns.ask("b")
    turns.say(first, "late")
    turns.play(first, b"12")
    turns.call(first, [ToolCall("call-000001", "x", {})])
    turns.use(first, 1, 1)
    turns.finish_generation(first)
    turns.interrupted(first)
    turns.complete(first)
    turns.fail(first, ModelError("late"))
    assert events == [TurnComplete("a")]
    turns.close()


async def test_a_heard_turn_is_announced_and_the_next_has_another_id(turns: Turns, events: list[LiveEvent]) -> None:
    first, second = turns.hear(), turns.hear()
    assert first.turn != second.turn
    assert events == [TurnStarted(first.turn), TurnComplete(first.turn), TurnStarted(second.turn)]
    turns.close()


async def test_an_answer_ends_once(turns: Turns, events: list[LiveEvent]) -> None:
    answer = turns.ask("a")
    turns.say(answer, "Hi.")
    turns.finish_generation(answer)
    turns.complete(answer)
    turns.complete(answer)
    assert events == [OutputText("a", "Hi."), GenerationComplete("a"), TurnComplete("a")]


async def test_words_without_audio_of_their_own_come_with_a_moment_of_silence(
    turns: Turns, events: list[LiveEvent]
) -> None:
    answer = turns.ask("a")
    turns.play(answer, bytes(48_000))
    turns.say(answer, "Hi.")
    turns.complete(answer)
    assert events[-3:] == [OutputAudio("a", bytes(960), "Hi.", last=True), GenerationComplete("a"), TurnComplete("a")]


async def test_the_time_to_answer_does_not_pass_while_tools_run(turns: Turns, events: list[LiveEvent]) -> None:
    answer, call = turns.ask("a"), ToolCall("call-000001", "x", {})
    await asyncio.sleep(29)
    turns.call(answer, [call])
    await asyncio.sleep(600)
    assert events == [ToolCalls("a", (call,))]
    assert turns.take_results("a", [ToolAnswer(call, 1)]) == ([ToolAnswer(call, 1)], [])
    await asyncio.sleep(29)
    assert len(events) == 1
    await asyncio.sleep(2)
    assert isinstance(events[1], TurnFailed)
    assert events[1].kind is FailureKind.TIMEOUT


async def test_a_generated_answer_is_completed_once_it_must_have_been_played(
    turns: Turns, events: list[LiveEvent]
) -> None:
    answer = turns.ask("a")
    turns.play(answer, bytes(48_000 * 20))
    turns.finish_generation(answer)
    await asyncio.sleep(49)
    assert events[1:] == [GenerationComplete("a")]
    await asyncio.sleep(2)
    assert events[1:] == [GenerationComplete("a"), TurnComplete("a")]


async def test_results_are_awaited_late_or_repeated(turns: Turns) -> None:
    answer, call = turns.ask("a"), ToolCall("call-000001", "x", {})
    turns.call(answer, [call])
    result = ToolAnswer(call, 1)
    assert turns.take_results("another", [result]) == ([], [result])
    assert turns.take_results("a", [result]) == ([result], [])
    assert turns.take_results("a", [result]) == ([], [])
    turns.close()


async def test_a_final_transcript_comes_once_and_has_words(turns: Turns, events: list[LiveEvent]) -> None:
    turns.transcribe("a", "  ", is_final=True)
    turns.transcribe("a", "Hi", is_final=False)
    turns.transcribe("a", "Hi\ud83d", is_final=True)
    turns.transcribe("a", "Hi again", is_final=True)
    turns.transcribe("a", "Hi again", is_final=False)
    assert events == [InputTranscript("a", "Hi", is_final=False), InputTranscript("a", "Hi\ufffd", is_final=True)]
    turns.transcribe("b", "x" * 2 * MAX_TRANSCRIPT_CHARS, is_final=True)
    last = events[-1]
    assert isinstance(last, InputTranscript)
    assert len(last.text) == MAX_TRANSCRIPT_CHARS


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("calls", "says"),
    [
        ([ToolCall(None, "x", {})] * 33, "asked for more than 32 tool calls"),
        ([ToolCall(None, "x", {"a": "b" * 300_000})], "tool calls of more than 262,144 characters"),
        ([ToolCall(None, "x", {"a": nested(5_000)})], "arguments are no JSON"),
        ([ToolCall(None, "x", {"a": object()})], "arguments are no JSON"),
    ],
)
async def test_calls_beyond_the_limits_fail_the_turn(
    turns: Turns, events: list[LiveEvent], calls: list[ToolCall], says: str
) -> None:
    turns.call(turns.ask("a"), calls)
    failed, complete = events
    assert isinstance(failed, TurnFailed)
    assert says in failed.message
    assert complete == TurnComplete("a")


async def test_halves_of_characters_in_calls_are_replaced(turns: Turns, events: list[LiveEvent]) -> None:
    turns.call(turns.ask("a"), [ToolCall("call\ud83d", "x\ud83d", {"\ud83d": ["\ud83d"]})])
    assert events == [ToolCalls("a", (ToolCall("call\ufffd", "x\ufffd", {"\ufffd": ["\ufffd"]}),))]
    turns.close()


@pytest.mark.parametrize(
    "overdo",
    [
        lambda turns, answer: [turns.say(answer, "word " * 400) for _ in range(6)],
        lambda turns, answer: turns.say(answer, "x" * 200_000),
        lambda turns, answer: [
            turns.play(answer, bytes(48_000 * 600)) for _ in range(int(MAX_ANSWER_AUDIO_S / 600) + 1)
        ],
    ],
)
async def test_an_endless_answer_fails(
    turns: Turns, events: list[LiveEvent], overdo: Callable[[Turns, object], object]
) -> None:
    overdo(turns, turns.ask("a"))
    assert [type(event) for event in events[-2:]] == [TurnFailed, TurnComplete]


# The life of a connection.


async def test_the_end_is_the_last_event() -> None:
    upstream = Upstream("model")
    upstream.open()
    upstream.emit(TurnComplete("a"))
    upstream.lose(UpstreamError("Gone.", CloseKind.QUOTA, retry_after_s=3))
    upstream.lose(UpstreamError("Gone again.", CloseKind.TRANSIENT))
    upstream.emit(TurnComplete("b"))
    assert [event async for event in upstream.events()] == [
        TurnComplete("a"),
        Closed("Gone.", CloseKind.QUOTA, retry_after_s=3),
    ]
    with pytest.raises(ModelError, match="is closed"):
        upstream.check_open()
    await upstream.close()


async def test_closing_ends_the_events_and_the_tasks() -> None:
    upstream = Upstream("model")
    with pytest.raises(ModelError, match="not connected"):
        upstream.check_open()
    upstream.open(asyncio.sleep(3_600, result=None))
    upstream.check_open()
    upstream.emit(TurnComplete("a"))
    await upstream.close()
    assert [event async for event in upstream.events()] == []
