"""Checks handler.py and the modules beside it by parsing them. `build.check_handlers` imports them."""

import ast
from collections.abc import Iterator, Mapping
from typing import Final

from antiphon.authoring.problems import Place, Problem
from antiphon.tools.source import Source

HANDLER: Final = "handler.py"
EXECUTE: Final = "execute"
PREVIEW: Final = "preview"
PREPARE: Final = "prepare"
NEEDS_CONFIRMATION: Final = "needs_confirmation"
IS_ASKED_FOR: Final = "is_asked_for"
WARM: Final = "warm"

_PARAMETERS: Final = {
    EXECUTE: "(args, context)",
    PREPARE: "(args, context)",
    PREVIEW: "(args)",
    NEEDS_CONFIRMATION: "(args, untrusted)",
    IS_ASKED_FOR: "(args, heard)",
    WARM: "()",
}
_ASYNC: Final = frozenset({EXECUTE, PREPARE})

Function = ast.FunctionDef | ast.AsyncFunctionDef


def parse_modules(source: Source) -> tuple[dict[str, ast.Module], list[Problem]]:
    """Returns the syntax tree of each Python file, and the problems of those that cannot be parsed."""
    trees: dict[str, ast.Module] = {}
    problems: list[Problem] = []
    for name, content in source.files.items():
        if name.endswith(".py"):
            try:
                trees[name] = ast.parse(content)
                # Parsing alone lets `return` and `await` stand anywhere.
                compile(trees[name], name, "exec", dont_inherit=True)
            except SyntaxError as error:
                line = f"line {error.lineno}" if error.lineno else ""
                problems.append(Problem(source.tool_id, name, line, f"is not Python: {error.msg}"))
            except (ValueError, RecursionError) as error:
                problems.append(Problem(source.tool_id, name, "", f"is not Python: {error}"))
    return trees, problems


def functions_of(handler: ast.Module) -> dict[str, Function]:
    return {node.name: node for node in handler.body if isinstance(node, Function)}


def check_functions(at: Place, functions: Mapping[str, Function]) -> Iterator[Problem]:
    if EXECUTE not in functions:
        yield at.error(EXECUTE, "there is no `async def execute(args, context)` at the top level")
    for name, parameters in _PARAMETERS.items():
        function = functions.get(name)
        if function is None:
            continue
        is_async = isinstance(function, ast.AsyncFunctionDef)
        if is_async != (name in _ASYNC):
            must = "must be" if name in _ASYNC else "must not be"
            yield at.error(name, f"{must} async (line {function.lineno})")
        if not _takes(function, len(parameters.strip("()").split())):
            yield at.error(name, f"must take exactly {parameters} (line {function.lineno})")


def check_imports(source: Source, trees: Mapping[str, ast.Module]) -> Iterator[Problem]:
    """Checks that a tool is self-contained: a relative import must find its target within the tool's directory."""
    for name, tree in trees.items():
        at = Place(source.tool_id, name)
        folder = name.split("/")[:-1]
        for node in _statements(tree):
            if not isinstance(node, ast.ImportFrom) or not node.level:
                continue
            module = node.module or ""
            written = f"`from {'.' * node.level}{module} import …`"
            up = node.level - 1
            if up > len(folder):
                yield at.error(f"line {node.lineno}", f"{written} leaves the tool's directory; copy what it needs")
            elif module and not _has_module(source, [*folder[: len(folder) - up], *module.split(".")]):
                yield at.error(f"line {node.lineno}", f"{written} finds no such file in the tool's directory")


def _takes(function: Function, count: int) -> bool:
    arguments = function.args
    positional = arguments.posonlyargs + arguments.args
    return len(positional) == count and not (arguments.vararg or arguments.kwarg or arguments.kwonlyargs)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yields all statements in order. This is several times as fast as `ast.walk`, which visits expressions too."""
    for block in ("body", "handlers", "orelse", "finalbody", "cases"):
        for inner in getattr(node, block, ()):
            yield inner
            yield from _statements(inner)


def _has_module(source: Source, path: list[str]) -> bool:
    stem = "/".join(path)
    return any(name.startswith((f"{stem}.", f"{stem}/")) for name in source.files)
