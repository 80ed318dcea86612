"""The fields of Gemini Live's client messages: both spellings are accepted, an unknown name is refused."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from antiphon.sim.vendors.base import CloseWith, Message

_UNDERSCORE: Final = re.compile(r"_([a-z0-9])")

_OPAQUE: Final = frozenset(
    {"parameters", "parametersJsonSchema", "response", "responseJsonSchema", "args", "responseSchema", "labels"}
)
"""Fields whose value has names of the client's own."""

_ANY: Final[Mapping[str, Any]] = {}
"""The names inside are not checked."""


def _names(text: str) -> dict[str, Any]:
    return dict.fromkeys(text.split(), _ANY)


_CONTENT: Final = _names("parts role")
_BLOB: Final = _names("data mimeType displayName")
_SETUP: Final[Mapping[str, Any]] = {
    **_names(
        "model inputAudioTranscription outputAudioTranscription explicitVadSignal avatarConfig safetySettings labels"
    ),
    "generationConfig": {
        **_names("candidateCount enableAffectiveDialog frequencyPenalty maxOutputTokens mediaResolution"),
        **_names("presencePenalty responseMimeType responseModalities responseSchema responseJsonSchema seed"),
        **_names("speechConfig stopSequences temperature topK topP translationConfig audioTranscriptionConfig"),
        "thinkingConfig": _names("includeThoughts thinkingBudget thinkingLevel"),
    },
    "systemInstruction": _CONTENT,
    "tools": {
        **_names("googleSearch googleMaps codeExecution urlContext"),
        "functionDeclarations": _names(
            "name description parameters parametersJsonSchema response responseJsonSchema behavior"
        ),
    },
    "sessionResumption": _names("handle transparent"),
    "contextWindowCompression": {**_names("triggerTokens"), "slidingWindow": _names("targetTokens")},
    "realtimeInputConfig": {
        **_names("activityHandling turnCoverage interimTranscriptTimestampEnabled"),
        "automaticActivityDetection": _names(
            "disabled startOfSpeechSensitivity endOfSpeechSensitivity prefixPaddingMs silenceDurationMs"
        ),
    },
    "proactivity": _names("proactiveAudio proactiveVideo"),
    "historyConfig": _names("initialHistoryInClientContent"),
}
_CLIENT_MESSAGE: Final[Mapping[str, Any]] = {
    "setup": _SETUP,
    "clientContent": {"turns": _CONTENT, "turnComplete": _ANY},
    "realtimeInput": {
        **_names("audioStreamEnd text activityStart activityEnd"),
        "audio": _BLOB,
        "video": _BLOB,
        "mediaChunks": _BLOB,
    },
    "toolResponse": {"functionResponses": _names("id name response scheduling willContinue parts")},
    "contextUpdate": {"systemInstruction": _CONTENT, "tools": _ANY},
}
_SCHEMA: Final = frozenset(
    _names(
        "type format title description nullable enum items maxItems minItems properties required minProperties "
        "maxProperties minLength maxLength pattern example anyOf propertyOrdering default minimum maximum"
    )
)
"""The keywords of a function's `parameters`; anything else from JSON Schema belongs to `parametersJsonSchema`."""


def to_camel(value: Any) -> Any:
    """Returns a message with the names of its fields in camelCase; names inside a client's own data stay."""
    if isinstance(value, dict):
        spelled = {_UNDERSCORE.sub(lambda found: found[1].upper(), str(name)): each for name, each in value.items()}
        return {name: each if name in _OPAQUE else to_camel(each) for name, each in spelled.items()}
    if isinstance(value, list):
        return [to_camel(each) for each in value]
    return value


def refuse_unknown(message: Message) -> CloseWith | None:
    """Refuses a message, in camelCase, that has a field which the provider does not know."""
    problem = next(_problems(message, _CLIENT_MESSAGE, ""), None) or next(_schema_problems(message), None)
    if problem is None:
        return None
    place, name, what = problem
    at = f" at '{place}'" if place else ""
    return CloseWith(1007, f'Invalid JSON payload received. Unknown name "{name}"{at}: {what}')


_Problem = tuple[str, str, str]


def _problems(value: Any, known: Mapping[str, Any], place: str) -> Iterator[_Problem]:
    if isinstance(value, list):
        for number, each in enumerate(value):
            yield from _problems(each, known, f"{place}[{number}]")
    if not known or not isinstance(value, dict):
        return
    for name, each in value.items():
        if name not in known:
            yield place, name, "Cannot find field."
        else:
            yield from _problems(each, known[name], f"{place}.{name}".lstrip("."))


def _schema_problems(message: Message) -> Iterator[_Problem]:
    for number, tool in enumerate(_list(message.get("setup"), "tools")):
        for position, declared in enumerate(_list(tool, "functionDeclarations")):
            if isinstance(declared, dict) and "parameters" in declared:
                place = f"setup.tools[{number}].function_declarations[{position}].parameters"
                yield from _keywords(declared["parameters"], place)


def _keywords(schema: Any, place: str) -> Iterator[_Problem]:
    if not isinstance(schema, dict):
        return
    schema = {_UNDERSCORE.sub(lambda found: found[1].upper(), name): each for name, each in schema.items()}
    for name in schema.keys() - _SCHEMA:
        yield place, name, "Cannot find field."
    if isinstance(schema.get("type"), list):
        yield place, "type", "Proto field is not repeating, cannot start list."
    for name, each in (schema.get("properties") or {}).items():
        yield from _keywords(each, f"{place}.properties[{name}]")
    yield from _keywords(schema.get("items"), f"{place}.items")
    for number, each in enumerate(schema.get("anyOf") or ()):
        yield from _keywords(each, f"{place}.any_of[{number}]")


def _list(value: Any, name: str) -> list[Any]:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []
