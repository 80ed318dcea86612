"""Whatever is said, typed, interrupted and broken, in any order: each answer ends once, and nothing void is heard."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import ExitStack
from itertools import pairwise
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from structlog.testing import capture_logs

from antiphon.models.base import CallRequested, Event, ModelError, OutputText, Prompt, TextProfile
from antiphon.models.live import (
    InputTranscript,
    Interrupted,
    LiveContext,
    LiveEvent,
    OutputAudio,
    ToolCalls,
    TurnComplete,
)
from antiphon.speech.base import SpeechBusy, SpeechError
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode
from antiphon.transcript import ToolMessage, UserMessage
from tests.fakes.paced import results_of
from tests.fakes.steady_loop import SteadyLoop
from tests.fakes.voice import CERTAIN, HZ, PUSH_MS, Body, Tones, hum, wave

ERRORS = st.sampled_from([None, SpeechBusy, SpeechError, RuntimeError])


def words_of(marker: str) -> str:
    """An answer of which each word shows whose it is."""
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
            yield OutputText(f"{marker}.look ")
            yield CallRequested(ToolCall(f"call_{marker}", "read_it", {"of": marker}))
            return
        for word in words_of(marker).split():
            await asyncio.sleep(0.03)
            yield OutputText(f"{word} ")
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
        self.body = Body()
        self.tones = Tones(piece_ms=300)
        self.cascade = self.body.cascade(Marked(), self.tones)
        self.turns = 0
        self.begun = 0
        self.ends = 0
        self.log: list[LiveEvent | str] = []
        """Events as they are told, and between them the marks of turns as they are asked; "" is an interrupt."""
        self.finals: list[InputTranscript] = []
        self.calls: list[ToolCalls] = []
        self.playing = False
        self.tasks: list[asyncio.Task[None]] = []

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
        self.body.recognizer.delay_s = delay_s
        self.body.detector.says = 1.0 if is_knowing else 0.0
        self.tones.delay_s = voice_s
        self.ends_calmly = ends_calmly
        self.tones.tells_length = tells_length
        self.may_end = may_end
        tell = self.cascade._emit

        def note(event: LiveEvent) -> None:
            self.log.append(event)
            tell(event)

        self.cascade._emit = note  # type: ignore[method-assign]
        self.run(self.cascade.connect(LiveContext("", (), (), Mode.VOICE)))
        self.is_prompt = lag_s < 0.1
        self.session = self.loop.create_task(self.attend(lag_s))
        self.run(self.sound(bytes(32 * 500)))

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        self.loop.run_until_complete(work)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Without waiting for it, but in its order."""
        self.tasks.append(self.loop.create_task(work))
        self.run(asyncio.sleep(0))

    def mark(self) -> str:
        self.turns += 1
        return f"t{self.turns}"

    async def attend(self, lag_s: float) -> None:
        """As a session does, which has other things to do, too."""
        async for event in self.cascade.events():
            match event:
                case InputTranscript(is_final=True):
                    await asyncio.sleep(lag_s)
                    self.finals.append(event)
                    await self.ask(event.text)
                case Interrupted():
                    await asyncio.sleep(lag_s)
                    await self.interrupt("")
                case ToolCalls():
                    self.calls.append(event)

    async def ask(self, text: str) -> None:
        self.log.append(text.split()[0])
        self.begun += 1
        await self.cascade.send_text(text)

    async def say(self, marker: str) -> None:
        self.log.append(marker)
        self.begun += 1
        await self.cascade.say(words_of(marker))

    async def interrupt(self, heard: str | None) -> None:
        self.log.append("")
        await self.cascade.interrupt(heard)

    async def sound(self, pcm: bytes) -> None:
        size = 2 * HZ * PUSH_MS // 1_000
        for at in range(0, len(pcm), size):
            self.cascade.send_audio(pcm[at : at + size], playing=self.playing)
            await asyncio.sleep(PUSH_MS / 1_000)

    @rule(kind=st.sampled_from(["", "tool", "fail", "break", "and so on"]), pause_ms=st.sampled_from([0, 100, 400]))
    def speak(self, kind: str, pause_ms: int) -> None:
        self.run(self.sound(bytes(32 * pause_ms) + self.body.words.say(f"{self.mark()} {kind}".strip())))

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
        self.start(self.ask(f"{self.mark()} {kind}"))

    @rule()
    def speak_first(self) -> None:
        self.start(self.say(self.mark()))

    @rule(heard=st.sampled_from([None, "", "one"]))
    def want_silence(self, heard: str | None) -> None:
        self.start(self.interrupt(heard))

    @rule(place=st.integers(0, 3))
    def give_results(self, place: int) -> None:
        if self.calls:
            calls = self.calls[-1 - place % len(self.calls)]
            self.start(self.cascade.send_tool_results(results_of(calls)))

    @precondition(lambda self: self.may_end)
    @rule()
    def end_the_audio(self) -> None:
        self.ends += 1
        self.start(self.cascade.end_audio())

    @rule(playing=st.booleans())
    def play(self, playing: bool) -> None:
        self.playing = playing

    @rule(error=ERRORS)
    def break_the_recogniser(self, error: Callable[[str], Exception] | None) -> None:
        self.body.recognizer.error = error and error("No ears.")

    @rule(error=ERRORS)
    def break_the_voice(self, error: Callable[[str], Exception] | None) -> None:
        self.tones.error, self.tones.fails_at = error and error("No voice."), ".3"

    @rule(fails=st.booleans())
    def break_the_ears(self, fails: bool) -> None:
        self.body.vad.fails = fails

    @rule(voice=st.sampled_from([None, "anna", "nobody"]), speed=st.sampled_from([0.5, 1.0, 2.0]))
    def choose_a_voice(self, voice: str | None, speed: float) -> None:
        self.cascade.set_voice(voice, speed)

    def teardown(self) -> None:
        try:
            if hasattr(self, "session"):
                if self.ends_calmly:
                    self.calm_down()
                    self.check_ends()
                    self.check_history()
                self.check_order()
                self.run(self.close())
            assert self.problems == []
        finally:
            self.logs.close()
            self.loop.close()
            # The machine itself is kept by Hypothesis.
            del self.cascade, self.body

    def calm_down(self) -> None:
        self.playing = self.body.vad.fails = False
        self.body.recognizer.error = self.tones.error = None
        self.run(self.sound(bytes(32 * 2_000)))
        self.run(asyncio.sleep(30))
        self.start(self.interrupt(None))
        self.run(asyncio.sleep(1))

    async def close(self) -> None:
        await self.cascade.close()
        # What was asked of it at the same moment may be refused.
        refused = await asyncio.gather(*self.tasks, self.session, return_exceptions=True)
        assert all(error is None or isinstance(error, ModelError) for error in refused)
        await self.body.hearing.aclose()
        assert self.tones.open == 0
        assert asyncio.all_tasks() == {asyncio.current_task()}

    def check_ends(self) -> None:
        over = self.log.count(TurnComplete())
        assert self.begun <= over <= self.begun + self.ends, "an answer ends once"

    def check_order(self) -> None:
        alive = ""
        for entry in self.log:
            match entry:
                case str():
                    alive = entry
                case Interrupted():
                    alive = ""
                case OutputText(text=text) | OutputAudio(text=text):
                    assert all(word.startswith(f"{alive}.") for word in text.split()), f"{text} in {alive or 'silence'}"
                    assert alive, "something was said by nobody"
                case ToolCalls(calls=calls):
                    assert calls[0].id == f"call_{alive}"

    def check_history(self) -> None:
        """A session that is far behind may be told of a turn twice: in parts, since it has seen them as such."""
        kept = [message.text for message in self.cascade._mind._messages if isinstance(message, UserMessage)]
        if self.is_prompt:
            assert len(kept) == len(set(kept)), "a turn is told once"
            for part, whole in pairwise(self.finals):
                assert not whole.goes_on or part.text == whole.text or part.text not in kept, "a part beside the whole"


AnyOrder.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestAnyOrder = AnyOrder.TestCase
