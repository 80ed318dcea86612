"""Compares the tools that a process has loaded with those that their folders would give now."""

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from antiphon.authoring.build import Built
from antiphon.authoring.diff import compare
from antiphon.server.deps import ChangedTool, ToolChange, ToolChanges
from antiphon.tools.registry import Registry

FRESH_S: Final = 5.0
"""How long a comparison is given again instead of being made anew, since a build takes a good part of a second."""


class ToolComparer:
    def __init__(self, registry: Registry, build: Callable[[], Built]) -> None:
        self._registry = registry
        self._build = build
        self._lock = asyncio.Lock()
        self._last: tuple[float, ToolChanges] | None = None

    async def compare(self) -> ToolChanges:
        """Builds the tools in a thread, without writing or running anything of them."""
        async with self._lock:
            now = asyncio.get_running_loop().time()
            if self._last is None or now - self._last[0] > FRESH_S:
                self._last = (now, await asyncio.to_thread(self._compare))
            return self._last[1]

    def _compare(self) -> ToolChanges:
        return compare_tools(self._registry, self._build())


def compare_tools(registry: Registry, built: Built) -> ToolChanges:
    loaded = [{"spec": msgspec.to_builtins(tool.spec), "digest": tool.digest} for tool in registry.built_tools.values()]
    found = compare({"version": registry.built_version, "tools": loaded}, msgspec.to_builtins(built.artifact))
    tools = tuple(
        ChangedTool(
            tool.tool_id,
            tool.kind,
            tuple(ToolChange(change.field, change.breaking, change.sentence) for change in tool.changes),
        )
        for tool in found.tools
    )
    return ToolChanges(found.old_version, found.new_version, tools, tuple(map(str, built.errors)))
