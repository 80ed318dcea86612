"""Checks arguments against a tool's parameters: nothing is coerced or ignored, and defaults are set on a copy."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

import jsonschema_rs
import msgspec

Fill = Callable[[dict[str, Any]], list[str]]
"""Fills defaults into an object in place and returns the paths it filled."""

PROBLEMS_TOLD: Final = 20


def compile_schema(
    schema: dict[str, Any], *, allows_unknown_formats: bool = False
) -> jsonschema_rs.Draft202012Validator:
    """Compiles a validator that checks all formats and fetches nothing. Raises ValueError for an invalid schema."""
    return jsonschema_rs.Draft202012Validator(
        schema, validate_formats=True, ignore_unknown_formats=allows_unknown_formats, offline=True
    )


class Arguments:
    """The compiled parameters of one tool."""

    __slots__ = ("_fill", "_is_valid", "_validator")

    def __init__(self, parameters: dict[str, Any], *, allows_unknown_formats: bool = False) -> None:
        """Formats that nobody knows are a mistake in a tool of ours. Others write such as "uint32"."""
        self._validator = compile_schema(parameters, allows_unknown_formats=allows_unknown_formats)
        self._is_valid = self._validator.is_valid
        self._fill = _fill_for(parameters)

    def complete(self, args: dict[str, Any]) -> tuple[dict[str, Any], Sequence[str]]:
        """Returns a copy with defaults filled in at every depth, and the paths that were filled."""
        # Only the outer object is copied: an inner one is copied by the filler that changes it.
        filled = args.copy()
        return filled, () if self._fill is None else self._fill(filled)

    def accepts(self, args: object) -> bool:
        try:
            return bool(self._is_valid(args))
        except ValueError:  # not JSON: a key that is not a string, or NaN
            return False

    def problems(self, args: object) -> list[dict[str, str]]:
        """Lists everything that is wrong, each with its path."""
        try:
            errors = list(islice(self._validator.iter_errors(args), PROBLEMS_TOLD))
        except ValueError as error:
            return [{"path": "/", "message": str(error)}]
        return [
            {"path": "/".join(["", *map(str, error.instance_path)]) or "/", "message": error.message}
            for error in errors
        ]


def _fill_for(schema: Mapping[str, Any]) -> Fill | None:
    """Makes the filler for an object schema; None if nothing in it has a default."""
    properties = schema.get("properties", {})
    defaults = [(name, _maker(p["default"])) for name, p in properties.items() if "default" in p]
    nested = [(name, inner) for name, p in properties.items() if p.get("type") == "object" and (inner := _fill_for(p))]
    if not defaults and not nested:
        return None

    def fill(args: dict[str, Any]) -> list[str]:
        filled = []
        for name, make in defaults:
            if name not in args:
                args[name] = make()
                filled.append(name)
        for name, fill_inner in nested:
            value = args.get(name)
            if isinstance(value, dict):
                args[name] = value = value.copy()
                filled += [f"{name}.{path}" for path in fill_inner(value)]
        return filled

    return fill


def _maker(default: Any) -> Callable[[], Any]:
    """Makes a new copy of the default for each call, since a handler may change it."""
    if isinstance(default, dict | list):
        return partial(msgspec.json.decode, msgspec.json.encode(default))
    return lambda: default
