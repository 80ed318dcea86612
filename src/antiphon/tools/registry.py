"""The tools of a process: read once at the start, locked, and given to each session as a snapshot.

Tools of other servers (MCP) join at run time, also while the registry is locked: the lock is about files.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any, Final, Self

import msgspec

from antiphon.telemetry.log import get_logger
from antiphon.tools import artifact, loader
from antiphon.tools.errors import RegistryError
from antiphon.tools.loader import collector_paused
from antiphon.tools.source import Source, digest_of, read
from antiphon.tools.spec import Category, Mode, ToolSpec
from antiphon.tools.tool import Tool

DEVELOPMENT: Final = "development"

log = get_logger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The tools as a session knows them. It never changes, whatever the registry does later."""

    version: str
    tools: Mapping[str, Tool]
    """By id."""
    built_version: str = ""
    """The version of the tools from files alone."""
    _schemas: dict[tuple[str, Mode], tuple[Mapping[str, Any], ...]] = field(
        default_factory=dict, init=False, repr=False
    )

    def with_tools(self, more: Iterable[Tool]) -> "Snapshot":
        """Returns these tools and more. Of two with the same name, the one that was there first stays."""
        added = {tool.id: tool for tool in more if tool.id not in self.tools}
        tools = MappingProxyType({**self.tools, **added})
        return Snapshot(self.version, tools, self.built_version) if added else self

    def tool_ids(self) -> list[str]:
        return list(self.tools)

    def allowed(self, mode: Mode) -> list[Tool]:
        """Returns the tools that are allowed in the mode. Those of every mode come first, so that prompts for different
        modes begin alike."""
        return [tool for tool in self._ordered() if mode in tool.spec.allowed_modes]

    def by_category(self, category: Category) -> list[Tool]:
        return [tool for tool in self.tools.values() if tool.spec.category is category]

    def summaries(self) -> str:
        """Returns what the prompt says about each tool, one line each, the same in every mode."""
        return "\n".join(
            f"**{tool.id}** ({_describe(tool.spec)}): {' '.join(tool.summary.split())}" for tool in self._ordered()
        )

    def names(self) -> str:
        """Returns what the prompt says about the tools if a model is given only some of them."""
        names = ", ".join(tool.id for tool in self._ordered())
        return f"You are given those that fit the request. All there are, for `describe_tool`: {names}."

    def _ordered(self) -> list[Tool]:
        return sorted(self.tools.values(), key=lambda tool: not _is_in_all_modes(tool.spec))

    def documentation(self, tool_id: str) -> str | None:
        tool = self.tools.get(tool_id)
        return None if tool is None else tool.documentation

    def metadata(self, tool_id: str) -> dict[str, Any] | None:
        """Returns the contract without its schemas, with the field names of schema.json."""
        tool = self.tools.get(tool_id)
        if tool is None:
            return None
        contract = {**msgspec.to_builtins(tool.spec), "title": tool.spec.shown_title}
        return {name: value for name, value in contract.items() if name not in ("parameters", "outputs")}

    def provider_schemas(self, provider: str, mode: Mode) -> tuple[Mapping[str, Any], ...]:
        """Returns the schemas of the allowed tools in the provider's format. They are shared: do not change them."""
        key = (provider, mode)
        if key not in self._schemas:
            try:
                self._schemas[key] = tuple(tool.provider_schemas[provider] for tool in self.allowed(mode))
            except KeyError:
                known = ", ".join(next(iter(self.tools.values())).provider_schemas)
                raise RegistryError(f'There are no tool schemas for "{provider}"; there are {known}.') from None
        return self._schemas[key]

    def warm(self) -> None:
        """Has every tool load what takes long, in this thread. A tool that fails here fails again when it is called."""
        for tool in self.tools.values():
            if tool.warm is not None:
                try:
                    tool.warm()
                except Exception:
                    log.exception("warm_failed", tool=tool.id)

    def metrics(self) -> dict[str, dict[str, Any]]:
        """Returns the call statistics of each tool since it was loaded."""
        return {tool_id: tool.stats.summary() for tool_id, tool in self.tools.items()}


def _is_in_all_modes(spec: ToolSpec) -> bool:
    return set(spec.allowed_modes) == set(Mode)


def _describe(spec: ToolSpec) -> str:
    """Returns the category of a tool, and its modes if they are not all."""
    return spec.category if _is_in_all_modes(spec) else f"{spec.category}, {' and '.join(spec.allowed_modes)} only"


class Registry:
    """The loaded tools of a process. While it is locked, they cannot be reloaded."""

    def __init__(self, path: Path, environment: str, snapshot: Snapshot) -> None:
        self._path = path
        self._environment = environment
        self._built = snapshot
        self._snapshot = snapshot
        self._runtime: tuple[Tool, ...] = ()
        self._locked = False
        self._changing = Lock()
        """Tools are reloaded in a thread, while others may join."""

    @classmethod
    def load(cls, path: Path, *, environment: str) -> Self:
        """Raises RegistryError if the artifact is missing, damaged or stale, or a handler cannot be imported."""
        return cls(path, environment, _load(path))

    @property
    def version(self) -> str:
        return self._snapshot.version

    @property
    def built_version(self) -> str:
        """The version of the tools from files alone."""
        return self._built.version

    @property
    def built_tools(self) -> Mapping[str, Tool]:
        """The tools from files alone."""
        return self._built.tools

    @property
    def tools(self) -> Mapping[str, Tool]:
        return self._snapshot.tools

    @property
    def locked(self) -> bool:
        return self._locked

    def lock(self) -> None:
        self._locked = True

    def snapshot(self) -> Snapshot:
        return self._snapshot

    def reload(self, check: Callable[[Snapshot], None] = lambda snapshot: None) -> None:
        """Reads the artifact again, and takes it unless it cannot be loaded or `check` raises.

        Sessions keep the snapshot they have.
        """
        if self._locked:
            raise RegistryError("The tools are locked, so they cannot be reloaded. Restart the server.")
        if self._environment != DEVELOPMENT:
            raise RegistryError(
                f'Tools are reloaded in development only, and server.environment is "{self._environment}". '
                "Restart the server."
            )
        snapshot = _load(self._path)
        check(snapshot)
        with self._changing:
            self._built = snapshot
            self._combine()

    def set_runtime_tools(self, tools: Sequence[Tool]) -> bool:
        """Replaces the tools that come from elsewhere than files, and returns whether that changed anything.

        A tool from files keeps its id: another with the same one is left out. The version changes with the tools.
        """
        with self._changing:
            before = self._snapshot.version
            self._runtime = tuple(tools)
            self._combine()
            return self._snapshot.version != before

    def _combine(self) -> None:
        version = _version_with(
            self._built.version, [tool for tool in self._runtime if tool.id not in self._built.tools]
        )
        joined = self._built.with_tools(self._runtime)
        self._snapshot = Snapshot(version, joined.tools, self._built.version)


def _version_with(built: str, added: Sequence[Tool]) -> str:
    if not added:
        return built
    parts = sorted((tool.id, tool.digest.encode()) for tool in added)
    return artifact.VERSION_PREFIX + digest_of([("", built.encode()), *parts])[:8]


@collector_paused()
def _load(path: Path) -> Snapshot:
    built = artifact.read(path)
    sources: dict[str, Source] = {}
    stale: list[str] = []
    for entry in built.tools:
        try:
            sources[entry.tool_id] = read(Path(entry.origin))
        except OSError as error:
            stale.append(f"{entry.tool_id} ({error.filename} cannot be read: {error.strerror})")
            continue
        if sources[entry.tool_id].digest != entry.digest:
            stale.append(f"{entry.tool_id} ({entry.origin} has changed)")
    if stale:
        raise RegistryError(f"{path} is out of date: {', '.join(stale)}. Run `antiphon tools build`.")
    tools = {entry.tool_id: loader.load(entry, sources[entry.tool_id]) for entry in built.tools}
    return Snapshot(built.version, MappingProxyType(tools), built.version)
