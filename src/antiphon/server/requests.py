"""Reads the body and the parameters of a request, and says what is wrong with them."""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from enum import Enum
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct
from starlette.requests import Request

from antiphon.protocol.limits import MAX_FRAME_BYTES
from antiphon.server.refusals import Refusal, RefusalCode

MAX_BODY_BYTES: Final = MAX_FRAME_BYTES
"""The same limit as for a message over the WebSocket."""


Value = TypeVar("Value")
Kind = TypeVar("Kind")


async def read_body(request: Request, type: type[Value], aliases: Mapping[str, str] | None = None) -> Value:
    """Reads the JSON body of a request. An unknown field is an error, since it is probably a misspelt one.

    `aliases` are other names under which fields are accepted.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise Refusal(RefusalCode.TOO_LARGE, f"The body is longer than {MAX_BODY_BYTES} bytes.")
    try:
        return msgspec.convert(_unify(msgspec.json.decode(body), aliases or {}), type)
    except msgspec.ValidationError as error:
        raise Refusal(RefusalCode.BAD_REQUEST, explain(error, type)) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Refusal(RefusalCode.BAD_REQUEST, f"The body is not JSON: {str(error).rstrip('.')}.") from None


def _unify(value: Any, aliases: Mapping[str, str]) -> Any:
    """Replaces every alias in an object by the field's own name."""
    if not isinstance(value, dict):
        return value
    for alias, name in aliases.items():
        given = value.pop(alias, None)
        if given is not None and value.setdefault(name, given) != given:
            if value[name] is not None:
                raise Refusal(RefusalCode.BAD_REQUEST, f"`{name}` and `{alias}` differ. Send only `{name}`.")
            value[name] = given
    return value


def read_query(request: Request, type: type[Value]) -> Value:
    """Reads the query parameters of a request."""
    try:
        return msgspec.convert(dict(request.query_params), type, strict=False)
    except msgspec.ValidationError as error:
        raise Refusal(RefusalCode.BAD_REQUEST, f"Wrong parameter: {explain(error, type)}") from None


_UNKNOWN: Final = re.compile(r"Object contains unknown field `(?P<name>.*?)`(?: - at `\$\.?(?P<path>.*)`)?", re.DOTALL)
"""How msgspec words it."""
_NOT_A_CHOICE: Final = re.compile(r"Invalid enum value (?P<value>.*?) - at `\$\.(?P<name>\w+)`", re.DOTALL)


def explain(error: msgspec.ValidationError, type: Any) -> str:
    """Makes a sentence of the error. For an unknown field it names the nearest known one, or all of them; for a value
    that is not one of the choices it names the choices."""
    found = _UNKNOWN.fullmatch(str(error))
    if found is None:
        return _explain_choice(error, type) or f"{error}."
    name, path = found["name"], found["path"]
    known = _fields_at(type, path.split(".") if path else [])
    near = get_close_matches(name, known, n=1)
    if near:
        advice = f" Did you mean `{near[0]}`?"
    else:
        advice = f" Known fields: {', '.join(f'`{each}`' for each in known)}." if known else ""
    return f"Unknown field `{name}`{f' in `{path}`' if path else ''}.{advice}"


def _explain_choice(error: msgspec.ValidationError, type: Any) -> str | None:
    found = _NOT_A_CHOICE.fullmatch(str(error))
    struct = _find(Struct, type)
    if found is None or struct is None:
        return None
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(struct)}
    choices = _find(Enum, fields.get(found["name"]))
    if choices is None:
        return None
    known = ", ".join(f"`{each.value}`" for each in choices)
    return f"`{found['name']}` must be one of {known}, not {found['value']}."


def _fields_at(type: Any, path: Sequence[str]) -> list[str]:
    """Returns the field names of the struct at a path; none if something else is there."""
    struct = _find(Struct, type)
    if struct is None:
        return []
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(struct)}
    if not path:
        return list(fields)
    return _fields_at(fields.get(path[0]), path[1:])


def _find(kind: type[Kind], annotation: Any) -> type[Kind] | None:
    """Finds the struct or enum in an annotation such as `Confirm | None`."""
    for each in (annotation, *getattr(annotation, "__args__", ())):
        if isinstance(each, type) and issubclass(each, kind):
            return each
    return None
