"""A chat at the terminal, over the socket."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress

from rich.console import Console
from rich.markup import escape

from antiphon.client import Disconnected, Incoming, NewSession, Reconnecting, Resumed, Session, connect
from antiphon.config import Settings
from antiphon.protocol import server_messages as s
from antiphon.security.origin import own_authority

GOODBYE = {"exit", "quit", "bye", ":q"}


def talk(settings: Settings, url: str | None, token: str | None) -> None:
    asyncio.run(_chat(settings, url, token, Console(highlight=False)))


async def _chat(settings: Settings, url: str | None, token: str | None, console: Console) -> None:
    async with AsyncExitStack() as stack:
        session = await _connect(settings, url, token, stack, console)
        console.print('Ask "what can you do", or say "exit" to leave.')
        async for line in _typed(console):
            text = line.strip()
            if text.casefold() in GOODBYE:
                break
            if text:
                await _talk(session, text, console)


async def _connect(
    settings: Settings, url: str | None, token: str | None, stack: AsyncExitStack, console: Console
) -> Session:
    """To the server that was named, or that of the settings; if that one is not running, to one of our own."""
    wanted = url or f"ws://{own_authority(settings.server.host, settings.server.port)}/ws"
    try:
        return await stack.enter_async_context(connect(wanted, token=token, reconnect=True))
    except Disconnected:
        if url is not None:
            raise
    from antiphon.serve import serving

    console.print(f"[dim]No Antiphon answers at {escape(wanted)}, so this chat has a server of its own.[/]")
    address = await stack.enter_async_context(serving(settings))
    return await stack.enter_async_context(connect(address, token=token, reconnect=True))


async def _typed(console: Console) -> AsyncIterator[str]:
    """The lines of standard input, each asked for with a prompt."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[str | None]()

    def put(line: str | None) -> None:
        with suppress(RuntimeError):  # the chat is over, and the loop closed
            loop.call_soon_threadsafe(lines.put_nowait, line)

    def read() -> None:
        if sys.stdin is not None:
            # A file of its own: Python cannot end while the other is being read.
            with open(sys.stdin.fileno(), encoding=sys.stdin.encoding, errors="replace", closefd=False) as keyboard:
                for line in keyboard:
                    put(line)
        put(None)

    # A thread that nobody waits for. A worker of the loop's would keep Ctrl-C from ending the chat until Enter.
    threading.Thread(target=read, daemon=True).start()
    while True:
        console.print("[bold]> [/]", end="")
        line = await lines.get()
        if line is None:
            console.print()
            return
        yield line


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
