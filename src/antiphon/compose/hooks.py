"""Hooks that the project's own code has, by the settings of `[hooks]`."""

from typing import Any

from antiphon.compose.references import ReferenceProblem, find_attribute
from antiphon.config import Settings
from antiphon.session.hooks import HOOK_NAMES, HookError, Hooks, explain_hook


def check_hooks(settings: Settings) -> list[HookError]:
    """Imports the hooks of the settings, and returns everything that is wrong."""
    problems = []
    for name in HOOK_NAMES:
        try:
            _find(settings, name)
        except HookError as error:
            problems.append(error)
    return problems


def load_hooks(settings: Settings) -> Hooks | None:
    """Imports the hooks of the settings; None if there are none. Raises `HookError`."""
    found = {name: hook for name in HOOK_NAMES if (hook := _find(settings, name)) is not None}
    return Hooks(**found) if found else None


def _find(settings: Settings, name: str) -> Any:
    reference = getattr(settings.hooks, name)
    if not reference:
        return None
    try:
        found = find_attribute(reference, settings.project_dir)
    except ReferenceProblem as problem:
        raise HookError(f"hooks.{name} is {reference!r}, {problem}") from problem.__cause__
    if (explained := explain_hook(found)) is not None:
        raise HookError(f"hooks.{name} is {reference!r}, which {explained}")
    return found
