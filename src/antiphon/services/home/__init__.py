"""The devices of a Home Assistant, found by what people call them."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace as with_fields

from antiphon.clock import Clock
from antiphon.config import Home as HomeSettings
from antiphon.security.addresses import AddressError, read_key
from antiphon.services.home.actions import domains_for, plan
from antiphon.services.home.naming import choose, choose_area, is_area
from antiphon.tools.capabilities.home import Action, Device
from antiphon.tools.errors import ErrorType, ToolError

if TYPE_CHECKING:
    from antiphon.services.home.client import HomeAssistant
    from antiphon.services.http.cache import Cache
    from antiphon.services.http.network import Network

TOKEN_VARIABLE: Final = "HOME_ASSISTANT_TOKEN"
STATES_S: Final = 2.0
"""How old a state may be when it is told."""
AREAS_S: Final = 300.0
"""How long the areas of devices are remembered."""


class HomeDevices:
    """Implements `Home`."""

    def __init__(
        self, client: "HomeAssistant", states: "Cache[Sequence[Device]]", areas: "Cache[Mapping[str, str]]"
    ) -> None:
        self._client = client
        self._states = states
        self._areas = areas

    async def look(
        self, entity: str | None, area: str | None, *, domains: frozenset[str] = frozenset()
    ) -> list[Device]:
        devices = await self._devices()
        room = None if area is None else choose_area(area, devices)
        possible = [
            device
            for device in devices
            if (room is None or device.area == room) and (not domains or device.domain in domains)
        ]
        return possible if entity is None else choose(entity, possible)

    async def targets(self, action: Action, entity: str | None, area: str | None) -> list[Device]:
        devices = await self.look(entity, area, domains=domains_for(action))
        if entity is None or (len(devices) > 1 and is_area(entity, devices)):
            # "turn off the kitchen" means its lights, and not the fridge.
            lights = [device for device in devices if device.domain == "light"]
            devices = lights or devices
        if len(devices) > 1:
            devices = [device for device in devices if not device.is_guarded] or devices
        if not devices:
            raise ToolError(ErrorType.NOT_FOUND, "I don't know anything there that can do that.")
        return devices

    async def act(self, devices: Sequence[Device], action: Action, value: float | None) -> None:
        devices = [device for device in devices if device.is_connected] or devices
        if not all(device.is_connected for device in devices):
            message = f"{devices[0].name} isn't responding at the moment."
            raise ToolError(ErrorType.TRANSIENT, message, suggestion="The device is not connected to Home Assistant.")
        planned: dict[tuple[str, str], tuple[Mapping[str, object], list[str]]] = {}
        for device in devices:
            domain, service, data = plan(device, action, value)
            planned.setdefault((domain, service), (data, []))[1].append(device.id)
        has_changed = False
        try:
            for (domain, service), (data, ids) in planned.items():
                await self._client.call(domain, service, {"entity_id": ids, **data})
                has_changed = True
        except ToolError as error:
            error.partial_side_effects = error.partial_side_effects or has_changed
            raise
        finally:
            self._states.drop("states")

    async def aclose(self) -> None:
        await self._states.aclose()
        await self._areas.aclose()

    async def _devices(self) -> Sequence[Device]:
        """Asks for states and areas at the same time."""
        states, areas = await asyncio.gather(
            self._states.get("states", STATES_S, self._client.states),
            self._areas.get("areas", AREAS_S, self._client.areas),
        )
        guarded = frozenset(device.id for device in states if device.is_guarded)
        return [
            with_fields(device, area=areas.get(device.id, ""), moves_guarded=not guarded.isdisjoint(device.members))
            for device in states
        ]


class NoHome:
    """Implements `Home` where none is configured, or its token is missing."""

    def __init__(self, message: str, suggestion: str) -> None:
        self._message = message
        self._suggestion = suggestion

    async def look(
        self, entity: str | None, area: str | None, *, domains: frozenset[str] = frozenset()
    ) -> list[Device]:
        raise ToolError(ErrorType.PERMANENT, self._message, suggestion=self._suggestion)

    async def targets(self, action: Action, entity: str | None, area: str | None) -> list[Device]:
        raise ToolError(ErrorType.PERMANENT, self._message, suggestion=self._suggestion)

    async def act(self, devices: Sequence[Device], action: Action, value: float | None) -> None:
        raise ToolError(ErrorType.PERMANENT, self._message, suggestion=self._suggestion)


@asynccontextmanager
async def open_home(
    settings: HomeSettings, clock: Clock, env: Mapping[str, str] | None = None, network: "Network | None" = None
) -> AsyncIterator[HomeDevices | NoHome]:
    """Nothing is connected before a tool asks."""
    token, problem = _read_token(os.environ if env is None else env)
    if not settings.url:
        yield NoHome(
            "I'm not connected to your home yet.",
            f"The operator can set home.url to the address of a Home Assistant, and {TOKEN_VARIABLE} to its token.",
        )
        return
    if token is None:
        yield NoHome("I'm not allowed into your home yet, because the access token is missing.", problem)
        return
    from antiphon.services.home.client import HomeAssistant
    from antiphon.services.http.cache import Cache
    from antiphon.services.http.client import WebClient
    from antiphon.services.http.network import Network, authority
    from antiphon.services.http.sites import Site

    client = WebClient(network or Network(), frozenset({authority(settings.url)}))
    site = Site("Home Assistant", settings.url, client, headers={"authorization": f"Bearer {token}"}, is_own=True)
    devices = HomeDevices(HomeAssistant(site), Cache(clock, max_size=1), Cache(clock, max_size=1))
    try:
        yield devices
    finally:
        await devices.aclose()
        await client.aclose()


def _read_token(env: Mapping[str, str]) -> tuple[str | None, str]:
    """Returns the token, or what to do about it."""
    advice = f"The operator must set {TOKEN_VARIABLE} to a long-lived access token of Home Assistant."
    try:
        return read_key(env, TOKEN_VARIABLE), advice
    except AddressError as error:
        return None, str(error)
