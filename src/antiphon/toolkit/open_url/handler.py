"""Opens a web page in a panel."""

from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import Flyout, FlyoutType, ToolResult, fail, ok

from .address import NotAnAddress, read_address


async def execute(args: Args, context: Context) -> ToolResult:
    try:
        address = read_address(args["url"])
    except NotAnAddress as refusal:
        return fail(ErrorType.VALIDATION, str(refusal), suggestion="Give an address such as https://example.com/page.")
    description = " ".join(args.get("description", "").split())
    return ok(
        {"opened": True, "url": address.url, "host": address.host},
        spoken=f"I've opened {address.host} on the page.",
        # A description may claim anything, so the host comes first.
        flyout=Flyout(
            FlyoutType.BROWSER, address.url, title=f"{address.host}: {description}" if description else address.host
        ),
    )
