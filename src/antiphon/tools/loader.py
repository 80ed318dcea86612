"""Turns a directory into running code: handlers are imported by path, each tool as its own package.

The package's name holds the digest, so two versions of a tool can live side by side after a reload, and its modules
are compiled from the very bytes that were hashed. A tool therefore never runs code that was changed after the check,
not even through an import inside a function.
"""

import gc
import importlib
import itertools
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Final

import msgspec

from antiphon.tools.arguments import Arguments
from antiphon.tools.artifact import Entry
from antiphon.tools.errors import RegistryError
from antiphon.tools.source import Source
from antiphon.tools.spec import ToolSpec
from antiphon.tools.tool import Tool, compile_availability

PACKAGE_PREFIX: Final = "antiphon_tool_"

_serial: Final = itertools.count()


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pauses garbage collection while building and loading: with a thousand tools it took a tenth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _ToolPackages(MetaPathFinder, Loader):
    """Finds and runs the modules of tools from memory."""

    def __init__(self) -> None:
        self._sources: dict[str, Source] = {}

    def add(self, source: Source) -> str:
        """Adds a package with the files of `source` as its modules, and returns its name."""
        # At the top level, so that `from ..x import y` has nowhere to go.
        package = f"{PACKAGE_PREFIX}{source.tool_id}_{source.digest[:12]}_{next(_serial)}"
        python = {name: content for name, content in source.files.items() if name.endswith(".py")}
        self._sources[package] = Source(source.directory, python, source.digest)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)
        return package

    def discard(self, package: str) -> None:
        del self._sources[package]
        for name in [name for name in sys.modules if name.partition(".")[0] == package]:
            del sys.modules[name]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        package, *inner = fullname.split(".")
        source = self._sources.get(package)
        if source is None:
            return None
        stem = "/".join(inner)
        if f"{stem}.py" in source.files:
            return self._spec(fullname, source, f"{stem}.py")
        folder = "".join(f"{part}/" for part in inner)
        if not inner or any(name.startswith(folder) for name in source.files):
            spec = self._spec(fullname, source, f"{folder}__init__.py")
            spec.submodule_search_locations = [str(source.directory / folder)]
            return spec
        return None

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        assert spec.origin is not None
        exec(compile(spec.loader_state, spec.origin, "exec", dont_inherit=True), module.__dict__)

    def _spec(self, fullname: str, source: Source, name: str) -> ModuleSpec:
        content = source.files.get(name, b"")
        spec = ModuleSpec(fullname, self, origin=str(source.directory / name), loader_state=content)
        spec.has_location = True
        return spec


_packages: Final = _ToolPackages()


def load(entry: Entry, source: Source) -> Tool:
    """Loads the tool of an artifact's entry whose directory was read into `source`. Raises RegistryError."""
    handler = import_handler(source)
    if not hasattr(handler, "execute"):
        raise RegistryError(f"The tool {entry.tool_id} has no `execute` in {source.directory / 'handler.py'}.")
    try:
        spec = msgspec.convert(entry.spec, ToolSpec)
        return Tool(
            spec=spec,
            digest=entry.digest,
            origin=entry.origin,
            summary=entry.summary,
            documentation=entry.documentation,
            examples=entry.examples,
            provider_schemas=entry.provider_schemas,
            sentences=entry.sentences,
            arguments=Arguments(spec.parameters),
            execute=handler.execute,
            preview=getattr(handler, "preview", None),
            prepare=getattr(handler, "prepare", None),
            needs_confirmation=getattr(handler, "needs_confirmation", None),
            warm=getattr(handler, "warm", None),
            is_asked_for=getattr(handler, "is_asked_for", None),
            availability=None if spec.availability is None else compile_availability(spec.availability),
        )
    except ValueError as error:
        raise RegistryError(f"The tool {entry.tool_id} is damaged: {error}. Run `antiphon tools build`.") from error


class HandlerError(RegistryError):
    """A handler cannot be imported."""

    def __init__(self, source: Source, cause: BaseException) -> None:
        file, line = _place(cause, source)
        self.file = file.relative_to(source.directory).as_posix()
        self.field = f"line {line}" if line else ""
        self.reason = f"cannot be imported: {type(cause).__name__}: {cause}"
        if isinstance(cause, ModuleNotFoundError) and cause.name and not cause.name.startswith(PACKAGE_PREFIX):
            package = cause.name.partition(".")[0]
            # A module's name is not always its package's: cv2 is in opencv-python.
            advice = f"Run `pip install {package}`, or install the package that provides it"
            self.reason = f"imports {cause.name}, which is not installed. {advice}"
        at = f"{file}, line {line}" if line else str(file)
        super().__init__(f"The tool {source.tool_id} {self.reason} ({at}).")


def import_handler(source: Source) -> ModuleType:
    """Raises HandlerError."""
    package = _packages.add(source)
    try:
        return importlib.import_module(f"{package}.handler")
    except (Exception, SystemExit) as error:
        _packages.discard(package)
        raise HandlerError(source, error) from error


def _place(error: BaseException, source: Source) -> tuple[Path, int | None]:
    """Finds the last line of the tool's own code that ran."""
    directory = str(source.directory)
    if isinstance(error, SyntaxError) and error.filename is not None and error.filename.startswith(directory):
        return Path(error.filename), error.lineno
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(directory)]
    return (Path(frames[-1].filename), frames[-1].lineno) if frames else (source.directory / "handler.py", None)
