"""Checks the names of tools in a tool's documentation: a model calls a tool that it reads about, even an unknown one.

Only names with an underscore are checked, since others cannot be distinguished from words. Names that the tool's own
files explain are skipped: parameters, outputs, values of the schema, the content of fences, and names in its code.
"""

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from antiphon.authoring.problems import Place, Problem, did_you_mean
from antiphon.tools.source import Source
from antiphon.tools.spec import Capability, Category, Mode, SideEffects

DOCUMENTS: Final = ("doc_summary.md", "doc.md")
SUGGESTION: Final = "suggestion"
"""The keyword with which a handler tells a model what to do after a failure."""

_NAME: Final = re.compile(r"(?<![\w./:@#$%&=\\-])[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?![\w/@=\\-]|[.:]\w|\(\))")
"""A lower-case name that is not a part of a path, a URL, a file name or an assignment."""
_WORD: Final = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+")
_FENCE: Final = re.compile(r"^\s*(?:```|~~~)")
_CONTRACT_WORDS: Final = frozenset({*Capability, *Category, *Mode, *SideEffects, "window_s"})


@dataclass(frozen=True, slots=True)
class _Mention:
    file: str
    line: int
    name: str


def check_mentions(source: Source, schema: Mapping[str, Any], tool_ids: Collection[str]) -> Iterator[Problem]:
    """Checks the mentions. `tool_ids` are all known tools, including disabled ones."""
    mentions = [*_in_documents(source), *_in_suggestions(source)]
    # The most expensive check comes last: for most tools, their schema and examples explain every name.
    for words_known in (lambda: tool_ids, lambda: _words_of_contract(source, schema), lambda: _words_of_code(source)):
        if mentions:
            known = frozenset(words_known())
            mentions = [mention for mention in mentions if mention.name not in known]
    for mention in mentions:
        hint = did_you_mean(mention.name, tool_ids)
        message = f"names {mention.name}, which is not a tool, a parameter or an output.{hint}"
        yield Place(source.tool_id, mention.file).error(f"line {mention.line}", message)


def _in_documents(source: Source) -> Iterator[_Mention]:
    for file in DOCUMENTS:
        for number, line, is_fenced in _lines(source, file):
            if not is_fenced:
                yield from (_Mention(file, number, name) for name in dict.fromkeys(_NAME.findall(line)))


def _in_suggestions(source: Source) -> Iterator[_Mention]:
    for file, tree in _parse(source, SUGGESTION.encode()):
        for number, text in _suggestions(tree):
            yield from (_Mention(file, number, name) for name in dict.fromkeys(_NAME.findall(text)))


def _lines(source: Source, name: str) -> list[tuple[int, str, bool]]:
    """Returns the lines of a document with their numbers, and whether they are in a fence."""
    lines: list[tuple[int, str, bool]] = []
    is_fenced = False
    for number, line in enumerate(source.files.get(name, b"").decode(errors="replace").splitlines(), 1):
        is_edge = _FENCE.match(line) is not None
        lines.append((number, line, is_fenced or is_edge))
        is_fenced ^= is_edge
    return lines


def _words_of_contract(source: Source, schema: Mapping[str, Any]) -> Iterator[str]:
    """Yields the words of all contracts, of this schema, and of the examples in the documents."""
    yield from _CONTRACT_WORDS
    yield from _words_in(schema)
    yield from _words_in([line for name in DOCUMENTS for _, line, is_fenced in _lines(source, name) if is_fenced])


def _words_in(value: Any) -> Iterator[str]:
    """Yields all names in JSON or in a text: keys, values, and the words of descriptions."""
    match value:
        case str():
            yield from _WORD.findall(value)
        case dict():
            for key, inner in value.items():
                yield from _words_in(key)
                yield from _words_in(inner)
        case list():
            for inner in value:
                yield from _words_in(inner)


def _parse(source: Source, containing: bytes = b"") -> Iterator[tuple[str, ast.Module]]:
    for name, content in source.files.items():
        if name.endswith(".py") and containing in content:
            try:
                yield name, ast.parse(content)
            except (SyntaxError, ValueError, RecursionError):
                continue  # reported by the check of the code


def _words_of_code(source: Source) -> Iterator[str]:
    """Yields the names that the code defines, and the strings that are just a name, such as the keys of a result."""
    for node in (node for _, tree in _parse(source) for node in ast.walk(tree)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.keyword(arg=str(name)):
                yield name
            case ast.Constant(value=str(text)) if _WORD.fullmatch(text):
                yield text


def _suggestions(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields the texts that a handler gives as suggestions, directly or through a constant, each with its line."""
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == SUGGESTION:
            value = constants.get(node.value.id, node.value) if isinstance(node.value, ast.Name) else node.value
            for part in ast.walk(value):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value
