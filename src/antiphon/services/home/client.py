"""Talks to the REST API of Home Assistant."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from antiphon.services.http.sites import Site
from antiphon.tools.capabilities.home import Device
from antiphon.tools.errors import ErrorType, ToolError

MAX_STATES_BYTES: Final = 8_000_000
"""A large home has a few thousand entities of about one kilobyte."""
ACTION_TIMEOUT_S: Final = 15.0
"""Home Assistant itself waits ten seconds for a device."""

# The REST API has no list of areas, but a template can write one. It is JSON: [["Kitchen", ["light.a", …]], …].
AREAS_TEMPLATE: Final = (
    "[{% for area in areas() %}{{ [area_name(area), area_entities(area)] | to_json }}"
    "{{ ',' if not loop.last }}{% endfor %}]"
)


class _State(Struct):
    entity_id: str
    state: str
    attributes: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class HomeAssistant:
    site: Site

    async def states(self) -> Sequence[Device]:
        """Returns all entities, without their areas."""
        try:
            found = await self.site.get_json("/api/states", None, list[_State], max_bytes=MAX_STATES_BYTES)
        except ToolError as error:
            raise _explained(error) from error
        return [
            Device(
                each.entity_id,
                str(each.attributes.get("friendly_name") or _name_of(each.entity_id)),
                "",
                each.state,
                each.attributes,
            )
            for each in found
        ]

    async def areas(self) -> Mapping[str, str]:
        """Returns the name of the area of each entity that has one.

        Only administrators may render templates. For another user's token, no areas are known.
        """
        try:
            answer = await self.site.post("/api/template", {"template": AREAS_TEMPLATE}, max_bytes=MAX_STATES_BYTES)
            listed = self.site.decode(answer.content, list[tuple[str, list[str]]])
        except ToolError as error:
            if error.type in (ErrorType.AUTH, ErrorType.PERMANENT, ErrorType.NOT_FOUND):
                return {}
            raise _explained(error) from error
        return {entity: area for area, entities in listed for entity in entities}

    async def call(self, domain: str, service: str, data: Mapping[str, Any]) -> None:
        """Calls a service. Returns when Home Assistant has carried it out."""
        path = f"/api/services/{quote(domain, safe='')}/{quote(service, safe='')}"
        try:
            await self.site.post(path, data, timeout_s=ACTION_TIMEOUT_S, max_bytes=MAX_STATES_BYTES)
        except ToolError as error:
            raise _explained(error, is_action=True) from error


def _explained(error: ToolError, *, is_action: bool = False) -> ToolError:
    """Puts the errors of the web into words about Home Assistant."""
    match error.type:
        case ErrorType.AUTH:
            return ToolError(
                ErrorType.AUTH,
                "Home Assistant doesn't accept my access token.",
                suggestion="The operator must set HOME_ASSISTANT_TOKEN to a valid long-lived access token.",
            )
        case ErrorType.NOT_FOUND:
            return ToolError(
                ErrorType.PERMANENT,
                "I reached a server, but it isn't a Home Assistant.",
                suggestion="The operator must check home.url. It has no path, unless a proxy adds one.",
            )
        case ErrorType.PERMANENT if is_action:
            return ToolError(ErrorType.PERMANENT, "Home Assistant refused to do that.", details=error.details)
        case ErrorType.TRANSIENT if is_action:
            status = (error.details or {}).get("status")
            # A device that fails is reported as 500. What was sent and got no answer may have been done.
            return ToolError(
                ErrorType.TRANSIENT,
                "Home Assistant couldn't do that just now." if status else error.message,
                details=error.details,
                partial_side_effects=bool(status) or error.partial_side_effects,
            )
    return error


def _name_of(entity_id: str) -> str:
    return entity_id.partition(".")[2].replace("_", " ")
