"""A call as a model made it, and the keys by which a second delivery of it is known."""

from collections import Counter
from collections.abc import Iterable
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


class Keys(Struct):
    """Mutable, since a provider that uses one id for two different calls loses its key (see `gate.recall`)."""

    provider: str | None
    content: str
    fingerprint: str
    """Tool and arguments, whatever the turn."""


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
    # The canonical form of {args, tool, turn}, put together from the part that is already encoded.
    whole = b'{"args":%b,"tool":"%b","turn":%d}' % (args, call.name.encode(), turn)
    content = f"hash:{turn}:{sha256(whole).hexdigest()[:16]}"
    if call.occurrence:
        content += f"#{call.occurrence}"
    return Keys(
        provider=f"provider:{call.id}" if is_usable(call.id) else None,
        content=content,
        fingerprint=fingerprint(call.name, args),
    )


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
