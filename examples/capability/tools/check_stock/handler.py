"""Looks up the stock in the project's inventory."""

from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.tools.result import ToolResult, ok


async def execute(args: Args, context: Context) -> ToolResult:
    item = args["item"].lower().strip()
    inventory = context.use("inventory")
    for known in (item, item.removesuffix("s")):
        count = await inventory.count(known)
        if count is not None:
            pieces = f"{count} {known}{'' if count == 1 else 's'}"
            return ok({"item": known, "count": count}, spoken=f"There are {pieces} in stock.")
    raise ToolError(ErrorType.NOT_FOUND, f"{item} is not an item of the inventory.")
