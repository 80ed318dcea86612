"""The strings under the fields of a class. Python does not keep them, so they are read from the source."""

import ast
import inspect
from collections.abc import Mapping
from functools import cache


@cache
def notes(owner: type) -> Mapping[str, str]:
    """Field or member → what its string says; those of base classes too."""
    found: dict[str, str] = {}
    for each in reversed(owner.__mro__):
        if each.__module__ == owner.__module__:
            found |= _own_notes(each)
    return found


def _own_notes(owner: type) -> dict[str, str]:
    # Only classes at the top of a module are asked for, so their source needs no dedenting.
    [definition] = ast.parse(inspect.getsource(owner)).body
    assert isinstance(definition, ast.ClassDef)
    found: dict[str, str] = {}
    for field, note in zip(definition.body, definition.body[1:], strict=False):
        match field, note:
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = inspect.cleandoc(text)
    return found
