"""Shows code on the page. It is not run."""

from antiphon.tools.context import Args, Context
from antiphon.tools.result import Flyout, FlyoutType, ToolResult, ok


async def execute(args: Args, context: Context) -> ToolResult:
    code = args["code"]
    language = args["language"].lower() if "language" in args else None
    lines = code.count("\n") + (not code.endswith("\n"))
    return ok(
        {"shown": True, "language": language, "lines": lines},
        spoken=f"I've put {'one line' if lines == 1 else f'{lines} lines'} of code on the page.",
        flyout=Flyout(FlyoutType.CODE, code, language=language),
    )
