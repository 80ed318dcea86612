"""Shows at a terminal what happens in a conversation, and where the time of a spoken turn went."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.markup import escape

from antiphon.client import Incoming, NewSession, Reconnecting, Resumed
from antiphon.client.speaking import Exchange
from antiphon.protocol import server_messages as s
from antiphon.protocol.server_messages import TurnMetrics

MAX_CHARS: Final = 300
"""How much of a call's arguments is shown: they may contain a whole program."""
CONFIRMATION_REQUIRED: Final = "CONFIRMATION_REQUIRED"


def describe_call(name: str, args: Any) -> str:
    shown = msgspec.json.encode(args).decode()
    return f"· {name} {shown if len(shown) <= MAX_CHARS else f'{shown[:MAX_CHARS]}…'}"


def describe_failure(name: str, result: Any) -> str | None:
    """Returns None for a call that waits for confirmation, which is shown as a question."""
    match result:
        case {"error": {"type": kind}} if kind == CONFIRMATION_REQUIRED:
            return None
        case {"error": {"message": str(message)}}:
            return f"· {name} failed: {message}"
    return f"· {name} failed."


def describe_event(incoming: Incoming) -> tuple[str, str] | None:
    """Describes what is not a part of an answer, as a line and its style. None if there is nothing to show."""
    match incoming:
        case s.Flyout(content=text) | s.GoAway(reason=text):
            return text, "dim"
        case s.Image(url=url):
            # A terminal shows no pictures. The path is one of the server's own.
            return f"The picture is at {url} on the server.", "cyan"
        case s.Error(message=text) | s.Notice(text=text):
            return text, "yellow"
        case s.Timeout(message=text, duration_seconds=seconds):
            return f"{text} ({seconds:.0f} s)", "yellow"
        case Reconnecting(reason=reason):
            return f"Reconnecting… {reason}", "dim"
        case Resumed():
            return "Back again.", "dim"
        case NewSession(reason=reason):
            return f"A new session: {reason}", "dim"
    return None


class TurnDisplay:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._interim = ""
        self._is_in_answer = False

    def show(self, incoming: Incoming) -> None:
        match incoming:
            case s.Transcript(text=text, is_final=False):
                if text != self._interim:
                    self._line(f"[dim]you  {escape(text)} …[/]")
                self._interim = text
            case s.Transcript(text=text):
                self._interim = ""
                self._line(f"[bold]you[/]  {escape(text)}")
            case s.ToolCall(name=name, args=args):
                self._line(f"[dim]     {escape(describe_call(name, args))}[/]")
            case s.ToolResult(ok=False, name=name, result=result):
                if (failure := describe_failure(name, result)) is not None:
                    self._line(f"[dim]     {escape(failure)}[/]")
            case s.ConfirmationRequest(preview=preview):
                self._line(f"[bold]Please confirm:[/] {escape(preview)}")
            case s.ConfirmationResolved(outcome=outcome):
                self._line(f"[dim]     · {outcome}[/]")
            case s.ResponseChunk(text=text):
                self._answer(text)
            case s.Response():
                self._end_answer()
            case s.StateChanged(state=s.State.INTERRUPTED):
                self._line("[dim]     (interrupted)[/]")
            case s.EndVoiceSession(final_message=str(farewell)):
                self._line(f"[dim]{escape(farewell)}[/]")
            case _:
                if (event := describe_event(incoming)) is not None:
                    text, style = event
                    self._line(f"[{style}]{escape(text)}[/]")

    def _answer(self, text: str) -> None:
        if not self._is_in_answer:
            self._console.print("[bold]it[/]   ", end="")
        self._is_in_answer = True
        self._console.print(escape(text), end="")

    def _end_answer(self) -> None:
        if self._is_in_answer:
            self._console.print()
        self._is_in_answer = False

    def _line(self, markup: str) -> None:
        self._end_answer()
        self._console.print(markup)


WIDTH: Final = 32
"""The length of the longest bar, in characters."""


@dataclass(frozen=True, slots=True)
class Stage:
    name: str
    ms: float
    seen_s: float | None
    """When the client saw the end of it, after the end of the speech."""


def draw(exchange: Exchange) -> Iterator[str]:
    """Draws where the time of a turn went; nothing if it was not measured."""
    metrics = exchange.metrics
    if metrics is None or metrics.total_ms is None:
        return
    at_ms = 0.0
    for stage in split(metrics, exchange):
        left, right = (round(WIDTH * ms / max(1.0, metrics.total_ms)) for ms in (at_ms, at_ms + stage.ms))
        bar = " " * left + ("█" * (right - left) or "▏")
        seen = "" if stage.seen_s is None else f"client: {stage.seen_s * 1000:.0f} ms"
        yield f"  {stage.name:<12}{stage.ms:>6.0f} ms  {bar:<{WIDTH + 1}} {seen}".rstrip()
        at_ms += stage.ms
    if metrics.stt_ms is not None:
        yield f"  Recognition took {metrics.stt_ms:.0f} ms, mostly during the silence."
    here = "" if exchange.first_audio_s is None else f", {exchange.first_audio_s * 1000:.0f} ms on the client"
    yield f"  you stopped → it spoke: {metrics.total_ms:.0f} ms on the server{here}"


def split(metrics: TurnMetrics, exchange: Exchange) -> list[Stage]:
    """Splits the total into consecutive stages. Recognition counts only as far as it delayed the answer."""
    silence_ms, word_ms, audio_ms = (
        each or 0.0 for each in (metrics.end_of_turn_ms, metrics.first_token_ms, metrics.first_audio_ms)
    )
    waited_ms = max(0.0, (metrics.total_ms or 0.0) - silence_ms - word_ms - audio_ms)
    return [
        Stage("silence", silence_ms, None),
        Stage("recognition", waited_ms, exchange.transcript_s),
        Stage("first word", word_ms, exchange.first_word_s),
        Stage("first audio", audio_ms, exchange.first_audio_s),
    ]
