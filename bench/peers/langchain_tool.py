# mypy: ignore-errors
"""LangChain: `StructuredTool.ainvoke` with a Pydantic model as `args_schema`, and arguments that are decoded already.

`call` gives it the arguments and gets the handler's result; `message` gives it a tool call and gets the message for
the model, which is how its agents do it.
"""

import json

from langchain_core.tools import StructuredTool

from bench.peers.search import Search, bare, kb_search
from bench.workload import ARGUMENTS, RESULT, compete

TOOL_CALLS = [{"type": "tool_call", "name": "kb_search", "id": "call_1", "args": args} for args in ARGUMENTS]
TEXT = json.dumps(RESULT)


async def main() -> None:
    tool = StructuredTool.from_function(coroutine=kb_search, name="kb_search", args_schema=Search)

    async def call(place: int) -> None:
        if await tool.ainvoke(ARGUMENTS[place]) is not RESULT:
            raise RuntimeError("The call has failed.")

    async def message(place: int) -> None:
        if (await tool.ainvoke(TOOL_CALLS[place])).content != TEXT:
            raise RuntimeError("The call has failed.")

    await compete(bare, call=call, message=message)
