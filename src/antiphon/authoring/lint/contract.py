"""Checks schema.json field by field: required fields, allowed values, and values that exclude each other."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import jsonschema_rs
from jsonschema_rs import ValidationErrorKind as Kind

from antiphon.authoring.problems import Place, Problem, did_you_mean, dotted
from antiphon.tools.arguments import compile_schema
from antiphon.tools.source import tool_id_of
from antiphon.tools.spec import DEFAULT_TIMEOUT_MS, Capability, Category, Mode, SideEffects
from antiphon.tools.tool import compile_availability

ID_PATTERN: Final = r"^[a-z][a-z0-9_]{0,63}$"
SEMVER_PATTERN: Final = (
    r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$"
)
VARIABLE_PATTERN: Final = r"^[A-Z][A-Z0-9_]{0,127}$"
AVAILABILITY_VARIABLES: Final = ("mode", "user", "session", "environment")

_TEXT: Final = {"type": "string", "pattern": r"\S"}
_MILLISECONDS: Final = {"type": "integer", "minimum": 1}


def _several(values: Mapping[str, Any], at_least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": values, "uniqueItems": True, "minItems": at_least}


FIELDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "toolId": {"type": "string", "pattern": ID_PATTERN},
    "version": {"type": "string", "pattern": SEMVER_PATTERN},
    "description": _TEXT,
    "category": {"enum": list(Category)},
    "sideEffects": {"enum": list(SideEffects)},
    "idempotent": {"type": "boolean"},
    "requiresConfirmation": {"type": "boolean"},
    "allowedModes": _several({"enum": list(Mode)}, at_least=1),
    "latencyBudgetMs": _MILLISECONDS,
    "parameters": {"type": "object"},
    "title": _TEXT,
    "uses": _several({"type": "string", "pattern": ID_PATTERN}),
    "secrets": _several({"type": "string", "pattern": VARIABLE_PATTERN}),
    "rateLimit": {
        "type": "object",
        "required": ["calls", "window_s"],
        "additionalProperties": False,
        "properties": {
            "calls": {"type": "integer", "minimum": 1},
            "window_s": {"type": "number", "exclusiveMinimum": 0},
        },
    },
    "requiresAuth": {"type": "boolean"},
    "availability": _TEXT,
    "timeoutMs": _MILLISECONDS,
    "tags": _several(_TEXT),
    "outputs": {"type": "object"},
}
REQUIRED: Final = tuple(FIELDS)[: tuple(FIELDS).index("parameters") + 1]

_CONTRACT: Final = compile_schema(
    {"type": "object", "required": list(REQUIRED), "additionalProperties": False, "properties": FIELDS}
)
_PATTERNS: Final = {
    ID_PATTERN: "must be lower-case letters, digits and underscores, at most 64, the first one a letter",
    SEMVER_PATTERN: 'must be a semantic version, such as "1.0.0"',
    VARIABLE_PATTERN: 'must be the name of an environment variable, such as "ACME_API_KEY"',
    _TEXT["pattern"]: "must not be blank",
}
_BINDING_MACRO: Final = re.compile(r"\.\s*(?:all|exists|exists_one|map|filter)\s*\(\s*(\w+)\s*,")


def check_fields(at: Place, raw: Mapping[str, Any]) -> Iterator[Problem]:
    """Checks each field by itself."""
    for error in _CONTRACT.iter_errors(raw):
        yield from _explain(at, error)


def check_rules(at: Place, sound: Mapping[str, Any], directory_name: str) -> Iterator[Problem]:
    """Checks the fields together. `sound` holds those that `check_fields` accepted."""
    yield from _check_id(at, sound, directory_name)
    yield from _check_effects(at, sound)
    yield from _check_secrets(at, sound)
    yield from _check_times(at, sound)
    yield from _check_availability(at, sound)


def _explain(at: Place, error: jsonschema_rs.ValidationError) -> Iterator[Problem]:
    field = dotted(*error.instance_path)
    match error.kind:
        case Kind.Required(property=name):
            yield at.error(dotted(*error.instance_path, name), "is missing")
        case Kind.AdditionalProperties(unexpected=names):
            known = FIELDS["rateLimit"]["properties"] if field else FIELDS
            for name in names:
                hint = did_you_mean(name, known)
                yield at.error(dotted(*error.instance_path, name), f"is not a field of this file.{hint}")
        case Kind.Enum(options=options):
            choices = ", ".join(f'"{option}"' for option in options)
            yield at.error(field, f"must be one of {choices}")
        case Kind.Pattern(pattern=pattern):
            yield at.error(field, _PATTERNS[pattern])
        case _:
            yield at.error(field, error.message)


def _check_id(at: Place, sound: Mapping[str, Any], directory_name: str) -> Iterator[Problem]:
    found, expected = sound.get("toolId"), tool_id_of(directory_name)
    if found is not None and found != expected:
        yield at.error("toolId", f'is "{found}", but the directory {directory_name}/ makes it "{expected}"')


def _check_effects(at: Place, sound: Mapping[str, Any]) -> Iterator[Problem]:
    writes = sound.get("sideEffects") == SideEffects.WRITES
    if sound.get("category") == Category.RETRIEVAL:
        if writes:
            yield at.error("sideEffects", 'a retrieval tool never writes; make it an "action", or say "read_only"')
        if sound.get("idempotent") is False:
            yield at.error("idempotent", "a retrieval tool is idempotent: reading twice changes nothing")
    if sound.get("requiresConfirmation") and "sideEffects" in sound and not writes:
        yield at.warning("requiresConfirmation", "the user would be asked to approve a tool that changes nothing")


def _check_secrets(at: Place, sound: Mapping[str, Any]) -> Iterator[Problem]:
    is_used, names = Capability.SECRETS in sound.get("uses", ()), sound.get("secrets", ())
    if names and not is_used:
        yield at.error("uses", f'must list "{Capability.SECRETS}", since "secrets" names {names[0]}')
    if is_used and not names:
        yield at.error("secrets", f'must name the environment variables, since "uses" lists "{Capability.SECRETS}"')


def _check_times(at: Place, sound: Mapping[str, Any]) -> Iterator[Problem]:
    budget_ms = sound.get("latencyBudgetMs", 0)
    timeout_ms = sound.get("timeoutMs", DEFAULT_TIMEOUT_MS)
    if timeout_ms < budget_ms:
        default = "" if "timeoutMs" in sound else " (the default)"
        yield at.error("timeoutMs", f"{timeout_ms}{default} is less than the latencyBudgetMs of {budget_ms}")


def _check_availability(at: Place, sound: Mapping[str, Any]) -> Iterator[Problem]:
    expression = sound.get("availability")
    if expression is None:
        return
    try:
        variables = compile_availability(expression).variables()
    except ValueError as error:
        # The library repeats the expression before the reason, and lists every token that it expected after it.
        reason = str(error).splitlines()[0].rpartition("ERROR: ")[2].partition(" expecting ")[0]
        yield at.error("availability", f"is not a CEL expression: {reason}")
        return
    # The library counts the `x` of `list.all(x, …)` among the variables.
    known = {*AVAILABILITY_VARIABLES, *_BINDING_MACRO.findall(expression)}
    for name in variables:
        if name not in known:
            choices = ", ".join(AVAILABILITY_VARIABLES)
            yield at.error("availability", f'there is no variable "{name}"; known variables are {choices}')
