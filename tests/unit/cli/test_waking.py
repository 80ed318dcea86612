"""Between the calls only the wake word is listened to, and silence ends a call."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from antiphon.cli.waking import SLEEP_AFTER_S, Silence, WakingSoundCard
from antiphon.client import Incoming
from antiphon.protocol import server_messages as s

WAKE, BEGUN, REQUEST, MORE = b"hey", b"what", b"time", b"more"


class Card:
    """A sound card whose microphone is spoken into by the test."""

    def __init__(self) -> None:
        self.say: Callable[[bytes], None]
        self.take: Callable[[int], bytes]
        self.is_open = False

    @contextmanager
    def open(self, hear: Callable[[bytes], None], play: Callable[[int], bytes]) -> Iterator[None]:
        self.say, self.take, self.is_open = hear, play, True
        yield
        self.is_open = False


class Waker:
    def __init__(self) -> None:
        self.heard: list[bytes] = []

    def hear(self, pcm: bytes) -> bytes | None:
        self.heard.append(pcm)
        return BEGUN if pcm == WAKE else None

    def reset(self) -> None:
        self.heard.clear()


async def test_a_call_hears_what_follows_the_wake_word_and_nothing_before_it() -> None:
    card, waker, heard = Card(), Waker(), list[bytes]()
    waking = WakingSoundCard(card, waker)
    with waking.running():
        waiting = asyncio.create_task(waking.wait())
        await asyncio.sleep(0)
        card.say(b"private")
        card.say(WAKE)
        card.say(REQUEST)
        await waiting
        with waking.open(heard.append, lambda size: b"\1" * size):
            card.say(MORE)
            assert card.take(4) == b"\1" * 4
    assert heard == [BEGUN, REQUEST, MORE]
    assert not card.is_open


async def test_after_a_call_it_waits_for_the_wake_word_again() -> None:
    card, waker, heard = Card(), Waker(), list[bytes]()
    waking = WakingSoundCard(card, waker)
    with waking.running():
        for _ in range(2):
            waiting = asyncio.create_task(waking.wait())
            await asyncio.sleep(0)
            card.say(MORE)
            await asyncio.sleep(0)
            assert not waiting.done()
            assert card.take(4) == bytes(4)
            card.say(WAKE)
            await waiting
            with waking.open(heard.append, bytes):
                card.say(REQUEST)
            card.say(b"too late")
    assert heard == [BEGUN, REQUEST, BEGUN, REQUEST]
    assert waker.heard == [MORE, WAKE]


class Time:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_silence_lasts_from_the_last_message() -> None:
    time = Time()
    silence = Silence(time)
    time.now_s += SLEEP_AFTER_S
    assert silence.lasts_s == SLEEP_AFTER_S
    silence.take(s.Transcript(turn=1, text="what", is_final=False))
    assert silence.lasts_s == 0


@pytest.mark.parametrize("state", [s.State.PROCESSING, s.State.SPEAKING])
def test_nobody_is_silent_while_an_answer_is_made_or_spoken(state: s.State) -> None:
    time = Time()
    silence = Silence(time)
    silence.take(s.StateChanged(state=state))
    time.now_s += 60
    assert silence.lasts_s == 0
    silence.take(s.StateChanged(state=s.State.LISTENING))
    time.now_s += 3
    assert silence.lasts_s == 3


def test_other_messages_do_not_end_the_silence() -> None:
    time = Time()
    silence = Silence(time)
    time.now_s += 5
    told: list[Incoming] = [s.GenerationComplete(turn=1), s.TurnMetrics(turn=1)]
    for message in told:
        silence.take(message)
    assert silence.lasts_s == 5
