"""In development, tools that change on disk are built and loaded again without a restart of the server."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from antiphon.authoring import build
from antiphon.authoring.problems import Problem, Severity
from antiphon.compose.app import TOOLKIT, build_tools
from antiphon.compose.requirements import find_missing
from antiphon.config import Settings
from antiphon.telemetry.log import get_logger
from antiphon.tools.errors import RegistryError
from antiphon.tools.executor import Executor

CHECK_EVERY_S: Final = 1.0

log = get_logger(__name__)


async def watch_tools(settings: Settings, executor: Executor) -> None:
    """Looks for changed files until it is cancelled. Both the check and the build run in a thread."""
    # The first look always builds: files may have changed since the server read them.
    seen: dict[str, tuple[int, int]] | None = None
    while True:
        await asyncio.sleep(CHECK_EVERY_S)
        found = await asyncio.to_thread(_stamps, settings)
        if found != seen:
            seen = found
            await asyncio.to_thread(reload_tools, settings, executor)


def reload_tools(settings: Settings, executor: Executor) -> None:
    """Replaces the tools by those on disk, or logs everything that is wrong with them and keeps the old ones."""
    registry = executor.registry
    old = registry.built_version
    if settings.tools.build:
        built = build_tools(settings)
        missing = find_missing(settings, built.artifact.tools)
        problems = built.errors or [each for each in missing if each.severity is Severity.ERROR]
        if problems:
            _log_problems(problems, old)
            return
        if built.artifact.version == old:
            return
        build.write(built, settings.artifact_path)
    try:
        registry.reload(executor.check_capabilities)
    except RegistryError as error:
        log.error("tools_not_reloaded", error=str(error), version=old)
        return
    registry.snapshot().warm()
    log.info("tools_reloaded", old=old, new=registry.built_version, tools=len(registry.tools))


def _log_problems(problems: list[Problem], version: str) -> None:
    for problem in problems:
        log.error("tool_problem", problem=str(problem))
    log.error("tools_not_reloaded", error="the tools do not build", version=version)


def _stamps(settings: Settings) -> dict[str, tuple[int, int]]:
    """Returns the size and modification time of every file of the tools."""
    files = _tool_files(settings) if settings.tools.build else iter([settings.artifact_path])
    found = {}
    for file in files:
        try:
            status = file.stat()
        except OSError:
            continue  # deleted in the meantime
        found[str(file)] = (status.st_mtime_ns, status.st_size)
    return found


def _tool_files(settings: Settings) -> Iterator[Path]:
    for root in (TOOLKIT, *settings.tool_paths):
        for folder, inner, files in os.walk(root):
            inner[:] = [name for name in inner if name != "__pycache__" and not name.startswith(".")]
            yield from (Path(folder, name) for name in files)
