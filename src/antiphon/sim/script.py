"""Reads fault scripts: YAML from a file, or JSON at the control port. A mistake is reported with its line and key.

faults:
  - when: {audio_chunk: 3}             the trigger: a name, or a name with a value
    do: {close: {code: 1011}}          an action, or a list of actions that are performed in this order
    connection: 1                      optional: only on the first connection
    skip: 2                            optional: the trigger's first two occurrences do nothing
    times: 1                           optional: how often it happens; "always" is every time
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Final

import msgspec
import yaml

from antiphon.errors import AntiphonError
from antiphon.sim.actions import MAX_REASON_BYTES, Action, Close, Refuse, RejectHandle

MAX_FAULTS: Final = 1_000
MAX_SCRIPT_BYTES: Final = 1_000_000

_KEYS: Final = ("when", "do", "connection", "skip", "times")
_PATH: Final = re.compile(r" - at `\$?(?P<path>[^`]*)`")


class Occasion(StrEnum):
    """When a fault happens. The value is the name in a script."""

    CONNECT = "connect"
    """A client asks for a connection; nothing has been answered yet."""
    SECONDS = "seconds"
    """This long after the connection was opened."""
    CLIENT_MESSAGES = "client_messages"
    """The client has sent this many messages."""
    SERVER_MESSAGES = "server_messages"
    """The server has sent this many messages."""
    CLIENT_MESSAGE = "client_message"
    """The client sends a message of this type."""
    SERVER_MESSAGE = "server_message"
    """The server sends a message of this type."""
    AUDIO_CHUNK = "audio_chunk"
    """The server sends this chunk of an answer's audio; the first is 1."""
    RESUME = "resume"
    """The client asks to resume a session."""
    RESUMED = "resumed"
    """The session is resumed."""
    NOW = "now"
    """At once, on every open connection. Only at the control port."""


_COUNTS: Final = {Occasion.CLIENT_MESSAGES, Occasion.SERVER_MESSAGES, Occasion.AUDIO_CHUNK}
_TYPES: Final = {Occasion.CLIENT_MESSAGE, Occasion.SERVER_MESSAGE}
_BARE: Final = {Occasion.RESUME, Occasion.RESUMED, Occasion.NOW}

SOCKET_OCCASIONS: Final = frozenset(Occasion) - {Occasion.RESUME, Occasion.RESUMED}
RESUMABLE_OCCASIONS: Final = frozenset(Occasion)
STREAM_OCCASIONS: Final = frozenset(
    {Occasion.CONNECT, Occasion.SECONDS, Occasion.SERVER_MESSAGES, Occasion.SERVER_MESSAGE, Occasion.NOW}
)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What the scripts of one simulator may contain."""

    vendor: str
    actions: Mapping[str, type[Action]]
    occasions: frozenset[Occasion]


@dataclass(frozen=True, slots=True)
class Trigger:
    occasion: Occasion
    value: int | float | str | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    when: Trigger
    do: tuple[Action, ...]
    connection: int | None = None
    skip: int = 0
    times: int | None = 1
    """None is every time."""


class ScriptError(AntiphonError):
    """A fault script has a mistake."""

    code = "script"


Path = tuple[str | int, ...]
Where = Callable[[Path], str]
"""Tells where in the source a value is, to begin an error with."""


def parse_script(text: str, vocabulary: Vocabulary, name: str = "the script") -> list[Fault]:
    """Parses a script. `name` is its file's name, for errors."""
    if len(text) > MAX_SCRIPT_BYTES:
        raise ScriptError(f"{name} is longer than {MAX_SCRIPT_BYTES} characters.")
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        script = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        raise ScriptError(f"{name}, line {line}: this is not YAML: {error.problem}.") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ScriptError(f"{name} is not YAML: {error}.") from None

    def where(path: Path) -> str:
        return f"{name}, line {_line(root, path)}, {_spell(path) or 'the top level'}"

    if not isinstance(script, dict) or set(script) != {"faults"}:
        found = ", ".join(map(str, script)) if isinstance(script, dict) else type(script).__name__
        raise ScriptError(f'{where(())}: a script is a mapping with one key, "faults"; found: {found}.')
    faults = _read_faults(script["faults"], ("faults",), vocabulary, where)
    for number, fault in enumerate(faults):
        if fault.when.occasion is Occasion.NOW:
            raise ScriptError(f'{where(("faults", number, "when"))}: "now" works only at the control port.')
    return faults


def parse_faults(value: object, vocabulary: Vocabulary) -> list[Fault]:
    """Parses what the control port was sent: one fault, a list of faults, or a whole script."""
    if isinstance(value, dict) and set(value) == {"faults"}:
        value = value["faults"]
    several = value if isinstance(value, list) else [value]
    return _read_faults(several, (), vocabulary, lambda path: _spell(path) or "the body")


def _read_faults(raw: object, path: Path, vocabulary: Vocabulary, where: Where) -> list[Fault]:
    if not isinstance(raw, list):
        raise ScriptError(f"{where(path)}: this must be a list of faults.")
    if len(raw) > MAX_FAULTS:
        raise ScriptError(f"{where(path)}: there are {len(raw)} faults, and at most {MAX_FAULTS} are allowed.")
    return [_read_fault(each, (*path, number), vocabulary, where) for number, each in enumerate(raw)]


def _read_fault(raw: object, path: Path, vocabulary: Vocabulary, where: Where) -> Fault:
    if not isinstance(raw, dict):
        raise ScriptError(f'{where(path)}: a fault is a mapping with "when" and "do".')
    for key in raw:
        if key not in _KEYS:
            raise ScriptError(f"{where((*path, key))}: {_unknown('key', key, _KEYS)}")
    for key in ("when", "do"):
        if key not in raw:
            raise ScriptError(f'{where(path)}: "{key}" is missing.')
    when = _read_trigger(raw["when"], (*path, "when"), vocabulary, where)
    connection = _read_count(raw.get("connection"), (*path, "connection"), where)
    if when.occasion is Occasion.CONNECT and when.value is not None:
        # "connect: 2" is the second connection, as "connection: 2" is.
        connection, when = int(when.value), Trigger(Occasion.CONNECT)
    times = raw.get("times", 1)
    return Fault(
        when,
        tuple(_read_actions(raw["do"], (*path, "do"), vocabulary, where, when)),
        connection=connection,
        skip=_read_count(raw.get("skip"), (*path, "skip"), where) or 0,
        times=None if times == "always" else _read_count(times, (*path, "times"), where),
    )


def _read_trigger(raw: object, path: Path, vocabulary: Vocabulary, where: Where) -> Trigger:
    if isinstance(raw, str):
        name, value = raw, None
    elif isinstance(raw, dict) and len(raw) == 1:
        (name, value), *_ = raw.items()
        path = (*path, name)
    else:
        raise ScriptError(
            f'{where(path)}: a trigger is a name such as "connect", or a name with a value such as {{seconds: 5}}.'
        )
    known = [each.value for each in Occasion if each in vocabulary.occasions]
    if name not in known:
        if name in {each.value for each in Occasion}:
            raise ScriptError(f'{where(path)}: {vocabulary.vendor} has no trigger "{name}". It has {_join(known)}.')
        raise ScriptError(f"{where(path)}: {_unknown('trigger', name, known)}")
    occasion = Occasion(name)
    problem: str | None = None
    if occasion is Occasion.CONNECT:
        _read_count(value, path, where)
    elif occasion in _COUNTS and not _is_count(value):
        problem = f'"{name}" needs a whole number from 1, as in {{{name}: 3}}'
    elif occasion is Occasion.SECONDS and not _is_duration(value):
        problem = '"seconds" needs a number of seconds, as in {seconds: 2.5}'
    elif occasion in _TYPES and not (isinstance(value, str) and value):
        problem = f'"{name}" needs the type of a message, as in {{{name}: tool_call}}'
    elif occasion in _BARE and value is not None:
        problem = f'"{name}" takes no value'
    if problem is not None:
        raise ScriptError(f"{where(path)}: {problem}.")
    return Trigger(occasion, value)


def _read_actions(raw: object, path: Path, vocabulary: Vocabulary, where: Where, when: Trigger) -> Iterator[Action]:
    if isinstance(raw, list):
        if not raw:
            raise ScriptError(f"{where(path)}: the list has no action.")
        for number, each in enumerate(raw):
            yield _read_action(each, (*path, number), vocabulary, where, when)
    else:
        yield _read_action(raw, path, vocabulary, where, when)


def _read_action(raw: object, path: Path, vocabulary: Vocabulary, where: Where, when: Trigger) -> Action:
    fields: object
    if isinstance(raw, str):
        name, fields = raw, {}
    elif isinstance(raw, dict) and len(raw) == 1:
        (name, fields), *_ = raw.items()
        path = (*path, name)
        fields = {} if fields is None else fields
    else:
        raise ScriptError(
            f'{where(path)}: an action is a name such as "silence", or a name with its settings such as '
            "{close: {code: 1011}}."
        )
    if name not in vocabulary.actions:
        raise ScriptError(f"{where(path)}: {_unknown('action', name, list(vocabulary.actions))}")
    try:
        action = msgspec.convert(fields, vocabulary.actions[name])
    except msgspec.ValidationError as error:
        told = str(error)
        found = _PATH.search(told)
        inner: Path = tuple(found["path"].strip(".").split(".")) if found and found["path"] else ()
        raise ScriptError(f"{where((*path, *inner))}: {_PATH.sub('', told).lower()}.") from None
    if isinstance(action, Close) and len(action.reason.encode()) > MAX_REASON_BYTES:
        raise ScriptError(
            f"{where((*path, 'reason'))}: a close reason has at most {MAX_REASON_BYTES} bytes, "
            f"this has {len(action.reason.encode())}."
        )
    for kind, occasion in ((Refuse, Occasion.CONNECT), (RejectHandle, Occasion.RESUME)):
        if isinstance(action, kind) and when.occasion is not occasion:
            raise ScriptError(f'{where(path)}: "{name}" works only with the trigger "{occasion}".')
    return action


def _read_count(value: object, path: Path, where: Where) -> int | None:
    if value is None or _is_count(value):
        return value  # type: ignore[return-value]
    always = ' or "always"' if path[-1:] == ("times",) else ""
    raise ScriptError(f"{where(path)}: this must be a whole number from 1{always}.")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_duration(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 86_400


def _unknown(what: str, name: object, known: Sequence[str]) -> str:
    near = get_close_matches(str(name), known, n=1)
    hint = f'Did you mean "{near[0]}"?' if near else f"There are {_join(known)}."
    return f'"{name}" is not a known {what}. {hint}'


def _join(names: Sequence[str]) -> str:
    return ", ".join(names)


def _spell(path: Path) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def _line(root: yaml.Node | None, path: Path) -> int:
    """Returns the line of the value at the path, or of its nearest parent that exists."""
    node = root
    line = 1 if root is None else root.start_mark.line + 1
    for step in path:
        found: yaml.Node | None = None
        if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            found = node.value[step]
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == str(step):
                    line, found = key.start_mark.line + 1, value
                    break
        if found is None:
            break
        if isinstance(step, int):
            line = found.start_mark.line + 1
        node = found
    return line
