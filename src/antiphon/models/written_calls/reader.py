"""Reads the calls that a whole message consists of. Pure."""

import ast
import json
import math
import re
import warnings
from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from antiphon.models.bounded import MAX_CALLS
from antiphon.models.written_calls.formats import (
    ARGUMENT_KEYS,
    FENCE,
    FENCE_LANGUAGES,
    FUNCTION,
    HEAD_CHARS,
    MAX_NAME_CHARS,
    NAME_KEYS,
    TAGS,
    Tools,
    Verdict,
    judge,
    word_end,
)
from antiphon.security.surrogates import repair, repair_json
from antiphon.tools.call import ToolCall

MAX_PYTHON_CHARS: Final = 10_000
UNKNOWN_NAME: Final = "unknown"
"""The name of a call in which none was found. The gate refuses it."""
_OTHER_KEYS: Final = frozenset({"type", "id", "index", "call_id"})

_ENDS: Final = (*filter(None, TAGS.values()), "</function>", FENCE, "<|eot_id|>", "<|im_end|>", "<|end|>", "</s>")
_NOISE: Final = re.compile(
    rf"(?:[\s,;]|{FENCE}(?:{'|'.join(sorted(filter(None, FENCE_LANGUAGES), key=len, reverse=True))})?"
    rf"|{'|'.join(map(re.escape, _ENDS))})*"
)
"""What may stand between calls and after them."""
_SEGMENT_END: Final = re.compile("|".join(map(re.escape, (*TAGS, *_ENDS))))
_TAG_END: Final = re.compile(">")
_FUNCTION_END: Final = re.compile(rf"</function>|{FUNCTION}")
_NAMED: Final = re.compile(r"""["']?(?:name|tool|tool_name|function)["']?\s*[:=]\s*["']?([\w.-]+)""")
_ARGUMENTS: Final = re.compile(rf"""["'](?:{"|".join(ARGUMENT_KEYS)})["']\s*:""")
_PARAMETER: Final = re.compile(r"<parameter=([^>\n]{1,64})>(.*?)(?:</parameter>|(?=<parameter=)|\Z)", re.DOTALL)
_MISTRAL_ARGUMENTS: Final = re.compile(r"(?:\[CALL_ID\][\w-]*)?(?:\[ARGS\])?\s*")


def parse_calls(message: str, tools: Tools) -> list[ToolCall] | None:
    """Returns the calls, without ids, if the whole message consists of calls; else None.

    Of too many calls, it returns one more than are allowed.
    """
    if judge(message, tools) is not Verdict.MAYBE_CALL:
        return None
    try:
        calls = _Reader(repair(message), tools).read_all()
        return None if calls is None else [replace(call, args=repair_json(call.args)) for call in calls] or None
    except RecursionError:
        return None


class _Reader:
    """Reads the calls of a whole message, one after the other."""

    def __init__(self, text: str, tools: Tools) -> None:
        self._text = text
        self._at = 0
        self._tools = tools

    def read_all(self) -> list[ToolCall] | None:
        """Reads the whole message; None if something in it is not a call."""
        calls: list[ToolCall] = []
        self._skip_noise()
        while not self._is_at_end and len(calls) <= MAX_CALLS:
            found = self._read()
            if found is None:
                return None
            calls += found
            self._skip_noise()
        return calls[: MAX_CALLS + 1]

    @property
    def _is_at_end(self) -> bool:
        return self._at == len(self._text)

    def _skip_noise(self) -> None:
        match = _NOISE.match(self._text, self._at)
        assert match is not None
        self._at = match.end()

    def _read(self) -> list[ToolCall] | None:
        """Reads what comes next, one call or several; None if it is not a call."""
        if self._next_is(FUNCTION):
            return [self._read_function()]
        if tag := next((tag for tag in TAGS if self._next_is(tag)), None):
            self._at += len(tag)
            self._skip_noise()
            return self._read_tagged()
        if self._next_is("{", "["):
            try:
                return _calls_in(self._decode_json(), self._tools, is_certain=False)
            except ValueError:
                pass
        rest = self._take_rest()
        return self._parse_python(rest) or self._parse_almost_json(rest)

    def _read_tagged(self) -> list[ToolCall]:
        """Reads the content of a tag, which may be another tag."""
        calls: list[ToolCall] = []
        while self._next_is("{", "[", FUNCTION) and not self._next_is(*TAGS) and len(calls) <= MAX_CALLS:
            if self._next_is(FUNCTION):
                calls.append(self._read_function())
            else:
                try:
                    calls += _calls_in(self._decode_json(), self._tools, is_certain=True) or ()
                except ValueError:
                    segment = self._take_until(_SEGMENT_END)
                    calls += self._parse_python(segment) or self._parse_literal(segment) or [_unreadable(segment)]
            self._skip_noise()
        if calls or self._is_at_end or self._next_is(*TAGS):
            return calls
        segment = self._take_until(_SEGMENT_END)
        return self._parse_python(segment) or self._parse_named(segment) or [_unreadable(segment)]

    def _read_function(self) -> ToolCall:
        """Reads `<function=NAME>` with JSON or with parameters in tags."""
        self._at += len(FUNCTION)
        name = self._take_until(_TAG_END)
        self._at = min(self._at + 1, len(self._text))
        self._skip_noise()
        if self._next_is("{"):
            try:
                return ToolCall(None, _clean(name), self._decode_json())
            except ValueError:
                pass
        body = self._take_until(_FUNCTION_END)
        schema = self._tools.get(name, {}).get("properties", {})
        given = {key.strip(): _typed(value, schema.get(key.strip())) for key, value in _PARAMETER.findall(body)}
        return ToolCall(None, _clean(name), given or body or {})

    def _next_is(self, *literals: str) -> bool:
        return self._text.startswith(literals, self._at)

    def _decode_json(self) -> Any:
        """Raises `ValueError`."""
        try:
            value, self._at = _decoder.raw_decode(self._text, self._at)
        except RecursionError as error:
            raise ValueError("too deep") from error
        return value

    def _take_until(self, end: re.Pattern[str]) -> str:
        found = end.search(self._text, self._at)
        start, self._at = self._at, found.start() if found else len(self._text)
        return self._text[start : self._at].strip()

    def _take_rest(self) -> str:
        """Takes the rest of the message, without the noise at its end."""
        end, start = len(self._text), self._at
        self._at = end
        while True:
            while end > start and self._text[end - 1].isspace():
                end -= 1
            mark = next((mark for mark in _ENDS if self._text.endswith(mark, start, end)), None)
            if mark is None:
                return self._text[start:end]
            end -= len(mark)

    def _parse_python(self, text: str) -> list[ToolCall] | None:
        """Parses calls like Python's, with literal arguments given by name."""
        if len(text) > MAX_PYTHON_CHARS:
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                body = ast.parse(text, mode="eval").body
            parts = body.elts if isinstance(body, ast.List | ast.Tuple) else [body]
            return [self._python_call(part) for part in parts]
        except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
            return None

    def _python_call(self, node: ast.expr) -> ToolCall:
        """Raises `ValueError`."""
        match node:
            case ast.Call(func=ast.Name(id=name), args=[], keywords=keywords) if name in self._tools:
                args = {keyword.arg: ast.literal_eval(keyword.value) for keyword in keywords}
                if None in args:
                    raise ValueError("arguments without a name")
                return ToolCall(None, name, _as_json(args))
        raise ValueError("not a call of a known tool")

    def _parse_named(self, segment: str) -> list[ToolCall] | None:
        """Parses the name of a tool with JSON after it, as Mistral writes it."""
        end = word_end(segment, 0)
        if segment[:end] not in self._tools:
            return None
        gap = _MISTRAL_ARGUMENTS.match(segment, end)
        given = segment[gap.end() if gap else end :]
        return [ToolCall(None, segment[:end], _decode_or_keep(given) if given else {})]

    def _parse_literal(self, segment: str) -> list[ToolCall] | None:
        """Parses an object with Python's quotes and constants."""
        try:
            return _calls_in(_literal(segment), self._tools, is_certain=True)
        except ValueError:
            return None

    def _parse_almost_json(self, text: str) -> list[ToolCall] | None:
        """Parses an object with Python's quotes, or the broken JSON of a call to a known tool."""
        try:
            return _calls_in(_literal(text), self._tools, is_certain=False)
        except ValueError:
            call = _unreadable(text)
            is_call = call.name in self._tools and _ARGUMENTS.search(text) and text[-1:] in "}]\"'"
            return [call] if is_call else None


def _calls_in(value: Any, tools: Tools, *, is_certain: bool) -> list[ToolCall] | None:
    """Finds the calls in a JSON value; None if it is none. What is in a tag is certainly meant as one."""
    match value:
        case [_, *_]:
            found = [_calls_in(each, tools, is_certain=is_certain) for each in value]
            return None if None in found else [call for calls in found for call in calls or ()]
        case {"tool_calls": list() as inner} | {"tool_call": inner} | {"function_call": inner} if len(value) == 1:
            return _calls_in(inner, tools, is_certain=is_certain)
        case {"function": dict() as inner} if value.keys() <= {"function", *_OTHER_KEYS}:
            return _calls_in(inner, tools, is_certain=is_certain)
        case dict():
            return _call_of(value, tools, is_certain=is_certain)
    return [_unreadable(json.dumps(value))] if is_certain else None


def _call_of(fields: dict[str, Any], tools: Tools, *, is_certain: bool) -> list[ToolCall] | None:
    name_key = next((key for key in NAME_KEYS if isinstance(fields.get(key), str)), None)
    argument_key = next((key for key in ARGUMENT_KEYS if key in fields), None)
    others = {key: each for key, each in fields.items() if key not in (name_key, argument_key, *_OTHER_KEYS)}
    if name_key is None:
        return [ToolCall(None, UNKNOWN_NAME, fields)] if is_certain else None
    name = fields[name_key]
    if not is_certain and (name not in tools or argument_key is None or others):
        return None
    # Without a field for them, the other fields are the arguments.
    args = others if argument_key is None else fields[argument_key]
    return [ToolCall(None, _clean(name), _arguments(args))]


def _unreadable(text: str) -> ToolCall:
    """A call that cannot be read. The gate refuses arguments that are text, and says how they should be written."""
    named = _NAMED.search(text[:HEAD_CHARS])
    return ToolCall(None, _clean(named[1]) if named else UNKNOWN_NAME, text)


def _arguments(given: Any) -> Any:
    if isinstance(given, str):
        return _decode_or_keep(given)
    return {} if given is None else given


def _typed(value: str, schema: Any) -> Any:
    """Gives a parameter in a tag its type: text, unless the schema says otherwise."""
    value = value.strip("\r\n")
    types = schema.get("type", "string") if isinstance(schema, Mapping) else "string"
    return value if "string" in types else _decode_or_keep(value.strip())


def _decode_or_keep(text: str) -> Any:
    try:
        return _decoder.decode(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return text


def _literal(text: str) -> Any:
    """Evaluates a Python literal as JSON. Raises `ValueError`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _as_json(ast.literal_eval(text[:MAX_PYTHON_CHARS]))
    except (SyntaxError, TypeError, RecursionError, MemoryError) as error:
        raise ValueError("not a literal") from error


def _as_json(value: Any) -> Any:
    """Returns a Python value as JSON has it. Raises `ValueError` or `TypeError` if JSON has no such value."""
    return json.loads(json.dumps(value, allow_nan=False))


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _parse_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is too large")
    return number


def _clean(name: str) -> str:
    """Returns a name that every provider accepts in a history."""
    return re.sub(r"[^\w-]", "_", name.strip(), flags=re.ASCII)[:MAX_NAME_CHARS] or UNKNOWN_NAME


# Models put line breaks into strings.
_decoder: Final = json.JSONDecoder(strict=False, parse_float=_parse_float, parse_constant=_refuse_constant)
