"""One tool, read and checked: the content of its registry entry, and all problems with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import yaml

from antiphon.authoring.lint import contract, documents, handler, schemas, sentences
from antiphon.authoring.problems import Place, Problem, Severity
from antiphon.tools.arguments import Arguments
from antiphon.tools.source import Source, parse_json
from antiphon.tools.spec import Category, Mode, SideEffects, ToolSpec

SCHEMA: Final = "schema.json"
SUMMARY: Final = "doc_summary.md"
DOCUMENT: Final = "doc.md"
SENTENCES: Final = "sentences.yaml"
REQUIRED_FILES: Final = (SCHEMA, SUMMARY, DOCUMENT, handler.HANDLER)

_YAML_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# Stands in for fields that are wrong, so that what depends on the others is checked in the same run.
_STAND_IN: Final = {
    "toolId": "unknown",
    "version": "0.0.0",
    "description": "unknown",
    "category": Category.UTILITY,
    "sideEffects": SideEffects.NONE,
    "idempotent": True,
    "requiresConfirmation": False,
    "allowedModes": [Mode.TEXT],
    "latencyBudgetMs": 1,
}


@dataclass(frozen=True, slots=True)
class Draft:
    source: Source
    problems: tuple[Problem, ...]
    schema: dict[str, Any]
    """schema.json as it was read."""
    spec: ToolSpec | None
    """None if the parameters are not a schema. Other fields of it can be wrong: see `ok`."""
    summary: str
    document: str
    examples: str
    sentences: Any

    @property
    def ok(self) -> bool:
        return not any(problem.severity is Severity.ERROR for problem in self.problems)


def check(source: Source) -> Draft:
    """Runs every check, whatever else is wrong, so that an author sees all mistakes at once."""
    reader = _Reader(source)
    schema, sound = reader.read_schema()
    spec, arguments = reader.read_parameters(sound)
    reader.check_confirmation(sound, reader.read_code())
    summary = reader.read_summary()
    document, examples = reader.read_document(arguments)
    spoken = reader.read_sentences(spec)
    return Draft(source, tuple(reader.problems), schema, spec, summary, document, examples, spoken)


class _Reader:
    """Reads one tool's files in turn, and collects what is wrong with them."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.problems: list[Problem] = [
            self._at(name).error("", "is missing") for name in REQUIRED_FILES if name not in source.files
        ]

    def read_schema(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns schema.json, and those of its fields that are well-formed."""
        if SCHEMA not in self._source.files:
            return {}, {}
        at = self._at(SCHEMA)
        try:
            schema = parse_json(self._source.files[SCHEMA])
        except ValueError as error:
            self.problems.append(at.error("", f"is not JSON: {error}"))
            return {}, {}
        if not isinstance(schema, dict):
            self.problems.append(at.error("", "is not a JSON object"))
            return {}, {}
        problems = list(contract.check_fields(at, schema))
        wrong = {problem.field.partition(".")[0] for problem in problems}
        sound = {name: value for name, value in schema.items() if name not in wrong}
        self.problems += problems
        self.problems += contract.check_rules(at, sound, self._source.directory.name)
        return schema, sound

    def read_parameters(self, sound: Mapping[str, Any]) -> tuple[ToolSpec | None, Arguments | None]:
        at = self._at(SCHEMA)
        if "outputs" in sound:
            self.problems += schemas.check_schema(at, "outputs", sound["outputs"])
        if "parameters" not in sound:
            return None, None
        self.problems += schemas.check_parameters(at, sound["parameters"])
        try:
            arguments = Arguments(sound["parameters"])
        except (ValueError, TypeError):
            # A schema that does not compile was already reported.
            return None, None
        try:
            return msgspec.convert({**_STAND_IN, **sound}, ToolSpec), arguments
        except msgspec.ValidationError as error:
            # JSON Schema accepts 100.0 as an integer; the contract does not.
            message, _, field = str(error).partition(" - at `$.")
            self.problems.append(at.error(field.rstrip("`"), message))
            return None, arguments

    def read_code(self) -> Mapping[str, handler.Function] | None:
        """Returns the functions of handler.py; None if it cannot be parsed."""
        trees, problems = handler.parse_modules(self._source)
        self.problems += problems
        self.problems += handler.check_imports(self._source, trees)
        if handler.HANDLER not in trees:
            return None
        functions = handler.functions_of(trees[handler.HANDLER])
        self.problems += handler.check_functions(self._at(handler.HANDLER), functions)
        return functions

    def check_confirmation(self, sound: Mapping[str, Any], functions: Mapping[str, handler.Function] | None) -> None:
        if functions is None:
            return
        policies = {handler.NEEDS_CONFIRMATION, handler.IS_ASKED_FOR}
        asks = sound.get("requiresConfirmation") is True or not policies.isdisjoint(functions)
        if asks and not {handler.PREVIEW, handler.PREPARE} & functions.keys():
            self.problems.append(
                self._at(handler.HANDLER).error(
                    handler.PREVIEW,
                    "the tool asks for confirmation, so it needs `preview(args)` or `prepare(args, context)` "
                    "to say what for",
                )
            )
        writes = sound.get("category") == Category.ACTION and sound.get("sideEffects") == SideEffects.WRITES
        if writes and not asks and "requiresConfirmation" in sound:
            self.problems.append(
                self._at(SCHEMA).warning("requiresConfirmation", "this action writes without asking; is that intended?")
            )

    def read_summary(self) -> str:
        summary = self._text(SUMMARY)
        if summary is None:
            return ""
        summary = summary.strip()
        self.problems += documents.check_summary(self._at(SUMMARY), summary)
        return summary

    def read_document(self, arguments: Arguments | None) -> tuple[str, str]:
        """Returns doc.md and its Examples."""
        text = self._text(DOCUMENT)
        if text is None:
            return "", ""
        document = documents.parse(text)
        self.problems += documents.check_document(self._at(DOCUMENT), document, arguments)
        return text.strip(), document.body(documents.EXAMPLES)

    def read_sentences(self, spec: ToolSpec | None) -> Any:
        """Returns sentences.yaml as JSON data; None if there is none."""
        text = self._text(SENTENCES)
        if text is None:
            return None
        at = self._at(SENTENCES)
        try:
            raw = yaml.load(text, Loader=_YAML_LOADER)
            # Through JSON, as the artifact does: what is checked here is what will be loaded.
            raw = msgspec.json.decode(msgspec.json.encode(raw))
        except yaml.MarkedYAMLError as error:
            line = f"line {error.problem_mark.line + 1}" if error.problem_mark else ""
            self.problems.append(at.error(line, f"is not YAML: {error.problem}"))
            return None
        except (yaml.YAMLError, TypeError, ValueError) as error:
            self.problems.append(at.error("", f"contains a value that JSON cannot represent: {error}"))
            return None
        if spec is not None:
            self.problems += [at.error("", message) for message in sentences.check(self._source.tool_id, raw, spec)]
        return raw

    def _at(self, name: str) -> Place:
        return Place(self._source.tool_id, name)

    def _text(self, name: str) -> str | None:
        """Returns None if the file is not text, or missing (which was already reported if it is required)."""
        try:
            return self._source.text(name)
        except KeyError:
            return None
        except UnicodeDecodeError as error:
            self.problems.append(self._at(name).error("", f"is not UTF-8: {error.reason} at byte {error.start}"))
            return None
