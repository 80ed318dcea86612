"""The calendar tools through the gate: what they answer, ask and refuse."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from antiphon.authoring import build
from antiphon.compose.app import TOOLKIT
from antiphon.tools.capabilities.calendar import Busy, Event
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.tools.outputs import find_mismatches
from antiphon.tools.registry import Registry
from antiphon.tools.result import ConfirmationRequest, ToolResult
from antiphon.tools.spec import Mode
from antiphon.tools.tool import Tool
from tests.fakes.fake_calendar import ROOM, FakeCalendar
from tests.fakes.gates import Gate

BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2026, 1, 1, 13, tzinfo=BERLIN)
"""Now: the clock of the gate stands at noon in London."""


def at(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 1, day, hour, minute, tzinfo=BERLIN)


def event(title: str, start: datetime, minutes: int = 60, **fields: Any) -> Event:
    return Event(fields.pop("id", title), "primary", title, start, start + timedelta(minutes=minutes), **fields)


@dataclass
class Desk:
    """A gate with the four tools, and a calendar."""

    tools: Sequence[Tool]
    calendar: FakeCalendar = field(default_factory=FakeCalendar)

    def __post_init__(self) -> None:
        self.gate = Gate(*self.tools, offers={"calendar": lambda session, tool: self.calendar})
        self.gate.session.zone = BERLIN

    async def call(self, name: str, *, mode: Mode = Mode.TEXT, **args: Any) -> ToolResult:
        self.gate.session.mode = mode
        result = await self.gate.call(f"calendar_{name}", args)
        [tool] = [tool for tool in self.tools if tool.id == f"calendar_{name}"]
        assert find_mismatches(tool.spec.outputs, result) == []
        return result

    async def data(self, name: str, **args: Any) -> Any:
        result = await self.call(name, **args)
        assert result.error is None, result.error
        return result.data

    async def refusal(self, name: str, **args: Any) -> tuple[ErrorType, str]:
        result = await self.call(name, **args)
        assert result.error is not None
        return result.error.type, result.error.message

    def question(self) -> str:
        shown = self.gate.outbox.sent[-1]
        assert isinstance(shown, ConfirmationRequest)
        return shown.preview

    async def approve(self) -> ToolResult:
        shown = self.gate.outbox.sent[-1]
        assert isinstance(shown, ConfirmationRequest)
        return await self.gate.executor.resolve(shown.confirmation_token, True, self.gate.session)


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> list[Tool]:
    """The tools as a server has them."""
    artifact = tmp_path_factory.mktemp("tools") / "tool_registry.json"
    built = build.build([TOOLKIT], shipped=TOOLKIT)
    build.write(built, artifact)
    tools = Registry.load(artifact, environment="production").snapshot().tools
    return [tool for id, tool in tools.items() if id.startswith("calendar_")]


@pytest.fixture
async def desk(tools: list[Tool]) -> AsyncIterator[Desk]:
    desk = Desk(tools)
    yield desk
    await desk.gate.executor.aclose()


# Free time.


async def test_free_slots_are_the_gaps_of_the_merged_busy_times(desk: Desk) -> None:
    desk.calendar.stored = [
        event("a", at(2, 14), 60),
        event("b", at(2, 14, 30), 90),
        event("free", at(2, 12), 60, is_busy=False),
    ]
    data = await desk.data("get_availability", start_date="2026-01-02T12:00", end_date="2026-01-02T18:00")
    assert data["available_slots"] == [
        {"start": "2026-01-02T12:00:00+01:00", "end": "2026-01-02T14:00:00+01:00", "duration_minutes": 120},
        {"start": "2026-01-02T16:00:00+01:00", "end": "2026-01-02T18:00:00+01:00", "duration_minutes": 120},
    ]
    assert data["summary"] == "2 busy periods, 2 free slots (240 minutes in all)"
    assert data["date_range"] == {"start": "2026-01-02T12:00:00+01:00", "end": "2026-01-02T18:00:00+01:00"}


async def test_slots_that_are_too_short_are_left_out(desk: Desk) -> None:
    desk.calendar.stored = [event("a", at(2, 12, 40), 20), event("b", at(2, 13, 29), 31)]
    args = {"start_date": "2026-01-02T12:00", "end_date": "2026-01-02T14:00"}
    assert len((await desk.data("get_availability", **args))["available_slots"]) == 1
    assert len((await desk.data("get_availability", **args, min_duration_minutes=15))["available_slots"]) == 2


async def test_titles_are_told_only_if_they_are_asked_for(desk: Desk) -> None:
    desk.calendar.stored = [event("Doctor", at(2, 14), attendees=("bob@example.org",))]
    args = {"start_date": "tomorrow", "end_date": "tomorrow"}
    [hidden] = (await desk.data("get_availability", **args))["existing_events"]
    [shown] = (await desk.data("get_availability", **args, include_details=True))["existing_events"]
    assert (hidden["title"], shown["title"], shown["attendees"]) == (None, "Doctor", 1)


async def test_details_of_other_peoples_events_are_never_told(desk: Desk) -> None:
    desk.calendar.stored = [event("Doctor", at(2, 14))]
    desk.calendar.others = [Busy("team", at(2, 16), at(2, 17))]
    data = await desk.data(
        "get_availability",
        start_date="tomorrow",
        end_date="tomorrow",
        calendars=["primary", "team"],
        include_details=True,
    )
    assert [(each["calendar"], each["title"]) for each in data["existing_events"]] == [
        ("primary", "Doctor"),
        ("team", None),
    ]


async def test_what_has_passed_of_today_is_not_free(desk: Desk) -> None:
    data = await desk.data("get_availability", start_date="today", end_date="today")
    assert data["available_slots"][0]["start"] == "2026-01-01T13:00:00+01:00"


@pytest.mark.parametrize(
    ("start", "end", "told"),
    [
        ("2026-01-05", "2026-01-03", "That range ends before it starts."),
        ("2026-01-02T10:00", "2026-01-02T10:00", "That range ends before it starts."),
        ("2026-01-02", "2026-02-02", "I can look at most 31 days at a time."),
        ("2025-12-01", "2025-12-02", "That time is already over."),
        ("2026-02-30", "2026-03-01", "I don't know when 2026-02-30 is."),
        ("tomorrow", "blursday", "I don't know when blursday is."),
    ],
)
async def test_a_range_that_cannot_be_is_refused(desk: Desk, start: str, end: str, told: str) -> None:
    assert await desk.refusal("get_availability", start_date=start, end_date=end) == (ErrorType.VALIDATION, told)


async def test_31_days_are_allowed_even_if_the_clocks_go_back(desk: Desk) -> None:
    assert await desk.data("get_availability", start_date="2026-10-01", end_date="2026-10-31")


@pytest.mark.parametrize("minutes", [14, 481])
async def test_the_bounds_of_a_slot_are_enforced(desk: Desk, minutes: int) -> None:
    kind, _ = await desk.refusal("get_availability", start_date="today", end_date="today", min_duration_minutes=minutes)
    assert kind is ErrorType.VALIDATION


@pytest.mark.parametrize(
    ("stored", "spoken"),
    [
        ([], "Yes, you're free tomorrow from noon to 6 PM."),
        ([event("a", at(2, 12), 360)], "You have no free time tomorrow from noon to 6 PM."),
        ([event("a", at(2, 14), 60)], "You're free tomorrow from noon to 2 PM and from 3 PM to 6 PM."),
    ],
)
async def test_free_time_is_told_in_a_sentence(desk: Desk, stored: list[Event], spoken: str) -> None:
    desk.calendar.stored = stored
    result = await desk.call("get_availability", start_date="tomorrow afternoon", end_date="tomorrow afternoon")
    assert result.spoken == spoken


# New events.


MEETING: dict[str, Any] = {
    "title": "Tea",
    "start_time": "tomorrow at 3 pm",
    "end_time": "an hour after tomorrow at 3 pm",
    "attendees": ["bob@example.org"],
}


async def test_an_approved_event_is_created_with_a_link(desk: Desk) -> None:
    await desk.call("create_event", **MEETING)
    assert desk.calendar.created == []
    result = await desk.approve()
    [draft] = desk.calendar.created
    assert (draft.title, draft.start, draft.end) == ("Tea", at(2, 15), at(2, 16))
    assert (result.data["link"], result.data["link_provider"], result.data["created"]) == (ROOM.url, "jitsi", True)
    assert result.spoken == (
        "Done. “Tea” is on your calendar tomorrow from 3 PM to 4 PM. The Jitsi link is https://meet.example.org/room"
    )


async def test_the_question_warns_of_what_overlaps(desk: Desk) -> None:
    desk.calendar.stored = [event("Standup", at(2, 15, 30), 30), event("Maybe", at(2, 15), is_busy=False)]
    await desk.call("create_event", **MEETING)
    assert desk.question() == (
        "This overlaps “Standup” (3:30 PM to 4 PM). Put “Tea” with bob@example.org on your calendar tomorrow, "
        "Friday, January 2nd, from 3 PM to 4 PM, Berlin time, with a video link?"
    )


async def test_an_event_of_the_user_alone_has_no_people_and_no_link(desk: Desk) -> None:
    await desk.call("create_event", **{**MEETING, "attendees": ["me"]})
    assert "with" not in desk.question()
    result = await desk.approve()
    assert (result.data["attendees"], result.data["link"]) == ([], None)


async def test_an_event_with_only_a_title_and_a_start_is_the_users_own_and_lasts_an_hour(desk: Desk) -> None:
    await desk.call("create_event", title="Tea", start_time="tomorrow at 3 pm")
    await desk.approve()
    [draft] = desk.calendar.created
    assert (draft.start, draft.end, draft.attendees) == (at(2, 15), at(2, 16), ())


async def test_the_same_request_has_the_same_uid_and_another_one_has_not(desk: Desk) -> None:
    for args in (MEETING, MEETING, {**MEETING, "title": "Coffee"}):
        desk.gate.next_turn()
        await desk.call("create_event", **args)
        await desk.approve()
    assert [draft.title for draft in desk.calendar.created] == ["Tea", "Coffee"]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"end_time": "tomorrow at 2 pm"}, "That event would end before it starts."),
        ({"end_time": "2026-03-04T10:00"}, "An event can last 31 days at most."),
        ({"start_time": "yesterday at 3 pm"}, "Yesterday at 3 PM is already over."),
        ({"start_time": "2026-02-30T10:00"}, "I don't know when 2026-02-30T10:00 is."),
        ({"start_time": "2026-01-02T10:00+99:00"}, "I don't know when 2026-01-02T10:00+99:00 is."),
        ({"start_time": "friday"}, "At what time? Friday is a whole day."),
        ({"attendees": ["Ann"]}, "I need an e-mail address for Ann."),
        ({"attendees": ["a@b.org\nBcc: x@y.org"]}, "I need an e-mail address for a@b.org\nBcc: x@y.org."),
    ],
)
async def test_an_event_that_cannot_be_is_refused_before_anybody_is_asked(
    desk: Desk, changed: dict[str, Any], told: str
) -> None:
    assert await desk.refusal("create_event", **{**MEETING, **changed}) == (ErrorType.VALIDATION, told)
    assert desk.gate.outbox.sent == []


@pytest.mark.parametrize("attendees", [[], [f"a{n}@example.org" for n in range(51)]])
async def test_an_event_has_1_to_50_attendees(desk: Desk, attendees: list[str]) -> None:
    kind, _ = await desk.refusal("create_event", **{**MEETING, "attendees": attendees})
    assert kind is ErrorType.VALIDATION


async def test_a_calendar_that_fails_after_the_approval_is_not_called_done(desk: Desk) -> None:
    await desk.call("create_event", **MEETING)
    desk.calendar.failure = ToolError(ErrorType.TRANSIENT, "I can't reach your calendar server at the moment.")
    result = await desk.approve()
    assert not result.ok
    assert desk.calendar.created == []


# Listing.


async def test_events_are_listed_with_their_next_one(desk: Desk) -> None:
    desk.calendar.stored = [
        event("Lunch", at(1, 12), 30),
        event("Gym", at(2, 18), series="gym"),
        event("Fair", at(3, 9)),
    ]
    data = await desk.data("list_events", range="the next three days")
    assert [(each["title"], each["recurring"]) for each in data["events"]] == [
        ("Lunch", False),
        ("Gym", True),
        ("Fair", False),
    ]
    assert data["next"] == "Your next event is Gym, tomorrow from 6 PM to 7 PM."


@pytest.mark.parametrize("mode", list(Mode))
async def test_listing_works_in_both_modes(desk: Desk, mode: Mode) -> None:
    desk.calendar.stored = [event("Gym", at(2, 18))]
    result = await desk.call("list_events", mode=mode, range="tomorrow")
    assert result.spoken == "You have one event tomorrow: Gym, 6 PM to 7 PM."


async def test_an_empty_calendar_is_told_as_such(desk: Desk) -> None:
    result = await desk.call("list_events", range="next week")
    assert result.spoken == "You have nothing on your calendar from Monday, January 5th to Sunday, January 11th."
    assert (await desk.call("list_events")).spoken == "You have nothing on your calendar in the next seven days."


async def test_a_long_list_is_cut_in_speech(desk: Desk) -> None:
    desk.calendar.stored = [event(f"E{n}", at(2, 8 + n)) for n in range(9)]
    result = await desk.call("list_events", mode=Mode.VOICE, range="tomorrow")
    assert result.spoken is not None
    assert result.spoken.endswith("E3, 11 AM to noon; and 5 more.")
    assert result.data["count"] == 9


@pytest.mark.parametrize("range", ["gibberish", "february 30th", "2026-01-01 to 2026-12-31"])
async def test_a_range_that_cannot_be_listed_is_refused(desk: Desk, range: str) -> None:
    kind, _ = await desk.refusal("list_events", range=range)
    assert kind is ErrorType.VALIDATION


# Deleting.


@pytest.mark.parametrize(
    ("words", "id"),
    [
        ("e-ann", "e-ann"),
        ("the meeting with ann tomorrow", "e-ann"),
        ("dentist", "e-dentist"),
        ("the dentst appointment", "e-dentist"),
        ("tomorrow's meeting at 3 pm", "e-ann"),
        ("standup", "standup#20260102"),
        ("standup on saturday", "standup#20260103"),
    ],
)
async def test_words_find_the_event_that_is_deleted(desk: Desk, words: str, id: str) -> None:
    desk.calendar.stored = [
        event("Meeting", at(2, 15), id="e-ann", attendees=("ann@example.org",)),
        event("Dentist", at(5, 10), id="e-dentist"),
        event("Standup", at(2, 9), 15, id="standup#20260102", series="standup"),
        event("Standup", at(3, 9), 15, id="standup#20260103", series="standup"),
    ]
    await desk.call("delete_event", event=words)
    assert desk.calendar.deleted == []
    assert (await desk.approve()).ok
    assert desk.calendar.deleted == [id]


async def test_the_question_names_the_event_and_says_that_the_rest_of_a_series_stays(desk: Desk) -> None:
    desk.calendar.stored = [event("Standup", at(2, 9), 15, id="s#1", series="s")]
    await desk.call("delete_event", event="standup")
    assert desk.question() == "Delete “Standup” tomorrow from 9 AM to 9:15 AM? The other occurrences stay."


async def test_a_whole_series_is_deleted_if_that_is_asked_for(desk: Desk) -> None:
    desk.calendar.stored = [event("Standup", at(2, 9), 15, id="s#1", series="s")]
    await desk.call("delete_event", event="standup", whole_series=True)
    assert desk.question().startswith("Delete “Standup” with all its occurrences")
    await desk.approve()
    assert desk.calendar.deleted == ["s"]


async def test_what_the_user_was_shown_is_deleted_even_if_the_words_fit_another_event_by_then(desk: Desk) -> None:
    desk.calendar.stored = [event("Call Bob", at(2, 15), id="first")]
    await desk.call("delete_event", event="call bob")
    desk.calendar.stored.insert(0, event("Call Bob", at(1, 20), id="sooner"))
    await desk.approve()
    assert desk.calendar.deleted == ["first"]


async def test_words_that_fit_several_events_delete_none(desk: Desk) -> None:
    desk.calendar.stored = [event("Call Bob", at(2, 15), id="one"), event("Call Bob", at(3, 15), id="two")]
    kind, told = await desk.refusal("delete_event", event="call bob")
    assert (kind, desk.gate.outbox.sent) == (ErrorType.CONFLICT, [])
    assert told.endswith("Which one do you mean?")


@pytest.mark.parametrize("words", ["opera", "meeting", "opera tomorrow"])
async def test_words_that_fit_nothing_delete_nothing(desk: Desk, words: str) -> None:
    desk.calendar.stored = [event("Gym", at(2, 15))]
    assert await desk.refusal("delete_event", event=words) == (
        ErrorType.NOT_FOUND,
        "I can't find that in your calendar.",
    )


# All of them.


@pytest.mark.parametrize("name", ["get_availability", "create_event", "delete_event"])
async def test_what_is_for_text_is_refused_in_voice(desk: Desk, name: str) -> None:
    args = {"get_availability": {"start_date": "today", "end_date": "today"}, "create_event": MEETING}
    kind, _ = await desk.refusal(name, mode=Mode.VOICE, **args.get(name, {"event": "x"}))
    assert kind is ErrorType.MODE_RESTRICTED


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("get_availability", {"start_date": "today", "end_date": "today"}),
        ("create_event", MEETING),
        ("list_events", {}),
        ("delete_event", {"event": "x"}),
    ],
)
async def test_a_calendar_that_is_too_slow_is_given_up(desk: Desk, name: str, args: dict[str, Any]) -> None:
    desk.calendar.delay_s = 3600
    result = await desk.call(name, **args)
    assert result.error is not None
    assert result.error.type is ErrorType.TRANSIENT
    assert result.spoken == "That took too long, so I stopped waiting for it."
    assert (desk.calendar.created, desk.calendar.deleted) == ([], [])


async def test_the_failure_of_a_service_reaches_the_user_in_its_own_words(desk: Desk) -> None:
    desk.calendar.failure = ToolError(ErrorType.RATE_LIMIT, "Please wait.", retryable=True, retry_after_s=9.0)
    result = await desk.call("list_events")
    assert result.error is not None
    assert (result.error.type, result.error.message, result.error.retry_after_s) == (
        ErrorType.RATE_LIMIT,
        "Please wait.",
        9.0,
    )
