"""Capabilities that the project's own code offers to tools, by the setting `tools.capabilities`.

The setting names an attribute of a module: a function of the session and the tool, which makes the capability for one
call, or a function without parameters that returns an async context manager, which gives such a function. The second
form is for what must be opened and closed with the server, such as a pool of connections.
"""

import inspect
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any, Final, cast

from antiphon.compose.references import ReferenceProblem, find_attribute
from antiphon.config import Settings
from antiphon.errors import AntiphonError
from antiphon.tools.context import Offer
from antiphon.tools.spec import Capability

OFFER_PARAMETERS: Final = 2
"""The session and the tool."""


class CapabilityError(AntiphonError):
    """A capability of the project cannot be used."""

    code = "capability"

    def __init__(self, name: str, reference: str, problem: str) -> None:
        super().__init__(f"tools.capabilities: {name} is {reference!r}, {problem}")


def check_capabilities(settings: Settings) -> list[CapabilityError]:
    """Imports the capabilities of the settings without opening them, and returns everything that is wrong."""
    problems = []
    for name, reference in settings.tools.capabilities.items():
        try:
            find(name, reference, settings.project_dir)
        except CapabilityError as error:
            problems.append(error)
    return problems


async def open_capabilities(settings: Settings, stack: AsyncExitStack) -> dict[str, Offer]:
    """Opens the capabilities of the settings; `stack` closes them. Raises `CapabilityError`."""
    offers: dict[str, Offer] = {}
    for name, reference in settings.tools.capabilities.items():
        found = find(name, reference, settings.project_dir)
        if _parameters(found) == OFFER_PARAMETERS:
            offers[name] = cast(Offer, found)
        else:
            offers[name] = await _enter(name, reference, found, stack)
    return offers


def find(name: str, reference: str, project_dir: Path) -> Callable[..., Any]:
    """Imports the function that a capability's setting names. Raises `CapabilityError`."""
    if name in tuple(Capability):
        raise CapabilityError(name, reference, f"but Antiphon offers {name} itself. Choose another name.")
    try:
        found = find_attribute(reference, project_dir)
    except ReferenceProblem as missing:
        raise CapabilityError(name, reference, str(missing)) from missing.__cause__
    if not callable(found):
        problem = f"which is a {type(found).__name__}. It must be a function of the session and the tool."
        raise CapabilityError(name, reference, problem)
    if _parameters(found) not in (0, OFFER_PARAMETERS):
        problem = (
            "which takes other parameters than (session, tool). A function without any must return an async context "
            "manager that gives such a function."
        )
        raise CapabilityError(name, reference, problem)
    return cast(Callable[..., Any], found)


async def _enter(name: str, reference: str, opening: Callable[[], object], stack: AsyncExitStack) -> Offer:
    try:
        manager = opening()
        if not isinstance(manager, AbstractAsyncContextManager):
            if inspect.iscoroutine(manager):
                manager.close()
            problem = "which takes no parameters, so it must return an async context manager. Use @asynccontextmanager."
            raise CapabilityError(name, reference, problem)
        offer = await stack.enter_async_context(manager)
    except AntiphonError:
        raise
    except Exception as error:
        problem = f"which cannot be opened: {type(error).__name__}: {error}"
        raise CapabilityError(name, reference, problem) from error
    if not callable(offer) or _parameters(offer) != OFFER_PARAMETERS:
        problem = f"which gives a {type(offer).__name__}. It must give a function of the session and the tool."
        raise CapabilityError(name, reference, problem)
    return cast(Offer, offer)


def _parameters(function: object) -> int | None:
    """Counts the parameters that must or can be given by position; None if it is known neither."""
    if not callable(function):
        return None
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    required = [each for each in parameters if each.default is each.empty and each.kind is not each.VAR_KEYWORD]
    if any(each.kind is each.KEYWORD_ONLY for each in required):
        return None
    if any(each.kind is each.VAR_POSITIONAL for each in required):
        return OFFER_PARAMETERS
    return len(required)
