"""Shows a spoken turn at the terminal as it happens."""

from rich.console import Console
from rich.markup import escape

from antiphon.cli.tool_lines import describe_call, describe_failure
from antiphon.client import Incoming, NewSession, Reconnecting, Resumed
from antiphon.protocol import server_messages as s


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
                self._line(f"[bold]It asks first:[/] {escape(preview)}")
            case s.ConfirmationResolved(outcome=outcome):
                self._line(f"[dim]     · {outcome}[/]")
            case s.ResponseChunk(text=text):
                self._answer(text)
            case s.Response():
                self._end_answer()
            case s.StateChanged(state=s.State.INTERRUPTED):
                self._line("[dim]     (interrupted)[/]")
            case _:
                self._show_aside(incoming)

    def _show_aside(self, incoming: Incoming) -> None:
        match incoming:
            case s.Flyout(content=content):
                self._line(f"[dim]{escape(content)}[/]")
            case s.Error(message=message) | s.Notice(text=message):
                self._line(f"[yellow]{escape(message)}[/]")
            case s.Timeout(message=message, duration_seconds=seconds):
                self._line(f"[yellow]{escape(message)} ({seconds:.0f} s)[/]")
            case s.EndVoiceSession(final_message=str(farewell)):
                self._line(f"[dim]{escape(farewell)}[/]")
            case s.GoAway(reason=reason):
                self._line(f"[dim]{escape(reason)}[/]")
            case Reconnecting(reason=reason):
                self._line(f"[dim]Reconnecting… {escape(reason)}[/]")
            case Resumed():
                self._line("[dim]Back again.[/]")
            case NewSession(reason=reason):
                self._line(f"[dim]A new session: {escape(reason)}[/]")

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
