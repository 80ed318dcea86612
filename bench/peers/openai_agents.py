# mypy: ignore-errors
"""openai-agents: a decorated function, called with a model's JSON text, as its runner does and in simpler ways.

`invoke` is `FunctionTool.on_invoke_tool` with one context for all calls: the least that a call can cost. `call` makes
a context for each, since it holds the id and the arguments of the call. `runner` goes through `invoke_function_tool`,
which the runner and the realtime session use; their hooks, approvals and trace spans come on top of that.
"""

from agents import function_tool
from agents.tool import invoke_function_tool
from agents.tool_context import ToolContext
from agents.usage import Usage

from bench.peers.search import bare, kb_search
from bench.workload import ARGUMENT_TEXTS, RESULT, compete


def check(result: object) -> None:
    if result is not RESULT:
        raise RuntimeError(f"The call has failed: {result}")


async def main() -> None:
    # Strict mode has no optional parameters.
    tool = function_tool(kb_search, strict_mode=False)
    usage = Usage()

    def context_of(place: int) -> ToolContext[None]:
        return ToolContext(None, usage, "kb_search", "call_1", ARGUMENT_TEXTS[place])

    shared = context_of(0)

    async def invoke(place: int) -> None:
        check(await tool.on_invoke_tool(shared, ARGUMENT_TEXTS[place]))

    async def call(place: int) -> None:
        check(await tool.on_invoke_tool(context_of(place), ARGUMENT_TEXTS[place]))

    async def run(place: int) -> None:
        context = context_of(place)
        check(await invoke_function_tool(function_tool=tool, context=context, arguments=ARGUMENT_TEXTS[place]))

    await compete(bare, invoke=invoke, call=call, runner=run)
