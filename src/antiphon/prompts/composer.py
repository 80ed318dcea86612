"""The system prompt: who the assistant is, what it can call, and how it works, in the order that models follow best."""

from functools import cache
from importlib.resources import files

from antiphon.tools.spec import Mode


def compose(mode: Mode, *, tools_version: str, summaries: str, extra: str = "") -> str:
    """The prompt of a session. Only `summaries`, the version and `extra` differ from one server to another.

    `extra` is what this session needs to know beyond that, such as a timeout that has expired; it comes last, so that
    all before it can be cached by a provider.
    """
    parts = [_read("core.md")]
    if mode is Mode.VOICE:
        parts.append(_read("voice-behavior.md"))
    parts += [f"# Available tools (v{tools_version})", summaries.strip(), _read(f"loop-{mode}.md"), extra.strip()]
    return "\n\n".join(part for part in parts if part)


@cache
def _read(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8").strip()
