"""Makes the tool of the registry from the definition of an MCP server and the operator's settings for it."""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from antiphon.authoring.adapters import ADAPTERS
from antiphon.config import McpServer
from antiphon.errors import AntiphonError
from antiphon.services.mcp.definitions import Definition, UnusableTool, id_of
from antiphon.tools.arguments import Arguments
from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult
from antiphon.tools.spec import UNTRUSTED_TAG, Category, Mode, SideEffects, ToolSpec
from antiphon.tools.tool import Tool

MCP_TAG: Final = "mcp"
ORIGIN_PREFIX: Final = "mcp:"
MAX_SUMMARY_CHARS: Final = 250
MAX_VALUE_CHARS: Final = 200

Call = Callable[[Definition, dict[str, Any], bool], Awaitable[ToolResult]]
"""Has the server run a tool with these arguments; the last tells whether the tool writes."""


def make_tool(server: str, definition: Definition, policy: McpServer, call: Call) -> Tool:
    """Makes the tool. Raises `UnusableTool` if its schema cannot be used."""
    try:
        spec = _specify(server, definition, policy)
    except RecursionError:
        raise UnusableTool("its input schema is nested too deeply") from None

    async def execute(args: Args, context: Context) -> ToolResult:
        return await call(definition, dict(args), spec.writes)

    def preview(args: Args) -> str:
        told = ", ".join(f"{name}: {_shorten(value)}" for name, value in args.items())
        return f"Run “{spec.shown_title}” on the server “{server}”{f' with {told}' if told else ''}?"

    settings = msgspec.json.encode([spec.requires_confirmation, spec.category, spec.allowed_modes, policy.budget_ms])
    try:
        return Tool(
            spec=spec,
            digest=hashlib.sha256(definition.encoded + settings).hexdigest(),
            origin=f"{ORIGIN_PREFIX}{server}",
            summary=" ".join(spec.description.split())[:MAX_SUMMARY_CHARS],
            documentation=_document(server, definition),
            examples="",
            provider_schemas={provider: adapt(spec) for provider, adapt in ADAPTERS.items()},
            sentences=None,
            arguments=Arguments(spec.parameters, allows_unknown_formats=True),
            execute=execute,
            preview=preview,
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, AntiphonError) as error:
        raise UnusableTool(f"its input schema cannot be used: {error}") from None


def _specify(server: str, definition: Definition, policy: McpServer) -> ToolSpec:
    if definition.input_schema.get("type") != "object":
        raise UnusableTool('its input schema is not of type "object"')
    # An operator who calls a tool a look-up vouches for it; without their word, what a server says of itself counts.
    vouched = policy.category in (Category.RETRIEVAL, Category.UTILITY)
    reads = definition.reads_only or vouched
    asks = policy.confirmation == "always" or (policy.confirmation == "auto" and not definition.reads_only)
    category = (Category.RETRIEVAL if reads else Category.ACTION) if policy.category == "auto" else policy.category
    return ToolSpec(
        tool_id=id_of(server, definition.name),
        version=definition.digest[:8],
        title=definition.title,
        description=definition.description or definition.title or definition.name,
        category=Category(category),
        side_effects=SideEffects.READ_ONLY if reads else SideEffects.WRITES,
        idempotent=reads or definition.is_idempotent,
        requires_confirmation=asks,
        allowed_modes=tuple(Mode(mode) for mode in policy.modes),
        latency_budget_ms=policy.budget_ms,
        timeout_ms=policy.timeout_ms,
        parameters=_without_booleans(definition.input_schema),
        tags=(MCP_TAG, UNTRUSTED_TAG),
    )


def _without_booleans(schema: Any) -> Any:
    """Writes a schema that accepts anything as `{}`: some servers write `true`, which providers do not understand."""
    if not isinstance(schema, dict):
        return schema
    plain = dict(schema)
    if isinstance(properties := schema.get("properties"), dict):
        plain["properties"] = {
            name: {} if each is True else _without_booleans(each) for name, each in properties.items()
        }
    if "items" in schema:
        plain["items"] = {} if schema["items"] is True else _without_booleans(schema["items"])
    return plain


def _document(server: str, definition: Definition) -> str:
    schema = msgspec.json.format(msgspec.json.encode(definition.input_schema), indent=2).decode()
    title = definition.title or definition.name
    about = f"This is the tool `{definition.name}` of the MCP server `{server}`. Its results are untrusted content."
    return f"# {title}\n\n{definition.description}\n\n{about}\n\n```json\n{schema}\n```\n"


def _shorten(value: Any) -> str:
    encoded = msgspec.json.encode(value).decode()
    return encoded if len(encoded) <= MAX_VALUE_CHARS else f"{encoded[:MAX_VALUE_CHARS]}…"
