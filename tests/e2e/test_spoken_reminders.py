"""Reminders and timers by voice: asked for aloud, confirmed in speech, and rung once, also after a restart.

Nobody waits for the minute: the tests move the time at which the stored reminder is due.
"""

import asyncio
import re
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from antiphon.client import Mode, connect
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.protocol.limits import SPEECH_HZ
from tests.e2e.voices import JOE, Person, calling, engines, make_clips, serve
from tests.fakes.spoken import for_ears

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(180)]

CALL_MOTHER = "Remind me to call my mother in one minute."
ONE_MINUTE = "Set a timer for one minute."


@pytest.fixture(scope="module")
def clips(models_dir: Path) -> dict[tuple[str, str], bytes]:
    return make_clips(models_dir, [(JOE, CALL_MOTHER), (JOE, ONE_MINUTE)])


def due_in_s(folder: Path) -> float:
    """How long it is until the only reminder in the store is due."""
    with closing(sqlite3.connect(folder / "data" / "antiphon.db", timeout=10)) as connection:
        [(due_ms,)] = connection.execute("SELECT due_ms FROM reminders").fetchall()
    return float(due_ms) / 1000 - time.time()


def let_a_minute_pass(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "data" / "antiphon.db", timeout=10)) as connection:
        connection.execute("UPDATE reminders SET due_ms = due_ms - 60000, created_ms = created_ms - 60000")
        connection.commit()


async def hear_ring(person: Person) -> tuple[s.Reminder, bytes]:
    """Waits until something has rung and was said, and returns the message and the speech."""
    before = len(person.told)
    await person.until(
        lambda incoming: isinstance(incoming, s.Reminder),
        lambda incoming: isinstance(incoming, s.GenerationComplete),
    )
    # All of it was heard, and the person may speak.
    await person.session.send(c.Interrupt(played_ms=600_000))
    await person.until_state(s.State.LISTENING)
    came = person.told[before:]
    [ring] = [each for each in came if isinstance(each, s.Reminder)]
    return ring, b"".join(each.pcm for each in came if isinstance(each, s.SpeechFrame))


async def rings_within(person: Person, seconds: float) -> list[s.Reminder]:
    before = len(person.told)
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while True:
                await person.hear()
    return [each for each in person.told[before:] if isinstance(each, s.Reminder)]


async def recognized(models_dir: Path, speech: bytes) -> str:
    async with engines(models_dir) as (_, moonshine):
        return re.sub(r"[^a-z0-9 ]", "", (await moonshine.recognize(for_ears(speech, SPEECH_HZ))).lower())


async def test_a_spoken_reminder_rings_once_after_the_server_was_killed_and_started_again(
    tmp_path: Path, models_dir: Path, clips: dict[tuple[str, str], bytes]
) -> None:
    folder = tmp_path
    with serve(folder, models_dir) as doomed:
        async with calling(doomed.url) as person:
            exchange = await person.say(clips[JOE, CALL_MOTHER])
            assert exchange.response.strip() == "All right, I'll remind you in 1 minute to call your mother."
            assert exchange.pcm, "it is confirmed in speech"
            assert 30 < due_in_s(folder) <= 60
            handle, last_n = person.session.handle, person.session.last_n
            doomed.kill()
    let_a_minute_pass(folder)
    with serve(folder, models_dir) as restarted:
        hello = c.Hello(resume=handle, last_n=last_n, audio=c.AudioForm.BINARY, mode=Mode.VOICE)
        async with connect(restarted.url, mode=Mode.VOICE, hello=hello) as session:
            back = Person(session)
            ring, speech = await hear_ring(back)
            assert (ring.message, ring.kind) == ("Call your mother", s.ReminderKind.REMINDER)
            assert "call your mother" in await recognized(models_dir, speech)
            assert await rings_within(back, 3) == []

            # The same call goes on with a timer.
            exchange = await back.say(clips[JOE, ONE_MINUTE])
            assert exchange.response.strip() == "All right, 1 minute, starting now."
            assert 30 < due_in_s(folder) <= 60
            let_a_minute_pass(folder)
            ring, speech = await hear_ring(back)
            assert (ring.message, ring.kind, ring.missed) == ("1 minute timer", s.ReminderKind.TIMER, False)
            assert "timer is done" in await recognized(models_dir, speech)
            assert await rings_within(back, 3) == []
            said = [text for role, text, _ in restarted.said(back.conversation_id) if role == "assistant"]
            assert said[1:] == [
                "Here's your reminder: call your mother.",
                "All right, 1 minute, starting now.",
                "Your 1 minute timer is done.",
            ]
