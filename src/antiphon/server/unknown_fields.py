"""What is wrong with a request, as a sentence: fields that there are not, and values that a field cannot have."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from enum import Enum
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

Kind = TypeVar("Kind")

_UNKNOWN: Final = re.compile(r"Object contains unknown field `(?P<name>.*?)`(?: - at `\$\.?(?P<path>.*)`)?", re.DOTALL)
"""How msgspec says it."""
_NOT_A_CHOICE: Final = re.compile(r"Invalid enum value (?P<value>.*?) - at `\$\.(?P<name>\w+)`", re.DOTALL)


def explain(error: msgspec.ValidationError, type: Any) -> str:
    """The error as a sentence. If it is about an unknown field, that names the nearest known one, or all of them; if
    it is about a value that is none of the choices, that names them."""
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
    """The names of the fields of the struct that a path leads to; none if it leads to something else."""
    struct = _find(Struct, type)
    if struct is None:
        return []
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(struct)}
    if not path:
        return list(fields)
    return _fields_at(fields.get(path[0]), path[1:])


def _find(kind: type[Kind], annotation: Any) -> type[Kind] | None:
    """The struct or enum of an annotation such as `Confirm | None`."""
    for each in (annotation, *getattr(annotation, "__args__", ())):
        if isinstance(each, type) and issubclass(each, kind):
            return each
    return None
