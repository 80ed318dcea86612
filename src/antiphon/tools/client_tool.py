"""Tools that a client declares for its own session: they pass the gate like any other, and the client runs them."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from antiphon.errors import AntiphonError
from antiphon.tools.arguments import Arguments
from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ClientToolError
from antiphon.tools.result import ToolResult, ok
from antiphon.tools.spec import Category, Mode, SideEffects, ToolSpec
from antiphon.tools.tool import Tool

ANSWER_LIMIT_MS: Final = 60_000
"""How long a client may take to answer a call. Some clients ask a person first."""
MAX_DESCRIPTION_CHARS: Final = 4_000
MAX_PARAMETERS_BYTES: Final = 32 * 1024
NO_PARAMETERS: Final[Mapping[str, Any]] = {"type": "object", "properties": {}}
ORIGIN: Final = "the client"

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")

CallClient = Callable[[str, dict[str, Any]], Awaitable[Any]]
"""Has the client run a tool, by its name and arguments, and returns the result as JSON. It may raise `ToolError`."""

Adapter = Callable[[ToolSpec], dict[str, Any]]
"""Makes the schema of one provider's format."""


def client_tool(
    name: str,
    *,
    description: str,
    parameters: Mapping[str, Any] | None,
    call: CallClient,
    adapters: Mapping[str, Adapter],
) -> Tool:
    """Makes the tool of a client's declaration. Raises `ClientToolError`.

    Nothing is known about its effects, so it counts as an action that changes something and is not idempotent: it is
    never run ahead of time, never repeated, and runs to its end when the user interrupts.
    """
    if _NAME.fullmatch(name) is None:
        raise ClientToolError(
            f"{name[:80]!r} is not a tool name. Use up to 64 letters, digits, _, -, . and :, a letter or _ first."
        )
    if len(description) > MAX_DESCRIPTION_CHARS:
        raise ClientToolError(f"The description of {name} is longer than {MAX_DESCRIPTION_CHARS} characters.")
    schema = dict(parameters or NO_PARAMETERS)
    if len(msgspec.json.encode(schema)) > MAX_PARAMETERS_BYTES:
        raise ClientToolError(f"The parameters of {name} are longer than {MAX_PARAMETERS_BYTES} bytes.")
    if schema.get("type") != "object":
        raise ClientToolError(f'The parameters of {name} must be a JSON schema of type "object".')
    spec = ToolSpec(
        tool_id=name,
        version="1",
        description=description,
        category=Category.ACTION,
        side_effects=SideEffects.WRITES,
        idempotent=False,
        requires_confirmation=False,
        allowed_modes=tuple(Mode),
        latency_budget_ms=ANSWER_LIMIT_MS,
        parameters=schema,
        timeout_ms=ANSWER_LIMIT_MS,
    )

    async def execute(args: Args, context: Context) -> ToolResult:
        return ok(await call(name, dict(args)))

    try:
        return Tool(
            spec=spec,
            digest="",
            origin=ORIGIN,
            summary=description or name,
            documentation=description,
            examples="",
            provider_schemas={provider: adapt(spec) for provider, adapt in adapters.items()},
            sentences=None,
            arguments=Arguments(schema),
            execute=execute,
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, AntiphonError) as error:
        raise ClientToolError(f"The parameters of {name} are not a usable JSON schema: {error}") from None
