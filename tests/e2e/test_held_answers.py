"""Real speech over an answer: an "okay" lets it go on, words interrupt it, and a "stop" stops it without a word."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from antiphon.client.speaking import FRAME_BYTES, Exchange
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.protocol.limits import speech_ms
from tests.e2e.questions import TOKYO
from tests.e2e.voices import RMS, SLT, Person, VoiceServer, calling, incoming_state, make_clips

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(180)]

LONG = "What can you do?"
"""A question with a long answer."""
SECOND = bytes(50 * FRAME_BYTES)

Clips = Mapping[tuple[str, str], bytes]


@pytest.fixture(scope="module")
def clips(models_dir: Path) -> Clips:
    return make_clips(models_dir, [(SLT, "Okay."), (RMS, "Stop."), (RMS, TOKYO.text)])


@asynccontextmanager
async def answered(server: VoiceServer) -> AsyncIterator[Person]:
    """A person who has heard the first second of a long answer."""
    async with calling(server.url, features=("hold",)) as person:
        await person.session.send(c.TextMessage(LONG))
        await person.until_state(s.State.SPEAKING)
        await person.send_frames(SECOND, playing=True)
        yield person


def is_held(incoming: object) -> bool:
    return isinstance(incoming, s.Hold)


async def test_an_okay_over_an_answer_lets_it_go_on(voice_server: VoiceServer, clips: Clips) -> None:
    async with answered(voice_server) as person:
        sending = asyncio.create_task(person.send_frames(clips[SLT, "Okay."] + SECOND, playing=False))
        await person.until(is_held)
        await person.until(lambda incoming: isinstance(incoming, s.Resume))
        await sending
        while not any(isinstance(each, s.GenerationComplete) for each in person.told):
            await person.hear()
        left_ms = sum(speech_ms(each.pcm) for each in person.told if isinstance(each, s.SpeechFrame)) - 1_000
        await person.send_frames(bytes(left_ms // 20 * FRAME_BYTES), playing=True)
        await person.session.send(c.PlaybackDone())
        await person.until_state(s.State.LISTENING)
        assert s.State.INTERRUPTED not in map(incoming_state, person.told)
        [full] = [each.text for each in person.told if isinstance(each, s.Response)]
        turns = [(role, text) for role, text, _ in voice_server.said(person.conversation_id)]
        assert turns == [("user", LONG), ("assistant", full)]


async def test_words_over_an_answer_interrupt_it(voice_server: VoiceServer, clips: Clips) -> None:
    async with answered(voice_server) as person:
        sending = asyncio.create_task(person.send_frames(clips[RMS, TOKYO.text] + 2 * SECOND, playing=False))
        await person.until(is_held)
        await person.until_state(s.State.INTERRUPTED)
        exchange, before = Exchange(), len(person.told)
        await person.until(lambda incoming: isinstance(incoming, s.Response))
        await sending
        for incoming in person.told[before:]:
            exchange.take(incoming, 0.0)
        assert TOKYO.is_answered_by(exchange)
        assert not any(isinstance(incoming, s.Resume) for incoming in person.told)


async def test_a_stop_over_an_answer_ends_it_and_is_not_answered(voice_server: VoiceServer, clips: Clips) -> None:
    async with answered(voice_server) as person:
        sending = asyncio.create_task(person.send_frames(clips[RMS, "Stop."] + 2 * SECOND, playing=False))
        await person.until(is_held)
        await person.until_state(s.State.INTERRUPTED)
        await sending
        answers = [each for each in person.told if isinstance(each, s.Response)]
        await person.session.send(c.Ping(1))
        await person.until(lambda incoming: isinstance(incoming, s.Pong))
        assert [each for each in person.told if isinstance(each, s.Response)] == answers
        assert [role for role, _, _ in voice_server.said(person.conversation_id)] == ["user", "assistant"]
