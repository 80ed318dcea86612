"""A tool as an MCP server describes it: what the model is told about it, and what its pin covers."""

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from antiphon.errors import AntiphonError

if TYPE_CHECKING:
    from mcp_types import Tool as ListedTool

MAX_ID_CHARS: Final = 64
MAX_NAME_CHARS: Final = 128
MAX_DESCRIPTION_CHARS: Final = 4_000
MAX_SCHEMA_BYTES: Final = 32 * 1024
MAX_TITLE_CHARS: Final = 80
_HASH_CHARS: Final = 8

_HINTS: Final = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_encode: Final = msgspec.json.Encoder(order="sorted").encode


class UnusableTool(AntiphonError):
    """A server lists a tool that cannot be offered. The message says why."""

    code = "mcp_tool"


class Definition(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything about a tool that the model reads, or that decides how the gate treats it."""

    name: str
    title: str | None
    description: str
    input_schema: dict[str, Any]
    hints: dict[str, bool]

    @property
    def digest(self) -> str:
        """Changes with every byte of the definition, but not with the order of keys."""
        return hashlib.sha256(self.encoded).hexdigest()

    @property
    def encoded(self) -> bytes:
        return _encode(self)

    @property
    def reads_only(self) -> bool:
        """Whether the server says that the tool changes nothing."""
        return self.hints.get("readOnlyHint") is True

    @property
    def is_idempotent(self) -> bool:
        return self.reads_only or self.hints.get("idempotentHint") is True


def decode(stored: bytes) -> Definition:
    return msgspec.json.decode(stored, type=Definition)


def define(listed: "ListedTool") -> Definition:
    """Reads what a server lists. Raises `UnusableTool`."""
    name = listed.name
    if not 0 < len(name) <= MAX_NAME_CHARS or not name.isprintable():
        raise UnusableTool(f"its name must have 1 to {MAX_NAME_CHARS} printable characters")
    description = _clean(listed.description or "")
    if len(description) > MAX_DESCRIPTION_CHARS:
        raise UnusableTool(f"its description is longer than {MAX_DESCRIPTION_CHARS} characters")
    annotations = {} if listed.annotations is None else listed.annotations.model_dump(by_alias=True)
    title = listed.title or annotations.get("title")
    made = Definition(
        name=name,
        title=_clean(title)[:MAX_TITLE_CHARS] if title else None,
        description=description,
        input_schema=listed.input_schema,
        hints={hint: annotations[hint] for hint in _HINTS if isinstance(annotations.get(hint), bool)},
    )
    try:
        size = len(_encode(made.input_schema))
    except (ValueError, TypeError, RecursionError) as error:
        raise UnusableTool(f"its input schema is not JSON: {error}") from None
    if size > MAX_SCHEMA_BYTES:
        raise UnusableTool(f"its input schema is longer than {MAX_SCHEMA_BYTES} bytes")
    return made


def id_of(server: str, tool: str) -> str:
    """Returns the id of a tool in the registry: its server and its name, in at most 64 of the characters that every
    provider accepts. A name that is too long ends with a hash of itself."""
    made = re.sub(r"[^a-z0-9_]", "_", f"{server}_{tool}".lower())
    if len(made) <= MAX_ID_CHARS:
        return made
    mark = hashlib.sha256(tool.encode("utf-8", "replace")).hexdigest()[:_HASH_CHARS]
    return f"{made[: MAX_ID_CHARS - _HASH_CHARS - 1]}_{mark}"


def _clean(text: str) -> str:
    """Removes control characters, which could hide a part of the text from a person who approves it."""
    return "".join(each for each in text if each.isprintable() or each in "\n\t").strip()
