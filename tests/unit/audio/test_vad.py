import numpy as np
import pytest

from antiphon.audio import AudioError
from antiphon.audio.pcm import FRAME_BYTES, FRAME_SAMPLES, Samples, Signal
from antiphon.audio.vad import STILL_FRAMES_BEFORE_SKIPPING, Vad
from antiphon.sound_format import MICROPHONE_HZ
from tests.unit.audio.conftest import Speaker, at_level, silence, to_frames

SENTENCES = ["What time is it in Tokyo?", "Remind me to call my mother.", "Tell me a joke.", "Wait a moment, please."]


def listen(vad: Vad, frames: list[Samples]) -> list[float]:
    stream = vad.stream()
    return [vad.run([(stream, frame)])[0] for frame in frames]


def speech(speaker: Speaker, text: str, height: float = 1.0, dbfs: float = -25) -> list[Samples]:
    return to_frames(np.concatenate([silence(0.3), at_level(speaker.say(text, height), dbfs), silence(0.5)]))


@pytest.mark.parametrize("dbfs", [-15, -35])
@pytest.mark.parametrize("height", [0.87, 1.0, 1.15])
def test_speech_is_detected_at_any_pitch_and_level(vad: Vad, speaker: Speaker, height: float, dbfs: float) -> None:
    probabilities = listen(vad, speech(speaker, SENTENCES[0], height, dbfs))
    assert max(probabilities) > 0.9
    assert np.median(probabilities[15:40]) > 0.9


def test_the_silence_around_speech_is_detected_too(vad: Vad, speaker: Speaker) -> None:
    probabilities = listen(vad, speech(speaker, SENTENCES[0]))
    assert max(probabilities[:8]) < 0.3
    assert probabilities[-1] < 0.3


def noise(kind: str) -> Signal:
    seconds = np.arange(2 * MICROPHONE_HZ) / MICROPHONE_HZ
    match kind:
        case "silence":
            return silence(2)
        case "white noise":
            return np.random.default_rng(2).normal(0, 0.1, 2 * MICROPHONE_HZ).astype(np.float32)
        case "faint noise":
            return np.random.default_rng(3).normal(0, 0.003, 2 * MICROPHONE_HZ).astype(np.float32)
        case _:
            return (0.3 * np.sin(2 * np.pi * 440 * seconds)).astype(np.float32)


@pytest.mark.parametrize("kind", ["silence", "white noise", "faint noise", "a tone"])
def test_non_speech_is_not_detected(vad: Vad, kind: str) -> None:
    assert max(listen(vad, to_frames(noise(kind)))) < 0.3


def test_a_batch_gives_the_same_results_as_single_frames(vad: Vad, speaker: Speaker) -> None:
    recordings = [speech(speaker, text, height) for text in SENTENCES for height in (0.87, 1.15)]
    alone = [listen(vad, frames) for frames in recordings]
    streams = [vad.stream() for _ in recordings]
    together: list[list[float]] = [[] for _ in recordings]
    for at in range(max(map(len, recordings))):
        # The recordings differ in length, and some skip a turn: batches come in all sizes.
        here = [i for i, frames in enumerate(recordings) if len(together[i]) < len(frames) and (at + i) % 5]
        for i, probability in zip(
            here, vad.run([(streams[i], recordings[i][len(together[i])]) for i in here]), strict=True
        ):
            together[i].append(probability)
    for heard, expected in zip(together, alone, strict=True):
        assert len(heard) > 20
        assert heard == pytest.approx(expected[: len(heard)], abs=1e-4)


def first_heard(probabilities: list[float]) -> int:
    return next(at for at, probability in enumerate(probabilities) if probability >= 0.5)


def test_digital_silence_is_not_speech_and_skips_inference(vad: Vad) -> None:
    probabilities = listen(vad, to_frames(silence(3)))
    assert probabilities[STILL_FRAMES_BEFORE_SKIPPING:] == [0.0] * (len(probabilities) - STILL_FRAMES_BEFORE_SKIPPING)
    assert all(probabilities[:STILL_FRAMES_BEFORE_SKIPPING])


@pytest.mark.parametrize("sentence", SENTENCES)
def test_speech_is_detected_as_quickly_after_a_long_silence_as_after_a_short_one(
    vad: Vad, speaker: Speaker, sentence: str
) -> None:
    still_s = 20
    words = at_level(speaker.say(sentence), -25)
    short = first_heard(listen(vad, to_frames(np.concatenate([silence(0.32), words]))))
    long = first_heard(listen(vad, to_frames(np.concatenate([silence(still_s), words]))))
    assert abs(long - short - (still_s - 0.32) * MICROPHONE_HZ / FRAME_SAMPLES) <= 1


def test_bytes_and_samples_give_the_same_result(vad: Vad, speaker: Speaker) -> None:
    frames = speech(speaker, SENTENCES[2])
    stream = vad.stream()
    assert [vad.run([(stream, frame.tobytes())])[0] for frame in frames] == listen(vad, frames)


def test_an_empty_batch_gives_an_empty_result(vad: Vad) -> None:
    assert vad.run([]) == []


@pytest.mark.parametrize("lengths", [(0,), (FRAME_BYTES - 2,), (FRAME_BYTES - 2, FRAME_BYTES + 2)])
def test_frames_of_another_length_are_refused(vad: Vad, lengths: tuple[int, ...]) -> None:
    with pytest.raises(AudioError, match="512 samples"):
        vad.run([(vad.stream(), bytes(length)) for length in lengths])


def test_samples_of_another_width_are_refused(vad: Vad) -> None:
    with pytest.raises(AudioError, match="512 samples"):
        vad.run([(vad.stream(), np.zeros(512, np.float32))])


def test_a_refused_frame_does_not_affect_the_others_in_its_batch(vad: Vad, speaker: Speaker) -> None:
    frames = speech(speaker, SENTENCES[2])
    expected = listen(vad, frames)
    stream = vad.stream()
    heard = [vad.run([(stream, frame)])[0] for frame in frames[:20]]
    with pytest.raises(AudioError):
        vad.run([(stream, frames[20]), (vad.stream(), b"")])
    assert heard + [vad.run([(stream, frame)])[0] for frame in frames[20:]] == pytest.approx(expected, abs=1e-6)
