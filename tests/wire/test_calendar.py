"""A calendar event from the request to a real CalDAV server: it is stored only if the person approves, and once."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import httpx2
import pytest

from antiphon.client import Mode, connect
from antiphon.models.builtin.replies import NO_LONGER_OPEN, NOTHING_ASKED
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from tests.e2e.voices import JOE, Person, make_clips
from tests.fakes.chat_server import ScriptedChatServer, words
from tests.fakes.radicale import PASSWORD, USER, Radicale, run_radicale
from tests.wire.caller import Caller, Message, call
from tests.wire.chat_client import calling
from tests.wire.served import UNLIMITED, Served, serve

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(120)]

DECLINED: Final = "All right, I won't do that."
ZONE: Final = "Europe/Berlin"
YES: Final = "Yes, please."


@dataclass(frozen=True)
class Office:
    """A server whose calendar is on a CalDAV server."""

    served: Served
    radicale: Radicale
    database: Path

    def stored(self, title: str) -> int:
        """How many events of this title the CalDAV server has."""
        return self.radicale.titles().count(title)


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Office]:
    folder = tmp_path_factory.mktemp("office")
    (folder / "radicale").mkdir()
    with pytest.MonkeyPatch.context() as patch, run_radicale(folder / "radicale") as radicale:
        patch.setenv("CALDAV_PASSWORD", PASSWORD)
        patch.setenv("TZ", ZONE)
        calendar = {"provider": "caldav", "url": radicale.url, "username": USER}
        with serve(
            folder, limits=UNLIMITED, models_dir=models_dir, model={"voice": "cascade"}, calendar=calendar
        ) as served:
            yield Office(served, radicale, folder / "data" / "antiphon.db")


def request_for(title: str) -> str:
    return f"create an event called {title} with bob@example.org tomorrow at three for an hour"


@asynccontextmanager
async def asked(office: Office, title: str) -> AsyncIterator[tuple[Caller, Message]]:
    """A client that has asked for an event, and the question that it is shown."""
    async with call(office.served.url, {"mode": "text"}) as caller:
        answer = await caller.ask(request_for(title))
        [question] = caller.every("confirmation_request")
        assert answer == question["preview"]
        assert office.stored(title) == 0
        yield caller, question


async def answer(caller: Caller, question: Message, *, approved: bool) -> str:
    await caller.send("confirm", confirmation_token=question["confirmation_token"], approved=approved)
    return str((await caller.until("confirmation_resolved"))["outcome"])


async def test_the_question_has_people_day_time_and_zone(office: Office) -> None:
    async with asked(office, "preview") as (_, question):
        shown = question["preview"]
        assert shown.startswith("Put “preview” with bob@example.org on your calendar tomorrow, ")
        assert shown.endswith(", from 3 PM to 4 PM, Berlin time, with a video link?")
        assert question["args"]["start_time"].endswith(("T15:00:00+01:00", "T15:00:00+02:00"))


async def test_the_button_stores_the_event_once(office: Office) -> None:
    async with asked(office, "button") as (caller, question):
        assert await answer(caller, question, approved=True) == "approved"
        told = (await caller.until("response"))["text"]
        assert told.startswith(
            "Done. “button” is on your calendar tomorrow from 3 PM to 4 PM. The Jitsi link is https:"
        )
        assert await answer(caller, question, approved=True) == "expired", "a token works once"
    [event] = [event for event in office.radicale.events() if event["SUMMARY"] == "button"]
    assert isinstance(event.start, datetime)
    assert event.start.astimezone(ZoneInfo(ZONE)).hour == 15
    assert str(event["ATTENDEE"]) == "mailto:bob@example.org"
    assert str(event["URL"]) in told


async def test_a_typed_yes_stores_the_event_once(office: Office) -> None:
    async with asked(office, "typed") as (caller, _):
        assert (await caller.ask("yes please")).startswith("Done. “typed” is on your calendar")
    assert office.stored("typed") == 1


async def test_the_same_request_a_second_time_does_not_double_the_event(office: Office) -> None:
    async with asked(office, "twice") as (caller, _):
        await caller.ask("yes")
        assert (await caller.ask(request_for("twice"))).startswith("This overlaps")
        assert (await caller.ask("yes")).startswith("“twice” was on your calendar already")
    assert office.stored("twice") == 1


async def test_a_spoken_yes_after_the_switch_to_voice_stores_the_event_once(office: Office, models_dir: Path) -> None:
    yes = (await asyncio.to_thread(make_clips, models_dir, [(JOE, YES)]))[JOE, YES]
    hello = c.Hello(audio=c.AudioForm.BINARY)
    async with connect(office.served.url, mode=Mode.TEXT, hello=hello) as session:
        person = Person(session)
        [question] = (await person.ask(request_for("spoken"))).questions
        assert question.tool == "calendar_create_event"
        await session.send(c.StartVoice())
        await session.send(c.StartListening())
        await person.until_state(s.State.LISTENING)
        done = await person.say(yes)
        assert [result.ok for result in done.results] == [True]
        assert done.response.startswith("Done.")
    assert office.stored("spoken") == 1


async def chat(office: Office, **body: Any) -> dict[str, Any]:
    async with httpx2.AsyncClient(base_url=office.served.http) as http:
        answer = await http.post("/api/chat", json=body)
        assert answer.status_code == 200, answer.text
        received: dict[str, Any] = answer.json()
        return received


@pytest.mark.parametrize("approved", [True, False])
async def test_over_http_the_event_is_stored_only_if_it_is_approved(office: Office, approved: bool) -> None:
    title = f"http {approved}"
    first = await chat(office, message=request_for(title))
    assert office.stored(title) == 0
    confirm = {"confirmation_token": first["confirmationRequest"]["confirmation_token"], "approved": approved}
    second = await chat(office, conversation_id=first["conversationId"], confirm=confirm)
    assert second["message"].startswith("Done." if approved else DECLINED)
    assert office.stored(title) == int(approved)


async def test_the_no_of_the_button_stores_nothing(office: Office) -> None:
    async with asked(office, "refused") as (caller, question):
        assert await answer(caller, question, approved=False) == "denied"
        assert (await caller.until("response"))["text"] == DECLINED
    assert office.stored("refused") == 0


async def test_a_typed_no_stores_nothing(office: Office) -> None:
    async with asked(office, "not typed") as (caller, _):
        assert await caller.ask("no") == DECLINED
    assert office.stored("not typed") == 0


async def test_silence_stores_nothing_and_a_late_yes_neither(office: Office) -> None:
    async with asked(office, "late") as (caller, question):
        # As if the five minutes had passed: the server reads the time of the question from its database.
        with closing(sqlite3.connect(office.database)) as database, database:
            database.execute("UPDATE confirmations SET expires_ms = 1")
        assert await answer(caller, question, approved=True) == "expired"
        assert await caller.ask("yes") in (NO_LONGER_OPEN, NOTHING_ASKED)
    assert office.stored("late") == 0


async def test_an_answer_about_something_else_stores_nothing(office: Office) -> None:
    async with asked(office, "ignored") as (caller, _):
        assert await caller.ask("what is 2 plus 3") == "2 plus 3 is 5."
        assert await caller.ask("yes") in (NO_LONGER_OPEN, NOTHING_ASKED)
    assert office.stored("ignored") == 0


async def test_changed_arguments_are_not_covered_by_an_approval(office: Office, tmp_path: Path) -> None:
    """A model that is allowed one event and creates another: the other one must be asked about."""
    allowed = {
        "title": "allowed",
        "start_time": "tomorrow at 3 pm",
        "end_time": "tomorrow at 4 pm",
        "attendees": ["bob@example.org"],
    }
    other = {**allowed, "title": "smuggled"}
    async with ScriptedChatServer() as model:
        model.will_answer(
            calling(("calendar_create_event", allowed)),
            words("Shall I?"),
            calling(("calendar_create_event", other), prefix="second-call"),
            words("It is done, and the other one too."),
        )
        settings = {"text": f"openai:{model.url}#m", "local_first": False}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CALDAV_PASSWORD", PASSWORD)
            calendar = {"provider": "caldav", "url": office.radicale.url, "username": USER}
            with serve(tmp_path, limits=UNLIMITED, model=settings, calendar=calendar) as served:
                async with call(served.url, {"mode": "text"}) as caller:
                    await caller.ask("Invite Bob.")
                    await caller.ask("yes")
                    questions = [each["args"]["title"] for each in caller.every("confirmation_request")]
    assert questions == ["allowed", "smuggled"]
    assert (office.stored("allowed"), office.stored("smuggled")) == (1, 0)


async def test_an_event_is_listed_and_deleted_after_a_yes(office: Office) -> None:
    async with asked(office, "short lived") as (caller, _):
        await caller.ask("yes")
        listed = await caller.ask("what's on my calendar tomorrow")
        assert "short lived, 3 PM to 4 PM" in listed or " more" in listed
        shown = await caller.ask("delete the short lived event tomorrow")
        assert shown == "Delete “short lived” tomorrow from 3 PM to 4 PM?"
        assert office.stored("short lived") == 1
        assert await caller.ask("yes") == "Done. I've deleted “short lived” tomorrow from 3 PM to 4 PM."
    assert office.stored("short lived") == 0


async def test_the_log_has_no_titles_addresses_or_passwords(office: Office) -> None:
    assert [secret for secret in ("bob@example.org", PASSWORD, "button") if secret in office.served.log] == []
    assert office.served.failures == []
