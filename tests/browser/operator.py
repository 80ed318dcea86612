"""What an operator finds on a server in use: conversations, a recorded call, sessions of two nodes, a blocked user."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from msgspec.structs import replace

from antiphon.clock import SystemClock
from antiphon.security.tokens import hash_token, make_token
from antiphon.services.recordings.archive import make_name
from antiphon.services.recordings.sound_file import FORMAT, SoundWriter
from antiphon.storage.base import AuditLine
from antiphon.storage.conversations import Conversation, Turn, VoiceCall
from antiphon.storage.events import SessionEvent
from antiphon.storage.knowledge import Namespace, Passage, Record, RecordType
from antiphon.storage.people import TokenRecord
from antiphon.storage.recordings import Mark, Recording
from antiphon.storage.sessions import SessionRecord
from antiphon.storage.sql import Database, open_database
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage
from tests.fakes.recorded import HZ

TRAINS: Final = "6f1c2a9be04d4b7f8a51c0d2e3f40718"
"""The conversation with everything in it."""
SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
EARLY_MS: Final = 700
"""How long before its first words the recorded call began."""
PLACES: Final = {1: 100, 4: 2_600, 5: 9_000, 8: 18_200, 9: 31_000, 10: 34_500}
"""Where the turns of the recorded call begin in its recording, in milliseconds."""

TITLES: Final = (
    ("ana", "Remind me to water the plants tomorrow"),
    ("tomas", "What's on my calendar on Friday?"),
    ("ana", "Put tea and lemons on the shopping list"),
    ("guest", "How do I get on the wifi?"),
    ("mallory", "Tell me where the others live"),
    ("tomas", "Convert 30 miles to kilometres"),
    ("ana", "Turn the lights in the kitchen off"),
)


def fill(folder: Path, *, now_ms: int | None = None) -> str:
    """Fills the database of the server of this folder, which does not run yet. Returns an admin token."""
    filling = _fill(folder, SystemClock().now_ms() if now_ms is None else now_ms)
    # In a thread of its own, since Playwright's event loop may be running in this one.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, filling).result()


async def _fill(folder: Path, now_ms: int) -> str:
    (folder / "data").mkdir(parents=True, exist_ok=True)
    database = await open_database(folder / "data" / "antiphon.db")
    try:
        await _add_conversations(database, now_ms)
        await _add_trains(database, now_ms - 4 * MINUTE_MS)
        await _add_recording(database, folder / "data" / "recordings", now_ms - 4 * MINUTE_MS - EARLY_MS)
        await _add_sessions(database, now_ms)
        await _add_records(database, now_ms)
        await database.blocks.block("mallory", now_ms + 50 * MINUTE_MS, "Threatened another user.")
        return await _add_tokens(database, now_ms)
    finally:
        await database.aclose()


async def _add_tokens(database: Database, now_ms: int) -> str:
    token, day_ms = make_token(), 24 * HOUR_MS
    for record in (
        TokenRecord("3f9a01c7", "ana", "my phone", "a", now_ms - 40 * day_ms, None),
        TokenRecord("b2e4d810", "tomas", "kitchen display", "b", now_ms - 30 * day_ms, now_ms + 60 * day_ms),
        TokenRecord("90cc17ef", "guest", "", "c", now_ms - 20 * day_ms, now_ms - 13 * day_ms),
        TokenRecord("77d0a3b5", "mallory", "laptop", "d", now_ms - 9 * day_ms, None),
        TokenRecord("e15b6c42", "sofia", "operator's desk", hash_token(token), now_ms - day_ms, None, True),
    ):
        await database.tokens.add(record)
    return token


async def _add_conversations(database: Database, now_ms: int) -> None:
    for number, (user, title) in reversed(list(enumerate(TITLES))):
        at_ms = now_ms - (number + 1) * 37 * MINUTE_MS
        id = f"{number:02d}e5b1c9a0d74f3e8b62" + "0" * 12
        await database.conversations.create(Conversation(id, user, title, at_ms, at_ms))
        await database.conversations.append_many(id, [_turn(UserMessage(title), at_ms)], None)
        tool = ("set_reminder", "check_calendar", "list_add", "kb_search", "ignore_user", "convert_units", "ha_control")
        outcome = "TRANSIENT" if number == 6 else "ok"
        line = AuditLine(
            ts_ms=at_ms + SECOND_MS,
            session=f"5e55{number:02d}",
            user=user,
            mode="text",
            turn=1,
            tool=tool[number],
            tool_version="1.0.0",
            outcome=outcome,
            duration_ms=3.4 + 61 * number,
            conversation=id,
        )
        await database.audit.append([line])


def _turn(message: Message, at_ms: int, *, spoken: bool = False) -> Turn:
    role: Any = {UserMessage: "user", AssistantMessage: "assistant", ToolMessage: "tool"}[type(message)]
    text = "" if isinstance(message, ToolMessage) else message.text
    return Turn(role, text, spoken, at_ms, msgspec.json.encode(message))


async def _add_trains(database: Database, at_ms: int) -> None:
    """A call in which a tool ran, one needed approval, and the model changed."""
    title = "Which trains go to Porto tomorrow morning?"
    await database.conversations.create(Conversation(TRAINS, "ana", title, at_ms, at_ms))
    found = {"trains": [{"leaves": "08:39", "arrives": "11:43"}, {"leaves": "09:30", "arrives": "12:41"}]}
    said: list[tuple[int, Message]] = [
        (0, UserMessage(title)),
        (300, AssistantMessage(calls=(CallMade("c1", "find_trains", {"to": "Porto", "on": "tomorrow"}),))),
        (310, ToolMessage("c1", "find_trains", found)),
        (1_900, AssistantMessage("There are two: one at 8:39, and one at half past nine. Shall I book one?")),
        (9_000, UserMessage("The later one, please.")),
        (9_400, AssistantMessage(calls=(CallMade("c2", "book_ticket", {"train": "09:30", "seats": 1}),))),
        (16_200, ToolMessage("c2", "book_ticket", {"booked": True, "seat": "21C"})),
        (17_500, AssistantMessage("Booked: half past nine from Oriente, seat 21 C.")),
        (31_000, UserMessage("And will it rain there?")),
        (33_800, AssistantMessage("I can't reach the weather service right now. Ask me again in a minute.")),
    ]
    turns = [_turn(message, at_ms + offset, spoken=True) for offset, message in said]
    await database.conversations.append_many(TRAINS, turns, None)
    line = AuditLine(
        ts_ms=at_ms + 305,
        session="a71e",
        user="ana",
        mode="voice",
        turn=1,
        tool="find_trains",
        tool_version="1.2.0",
        duration_ms=184.2,
        conversation=TRAINS,
    )
    booked = replace(line, tool="book_ticket", turn=2, tool_version="2.0.1")
    await database.audit.append(
        [
            line,
            replace(
                booked, ts_ms=at_ms + 9_450, outcome="CONFIRMATION_REQUIRED", confirmation="requested", duration_ms=1.1
            ),
            replace(booked, ts_ms=at_ms + 16_150, confirmation="approved", duration_ms=742.8),
            replace(line, ts_ms=at_ms + 33_000, turn=3, tool="get_weather", outcome="TRANSIENT", duration_ms=1_800.0),
        ]
    )
    metrics = {"end_of_turn_ms": 212.0, "stt_ms": 31.0, "first_token_ms": 148.0, "first_audio_ms": 96.0}
    lowered = {
        "mode": "voice",
        "level": 2,
        "previous": 3,
        "max": 3,
        "reason": "rate-limit-exceeded",
        "model": "cascade",
    }
    notice = {"code": "model_switched", "text": "The voice model is rate-limited. For now, cascade answers instead."}
    events: list[tuple[int, str, dict[str, Any]]] = [
        (2_000, "turn_metrics", {"turn": 1, "total_ms": 456.0, **metrics}),
        (17_600, "turn_metrics", {"turn": 2, "total_ms": 611.0, **metrics, "first_token_ms": 303.0}),
        (24_000, "energy", lowered),
        (24_100, "notice", notice),
        (33_900, "turn_metrics", {"turn": 3, "total_ms": 2_214.0, **metrics, "first_token_ms": 1_906.0}),
    ]
    await database.events.append(
        [SessionEvent(TRAINS, "a71e", at_ms + when, kind, data) for when, kind, data in events]
    )
    summary = "Asked for trains to Porto and booked the one at 9:30."
    call = VoiceCall(
        "k1", TRAINS, "ana", at_ms - EARLY_MS, at_ms + 41_000, summary, ("gemini-live", "cascade"), 1, 10, (3, 2)
    )
    await database.voice_calls.begin(call, None)


async def _add_recording(database: Database, folder: Path, started_ms: int) -> None:
    file = make_name()
    duration_ms, size_bytes = _record(folder / file)
    await database.recordings.add(
        Recording(
            id="9b0e5f7c21d84a3f",
            conversation_id=TRAINS,
            user="ana",
            call_id="k1",
            started_ms=started_ms,
            duration_ms=duration_ms,
            channels=2,
            size_bytes=size_bytes,
            format=FORMAT,
            file=file,
            node=socket.gethostname(),
            marks=tuple(Mark(seq, at_ms) for seq, at_ms in PLACES.items()),
        )
    )


def _record(path: Path) -> tuple[int, int]:
    """Writes a tone from the place of each turn on, and returns the duration and the size of the recording."""
    frames = np.zeros((41 * HZ, 2), np.float32)
    for number, at_ms in enumerate(PLACES.values()):
        tone = 0.2 * np.sin(2 * np.pi * 220 * (1 + number) / HZ * np.arange(2 * HZ))
        first = HZ * at_ms // 1000
        frames[first : first + len(tone), number % 2] = tone
    path.parent.mkdir()
    writer = SoundWriter(path, HZ, 2)
    writer.write(frames)
    writer.finish()
    writer.close()
    return writer.duration_ms, path.stat().st_size


async def _add_sessions(database: Database, now_ms: int) -> None:
    record = SessionRecord(
        id="c04f7be2d1904a66b1c3a5e8f7092d14",
        user="ana",
        conversation_id=TRAINS,
        mode="voice",
        tools_version="1.0.4d2f9a1c",
        turn=3,
        state=b"{}",
        handle_hash="h0",
        handle_expires_ms=now_ms + 2 * HOUR_MS,
        lease_owner="porto-2:4121:9c1f03aa",
        lease_token=1,
        lease_until_ms=now_ms + HOUR_MS,
        updated_ms=now_ms - 3 * MINUTE_MS,
    )
    first = "00e5b1c9a0d74f3e8b62" + "0" * 12
    await database.sessions.begin(record)
    for number, user in enumerate(("tomas", "guest")):
        await database.sessions.begin(
            replace(
                record,
                id=f"{number}d77aa0b39154f0f8b62c3a5e8f7092d",
                user=user,
                mode="text",
                conversation_id=first,
                handle_hash=f"h{number + 1}",
                lease_owner="porto-1:3975:17be40d2",
                lease_until_ms=now_ms - HOUR_MS,
                updated_ms=now_ms - (number + 1) * 38 * MINUTE_MS,
            )
        )


async def _add_records(database: Database, now_ms: int) -> None:
    texts = {
        "Guest wifi": "The password of the guest network is on the fridge. It changes in May.",
        "Boiler manual": "Press the reset button for five seconds. The pressure must be between 1 and 2 bar.",
        "House rules": "Shoes stay at the door. Music is fine until eleven.",
    }
    records = [
        Record(
            id=f"doc:{number}",
            namespace=Namespace.STUDIO,
            type=RecordType.DOC,
            title=title,
            body=text,
            source_type="markdown",
            last_updated_ms=now_ms - number * 24 * HOUR_MS,
        )
        for number, (title, text) in enumerate(texts.items())
    ]
    await database.knowledge.stage("b1", [(record, [Passage(record.body)]) for record in records])
    await database.knowledge.publish("b1")
