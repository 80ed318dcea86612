"""tool_registry.json: the file that the build writes and the server loads."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

from antiphon.tools.errors import RegistryError
from antiphon.tools.source import digest_of

FORMAT: Final = 1
VERSION_PREFIX: Final = "1.0."


class Entry(msgspec.Struct, frozen=True, rename="camel"):
    """One tool, compiled."""

    tool_id: str
    digest: str
    origin: str
    """The absolute path of the tool's directory."""
    spec: dict[str, Any]
    """The content of schema.json."""
    summary: str
    documentation: str
    examples: str
    sentences: dict[str, Any] | None
    provider_schemas: dict[str, dict[str, Any]]


class Artifact(msgspec.Struct, frozen=True, rename="camel"):
    format: int
    version: str
    git_commit: str | None
    build_timestamp: str
    tools: list[Entry]
    """Sorted by id."""


def version_of(tools: Iterable[Entry]) -> str:
    """Returns the same version for the same tools on any machine; a changed byte in any of their files changes it."""
    return VERSION_PREFIX + digest_of((tool.tool_id, bytes.fromhex(tool.digest)) for tool in tools)[:8]


def read(path: Path) -> Artifact:
    """Reads an artifact. Raises RegistryError."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RegistryError(f"{path} cannot be read: {error.strerror}. Run `antiphon tools build`.") from error
    try:
        found = msgspec.json.decode(content, type=_Head).format
        if found != FORMAT:
            raise RegistryError(
                f"{path} has format {found}, and this version of Antiphon reads {FORMAT}. Run `antiphon tools build`."
            )
        return msgspec.json.decode(content, type=Artifact)
    except msgspec.DecodeError as error:
        raise RegistryError(f"{path} is damaged ({error}). Run `antiphon tools build` to rebuild it.") from error


class _Head(msgspec.Struct):
    format: int
