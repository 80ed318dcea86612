"""Real speech, real engines, two servers over one database: an answer that is cut is sent once and heard completely.

`make soak` runs it. The recogniser judges what was heard, and mishears a word here and there.
"""

import asyncio
from pathlib import Path
from random import Random

import pytest

from antiphon.protocol.limits import SPEECH_HZ
from antiphon.speech.spoken import speakable
from tests.e2e.questions import CHRISTMAS, LATER, TOKYO, WEEKDAY
from tests.e2e.voices import JOE, RMS, SLT, VoiceServer, engines, make_clips, serve
from tests.fakes.spoken import error_rate, for_ears
from tests.fault.cuts import Listener

CUTS = 40
AT_ONCE = 2
TYPED = ("What can you do?", TOKYO.text, CHRISTMAS.text)
"""The answer to the first one lasts 20 seconds."""
SPOKEN = tuple((voice, question.text) for voice in (JOE, SLT, RMS) for question in (TOKYO, CHRISTMAS, WEEKDAY, LATER))

pytestmark = pytest.mark.real_time


async def cut(rng: Random, places: list[VoiceServer], clips: dict[tuple[str, str], bytes]) -> tuple[str, bytes]:
    """Returns the text of one answer, and the audio that was heard."""
    listener = await Listener().open(rng.choice(places))
    if rng.random() < 0.5:
        await listener.play_to(clips[rng.choice(SPOKEN)])
    else:
        await listener.send("text_message", text=rng.choice(TYPED))
        await listener.until("transcript")
    await listener.listen(rng.uniform(0.0, 5.0), answers=1)
    listener.cut()
    await asyncio.sleep(rng.uniform(0.0, 2.0))
    await listener.resume(rng.choice(places))
    assert listener.session["resumed"] is True
    await listener.listen_out(answers=1)
    [response] = listener.every("response")
    [pcm] = listener.speech.values()
    await listener.leave()
    return response["text"], pcm


@pytest.mark.timeout(1_200)
async def test_an_answer_in_a_real_voice_is_told_and_heard_once(tmp_path: Path, models_dir: Path) -> None:
    clips = await asyncio.to_thread(make_clips, models_dir, SPOKEN)
    rng, turns = Random(3), asyncio.Semaphore(AT_ONCE)
    with serve(tmp_path, models_dir) as one, serve(tmp_path, models_dir) as two:

        async def run(seed: int) -> tuple[str, bytes]:
            async with turns:
                return await cut(Random(seed), [one, two], clips)

        answers = await asyncio.gather(*(run(rng.getrandbits(32)) for _ in range(CUTS)))
    async with engines(models_dir) as (_, moonshine):
        heard = [await moonshine.recognize(for_ears(pcm, SPEECH_HZ)) for _, pcm in answers]
    said = [(speakable(text), words) for (text, _), words in zip(answers, heard, strict=True)]
    rate = error_rate(said)
    print(f"word errors in {CUTS} answers that were cut: {rate:.3f}")
    assert rate < 0.3, said
