"""Many sessions share one VAD model: frames stay in order, and failures stay within their session."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from antiphon.models.cascade.batched_vad import MAX_BEHIND_FRAMES, AudioStream, BatchedVad
from antiphon.models.cascade.endpointer import FRAME_BYTES
from tests.fakes.voice import CERTAIN, LoudnessVad, VirtualThreads, wave

LOUD = wave(32, CERTAIN)
QUIET = bytes(FRAME_BYTES)


class Room:
    def __init__(self) -> None:
        self.vad = LoudnessVad()
        self.threads = VirtualThreads()
        self.batched_vad = BatchedVad(self.vad, self.threads)

    def enter(self) -> tuple[AudioStream, list[tuple[float, bytes]]]:
        heard: list[tuple[float, bytes]] = []
        return self.batched_vad.open(lambda probability, frame: heard.append((probability, frame))), heard


async def flush(stream: AudioStream) -> None:
    """Returns when all is heard."""
    flushed = asyncio.Event()
    stream.flush(flushed.set)
    await flushed.wait()


@pytest.fixture
async def room() -> AsyncIterator[Room]:
    room = Room()
    yield room
    await room.batched_vad.aclose()


async def test_each_frame_is_reported_with_its_probability_in_order(room: Room) -> None:
    stream, heard = room.enter()
    stream.push(LOUD + QUIET + LOUD)
    await flush(stream)
    assert heard == [(1.0, LOUD), (0.0, QUIET), (1.0, LOUD)]


async def test_frames_are_assembled_from_chunks_of_any_size(room: Room) -> None:
    stream, heard = room.enter()
    sound = LOUD + QUIET + LOUD
    for at in range(0, len(sound), 7):
        stream.push(sound[at : at + 7])
    await flush(stream)
    assert b"".join(frame for _, frame in heard) == sound


async def test_a_partial_frame_waits_for_the_rest(room: Room) -> None:
    stream, heard = room.enter()
    stream.push(LOUD[:-2])
    await asyncio.sleep(1)
    assert heard == []
    stream.push(LOUD[-2:])
    await asyncio.sleep(1)
    assert heard == [(1.0, LOUD)]


async def test_a_flush_pads_the_last_frame_with_silence(room: Room) -> None:
    stream, heard = room.enter()
    stream.push(LOUD[:100])
    await flush(stream)
    assert heard == [(1.0, LOUD[:100] + bytes(FRAME_BYTES - 100))]


async def test_a_flush_of_nothing_returns_at_once(room: Room) -> None:
    stream, heard = room.enter()
    await asyncio.wait_for(flush(stream), 0.001)
    stream.push(b"")
    await asyncio.wait_for(flush(stream), 0.001)
    assert heard == []


async def test_a_flush_waits_for_the_frame_in_the_current_batch(room: Room) -> None:
    room.threads.delay_s = 0.5
    stream, heard = room.enter()
    stream.push(LOUD)
    await asyncio.sleep(0.1)
    assert heard == []
    await flush(stream)
    assert heard == [(1.0, LOUD)]


async def test_a_hundred_sessions_share_one_batch(room: Room) -> None:
    callers = [room.enter() for _ in range(100)]
    for stream, _ in callers:
        stream.push(LOUD)
    await asyncio.gather(*(flush(stream) for stream, _ in callers))
    assert room.vad.batches == [100]
    assert all(heard == [(1.0, LOUD)] for _, heard in callers)


async def test_a_batch_has_one_frame_of_each_session(room: Room) -> None:
    quick, slow = room.enter(), room.enter()
    quick[0].push(LOUD * 3)
    slow[0].push(LOUD)
    await flush(quick[0])
    assert room.vad.batches == [2, 1, 1]


async def test_frames_that_come_one_by_one_are_batched(room: Room) -> None:
    """A hundred sessions that are not in step have a frame within every millisecond."""
    callers = [room.enter() for _ in range(100)]
    for stream, _ in callers:
        stream.push(LOUD)
        await asyncio.sleep(0.0003)
    await asyncio.gather(*(flush(stream) for stream, _ in callers))
    assert len(room.vad.batches) <= 5


async def test_a_failing_session_does_not_affect_others(room: Room) -> None:
    def fail(probability: float, frame: bytes) -> None:
        raise RuntimeError("a mistake")

    wrong = room.batched_vad.open(fail)
    other, heard = room.enter()
    with capture_logs() as logs:
        for stream in (wrong, other, wrong, other):
            stream.push(LOUD)
        await flush(wrong)
        await flush(other)
    assert len(heard) == 2
    assert [log["event"] for log in logs] == ["frame_listener_failed"]


async def test_a_failing_model_counts_as_silence_and_is_retried(room: Room) -> None:
    stream, heard = room.enter()
    room.vad.fails = True
    with capture_logs() as logs:
        stream.push(LOUD)
        await flush(stream)
    assert [log["event"] for log in logs] == ["vad_failed"]
    room.vad.fails = False
    stream.push(LOUD)
    await flush(stream)
    assert [probability for probability, _ in heard] == [0.0, 1.0]


async def test_a_model_that_keeps_failing_does_not_fill_the_log(room: Room) -> None:
    stream, _ = room.enter()
    with capture_logs() as logs:
        for fails in (True, True, True, False, True):
            room.vad.fails = fails
            stream.push(LOUD)
            await flush(stream)
    assert [log["event"] for log in logs] == ["vad_failed"] * 2


async def test_nothing_is_reported_after_close(room: Room) -> None:
    stream, heard = room.enter()
    stream.push(LOUD * 2)
    stream.close()
    stream.push(LOUD)
    await asyncio.sleep(1)
    assert heard == []


async def test_frames_in_a_batch_are_not_reported_after_close(room: Room) -> None:
    room.threads.delay_s = 0.5
    stream, heard = room.enter()
    stream.push(LOUD)
    await asyncio.sleep(0.1)
    stream.close()
    await asyncio.sleep(1)
    assert heard == []


async def test_closing_the_stream_drops_pending_flushes(room: Room) -> None:
    room.threads.delay_s = 60
    stream, _ = room.enter()
    stream.push(LOUD)
    flushed: list[bool] = []
    stream.flush(lambda: flushed.append(True))
    await asyncio.sleep(0.1)
    stream.close()
    stream.flush(lambda: flushed.append(True))
    await asyncio.sleep(100)
    assert flushed == []


async def test_closing_the_vad_closes_all_streams(room: Room) -> None:
    room.threads.delay_s = 60
    stream, heard = room.enter()
    stream.push(LOUD * 2)
    await asyncio.sleep(0.1)
    await room.batched_vad.aclose()
    assert stream.is_closed
    stream.push(LOUD)
    assert heard == []


async def test_a_stream_that_falls_far_behind_loses_its_oldest_frames(room: Room) -> None:
    stream, heard = room.enter()
    stream.push(LOUD + QUIET * MAX_BEHIND_FRAMES)
    await flush(stream)
    assert [probability for probability, _ in heard] == [0.0] * MAX_BEHIND_FRAMES


async def test_no_task_runs_without_audio(room: Room) -> None:
    before = asyncio.all_tasks()
    stream, _ = room.enter()
    stream.push(LOUD)
    await flush(stream)
    await asyncio.sleep(0.1)
    assert asyncio.all_tasks() == before
