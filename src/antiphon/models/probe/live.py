"""Finds out what a live model can do: whether it answers, hears and calls tools, how fast, and how long it may talk."""

import re
from collections.abc import Awaitable, Callable, Mapping
from difflib import SequenceMatcher
from typing import Any, Final

from antiphon.models.base import ModelError
from antiphon.models.live import LiveContext, ModelFactory
from antiphon.models.probe.exchange import Exchange, ProbedConnection
from antiphon.models.probe.questions import (
    ASK_TIME,
    BE_BRIEF,
    CLOCK,
    CLOCK_RESULT,
    HELLO,
    SPOKEN_QUESTION,
    USE_TOOLS,
    is_clock_call,
    tells_result,
)
from antiphon.models.probe.report import Finding, Mark, Report, Tell
from antiphon.sound_format import SAMPLE_BYTES
from antiphon.tools.spec import Mode
from antiphon.transcript import Transcript

SLOW_CONNECT_MS: Final = 3_000
SLOW_AUDIO_MS: Final = 2_500
"""A caller who waits longer for a sound wonders whether anyone is there."""
SIMILAR: Final = 0.8
"""How much of a transcript must be right. Spelling and punctuation do not count."""
HANDLE_WITHIN_S: Final = 3.0

SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "gemini": CLOCK,
    "openai_realtime": {"type": "function", **CLOCK},
    "openai_chat": {"type": "function", "function": CLOCK},
}
"""The tool in the format of each kind of model."""


class LiveProbe:
    """One test of one model. A step that fails does not keep the next one from being tried."""

    def __init__(
        self, factory: ModelFactory, *, question: bytes | None, why_no_question: str = "", tell: Tell, limit_s: float
    ) -> None:
        """`question` is `SPOKEN_QUESTION` as a microphone picks it up, and `why_no_question` says why there is none.
        `limit_s` is the time for one answer."""
        self._factory = factory
        self._profile = factory.profile
        self._question = question
        self._why_no_question = why_no_question
        self._tell = tell
        self._limit_s = limit_s
        self._connection: ProbedConnection | None = None
        self._handle: str | None = None
        self._goes_away_ms: int | None = None
        self._findings: list[Finding] = []
        self._advice: list[str] = []

    async def run(self) -> Report:
        try:
            return await self._run()
        finally:
            await self._disconnect()

    async def _run(self) -> Report:
        try:
            await self._say_hello()
        except ModelError as error:
            self._find("answers", Mark.BAD, str(error))
            return self._report(ok=False)
        await self._try("hears", self._speak)
        await self._try("tool call", self._call_a_tool)
        await self._try("resumption", self._find_resumption)
        self._find_limits()
        return self._report(ok=True)

    async def _try(self, check: str, step: Callable[[], Awaitable[None]]) -> None:
        try:
            await step()
        except ModelError as error:
            self._find(check, Mark.BAD, str(error))

    async def _say_hello(self) -> None:
        self._tell("Connecting")
        connection = await self._connect()
        self._tell("Saying hello")
        exchange = await connection.ask(HELLO)
        self._find("answers", Mark.GOOD, "yes")
        slow = connection.connect_ms > SLOW_CONNECT_MS
        self._find_time("connects", connection.connect_ms, Mark.FAIR if slow else Mark.GOOD)
        self._find_audio(exchange)
        if exchange.text.strip():
            self._find("transcript of answers", Mark.GOOD, "yes")
        else:
            self._find("transcript of answers", Mark.FAIR, "none came, so answers are heard and not shown")
        usage = exchange.usage
        if usage is None or not usage.input_tokens + usage.output_tokens:
            self._find("usage", Mark.FAIR, "not reported, so tokens are not counted")
        else:
            self._find("usage", Mark.GOOD, f"{usage.input_tokens} tokens in, {usage.output_tokens} out")

    def _find_audio(self, exchange: Exchange) -> None:
        if exchange.first_audio_ms is None:
            self._find("first audio", Mark.BAD, "it answered without a sound")
            return
        self._find_wait("first audio", exchange.first_audio_ms)
        spoken_s = exchange.audio_bytes / SAMPLE_BYTES / self._profile.output_hz
        self._find("speaks", Mark.GOOD, f"{spoken_s:.1f} s of sound at {self._profile.output_hz:,} Hz", spoken_s)

    async def _speak(self) -> None:
        if self._question is None:
            self._find("hears", Mark.UNKNOWN, f"not tried: {self._why_no_question}")
            return
        self._tell("Asking a question aloud")
        exchange = await (await self._connect()).speak(self._question)
        if exchange is None:
            self._find("hears", Mark.BAD, "a spoken question got no answer")
            return
        self._find("hears", Mark.GOOD, "yes, a spoken question was answered")
        if exchange.first_audio_ms is not None:
            self._find_wait("answer to speech", exchange.first_audio_ms)
        self._find_transcript(exchange.heard)

    def _find_transcript(self, heard: str) -> None:
        check = "transcript of speech"
        if not heard:
            self._find(check, Mark.FAIR, "none came, so what is said to it is not shown")
            self._advise(
                "No transcript of speech comes. With OpenAI or Azure, set model.transcription. On Azure, that is the"
                " name of your own deployment."
            )
            return
        rightness = SequenceMatcher(None, _words(SPOKEN_QUESTION), _words(heard), autojunk=False).ratio()
        mark = Mark.GOOD if rightness >= SIMILAR else Mark.FAIR
        self._find(check, mark, f'"{heard}"' if mark is Mark.GOOD else f'"{heard}" for "{SPOKEN_QUESTION}"')

    async def _call_a_tool(self) -> None:
        self._tell("Asking for a tool call")
        exchange = await (await self._connect()).ask(ASK_TIME)
        if not exchange.calls:
            self._find("tool call", Mark.BAD, "it made none")
            return
        self._find("tool call", Mark.GOOD, "made properly")
        is_right = any(is_clock_call(call.name, call.args) for call in exchange.calls)
        self._find("arguments", Mark.GOOD if is_right else Mark.BAD, "correct" if is_right else "wrong")
        if tells_result(exchange.after_results):
            self._find("tool result", Mark.GOOD, "used in the answer")
        elif exchange.audio_after_results and not exchange.after_results:
            self._find("tool result", Mark.UNKNOWN, "answered, but without a transcript that shows it was used")
        else:
            self._find("tool result", Mark.BAD, "not used")

    async def _find_resumption(self) -> None:
        if not self._profile.resumes:
            text = "no; a new connection is given the conversation so far"
            self._find("resumption", Mark.GOOD, text)
            return
        connection = await self._connect()
        await connection.wait_for_handle(HANDLE_WITHIN_S)
        self._remember(connection)
        if self._handle is not None:
            self._find("resumption", Mark.GOOD, "a handle was offered")
        else:
            text = "no handle was offered; a new connection is given the conversation so far"
            self._find("resumption", Mark.FAIR, text)

    def _find_limits(self) -> None:
        longest_s = self._profile.max_session_s
        if longest_s is None:
            self._find("longest connection", Mark.UNKNOWN, "no limit is known")
        else:
            told = f"{longest_s / 60:.0f} minutes; then a new one takes over"
            self._find("longest connection", Mark.GOOD, told, longest_s)
        if self._goes_away_ms is not None:
            left = f"the server announced it, {self._goes_away_ms / 1_000:.0f} s ahead"
            self._find("end of connection", Mark.GOOD, left, self._goes_away_ms)
        voices = self._profile.voices
        if voices:
            self._find("voices", Mark.GOOD, f"{len(voices)}; the default is {voices[0]}", len(voices))

    async def _connect(self) -> ProbedConnection:
        """Returns the open connection, or a new one if it was lost."""
        if self._connection is None or self._connection.is_lost:
            await self._disconnect()
            model = self._factory.make()
            model.set_voice(next(iter(self._profile.voices), None), 1.0)
            connection = ProbedConnection(model, result=CLOCK_RESULT, limit_s=self._limit_s)
            self._connection = connection
            tools = (SCHEMAS[self._profile.tool_schemas],)
            system = f"{BE_BRIEF} {USE_TOOLS}"
            await connection.open(LiveContext(system, Transcript(), (), tools, Mode.VOICE))
        return self._connection

    async def _disconnect(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            self._remember(connection)
            await connection.close()

    def _remember(self, connection: ProbedConnection) -> None:
        self._handle = connection.handle or self._handle
        self._goes_away_ms = connection.goes_away_ms if connection.goes_away_ms is not None else self._goes_away_ms

    def _find(self, check: str, mark: Mark, text: str, value: float | None = None) -> None:
        self._findings.append(Finding(check, mark, text, None if value is None else round(value, 1)))

    def _find_wait(self, check: str, ms: float) -> None:
        self._find_time(check, ms, Mark.FAIR if ms > SLOW_AUDIO_MS else Mark.GOOD)

    def _find_time(self, check: str, ms: float, mark: Mark) -> None:
        self._find(check, mark, f"{ms:,.0f} ms", ms)

    def _advise(self, sentence: str) -> None:
        self._advice.append(sentence)

    def _report(self, *, ok: bool) -> Report:
        return Report(self._profile.name, ok, tuple(self._findings), tuple(self._advice))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
