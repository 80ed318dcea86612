# mypy: ignore-errors
"""Pydantic AI: `ToolManager`, prepared for one step of a run, validates and executes the call as an agent does."""

from pydantic_ai import FunctionToolset, RunContext, RunUsage
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models.test import TestModel
from pydantic_ai.tool_manager import ToolManager

from bench.peers.search import bare, kb_search
from bench.workload import ARGUMENT_TEXTS, RESULT, compete


async def main() -> None:
    context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    manager = await ToolManager(FunctionToolset([kb_search])).for_run_step(context)

    async def call(place: int) -> None:
        validated = await manager.validate_tool_call(ToolCallPart("kb_search", ARGUMENT_TEXTS[place], "call_1"))
        if await manager.execute_tool_call(validated) is not RESULT:
            raise RuntimeError("The call has failed.")

    await compete(bare, call=call)
