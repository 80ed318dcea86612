"""Availability expressions: when a tool is there. Compiled at load, asked once a turn."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from antiphon.telemetry.log import get_logger

if TYPE_CHECKING:
    import cel

    from antiphon.tools.tool import Tool

log = get_logger(__name__)


def compile_expression(expression: str) -> "cel.Program":
    """Raises ValueError for what is no CEL."""
    # Here, since the package imports its own command line: 0.1 s that a process without expressions need not wait.
    import cel

    return cel.compile(expression)


def is_available(tool: "Tool", facts: Mapping[str, Any]) -> bool:
    """What the tool's own expression says of this turn. One that fails to say is a no."""
    if tool.availability is None:
        return True
    try:
        return tool.availability.execute(dict(facts)) is True
    except Exception as error:
        log.warning("availability_failed", tool=tool.id, expression=tool.spec.availability, error=str(error))
        return False
