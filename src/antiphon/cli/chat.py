"""`antiphon chat`: talk to the assistant in text."""

import asyncio
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape

from antiphon.cli.options import ConfigOption, settings_for
from antiphon.compose import open_house
from antiphon.config import Settings
from antiphon.session.conversation import Answered, Called, Conversation, Returned, Said

GOODBYE = {"exit", "quit", "bye", ":q"}


def chat(config: ConfigOption = None) -> None:
    """Talk to the offline assistant in text. Say "exit" to leave."""
    settings = settings_for(config)
    asyncio.run(_chat(settings, Console(highlight=False)))


class _Screen:
    """The client of the session: shows what tools send to the page."""

    def __init__(self, console: Console) -> None:
        self._console = console

    async def send(self, message: Mapping[str, Any]) -> None:
        shown = {key: value for key, value in message.items() if key not in ("type", "confirmation_token")}
        self._console.print(f"[dim]· {escape(str(message.get('type')))}: {escape(str(shown))}[/]")


async def _chat(settings: Settings, console: Console) -> None:
    async with open_house(settings) as house, house.text_model() as model:
        snapshot = house.registry.snapshot()
        console.print(
            f"Antiphon, offline assistant, {len(snapshot.tools)} tools (v{snapshot.version}). "
            'Ask "what can you do", or say "exit" to leave.'
        )
        session = house.session(messaging=_Screen(console))
        conversation = Conversation(model, house.executor, session)
        while (text := await _next_line(console)) is not None:
            if text.casefold() in GOODBYE:
                break
            if text:
                await _answer(conversation, text, console)


async def _next_line(console: Console) -> str | None:
    """What was typed; None at the end of the input."""
    try:
        line = await asyncio.to_thread(console.input, "[bold]> [/]")
    except EOFError:
        console.print()
        return None
    return line.strip()


async def _answer(conversation: Conversation, text: str, console: Console) -> None:
    async for event in conversation.say(text):
        match event:
            case Called(call=call):
                console.print(f"[dim]· {escape(call.name)} {escape(str(call.args))}[/]")
            case Returned(result=result) if result.flyout is not None:
                console.print(f"[dim]{escape(result.flyout.content)}[/]")
            case Said(text=delta):
                console.print(escape(delta), end="")
            case Answered():
                console.print()
