"""Fields that a request has and its struct has not: most likely known ones, misspelt."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, Final

import msgspec
from msgspec import Struct

_UNKNOWN: Final = re.compile(r"Object contains unknown field `(?P<name>.*?)`(?: - at `\$\.?(?P<path>.*)`)?", re.DOTALL)
"""How msgspec says it."""


def explain(error: msgspec.ValidationError, type: Any) -> str:
    """The error as a sentence. If it is about an unknown field, that names the nearest known one, or all of them."""
    found = _UNKNOWN.fullmatch(str(error))
    if found is None:
        return f"{error}."
    name, path = found["name"], found["path"]
    known = _fields_at(type, path.split(".") if path else [])
    near = get_close_matches(name, known, n=1)
    if near:
        advice = f" Did you mean `{near[0]}`?"
    else:
        advice = f" Known fields: {', '.join(f'`{each}`' for each in known)}." if known else ""
    return f"Unknown field `{name}`{f' in `{path}`' if path else ''}.{advice}"


def _fields_at(type: Any, path: Sequence[str]) -> list[str]:
    """The names of the fields of the struct that a path leads to; none if it leads to something else."""
    struct = _struct_in(type)
    if struct is None:
        return []
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(struct)}
    if not path:
        return list(fields)
    return _fields_at(fields.get(path[0]), path[1:])


def _struct_in(annotation: Any) -> type[Struct] | None:
    """The struct of an annotation such as `Confirm | None`."""
    for each in (annotation, *getattr(annotation, "__args__", ())):
        if isinstance(each, type) and issubclass(each, Struct):
            return each
    return None
