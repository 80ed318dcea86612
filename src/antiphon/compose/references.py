"""Finds the project's own functions, which settings name as "module:attribute"."""

import importlib
import sys
from difflib import get_close_matches
from pathlib import Path


class ReferenceProblem(Exception):
    """What a reference names cannot be found; the text completes a sentence about it, such as "but there is no …"."""


def find_attribute(reference: str, project_dir: Path) -> object:
    """Imports the module of a reference, from the project or an installed package. Raises `ReferenceProblem`."""
    module_name, _, attribute = reference.partition(":")
    module = _import(module_name, project_dir)
    try:
        return getattr(module, attribute)
    except AttributeError:
        near = get_close_matches(attribute, [each for each in vars(module) if not each.startswith("_")], n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        file = getattr(module, "__file__", "built in")
        raise ReferenceProblem(f"but {module_name} ({file}) has no {attribute}.{hint}") from None


def _import(module_name: str, project_dir: Path) -> object:
    # Last, so that a file of the project cannot replace a module of Python or of a package.
    if str(project_dir) not in sys.path:
        sys.path.append(str(project_dir))
    importlib.invalidate_caches()
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or module_name
        if module_name == missing or module_name.startswith(f"{missing}."):
            problem = f"but there is no module {missing}. Put it into {project_dir}, or install its package."
        else:
            problem = f"but {module_name} imports {missing}, which is not installed."
        raise ReferenceProblem(problem) from error
    except (Exception, SystemExit) as error:
        problem = f"but {module_name} cannot be imported: {type(error).__name__}: {error}"
        raise ReferenceProblem(problem) from error
