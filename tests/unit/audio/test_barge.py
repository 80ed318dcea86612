from collections.abc import Sequence

import numpy as np
import pytest

from antiphon.audio import AudioError
from antiphon.audio.barge import BargeIn
from antiphon.audio.pcm import FRAME_MS, Signal
from antiphon.audio.resample import resample
from antiphon.audio.vad import Vad
from antiphon.sound_format import MICROPHONE_HZ
from tests.unit.audio.conftest import VOICE_HZ, Speaker, at_level, silence, to_frames

ANSWER = "The capital of France is Paris, and about two million people live there. It is known for the Eiffel Tower."
INTERRUPTIONS = [
    "Wait a minute, that's not what I meant.",
    "Stop.",
    "No, I said Thursday.",
    "Actually, could you say that again?",
    "Hold on.",
    "Okay, thanks.",
    "Hey, listen.",
    "Set a timer for ten minutes.",
]
LIKE_HUMS = ["Who is that?", "Who knew?", "Who moved it?", "Would you?", "You do.", "Me too."]
"""The vowels of "who" and "you" have hardly more high tones than a hum."""
BEFORE_S = 1.1


def hear(vad: Vad, barge: BargeIn, microphone: Signal, *, playing: bool) -> float | None:
    """The millisecond at which the answer is interrupted, if it is."""
    stream = vad.stream()
    for count, frame in enumerate(to_frames(microphone), start=1):
        [probability] = vad.run([(stream, frame)])
        if barge.hear(probability, frame.tobytes(), playing=playing):
            return count * FRAME_MS
    return None


def playing(speaker: Speaker, text: str = ANSWER) -> BargeIn:
    """While this is being said. It is sent in pieces."""
    barge = BargeIn()
    pcm = speaker.speak(text).tobytes()
    for at in range(0, len(pcm), 9_000):
        barge.played(pcm[at : at + 9_000], VOICE_HZ)
    return barge


def loudspeaker(speaker: Speaker, gain_db: float, delay_s: float, text: str = ANSWER) -> Signal:
    """What a microphone hears of it."""
    sound = np.concatenate([silence(delay_s), speaker.say(text), silence(0.5)])
    return sound * np.float32(10 ** (gain_db / 20))


def onset(speech: Signal) -> int:
    return int(np.flatnonzero(np.abs(speech) > np.abs(speech).max() / 15)[0])


def delays_ms(
    vad: Vad,
    speaker: Speaker,
    heights: Sequence[float],
    dbfs: float,
    *,
    plays: bool,
    texts: Sequence[str] = INTERRUPTIONS,
) -> list[float]:
    """How long after somebody began to speak the answer is interrupted."""
    delays = []
    for i, text in enumerate(texts):
        for height in heights:
            speech = at_level(speaker.say(text, height), dbfs)
            # Frames do not begin where speech does.
            before = silence(BEFORE_S + 0.007 * i)
            barge = playing(speaker) if plays else BargeIn()
            at_ms = hear(vad, barge, np.concatenate([before, speech, silence(0.3)]), playing=plays)
            began_ms = (len(before) + onset(speech)) * 1_000 / MICROPHONE_HZ
            delays.append(np.inf if at_ms is None else at_ms - began_ms)
    return delays


@pytest.mark.parametrize("dbfs", [-15, -25, -35])
def test_speech_interrupts_within_200_ms(vad: Vad, speaker: Speaker, dbfs: float) -> None:
    delays = delays_ms(vad, speaker, [0.87, 1.0, 1.15], dbfs, plays=False)
    assert min(delays) > 0
    assert np.quantile(delays, 0.5, method="higher") <= 150
    assert np.quantile(delays, 0.85, method="higher") <= 200


@pytest.mark.parametrize("dbfs", [-15, -35])
def test_another_speaker_interrupts_within_300_ms_during_playback(vad: Vad, speaker: Speaker, dbfs: float) -> None:
    delays = delays_ms(vad, speaker, [0.87, 1.15], dbfs, plays=True)
    assert min(delays) > 0
    assert np.quantile(delays, 0.85, method="higher") <= 300


def test_words_that_sound_like_hums_interrupt_within_300_ms(vad: Vad, speaker: Speaker) -> None:
    delays = delays_ms(vad, speaker, [0.87, 1.0, 1.15], -20, plays=False, texts=LIKE_HUMS)
    assert min(delays) > 0
    assert np.quantile(delays, 0.85, method="higher") <= 300


@pytest.mark.parametrize("delay_s", [0.0, 0.13, 0.41])
@pytest.mark.parametrize("gain_db", [-10, -20, -30])
def test_the_assistant_does_not_interrupt_itself(vad: Vad, speaker: Speaker, gain_db: float, delay_s: float) -> None:
    assert hear(vad, playing(speaker), loudspeaker(speaker, gain_db, delay_s), playing=True) is None


def test_the_assistant_does_not_interrupt_itself_through_a_small_loudspeaker_in_a_bare_room(
    vad: Vad, speaker: Speaker
) -> None:
    chance = np.random.default_rng(4)
    echoes = chance.normal(0, 1, round(0.3 * MICROPHONE_HZ)) * np.exp(
        -np.arange(round(0.3 * MICROPHONE_HZ)) / (0.05 * MICROPHONE_HZ)
    )
    echoes[0] = np.sqrt(2 * np.square(echoes).sum())
    echoes[:-1] -= 0.8 * echoes[1:]
    direct = loudspeaker(speaker, -20, 0.2)
    size = len(direct) + len(echoes)
    heard = np.fft.irfft(np.fft.rfft(direct, size) * np.fft.rfft(echoes, size), size)[: len(direct)]
    room = at_level(heard.astype(np.float32), -38)
    assert hear(vad, playing(speaker), room, playing=True) is None


def test_the_assistants_own_voice_would_interrupt_without_the_playback_reference(vad: Vad, speaker: Speaker) -> None:
    assert hear(vad, BargeIn(), loudspeaker(speaker, -20, 0.13), playing=True) is not None


def test_a_speaker_is_heard_over_the_loudspeaker(vad: Vad, speaker: Speaker) -> None:
    speech = at_level(speaker.say(INTERRUPTIONS[0], 1.15), -20)
    microphone = loudspeaker(speaker, -20, 0.13)
    start = round(2.5 * MICROPHONE_HZ)
    microphone[start : start + len(speech)] += speech
    at_ms = hear(vad, playing(speaker), microphone, playing=True)
    assert at_ms is not None
    assert 2_500 < at_ms <= 2_900


def cough(seed: int) -> Signal:
    """A burst of noise that dies away fast, once or twice."""
    chance = np.random.default_rng(seed)
    length_s = chance.uniform(0.1, 0.25)
    seconds = np.arange(round(2 * length_s * MICROPHONE_HZ)) / MICROPHONE_HZ
    spectrum = np.fft.rfft(chance.normal(0, 1, len(seconds)))
    hz = np.fft.rfftfreq(len(seconds), 1 / MICROPHONE_HZ)
    spectrum *= hz / (hz + 300) / (1 + (hz / chance.uniform(1_500, 4_000)) ** 2)
    burst = np.fft.irfft(spectrum, len(seconds)) * np.minimum(1, seconds / 0.004) * np.exp(-3 * seconds / length_s)
    return np.tile(np.concatenate([burst, silence(0.1)]), 1 + seed % 2).astype(np.float32)


def hum(pitch_hz: float, breath: float = 0.0) -> Signal:
    """An "mm-hm" with the mouth closed: two bumps without high tones, the second one rising.

    Between them is as much breath, beside their level.
    """
    seconds = np.arange(round(0.18 * MICROPHONE_HZ)) / MICROPHONE_HZ
    bumps = []
    for rise in (-0.05, 0.15):
        phase = 2 * np.pi * np.cumsum(pitch_hz * (1 + rise * seconds / seconds[-1])) / MICROPHONE_HZ
        overtones = range(1, int(4_000 / pitch_hz))
        tones = [np.cos(k * phase) / k / np.sqrt(1 + (k * pitch_hz / 400) ** 8) for k in overtones]
        bumps += [np.sum(tones, axis=0) * np.sqrt(np.hanning(len(seconds))), silence(0.06)]
    sound = np.concatenate(bumps)
    start, size = round(0.12 * MICROPHONE_HZ), round(0.18 * MICROPHONE_HZ)
    spectrum = np.fft.rfft(np.random.default_rng(round(pitch_hz)).normal(0, 1, size) * np.hanning(size))
    hiss = np.fft.irfft(spectrum / (1 + (np.fft.rfftfreq(size, 1 / MICROPHONE_HZ) / 1_500) ** 2), size)
    sound[start : start + size] += breath * hiss * np.sqrt(np.square(bumps[0]).mean() / np.square(hiss).mean())
    return sound.astype(np.float32)


@pytest.mark.parametrize("dbfs", [-15, -30])
def test_a_cough_does_not_interrupt(vad: Vad, dbfs: float) -> None:
    for seed in range(10):
        microphone = np.concatenate([silence(0.5), at_level(cough(seed), dbfs), silence(0.4)])
        assert hear(vad, BargeIn(), microphone, playing=False) is None


@pytest.mark.parametrize("breath", [0.0, 0.3])
@pytest.mark.parametrize("dbfs", [-15, -30])
def test_a_hum_of_assent_does_not_interrupt(vad: Vad, dbfs: float, breath: float) -> None:
    for pitch_hz in (90, 110, 130, 160, 200):
        microphone = np.concatenate([silence(0.5), at_level(hum(pitch_hz, breath), dbfs), silence(0.4)])
        assert hear(vad, BargeIn(), microphone, playing=False) is None


def test_a_moment_of_speech_is_not_enough(speaker: Speaker) -> None:
    barge = BargeIn()
    frames = to_frames(speaker.say(INTERRUPTIONS[0])[4_000:])
    assert [
        barge.hear(p, frame, playing=False) for p, frame in zip((0.9, 0.9, 0.1, 0.9, 0.9), frames, strict=False)
    ] == ([False] * 5)


def test_any_long_sound_interrupts() -> None:
    barge = BargeIn()
    drone = to_frames(np.tile(at_level(hum(110), -20), 10))
    at = next(count for count, frame in enumerate(drone) if barge.hear(0.95, frame, playing=False))
    assert 500 <= at * FRAME_MS <= 800


def test_a_new_answer_starts_without_evidence(vad: Vad, speaker: Speaker) -> None:
    barge = playing(speaker, "This is another answer, that has nothing to do with it.")
    hear(
        vad,
        barge,
        loudspeaker(speaker, -20, 0.1, "This is another answer, that has nothing to do with it."),
        playing=True,
    )
    barge.reset()
    barge.played(resample(speaker.speak(ANSWER).tobytes(), VOICE_HZ, 24_000), 24_000)
    assert hear(vad, barge, loudspeaker(speaker, -20, 0.13), playing=True) is None


@pytest.mark.parametrize("frame", [b"", b"\0", bytes(1_022), bytes(1_026)])
def test_a_frame_of_another_length_is_refused(frame: bytes) -> None:
    with pytest.raises(AudioError, match="512 samples"):
        BargeIn().hear(0.9, frame, playing=False)


def test_a_sample_rate_of_zero_is_refused() -> None:
    with pytest.raises(AudioError, match="greater than 0"):
        BargeIn().played(bytes(100), 0)
