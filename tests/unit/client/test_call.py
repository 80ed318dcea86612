"""A conversation through a sound card that a test plays."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from antiphon.client import Disconnected, Incoming, NewSession
from antiphon.client.call import BYTES_PER_S, MAX_WAITING, Call
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.protocol.codec import wav_base64
from tests.unit.client.scripted_session import ScriptedSession

FRAME_S = 0.02
SAID = b"\x05\x00" * 320
SECOND = b"\x07\x00" * (BYTES_PER_S // 2)


class FakeCard:
    """Runs on the loop's clock: every 20 ms it hears a frame, and plays one."""

    def __init__(self) -> None:
        self.is_open = False
        self.microphone = SAID
        self.played = bytearray()

    @contextmanager
    def open(self, hear: Callable[[bytes], None], play: Callable[[int], bytes]) -> Iterator[None]:
        running = asyncio.create_task(self._run(hear, play))
        self.is_open = True
        try:
            yield
        finally:
            self.is_open = False
            running.cancel()

    async def _run(self, hear: Callable[[bytes], None], play: Callable[[int], bytes]) -> None:
        while True:
            hear(self.microphone)
            self.played += play(round(BYTES_PER_S * FRAME_S))
            await asyncio.sleep(FRAME_S)

    @property
    def heard_s(self) -> float:
        """The seconds of speech heard; the rest is silence."""
        return len(bytes(self.played).replace(b"\0\0", b"")) / BYTES_PER_S


class Person:
    """A person in a call."""

    def __init__(self) -> None:
        self.session = ScriptedSession()
        self.card = FakeCard()
        self.told: list[Incoming] = []

    def sent(self, kind: type[c.ClientMessage]) -> list[c.ClientMessage]:
        return [message for _, message in self.session.sent if isinstance(message, kind)]

    async def hear(self, *incoming: Incoming, seconds: float = 0.0) -> None:
        self.session.come(*incoming)
        await asyncio.sleep(seconds + FRAME_S / 2)


@asynccontextmanager
async def calling() -> AsyncIterator[Person]:
    person = Person()
    running = asyncio.create_task(Call(person.session, person.card, person.told.append).run())
    await asyncio.sleep(FRAME_S / 2)
    try:
        yield person
    finally:
        running.cancel()
        await asyncio.wait([running])
        assert not person.card.is_open


def answer(seconds: int, turn: int = 1) -> list[Incoming]:
    return [s.SpeechFrame(0, turn, seq, SECOND) for seq in range(seconds)]


async def test_microphone_audio_is_sent() -> None:
    async with calling() as person:
        await asyncio.sleep(1)
        assert len(person.session.audio) == pytest.approx(50, abs=10)
        assert {(pcm, playing) for _, pcm, playing in person.session.audio} == {(SAID, False)}


async def test_an_answer_is_played_and_then_reported_as_such() -> None:
    async with calling() as person:
        await person.hear(*answer(2), s.GenerationComplete(turn=1), seconds=1.5)
        assert person.sent(c.PlaybackDone) == []
        await asyncio.sleep(3)
        assert person.card.heard_s == pytest.approx(2)
        assert person.sent(c.PlaybackDone) == [c.PlaybackDone(1)]


async def test_an_answer_that_comes_in_messages_is_played_too() -> None:
    async with calling() as person:
        await person.hear(s.Audio(data=wav_base64(SECOND, 22_050), turn=1), seconds=3)
        assert person.card.heard_s == pytest.approx(1)


async def test_an_unfinished_answer_is_not_reported_as_played() -> None:
    async with calling() as person:
        await person.hear(*answer(1), seconds=3)
        assert person.sent(c.PlaybackDone) == []


async def test_progress_is_reported_no_more_than_four_times_a_second() -> None:
    async with calling() as person:
        await person.hear(*answer(3), seconds=2)
        reports = [message for message in person.sent(c.Playback) if isinstance(message, c.Playback)]
        assert 4 <= len(reports) <= 8
        assert [report.turn for report in reports] == [1] * len(reports)
        assert reports[-1].played_ms == pytest.approx(1_800, abs=400)


async def test_the_playing_flag_is_sent_while_the_loudspeaker_is_audible() -> None:
    async with calling() as person:
        await person.hear(*answer(1), seconds=4)
        playing = [at_s for at_s, _, is_playing in person.session.audio if is_playing]
        assert 0.9 <= playing[-1] - playing[0] <= 1.6


async def test_an_interruption_silences_the_loudspeaker() -> None:
    async with calling() as person:
        await person.hear(*answer(3), s.GenerationComplete(turn=1), seconds=1)
        await person.hear(s.StateChanged(s.State.INTERRUPTED), seconds=1)
        assert person.card.heard_s == pytest.approx(1, abs=0.2)
        assert person.sent(c.PlaybackDone) == []
        await person.hear(*answer(1, turn=2), s.GenerationComplete(turn=2), seconds=4)
        assert person.sent(c.PlaybackDone) == [c.PlaybackDone(2)]


async def test_a_held_answer_waits_and_then_goes_on() -> None:
    async with calling() as person:
        await person.hear(*answer(3), s.GenerationComplete(turn=1), seconds=1)
        await person.hear(s.Hold(1), seconds=1.5)
        assert person.card.heard_s == pytest.approx(1, abs=0.2)
        assert person.session.audio[-1][2] is False
        await person.hear(s.Resume(1), seconds=1)
        assert person.sent(c.PlaybackDone) == []
        await asyncio.sleep(2)
        assert person.card.heard_s == pytest.approx(3)
        assert person.sent(c.PlaybackDone) == [c.PlaybackDone(1)]


async def test_the_last_words_are_heard_before_the_call_ends() -> None:
    person = Person()
    person.session.come(*answer(2), s.EndVoiceSession("user_request", "Bye."))
    await Call(person.session, person.card, person.told.append).run()
    assert person.card.heard_s == pytest.approx(2)
    assert not person.card.is_open


async def test_a_new_session_is_told_to_listen() -> None:
    async with calling() as person:
        await person.hear(*answer(3), seconds=0.5)
        await person.hear(NewSession("s2", "The server was restarted."), seconds=1)
        assert person.sent(c.StartListening) == [c.StartListening()]
        assert person.card.heard_s == pytest.approx(0.5, abs=0.2)


async def test_a_lost_connection_ends_the_call() -> None:
    person = Person()
    person.session.end(Disconnected("The connection was lost.", come_back=True))
    with pytest.raises(Disconnected):
        await Call(person.session, person.card, person.told.append).run()
    assert not person.card.is_open


async def test_old_speech_is_dropped_while_a_connection_stalls() -> None:
    class StalledSession(ScriptedSession):
        stalls = True

        async def send_audio(self, pcm: bytes, *, playing: bool = False) -> None:
            await super().send_audio(pcm, playing=playing)
            if self.stalls:
                self.stalls = False
                await asyncio.sleep(60)

    person = Person()
    person.session = StalledSession()
    running = asyncio.create_task(Call(person.session, person.card, person.told.append).run())
    await asyncio.sleep(59)
    person.card.microphone = b"\x09\x00" * 320
    await asyncio.sleep(1.5)
    running.cancel()
    await asyncio.wait([running])
    assert len(person.session.audio) == pytest.approx(1 + MAX_WAITING + 25, abs=10)
