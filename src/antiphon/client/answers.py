"""The answer to a question, collected from the messages of its turn. No input or output here."""

import base64
from dataclasses import dataclass, field
from typing import Any, Final

from antiphon.client.events import AnswerFailed, Incoming
from antiphon.protocol import server_messages as s
from antiphon.protocol.limits import SPEECH_HZ
from antiphon.sound_format import WAV_HEADER_BYTES, write_wav

EXPIRED: Final = "This can no longer be approved: it was answered already, or it has expired. Ask for it again."


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool that was called for the answer."""

    name: str
    args: Any
    """The arguments as the model gave them."""
    result: Any = None
    """The tool's data, or {"error": …}; None if the turn ended before there was a result."""
    ok: bool = False
    title: str | None = None
    """The tool's name for people."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one question. `str(answer)` is its text."""

    text: str
    question: str = ""
    """What was asked; for speech, as it was recognised."""
    tools: tuple[ToolUse, ...] = ()
    """The tools that were called, in their order."""
    citations: tuple[s.Citation, ...] = ()
    """The sources that the tools have returned."""
    metrics: s.TurnMetrics | None = None
    """How long the parts of the turn took."""
    pcm: bytes = field(default=b"", repr=False)
    """The spoken answer in voice: PCM16, 22,050 Hz, mono."""
    turn: int | None = None
    conversation_id: str | None = None
    """With it, another connection can continue the conversation: `connect(url, conversation_id=…)`."""

    def __str__(self) -> str:
        return self.text

    @property
    def wav(self) -> bytes:
        """The spoken answer as a WAV file; empty if nothing was spoken."""
        return write_wav(self.pcm, SPEECH_HZ) if self.pcm else b""


class AnswerCollector:
    """Takes the messages of a turn, and of the turns that approvals cause, in their order."""

    def __init__(self) -> None:
        self.requests: dict[str, s.ConfirmationRequest] = {}
        """What waits for approval, by token."""
        self.failure: s.Error | s.Timeout | None = None
        self._question = ""
        self.reset()

    def reset(self) -> None:
        """Forgets what came before the question."""
        self.requests.clear()
        self.failure = None
        self.text, self.pcm = "", b""
        self.metrics: s.TurnMetrics | None = None
        self.turn: int | None = None
        self._tools: dict[str, ToolUse] = {}
        self._citations: dict[str, s.Citation] = {}

    def take(self, incoming: Incoming) -> None:
        match incoming:
            case s.Transcript(text=text, is_final=True, turn=turn):
                if self.turn is None or self.turn != turn:
                    # A provider's transcript may also come after the answer.
                    self.reset()
                self._question, self.turn = text, turn
            case s.ResponseChunk(text=text, is_first=is_first, turn=turn):
                self.text = text if is_first else self.text + text
                self.turn = turn if turn is not None else self.turn
            case s.Response(text=text, citations=citations):
                self.text = text
                self._citations |= {each.id: each for each in citations}
            case s.ToolCall(name=name, args=args, id=id, title=title):
                self._tools[id or f"#{len(self._tools)}"] = ToolUse(name, args, title=title)
            case s.ToolResult(name=name, result=result, id=id, ok=ok):
                self._finish(name, result, id, ok)
            case s.ConfirmationRequest(confirmation_token=token):
                self.requests[token] = incoming
            case s.ConfirmationResolved(confirmation_token=token, outcome=outcome):
                self.requests.pop(token, None)
                if outcome is s.Outcome.EXPIRED:
                    self.failure = s.Error(EXPIRED, "confirmation_expired")
            case s.SpeechFrame(pcm=pcm):
                self.pcm += pcm
            case s.Audio(data=data):
                self.pcm += base64.b64decode(data)[WAV_HEADER_BYTES:]
            case s.TurnMetrics() if self.metrics is None:
                # Those of the question. An approval afterwards is a turn of its own.
                self.metrics = incoming
            case s.Error() | s.Timeout():
                self.failure = incoming

    @property
    def spoken_ms(self) -> float:
        return len(self.pcm) * 1000 / (2 * SPEECH_HZ)

    def answer(self, conversation_id: str | None) -> Answer:
        """Returns the answer. Raises `AnswerFailed` if the server has told an error."""
        answer = Answer(
            text=self.text,
            question=self._question,
            tools=tuple(self._tools.values()),
            citations=tuple(self._citations.values()),
            metrics=self.metrics,
            pcm=self.pcm,
            turn=self.turn,
            conversation_id=conversation_id,
        )
        match self.failure:
            case s.Error(message=message, code=code, retryable=retryable):
                raise AnswerFailed(message, code=code, retryable=retryable, answer=answer)
            case s.Timeout(message=message):
                raise AnswerFailed(message or "This user is blocked.", code="blocked", retryable=False, answer=answer)
        return answer

    def _finish(self, name: str, result: Any, id: str | None, ok: bool) -> None:
        """Adds a result to its call; without an id, to the last call of the tool."""
        found = [key for key, each in self._tools.items() if key == id or (id is None and each.name == name)]
        key = found[-1] if found else id or f"#{len(self._tools)}"
        call = self._tools.get(key, ToolUse(name, None))
        self._tools[key] = ToolUse(call.name, call.args, result, ok, call.title)
