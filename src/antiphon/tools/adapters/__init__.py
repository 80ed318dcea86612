"""A tool's contract in the words of each provider. All of them are made at build time."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from antiphon.tools.adapters.gemini import adapt as adapt_for_gemini
from antiphon.tools.adapters.mcp import adapt as adapt_for_mcp
from antiphon.tools.adapters.openai_chat import adapt as adapt_for_openai_chat
from antiphon.tools.adapters.openai_realtime import adapt as adapt_for_openai_realtime
from antiphon.tools.spec import ToolSpec

ADAPTERS: Final[Mapping[str, Callable[[ToolSpec], dict[str, Any]]]] = {
    "openai_chat": adapt_for_openai_chat,
    "openai_realtime": adapt_for_openai_realtime,
    "gemini": adapt_for_gemini,
    "mcp": adapt_for_mcp,
}
