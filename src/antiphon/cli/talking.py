"""A chat at the terminal, over the socket."""

import asyncio
from contextlib import AsyncExitStack

from rich.console import Console
from rich.markup import escape

from antiphon.client import Disconnected, Incoming, NewSession, Reconnecting, Resumed, Session, connect
from antiphon.config import Settings
from antiphon.protocol import server_messages as s

GOODBYE = {"exit", "quit", "bye", ":q"}


def talk(settings: Settings, url: str | None, token: str | None) -> None:
    asyncio.run(_chat(settings, url, token, Console(highlight=False)))


async def _chat(settings: Settings, url: str | None, token: str | None, console: Console) -> None:
    async with AsyncExitStack() as stack:
        session = await _connect(settings, url, token, stack, console)
        console.print('Ask "what can you do", or say "exit" to leave.')
        while (text := await _next_line(console)) is not None:
            if text.casefold() in GOODBYE:
                break
            if text:
                await _talk(session, text, console)


async def _connect(
    settings: Settings, url: str | None, token: str | None, stack: AsyncExitStack, console: Console
) -> Session:
    """To the server that was named, or that of the settings; if that one is not running, to one of our own."""
    wanted = url or f"ws://{settings.server.host}:{settings.server.port}/ws"
    try:
        return await stack.enter_async_context(connect(wanted, token=token, reconnect=True))
    except Disconnected:
        if url is not None:
            raise
    from antiphon.serve import serving

    console.print(f"[dim]No server at {wanted}, so this chat has one of its own.[/]")
    address = await stack.enter_async_context(serving(settings))
    return await stack.enter_async_context(connect(address, reconnect=True))


async def _next_line(console: Console) -> str | None:
    """What was typed; None at the end of the input."""
    try:
        line = await asyncio.to_thread(console.input, "[bold]> [/]")
    except EOFError:
        console.print()
        return None
    return line.strip()


async def _talk(session: Session, text: str, console: Console) -> None:
    question: s.ConfirmationRequest | None = None
    async for incoming in session.type(text):
        _show(incoming, console)
        if isinstance(incoming, s.ConfirmationRequest):
            question = incoming
    if question is not None:
        console.print(f"[bold]{escape(question.preview)}[/]")
        console.print("[dim]Say yes or no.[/]")


def _show(incoming: Incoming, console: Console) -> None:
    match incoming:
        case s.ToolCall(name=name, args=args):
            console.print(f"[dim]· {escape(name)} {escape(str(args))}[/]")
        case s.ToolResult(ok=False, result=result):
            console.print(f"[dim]· {escape(str(result))}[/]")
        case s.Flyout(content=content):
            console.print(f"[dim]{escape(content)}[/]")
        case s.VoiceSessionStart(pending_request=pending):
            console.print(f"[dim]· voice mode wanted{f' for: {escape(pending)}' if pending else ''}[/]")
        case s.ResponseChunk(text=text):
            console.print(escape(text), end="")
        case s.Response():
            console.print()
        case s.Error(message=message) | s.Notice(text=message):
            console.print(f"[yellow]{escape(message)}[/]")
        case s.Timeout(message=message, duration_seconds=seconds):
            console.print(f"[yellow]{escape(message)} ({seconds:.0f} s)[/]")
        case s.GoAway(reason=reason):
            console.print(f"[dim]{escape(reason)}[/]")
        case Reconnecting(reason=reason):
            # On a line of its own: if an answer was cut off, it is begun anew below.
            console.print(f"\n[dim]Reconnecting… {escape(reason)}[/]")
        case Resumed():
            console.print("[dim]Back again.[/]")
        case NewSession(reason=reason):
            console.print(f"[dim]A new session: {escape(reason)}[/]")
