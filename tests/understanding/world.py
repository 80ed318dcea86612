"""The setting of the evaluation set, and conversations in it: the offline assistant, real tools behind the real gate, a
stopped clock, and stores in memory. What needs other people's services is made up: weather, web, pictures, a home."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final
from zoneinfo import ZoneInfo

from msgspec.structs import replace as with_fields

from antiphon.authoring.testing import StillClock
from antiphon.config import Calendar as CalendarSettings
from antiphon.config import load
from antiphon.embedding.base import Embedder
from antiphon.embedding.minilm import MiniLmEmbedder
from antiphon.models.base import CallRequested, Prompt, TextDelta, TextModel
from antiphon.models.builtin import BuiltinModel
from antiphon.models.builtin.learning import Learner
from antiphon.models.live import messages_of
from antiphon.services.calendar.ical import read_file
from antiphon.services.calendar.links import JitsiLinks
from antiphon.services.calendar.local import PRIMARY, store_event
from antiphon.services.calendar.service import CalendarService
from antiphon.services.home import HomeDevices
from antiphon.services.http.cache import Cache
from antiphon.services.reminders import ReminderService
from antiphon.services.reminders.service import to_ms
from antiphon.session.tool_runner import answer_of
from antiphon.storage.calendar import StoredEvent
from antiphon.storage.lists import ListItem
from antiphon.storage.reminders import ReminderRecord
from antiphon.tools.call import ToolCall, number
from antiphon.tools.capabilities.home import Device
from antiphon.tools.capabilities.images import MadeImage, Shape
from antiphon.tools.capabilities.weather import CurrentWeather, DayWeather, Place, Sky, Units, WeatherReport
from antiphon.tools.capabilities.web import QuickAnswer, SearchResult
from antiphon.tools.registry import Snapshot
from antiphon.tools.result import ToolResult
from antiphon.tools.spec import Capability, Mode
from antiphon.tools.tool import Tool
from antiphon.transcript import AssistantMessage, Message, UserMessage
from tests.fakes.gates import Gate
from tests.fakes.toolkit import built_in

LONDON: Final = ZoneInfo("Europe/London")
NOW: Final = datetime(2026, 3, 4, 10, 15, tzinfo=LONDON)
"""A Wednesday."""
USER: Final = "ann"
LISTS: Final = {
    "shopping": ("milk", "eggs", "bread"),
    "to do": ("call the plumber", "pay the rent"),
    "packing": ("passport", "charger"),
}
REMINDERS: Final = (
    ("timer", "pasta", NOW - timedelta(minutes=5), NOW + timedelta(minutes=7)),
    ("reminder", "call mom", NOW - timedelta(hours=2), NOW.replace(hour=18, minute=0)),
    ("alarm", "", NOW - timedelta(hours=2), NOW.replace(day=5, hour=7, minute=0)),
)
RANG: Final = ("reminder", "take vitamins", NOW - timedelta(hours=2), NOW - timedelta(minutes=3))
EVENTS: Final = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:evaluation
BEGIN:VEVENT
UID:standup
SUMMARY:standup
DTSTART:20260302T093000Z
DTEND:20260302T094500Z
RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR
END:VEVENT
BEGIN:VEVENT
UID:lunch
SUMMARY:lunch with Ann
DTSTART:20260305T123000Z
DTEND:20260305T133000Z
END:VEVENT
BEGIN:VEVENT
UID:dentist
SUMMARY:dentist
DTSTART:20260306T150000Z
DTEND:20260306T160000Z
END:VEVENT
END:VCALENDAR
""".replace("\n", "\r\n")
DIMMABLE: Final = {"supported_color_modes": ["brightness"], "brightness": 200}
HEATING: Final = {"temperature": 20.0, "current_temperature": 19.5, "min_temp": 7, "max_temp": 30}
DEVICES: Final = (
    Device("light.kitchen", "Kitchen Light", "Kitchen", "on", DIMMABLE),
    Device("light.living_room", "Living Room Light", "Living Room", "on", DIMMABLE),
    Device("light.bedroom", "Bedroom Light", "Bedroom", "off", DIMMABLE),
    Device("light.hallway", "Hallway Light", "Hallway", "off", DIMMABLE),
    Device("light.desk", "Desk Lamp", "Office", "on", DIMMABLE),
    Device("cover.blinds", "Blinds", "Living Room", "open", {"device_class": "blind", "current_position": 60}),
    Device("media_player.tv", "TV", "Living Room", "playing", {}),
    Device("fan.bedroom", "Fan", "Bedroom", "off", {"percentage": 0}),
    Device("switch.coffee", "Coffee Machine", "Kitchen", "on", {}),
    Device("climate.thermostat", "Thermostat", "Hallway", "heat", HEATING),
    Device("lock.front", "Front Door", "Hallway", "locked", {}),
    Device("cover.garage", "Garage Door", "Garage", "open", {"device_class": "garage"}),
    *(
        Device(f"sensor.{room}_{what}", f"{room} {what}", room, state, {"device_class": what})
        for room in ("Living Room", "Bedroom", "Bathroom")
        for what, state in (("temperature", "19.5"), ("humidity", "48"))
    ),
)
BUDGET_MS: Final = 60_000
MAX_STEPS: Final = 8
"""How many messages the assistant may need for one answer."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A call, and what came of it."""

    call: ToolCall
    result: ToolResult

    @property
    def name(self) -> str:
        return self.call.name

    @property
    def writes(self) -> bool:
        return tools()[self.name].spec.writes

    @property
    def did_something(self) -> bool:
        """Whether it changed something. What waits for a yes has not."""
        return self.writes and self.result.ok

    @property
    def succeeded(self) -> bool:
        """Whether it ran, or waits for a yes. The knowledge base is empty, so nothing can be found there."""
        error = self.result.error
        return error is None or error.confirmation_request is not None or Capability.KB in tools()[self.name].spec.uses

    @property
    def args(self) -> Mapping[str, Any]:
        """The arguments as they would run: those that the person is asked about, over those of the model."""
        asked = None if self.result.error is None else self.result.error.confirmation_request
        return self.call.args if asked is None else {**self.call.args, **asked.args}

    @property
    def data(self) -> Mapping[str, Any]:
        return self.result.data if isinstance(self.result.data, Mapping) else {}

    @property
    def preview(self) -> str:
        asked = None if self.result.error is None else self.result.error.confirmation_request
        return "" if asked is None else asked.preview


@dataclass(frozen=True, slots=True)
class Turn:
    """What came of something that the user said."""

    said: str
    reply: str
    """Empty if the assistant goes on calling tools and never answers."""
    ran: tuple[Ran, ...] = ()


class MadeUpWeather:
    """Knows the weather of every place: the same everywhere."""

    async def report(self, location: str | None) -> WeatherReport:
        place = Place((location or "London").title(), "", "", 0.0, 0.0)
        rain = Sky("raining", "rain")
        days = tuple(
            DayWeather(NOW.date() + timedelta(days=n), 4.0, 11.0 + n, 60, 2.5, 20.0, rain, wet=True) for n in range(7)
        )
        now = CurrentWeather(NOW.replace(tzinfo=None), 9.0, 8.0, 70, 15.0, rain)
        return WeatherReport(place, Units.METRIC, now, days)


class MadeUpWeb:
    """Knows something about everything."""

    async def search(self, query: str, limit: int) -> Sequence[SearchResult]:
        return [SearchResult(f"All about {query}", "https://example.org/", f"This page is about {query}.")]

    async def answer(self, query: str) -> QuickAnswer | None:
        return QuickAnswer(query, f"There is much to tell about {query}.", "an encyclopedia", None)


class MadeUpImages:
    async def generate(self, prompt: str, shape: Shape | None) -> MadeImage:
        return MadeImage("/images/1.png", "image/png", 1000, "painter")

    async def draft(self, idea: str, style: str | None, count: int) -> Sequence[str]:
        return ()


@dataclass(slots=True)
class HomeInMemory:
    """Answers as `HomeAssistant` does; what is done to the devices has no effect."""

    done: list[tuple[str, str, Mapping[str, Any]]] = field(default_factory=list)

    async def states(self) -> Sequence[Device]:
        return DEVICES

    async def areas(self) -> Mapping[str, str]:
        return {device.id: device.area for device in DEVICES}

    async def call(self, domain: str, service: str, data: Mapping[str, Any]) -> None:
        self.done.append((domain, service, data))


@dataclass(frozen=True, slots=True)
class _Toolbox:
    tools: Mapping[str, Tool]


@cache
def tools() -> Mapping[str, Tool]:
    """The built-in tools, with time enough on a busy machine."""
    patient = {
        id: replace(tool, spec=with_fields(tool.spec, latency_budget_ms=BUDGET_MS)) for id, tool in built_in().items()
    }
    Snapshot("1.0.00000001", patient).warm()
    return patient


@cache
def make_model() -> TextModel:
    """The offline assistant as the server makes it, with the embedding model."""
    embedder = MiniLmEmbedder(load(None).models_dir)

    async def load_embedder() -> Embedder:
        return embedder

    model = BuiltinModel(_Toolbox(tools()), learner=Learner(load_embedder))
    model.compile()
    # What is learned outlives the event loop of the test that is the first to ask.
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(asyncio.run, model.learn()).result()
    return model


class Conversation:
    """A conversation of a new session with the assistant. Use it with `async with`."""

    def __init__(self, mode: Mode = Mode.TEXT) -> None:
        clock = StillClock(to_ms(NOW))
        self._gate = Gate(*tools().values(), clock=clock, offers=self._offers(clock))
        self._session = self._gate.new_session(zone=LONDON, mode=mode)
        self._mode = mode
        self._messages: list[Message] = []

    async def __aenter__(self) -> "Conversation":
        database = self._gate.database
        created_ms = to_ms(NOW - timedelta(days=1))
        for name, texts in LISTS.items():
            items = [ListItem(USER, name, text, text, created_ms) for text in texts]
            await database.lists.add(items, max_items=100, max_total=100)
        for place, each in enumerate((*REMINDERS, RANG)):
            record = _record(f"r{place}", *each)
            await database.reminders.add(record, 100)
            if each is RANG:
                await database.reminders.ring(record, None, record.due_ms)
        await database.calendar.put_all(_events())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._gate.executor.aclose()
        await self._home.aclose()
        await self._gate.database.aclose()

    async def say(self, text: str) -> Turn:
        """Has the assistant answer, as a session does: a yes or no to a question of the gate is recognised first."""
        executor, session = self._gate.executor, self._session
        executor.begin_turn(session)
        self._messages.append(UserMessage(text))
        ran: list[Ran] = []
        decision = await executor.hear(text, session)
        if decision is not None:
            decided = Ran(decision.call, await executor.carry_out(decision, session))
            self._add([decided], "decided")
            ran += [decided] if decision.approved else []
        for step in range(MAX_STEPS):
            reply, calls = await self._reply()
            if not calls:
                self._messages.append(AssistantMessage(reply))
                return Turn(text, reply, tuple(ran))
            done = [Ran(call, await executor.execute(call, session)) for call in number(calls)]
            self._add(done, f"step{step}")
            ran += done
        return Turn(text, "", tuple(ran))

    async def _reply(self) -> tuple[str, list[ToolCall]]:
        tools = self._session.snapshot.provider_schemas("openai_chat", self._mode)
        prompt = Prompt("", tuple(self._messages), tools, self._mode)
        said, calls = "", []
        async for event in make_model().reply(prompt):
            if isinstance(event, TextDelta):
                said += event.text
            elif isinstance(event, CallRequested):
                calls.append(event.call)
        return re.sub(r"[‘’]", "'", said), calls

    def _add(self, ran: Sequence[Ran], key: str) -> None:
        answers = [answer_of(each.call, each.result) for each in ran]
        self._messages += messages_of("", answers, key=f"{self._session.turn}_{key}")

    def _offers(self, clock: StillClock) -> dict[str, Any]:
        self._home = home = HomeDevices(
            HomeInMemory(),  # type: ignore[arg-type]
            Cache(clock, max_size=10),
            Cache(clock, max_size=10),
        )
        weather, web, images = MadeUpWeather(), MadeUpWeb(), MadeUpImages()
        links = JitsiLinks("https://meet.example", lambda: "room")

        def offer_reminders(session: Any, tool: Any) -> object:
            return ReminderService(self._gate.database.reminders, clock, self._gate.database.changes).offer(
                session, tool
            )

        def offer_calendar(session: Any, tool: Any) -> object:
            store = self._gate.database.calendar
            return CalendarService(CalendarSettings(), store, clock, account=None, links=links).offer(session, tool)

        return {
            Capability.REMINDERS: offer_reminders,
            Capability.CALENDAR: offer_calendar,
            Capability.HOME: lambda session, tool: home,
            Capability.WEATHER: lambda session, tool: weather,
            Capability.WEB: lambda session, tool: web,
            Capability.IMAGES: lambda session, tool: images,
        }


def _record(id: str, kind: str, message: str, created: datetime, due: datetime) -> ReminderRecord:
    return ReminderRecord(id, USER, kind, message, to_ms(due), "Europe/London", None, to_ms(created))


@cache
def _events() -> tuple[StoredEvent, ...]:
    return tuple(store_event(event, USER, PRIMARY) for event in read_file(EVENTS))
