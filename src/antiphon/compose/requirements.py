"""What tools need in order to run here: their handlers' packages, capabilities and secrets."""

import os
from collections.abc import Iterable, Iterator, Mapping

from antiphon.authoring.build import check_handlers
from antiphon.authoring.lint.draft import SCHEMA
from antiphon.authoring.problems import Problem, Severity, did_you_mean
from antiphon.compose.capabilities import check_capabilities
from antiphon.config import Settings
from antiphon.services.secrets import missing_secrets
from antiphon.tools.artifact import Entry
from antiphon.tools.spec import Capability


def find_missing(
    settings: Settings, entries: Iterable[Entry], environment: Mapping[str, str] | None = None
) -> list[Problem]:
    """Imports the handlers and the project's capabilities, and reports what is missing.

    A secret that is not set is a warning: the other tools work without it, and it may be set for the server alone.
    """
    entries = [*entries]
    environment = os.environ if environment is None else environment
    capabilities = [Problem("", "", "", str(error)) for error in check_capabilities(settings)]
    return [
        *capabilities,
        *check_handlers(entries),
        *_check_uses(settings, entries),
        *_check_secrets(entries, environment),
    ]


def _check_uses(settings: Settings, entries: Iterable[Entry]) -> Iterator[Problem]:
    known = [*Capability, *settings.tools.capabilities]
    for entry in entries:
        for name in entry.spec.get("uses", ()):
            if name not in known:
                setting = f'[tools] capabilities = {{ {name} = "module:attribute" }}'
                hint = did_you_mean(name, known) or f" If it is your own, name it in antiphon.toml: {setting}"
                yield Problem(entry.tool_id, SCHEMA, "uses", f'nothing offers "{name}".{hint}')


def _check_secrets(entries: Iterable[Entry], environment: Mapping[str, str]) -> Iterator[Problem]:
    for entry in entries:
        for name in missing_secrets(tuple(entry.spec.get("secrets", ())), environment):
            message = f"{name} is not set in the environment; calls fail until it is"
            yield Problem(entry.tool_id, SCHEMA, "secrets", message, Severity.WARNING)
