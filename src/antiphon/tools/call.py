"""A call as a model made it, and the keys that identify a second delivery of it."""

from collections import Counter
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Struct

MIN_ID_CHARS: Final = 9
MAX_ID_CHARS: Final = 256
MAX_ARGUMENT_BYTES: Final = 64 * 1024

_encode = msgspec.json.Encoder(order="sorted").encode


class ToolCall(Struct, frozen=True):
    """One tool call of a model message."""

    id: str | None
    """The provider's id; None if it gave none, since an id that we make up identifies nothing."""
    name: str
    args: Any
    occurrence: int = 0
    """How many equal calls came before it in the same model message: two equal calls there are two calls."""
    extra: Any = None
    """JSON that the model wants back with its call. It is opaque to everyone else and part of no key."""


class Keys:
    """The keys that identify a second delivery of a call to an existing tool."""

    __slots__ = ("_args", "_call", "_content", "_turn", "fingerprint", "provider")

    def __init__(self, call: ToolCall, args: bytes, turn: int) -> None:
        """`args` are the call's arguments in their canonical form."""
        call_id = call.id
        self.provider = f"provider:{call_id}" if call_id is not None and is_usable(call_id) else None
        """Set to None if the provider turns out to have used its id for another call."""
        self.fingerprint = fingerprint(call.name, args)
        """The hash of tool and arguments, independent of the turn."""
        self._call, self._args, self._turn = call, args, turn
        self._content: str | None = None

    @property
    def content(self) -> str:
        """The hash of tool, arguments and turn. Computed on demand: a reading call with a usable id never needs it."""
        if self._content is None:
            # The canonical form of {args, tool, turn}, put together from the part that is already encoded.
            call, turn = self._call, self._turn
            whole = b'{"args":%b,"tool":"%b","turn":%d}' % (self._args, call.name.encode("utf-8", "replace"), turn)
            suffix = f"#{call.occurrence}" if call.occurrence else ""
            self._content = f"hash:{turn}:{sha256(whole).hexdigest()[:16]}{suffix}"
        return self._content


class UnusableArguments(ValueError):
    """The arguments are not JSON, or too large."""


def canonical(value: object) -> bytes:
    """Encodes JSON with the keys sorted at every depth. Raises `UnusableArguments`."""
    try:
        encoded = _encode(value)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise UnusableArguments(f"the arguments are not JSON: {error}") from error
    if len(encoded) > MAX_ARGUMENT_BYTES:
        raise UnusableArguments(f"the arguments are larger than {MAX_ARGUMENT_BYTES} bytes")
    return encoded


def fingerprint(tool: str, canonical_args: bytes) -> str:
    return sha256(b"%b\0%b" % (tool.encode(), canonical_args)).hexdigest()


def is_usable(call_id: str) -> bool:
    """Whether a provider's id can tell a second delivery from a second call."""
    return MIN_ID_CHARS <= len(call_id) <= MAX_ID_CHARS and "temp" not in call_id and call_id.isprintable()


def shown_id(call: ToolCall, turn: int) -> str:
    """Returns the id of a call for clients: the provider's if it is usable, else one made from the call's content.

    The id depends only on the call and its turn, because the process that approves it later need not be the one that
    asked.
    """
    if call.id is not None and is_usable(call.id):
        return call.id
    try:
        args = canonical(call.args)
    except UnusableArguments:
        args = b"null"
    return Keys(call, args, turn).content


def number(calls: Iterable[ToolCall]) -> list[ToolCall]:
    """Numbers the calls of one model message: each learns how many equal ones came before it."""
    seen: Counter[tuple[str, bytes]] = Counter()
    numbered = []
    for call in calls:
        try:
            same = (call.name, canonical(call.args))
        except UnusableArguments:
            numbered.append(call)
            continue
        numbered.append(msgspec.structs.replace(call, occurrence=seen[same]) if seen[same] else call)
        seen[same] += 1
    return numbered
