"""Whatever is said, typed, interrupted and broken, in any order: each answer ends once, and nothing void is heard."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import ExitStack
from functools import partial
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from structlog.testing import capture_logs

from antiphon.models.base import CallRequested, Event, ModelError, Prompt, TextDelta, TextProfile
from antiphon.models.live import (
    Held,
    InputTranscript,
    Interrupted,
    LiveContext,
    LiveEvent,
    OutputAudio,
    OutputText,
    Resumed,
    ToolCalls,
    TurnComplete,
    TurnStarted,
)
from antiphon.speech.base import SpeechBusy, SpeechError
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode
from antiphon.transcript import ToolMessage, Transcript, UserMessage
from tests.fakes.paced import results_of
from tests.fakes.steady_loop import SteadyLoop
from tests.fakes.voice import CERTAIN, HZ, PUSH_MS, FakeEngines, Tones, hum, wave

ERRORS = st.sampled_from([None, SpeechBusy, SpeechError, RuntimeError])


def words_of(marker: str) -> str:
    """An answer in which every word carries the mark of its turn."""
    return " ".join(f"{marker}.{place}{', ' if place % 5 == 4 else ''}" for place in range(12))


def click(ms: int) -> bytes:
    return wave(ms, CERTAIN)


class Marked:
    """Answers with the first word of the turn. In the turn, too, are what it does before, and how it ends."""

    profile = TextProfile("marked", needs_network=False)

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        asked = next(message for message in reversed(prompt.messages) if isinstance(message, UserMessage))
        marker, *kinds = asked.text.split()
        await asyncio.sleep(0.1)
        if "tool" in kinds and not isinstance(prompt.messages[-1], ToolMessage):
            yield TextDelta(f"{marker}.look ")
            yield CallRequested(ToolCall(f"call_{marker}", "read_it", {"of": marker}))
            return
        for word in words_of(marker).split():
            await asyncio.sleep(0.03)
            yield TextDelta(f"{word} ")
            if "fail" in kinds:
                raise ModelError("The model is gone.")
            if "break" in kinds:
                raise RuntimeError("a mistake")


class AnyOrder(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = SteadyLoop()
        self.problems: list[dict[str, Any]] = []
        self.loop.set_exception_handler(lambda loop, problem: self.problems.append(problem))
        self.logs = ExitStack()
        self.logs.enter_context(capture_logs())
        self.fakes = FakeEngines()
        self.tones = Tones(piece_ms=300)
        self.cascade = self.fakes.cascade(Marked(), self.tones)
        self.transcript = Transcript()
        self.turns = 0
        self.asked: dict[str, str] = {}
        """The mark of each requested turn."""
        self.ended: list[str] = []
        """The ids of turns ended by the end of the audio."""
        self.log: list[LiveEvent | str] = []
        """Events and requested turns in order, with a "-" before turns that were stopped."""
        self.calls: list[ToolCalls] = []
        self.playing = False

    @initialize(
        lag_s=st.sampled_from([0.0, 0.02, 0.6]),
        delay_s=st.sampled_from([0.0, 0.08, 1.2]),
        voice_s=st.sampled_from([0.05, 1.5]),
        is_knowing=st.booleans(),
        tells_length=st.booleans(),
        may_end=st.booleans(),
        ends_calmly=st.booleans(),
    )
    def begin(
        self,
        lag_s: float,
        delay_s: float,
        voice_s: float,
        is_knowing: bool,
        tells_length: bool,
        may_end: bool,
        ends_calmly: bool,
    ) -> None:
        self.fakes.recognizer.delay_s = delay_s
        self.fakes.detector.says = 1.0 if is_knowing else 0.0
        self.tones.delay_s = voice_s
        self.ends_calmly = ends_calmly
        self.tones.tells_length = tells_length
        self.may_end = may_end
        tell = self.cascade._queue.put

        def note(event: LiveEvent) -> None:
            self.log.append(event)
            tell(event)

        self.cascade._queue.put = note  # type: ignore[method-assign]
        self.run(self.cascade.connect(LiveContext("", self.transcript, (), (), Mode.VOICE)))
        self.session = self.loop.create_task(self.attend(lag_s))
        self.run(self.sound(bytes(32 * 500)))

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        self.loop.run_until_complete(work)

    def call(self, command: Callable[[], None]) -> None:
        """While the loop runs."""

        async def do() -> None:
            command()

        self.run(do())

    def mark(self) -> str:
        self.turns += 1
        return f"t{self.turns}"

    async def attend(self, lag_s: float) -> None:
        """As a session does, which has other things to do, too."""
        async for event in self.cascade.events():
            match event:
                case TurnStarted(turn=turn, continues=str(first)):
                    self.transcript.continue_as(first, turn)
                case InputTranscript(turn=turn, text=text, is_final=True):
                    await asyncio.sleep(lag_s)
                    self.ask(turn, text)
                case Interrupted(turn=str(turn)):
                    await asyncio.sleep(lag_s)
                    self.interrupt(turn, "")
                case ToolCalls():
                    self.calls.append(event)

    def ask(self, turn: str, text: str) -> None:
        self.transcript.set_user(turn, text)
        if TurnComplete(turn) not in self.log:
            # Otherwise the user has gone on in the meantime.
            self.log.append(turn)
        self.asked[turn] = text.split()[0]
        self.cascade.respond(turn, text)

    def say(self, marker: str) -> None:
        turn = f"said-{marker}"
        self.log.append(turn)
        self.asked[turn] = marker
        self.cascade.say(turn, words_of(marker))

    def interrupt(self, turn: str, heard: str | None) -> None:
        self.log.append(f"-{turn}")
        self.cascade.interrupt(turn, heard)

    async def sound(self, pcm: bytes) -> None:
        size = 2 * HZ * PUSH_MS // 1_000
        for at in range(0, len(pcm), size):
            self.cascade.send_audio(pcm[at : at + size], playing=self.playing)
            await asyncio.sleep(PUSH_MS / 1_000)

    @rule(kind=st.sampled_from(["", "tool", "fail", "break", "and so on"]), pause_ms=st.sampled_from([0, 100, 400]))
    def speak(self, kind: str, pause_ms: int) -> None:
        self.run(self.sound(bytes(32 * pause_ms) + self.fakes.words.say(f"{self.mark()} {kind}".strip())))

    @rule(ms=st.sampled_from([20, 200, 400, 1_000, 3_000]))
    def be_silent(self, ms: int) -> None:
        self.run(self.sound(bytes(32 * ms)))

    @rule(make=st.sampled_from([click, hum]), ms=st.sampled_from([32, 120, 300, 900]))
    def make_a_noise(self, make: Callable[[int], bytes], ms: int) -> None:
        self.run(self.sound(make(ms)))

    @rule(s=st.sampled_from([0.0, 0.1, 0.5, 1.5]))
    def send_nothing(self, s: float) -> None:
        self.run(asyncio.sleep(s))

    @rule(kind=st.sampled_from(["", "tool", "fail", "break"]))
    def type(self, kind: str) -> None:
        marker = self.mark()
        self.call(lambda: self.ask(f"typed-{marker}", f"{marker} {kind}"))

    @rule()
    def speak_first(self) -> None:
        self.call(lambda: self.say(self.mark()))

    @rule(heard=st.sampled_from([None, "", "one"]), place=st.integers(0, 3))
    def want_silence(self, heard: str | None, place: int) -> None:
        if self.asked:
            turn = list(self.asked)[-1 - place % len(self.asked)]
            self.call(lambda: self.interrupt(turn, heard))

    @rule(place=st.integers(0, 3))
    def give_results(self, place: int) -> None:
        if self.calls:
            calls = self.calls[-1 - place % len(self.calls)]
            self.call(lambda: self.cascade.send_tool_results(calls.turn, results_of(calls)))

    @precondition(lambda self: self.may_end)
    @rule()
    def end_the_audio(self) -> None:
        turn = f"ended-{len(self.ended)}"
        self.ended.append(turn)
        self.call(lambda: self.cascade.end_audio(turn))

    @rule(playing=st.booleans())
    def play(self, playing: bool) -> None:
        self.playing = playing

    @rule(error=ERRORS)
    def break_the_recogniser(self, error: Callable[[str], Exception] | None) -> None:
        self.fakes.recognizer.error = error and error("No recogniser.")

    @rule(error=ERRORS)
    def break_the_voice(self, error: Callable[[str], Exception] | None) -> None:
        self.tones.error, self.tones.fails_at = error and error("No voice."), ".3"

    @rule(fails=st.booleans())
    def break_the_vad(self, fails: bool) -> None:
        self.fakes.vad.fails = fails

    @rule(voice=st.sampled_from([None, "anna", "nobody"]), speed=st.sampled_from([0.5, 1.0, 2.0]))
    def choose_a_voice(self, voice: str | None, speed: float) -> None:
        self.cascade.set_voice(voice, speed)

    def teardown(self) -> None:
        try:
            if hasattr(self, "session"):
                if self.ends_calmly:
                    self.calm_down()
                    self.check_ends()
                self.check_order()
                self.run(self.close())
            assert self.problems == []
        finally:
            self.logs.close()
            self.loop.close()
            # The machine itself is kept by Hypothesis.
            del self.cascade, self.fakes

    def calm_down(self) -> None:
        self.playing = self.fakes.vad.fails = False
        self.fakes.recognizer.error = self.tones.error = None
        self.run(self.sound(bytes(32 * 2_000)))
        self.run(asyncio.sleep(30))
        for turn in list(self.asked):
            self.call(partial(self.interrupt, turn, None))
        self.run(asyncio.sleep(1))

    async def close(self) -> None:
        await self.cascade.close()
        # A request of the session at the same moment may be refused.
        (error,) = await asyncio.gather(self.session, return_exceptions=True)
        assert error is None or isinstance(error, ModelError)
        await self.fakes.batched_vad.aclose()
        assert self.tones.open == 0
        assert asyncio.all_tasks() == {asyncio.current_task()}

    def check_ends(self) -> None:
        ends = [event.turn for event in self.log if isinstance(event, TurnComplete)]
        started = [event.turn for event in self.log if isinstance(event, TurnStarted)]
        assert sorted(ends) == sorted({*self.asked, *self.ended, *started}), "each turn ends once"

    def check_order(self) -> None:
        alive, over = "", set[str]()
        for entry in self.log:
            match entry:
                case str():
                    alive = "" if entry == f"-{alive}" else alive if entry.startswith("-") else entry
                case Interrupted(turn=turn):
                    alive = "" if turn == alive else alive
                case OutputText(turn=turn, text=text) | OutputAudio(turn=turn, text=text):
                    assert turn == alive, f"{text} of {turn} in {alive or 'silence'}"
                    assert all(word.startswith(f"{self.asked[turn]}.") for word in text.split())
                case ToolCalls(turn=turn, calls=calls):
                    assert turn == alive
                    assert calls[0].id == f"call_{self.asked[turn]}"
                case TurnStarted(turn=turn, continues=first):
                    assert turn not in over
                    assert first is None or first in over, "what it replaces is over by then"
                case TurnComplete(turn=turn):
                    assert turn not in over, "a turn ends once"
                    over.add(turn)
                case Held() | Resumed():
                    # Its audio may still be playing.
                    pass
                case _:
                    assert getattr(entry, "turn", None) not in over


AnyOrder.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestAnyOrder = AnyOrder.TestCase
