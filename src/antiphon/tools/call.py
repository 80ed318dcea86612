"""A call as a model made it, and the keys by which a second delivery of it is known."""

from collections import Counter
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Struct

USABLE_ID_CHARS: Final = range(9, 257)
MAX_ARGUMENT_BYTES: Final = 64 * 1024

_encode = msgspec.json.Encoder(order="sorted").encode


class ToolCall(Struct, frozen=True):
    """One tool call of a model message."""

    id: str | None
    """As the provider gave it; None if it gave none (an id that we make up identifies nothing)."""
    name: str
    args: Any
    occurrence: int = 0
    """How many equal calls came before it in the same model message: two equal calls there are two calls."""


class Keys:
    """By what a second delivery of a call is known. `keys_of` makes it."""

    __slots__ = ("_content", "_whole", "fingerprint", "provider")

    def __init__(self, provider: str | None, fingerprint: str, whole: Callable[[], str]) -> None:
        self.provider = provider
        """Set to None if the provider turns out to have used its id for another call."""
        self.fingerprint = fingerprint
        """Tool and arguments, whatever the turn."""
        self._whole = whole
        self._content: str | None = None

    @property
    def content(self) -> str:
        """Tool, arguments and turn. Made when it is asked for: a reading call with a usable id never needs it."""
        if self._content is None:
            self._content = self._whole()
        return self._content


class UnusableArguments(ValueError):
    """Arguments that are no JSON, or too much of it."""


def canonical(value: object) -> bytes:
    """JSON with the keys sorted at every depth. Raises `UnusableArguments`."""
    try:
        encoded = _encode(value)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise UnusableArguments(f"the arguments are not JSON: {error}") from error
    if len(encoded) > MAX_ARGUMENT_BYTES:
        raise UnusableArguments(f"the arguments are larger than {MAX_ARGUMENT_BYTES} bytes")
    return encoded


def fingerprint(tool: str, canonical_args: bytes) -> str:
    return sha256(b"%b\0%b" % (tool.encode(), canonical_args)).hexdigest()


def keys_of(call: ToolCall, turn: int) -> Keys:
    """The keys of a call to a tool that exists. Raises `UnusableArguments`."""
    args = canonical(call.args)

    def content() -> str:
        # The canonical form of {args, tool, turn}, put together from the part that is already encoded.
        whole = b'{"args":%b,"tool":"%b","turn":%d}' % (args, call.name.encode(), turn)
        suffix = f"#{call.occurrence}" if call.occurrence else ""
        return f"hash:{turn}:{sha256(whole).hexdigest()[:16]}{suffix}"

    provider = f"provider:{call.id}" if is_usable(call.id) else None
    return Keys(provider, fingerprint(call.name, args), content)


def is_usable(call_id: str | None) -> bool:
    """Whether a provider's id can tell a second delivery from a second call."""
    return call_id is not None and len(call_id) in USABLE_ID_CHARS and "temp" not in call_id and call_id.isprintable()


def number(calls: Iterable[ToolCall]) -> list[ToolCall]:
    """The calls of one model message, each told how many equal ones came before it."""
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
