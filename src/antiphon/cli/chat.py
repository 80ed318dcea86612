"""A chat at the terminal."""

import asyncio
from contextlib import AsyncExitStack
from typing import Final

import typer
from rich.console import Console
from rich.markup import escape

from antiphon.cli.data import CHAT_HISTORY
from antiphon.cli.display import describe_call, describe_event, describe_failure
from antiphon.cli.line_input import Interrupted, LineInput, open_line_input
from antiphon.cli.target import Target, explain_untrusted
from antiphon.client import Disconnected, Incoming, Reconnecting, Session, TurnLost, Untrusted
from antiphon.config import Settings
from antiphon.protocol import server_messages as s

GOODBYE: Final = {"exit", "quit", "bye", ":q"}
PROMPT: Final = "> "
CONFIRM_PROMPT: Final = "(yes or no) > "
INTERRUPTED: Final = 130
"""The exit code of a program that was ended by Ctrl-C."""


def run_chat(settings: Settings, target: Target) -> None:
    try:
        with explain_untrusted():
            asyncio.run(_chat(settings, target, Console(highlight=False, soft_wrap=True)))
    except Interrupted:
        raise typer.Exit(INTERRUPTED) from None


async def _chat(settings: Settings, target: Target, console: Console) -> None:
    async with AsyncExitStack() as stack:
        session = await _connect(settings, target, stack=stack, console=console)
        console.print('Ask "what can you do", or type "exit" to leave.')
        # Where no conversations are stored, what was typed is not stored either.
        history = settings.data_dir / CHAT_HISTORY if settings.keeps_data else None
        await Chat(session, console).run(open_line_input(console, history))


async def _connect(settings: Settings, target: Target, *, stack: AsyncExitStack, console: Console) -> Session:
    """Connects to the given server, or to the one in the settings; if that is not running, to our own."""
    try:
        session = await stack.enter_async_context(target.connect(reconnect=True))
    except Disconnected as error:
        if target.is_chosen or isinstance(error, Untrusted):
            raise
    else:
        console.print(f"[dim]Connected to {escape(target.url)}.[/]")
        return session
    from antiphon.serve import serving

    console.print(f"[dim]No server answers at {escape(target.url)}, so this chat started its own.[/]")
    address = await stack.enter_async_context(serving(settings))
    return await stack.enter_async_context(target.moved_to(address).connect(reconnect=True))


class Chat:
    """One conversation: sends what is typed, and shows the answers."""

    def __init__(self, session: Session, console: Console) -> None:
        self._session = session
        self._console = console
        self._question: s.ConfirmationRequest | None = None
        """The question that waits for a yes or no."""
        self._answer = ""

    async def run(self, lines: LineInput) -> None:
        """Runs until the user leaves, or there are no more lines."""
        while (line := await lines.read(PROMPT if self._question is None else CONFIRM_PROMPT)) is not None:
            text = line.strip()
            if text.casefold() in GOODBYE:
                break
            if text:
                await self._send(text)

    async def _send(self, text: str) -> None:
        self._answer = ""
        answered = self._question
        try:
            async for incoming in self._session.type(text):
                self._show(incoming)
        except TurnLost as lost:
            self._aside(str(lost), "yellow")
        if self._question is answered:
            self._question = None
        elif self._question is not None and self._question.preview.casefold() not in self._answer.casefold():
            # The model has not asked the question in these words, so it is shown here.
            self._console.print(f"[bold]{escape(self._question.preview)}[/]")

    def _show(self, incoming: Incoming) -> None:
        match incoming:
            case s.ToolCall(name=name, args=args):
                self._aside(describe_call(name, args))
            case s.ToolResult(ok=False, name=name, result=result):
                failure = describe_failure(name, result)
                # The answer already tells whether the user said no.
                if failure is not None and (self._question is None or self._question.tool != name):
                    self._aside(failure)
            case s.ConfirmationRequest():
                self._question = incoming
            case s.VoiceSessionStart(pending_request=pending):
                self._aside(f"· voice mode wanted{f' for: {pending}' if pending else ''}")
            case s.ResponseChunk(text=text):
                self._answer += text
                self._console.print(escape(text), end="")
            case s.Response():
                self._console.print()
            case _:
                if (event := describe_event(incoming)) is not None:
                    if isinstance(incoming, Reconnecting):
                        # If this interrupts an answer, the answer starts again below.
                        self._console.print()
                    self._aside(*event)

    def _aside(self, text: str, style: str = "dim") -> None:
        self._console.print(f"[{style}]{escape(text)}[/]")
