"""A home that answers as the REST API of Home Assistant does: states, services, templates, and its refusals."""

from dataclasses import dataclass, field
from typing import Any

from tests.fakes.local_http import Received, Reply, Service

TOKEN = "eyJ.long-lived.token"
_ON_OFF = {"turn_on": "on", "turn_off": "off"}
_STATES = {
    **_ON_OFF,
    "open_cover": "open",
    "close_cover": "closed",
    "lock": "locked",
    "unlock": "unlocked",
    "alarm_arm_away": "armed_away",
    "alarm_disarm": "disarmed",
}


def entity(id: str, name: str | None, state: str, area: str = "", **attributes: Any) -> dict[str, Any]:
    named = {} if name is None else {"friendly_name": name}
    return {
        "entity_id": id,
        "state": state,
        "attributes": {**named, **attributes},
        "last_changed": "2026-01-01T11:00:00.000000+00:00",
        "last_reported": "2026-01-01T11:00:00.000000+00:00",
        "last_updated": "2026-01-01T11:00:00.000000+00:00",
        "context": {"id": "01HX", "parent_id": None, "user_id": None},
        "_area": area,
    }


def furnished() -> list[dict[str, Any]]:
    return [
        entity("light.kitchen", "Kitchen Light", "off", "Kitchen", supported_color_modes=["brightness"]),
        entity("light.sofa", "Sofa Lamp", "on", "Living Room", brightness=128),
        entity("light.shelf", "Shelf Lamp", "on", "Living Room"),
        entity("light.ceiling", "Ceiling", "off", "Living Room"),
        entity("light.bed", "Bedside Lamp", "on", "Bedroom", brightness=255),
        entity("light.garage", "Garage Light", "off", "Garage"),
        entity("light.attic", "Attic Light", "unavailable", "Attic"),
        entity("switch.coffee", "Coffee Machine", "off", "Kitchen"),
        entity("switch.gate_relay", "Gate Relay", "off", "Garden"),
        entity("fan.bed", "Bedroom Fan", "off", "Bedroom", percentage=0),
        entity(
            "climate.hall",
            "Thermostat",
            "heat",
            "Hall",
            temperature=20.0,
            current_temperature=19.5,
            min_temp=7,
            max_temp=30,
        ),
        entity("cover.blinds", "Living Room Blinds", "open", "Living Room", device_class="blind", current_position=60),
        entity("cover.garage", "Garage Door", "closed", "Garage", device_class="garage", current_position=0),
        entity("cover.bertha", "Big Bertha", "closed", "Garden", device_class="gate"),
        entity("lock.front", "Front Door", "locked", "Hall"),
        entity("lock.knox", "Fort Knox", "locked", "Study"),
        entity("alarm_control_panel.home", "House Alarm", "disarmed", "Hall", code_arm_required=False),
        entity("binary_sensor.front", "Front Door Contact", "off", "Hall", device_class="door"),
        entity("binary_sensor.window", "Bathroom Window", "on", "Bathroom", device_class="window"),
        entity(
            "sensor.bed_temp",
            "Bedroom Temperature",
            "18.25",
            "Bedroom",
            device_class="temperature",
            unit_of_measurement="°C",
        ),
        entity("sensor.bed_hum", "Bedroom Humidity", "44", "Bedroom", device_class="humidity", unit_of_measurement="%"),
        entity("media_player.tv", "TV", "playing", "Living Room"),
        entity("scene.movie", "Movie Night", "2026-01-01T00:00:00+00:00"),
        entity("script.leave", "Leaving", "off"),
        entity("sun.sun", "Sun", "above_horizon"),
        entity("sensor.nameless", None, "5"),
    ]


@dataclass
class FakeHome(Service):
    entities: list[dict[str, Any]] = field(default_factory=furnished)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """The services that were called, with their data."""

    def state(self, id: str) -> str:
        return str(next(each["state"] for each in self.entities if each["entity_id"] == id))

    def answer(self, request: Received) -> Reply:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return Reply("401: Unauthorized", status=401, headers={"content-type": "text/plain; charset=utf-8"})
        match request.method, request.path.strip("/").split("/"):
            case "GET", ["api"]:
                return Reply({"message": "API running."})
            case "GET", ["api", "states"]:
                return Reply([_shown(each) for each in self.entities])
            case "GET", ["api", "states", id]:
                found = [_shown(each) for each in self.entities if each["entity_id"] == id]
                return Reply(found[0]) if found else Reply({"message": "Entity not found."}, status=404)
            case "POST", ["api", "template"]:
                return self._render(request.json["template"])
            case "POST", ["api", "services", domain, service]:
                return self._call(domain, service, request.json)
        return Reply("404: Not Found", status=404, headers={"content-type": "text/plain; charset=utf-8"})

    def _render(self, template: str) -> Reply:
        if "areas()" not in template:
            return Reply({"message": "Error rendering template: UndefinedError"}, status=400)
        areas: dict[str, list[str]] = {}
        for each in self.entities:
            if each["_area"]:
                areas.setdefault(each["_area"], []).append(each["entity_id"])
        return Reply(list(areas.items()), headers={"content-type": "text/plain; charset=utf-8"})

    def _call(self, domain: str, service: str, data: dict[str, Any]) -> Reply:
        if service not in _STATES and not service.startswith(("set_", "toggle", "stop", "volume", "start", "press")):
            return Reply("400: Bad Request", status=400, headers={"content-type": "text/plain; charset=utf-8"})
        self.calls.append((f"{domain}.{service}", data))
        changed = []
        for each in self.entities:
            state = _STATES.get(service)
            if each["entity_id"] in data["entity_id"] and state not in (None, each["state"]):
                each["state"] = state
                changed.append(_shown(each))
        return Reply(changed)


def _shown(each: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in each.items() if key != "_area"}
