"""Writes prompts for a picture: by the server's text model if there is one, else by rules."""

from collections.abc import Sequence
from typing import Any

from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok

from .drafts import draft


async def execute(args: Args, context: Context) -> ToolResult:
    idea, style, count = " ".join(args["idea"].split()), args.get("style"), args["variants"]
    written = await context.images.draft(idea, style, count)
    if written:
        variants: list[dict[str, Any]] = [
            {"prompt": each} if style is None else {"prompt": each, "style": style} for each in written
        ]
    else:
        variants = [{"prompt": each.prompt, "style": each.style} for each in draft(idea, style, count)]
    return ok(
        {"idea": idea, "variants": variants, "written_by": "model" if written else "rules"},
        spoken=_say([each["prompt"] for each in variants]),
    )


def _say(prompts: Sequence[str]) -> str:
    """Lists the prompts. This tool is for text only, so they are read, not heard."""
    if len(prompts) == 1:
        return f"Here is a prompt you could use: {prompts[0]}"
    listed = "\n".join(f"{number}. {prompt}" for number, prompt in enumerate(prompts, 1))
    return f"Here are {len(prompts)} prompts to choose from:\n\n{listed}"
