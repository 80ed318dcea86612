"""Turns in a stream of frames, given only the speech probability of each frame."""

import pytest

from antiphon.models.cascade.endpointer import (
    FRAME_BYTES,
    FRAME_MS,
    MAX_DROP_FRAMES,
    PREROLL_FRAMES,
    Endpointer,
    Signal,
)

SPEECH, SILENCE = 0.9, 0.05
SHORT_MS = 300


def frame(number: int) -> bytes:
    return number.to_bytes(2, "little") * (FRAME_BYTES // 2)


class Heard:
    """An endpointer, and the signs it gave with the frame that each came at."""

    def __init__(self, *, long_ms: int = 900) -> None:
        self.endpointer = Endpointer(long_ms)
        self.signals: list[Signal] = []
        self.at_ms: dict[Signal, int] = {}
        self.frames = 0

    def hear(self, ms: int, probability: float, *, may_start: bool = True) -> "Heard":
        for _ in range(round(ms / FRAME_MS)):
            self.frames += 1
            self.note(self.endpointer.hear(probability, frame(self.frames), may_start=may_start))
        return self

    def note(self, signal: Signal | None) -> None:
        if signal is not None:
            self.signals.append(signal)
            self.at_ms[signal] = self.frames * FRAME_MS

    def speak(self, ms: int) -> "Heard":
        return self.hear(ms, SPEECH)

    def be_silent(self, ms: int) -> "Heard":
        return self.hear(ms, SILENCE)


@pytest.fixture
def heard() -> Heard:
    return Heard()


def numbers(pcm: bytes) -> list[int]:
    return [int.from_bytes(pcm[at : at + 2], "little") for at in range(0, len(pcm), FRAME_BYTES)]


LOUD, SOFT = (level.to_bytes(2, "little") * (FRAME_BYTES // 2) for level in (9_000, 90))


def test_the_drop_in_level_is_noticed_before_the_vad_reports_silence() -> None:
    endpointer = Endpointer(900)
    stopped = []
    for probability, sound in [(SPEECH, LOUD)] * 5 + [(SPEECH, SOFT)] * 2 + [(SILENCE, SOFT)]:
        endpointer.hear(probability, sound)
        stopped.append(endpointer.has_sound_stopped)
    assert stopped == [False] * 5 + [True] * 3
    assert endpointer.silence_ms == FRAME_MS


def test_a_soft_sound_followed_by_speech_is_speech() -> None:
    endpointer = Endpointer(900)
    for probability, sound in [(SPEECH, LOUD)] * 5 + [(SPEECH, SOFT)] * (MAX_DROP_FRAMES + 1):
        endpointer.hear(probability, sound)
    assert not endpointer.has_sound_stopped


def test_a_silence_ends_when_speech_continues(heard: Heard) -> None:
    heard.speak(960).be_silent(320).speak(64)
    assert not heard.endpointer.has_sound_stopped


def test_silence_does_not_start_a_turn(heard: Heard) -> None:
    heard.be_silent(5_000)
    assert heard.signals == []


def test_speech_starts_a_turn_within_a_tenth_of_a_second(heard: Heard) -> None:
    heard.be_silent(1_000).speak(96)
    assert heard.signals == [Signal.STARTED]


def test_a_click_does_not_start_a_turn(heard: Heard) -> None:
    heard.be_silent(500).speak(32).be_silent(500).speak(64).be_silent(2_000)
    assert heard.signals == []


def test_a_turn_includes_audio_before_its_first_sound(heard: Heard) -> None:
    heard.be_silent(1_024).speak(96)
    assert numbers(heard.endpointer.audio) == list(range(32 + 1 - PREROLL_FRAMES, 32 + 1 + 3))


def test_a_turn_without_evidence_waits_for_the_long_silence(heard: Heard) -> None:
    heard.speak(1_600).be_silent(2_000)
    assert heard.signals == [Signal.STARTED, Signal.PAUSED, Signal.ENDED]
    assert heard.at_ms[Signal.ENDED] == pytest.approx(1_600 + 900, abs=FRAME_MS)


def test_a_turn_that_seems_complete_waits_for_the_short_silence(heard: Heard) -> None:
    heard.speak(1_600).be_silent(192)
    heard.note(heard.endpointer.require_silence(SHORT_MS))
    heard.be_silent(1_000)
    assert heard.at_ms[Signal.ENDED] == pytest.approx(1_600 + 300, abs=FRAME_MS)


def test_evidence_that_comes_after_the_short_silence_ends_the_turn_at_once(heard: Heard) -> None:
    heard.speak(1_600).be_silent(512)
    assert heard.endpointer.require_silence(SHORT_MS) is Signal.ENDED


def test_evidence_for_one_pause_does_not_apply_to_the_next(heard: Heard) -> None:
    heard.speak(1_600).be_silent(192)
    heard.endpointer.require_silence(SHORT_MS)
    heard.speak(640).be_silent(640)
    assert Signal.ENDED not in heard.signals


def test_evidence_that_comes_after_speech_resumed_is_ignored(heard: Heard) -> None:
    heard.speak(1_600).be_silent(192).speak(128)
    assert heard.endpointer.require_silence(SHORT_MS) is None


def test_speech_after_a_pause_continues_the_turn(heard: Heard) -> None:
    heard.speak(960).be_silent(512).speak(960).be_silent(1_000)
    assert heard.signals == [Signal.STARTED, Signal.PAUSED, Signal.RESUMED, Signal.PAUSED, Signal.ENDED]
    assert heard.endpointer.audio_ms >= 960 + 512 + 960


def test_a_click_does_not_lengthen_a_pause(heard: Heard) -> None:
    heard.speak(960).be_silent(448).speak(32).be_silent(512)
    assert heard.signals[-1] is Signal.ENDED


def test_words_that_trail_off_are_still_speech(heard: Heard) -> None:
    heard.speak(640).hear(640, 0.4)
    assert heard.signals == [Signal.STARTED]


def test_speech_after_the_end_reopens_the_turn_until_it_is_settled(heard: Heard) -> None:
    heard.speak(960).be_silent(1_000).speak(96)
    assert heard.signals[-1] is Signal.REOPENED
    assert heard.endpointer.audio_ms >= 960 + 1_000


def test_speech_after_a_settled_turn_is_another_one(heard: Heard) -> None:
    heard.speak(960).be_silent(1_000)
    heard.endpointer.settle()
    heard.be_silent(320).speak(96)
    assert heard.signals[-1] is Signal.STARTED
    assert heard.endpointer.audio_ms <= 96 + 320


def test_a_turn_that_waits_for_its_answer_does_not_grow(heard: Heard) -> None:
    heard.speak(960).be_silent(1_000)
    before_ms = heard.endpointer.audio_ms
    heard.be_silent(60_000)
    assert heard.endpointer.audio_ms == before_ms
    heard.speak(96)
    assert numbers(heard.endpointer.audio)[-3 - PREROLL_FRAMES :] == list(
        range(heard.frames - 2 - PREROLL_FRAMES, heard.frames + 1)
    )


def test_a_reopened_turn_contains_no_frame_twice(heard: Heard) -> None:
    heard.speak(960).be_silent(1_000).speak(320).be_silent(1_000).speak(96)
    frames = numbers(heard.endpointer.audio)
    assert frames == sorted(set(frames))


def test_speech_that_begins_as_the_turn_is_settled_keeps_its_beginning(heard: Heard) -> None:
    heard.speak(960).be_silent(1_000).speak(64)
    heard.endpointer.settle()
    heard.speak(32)
    assert heard.signals[-1] is Signal.STARTED
    assert numbers(heard.endpointer.audio) == list(range(heard.frames - 2 - PREROLL_FRAMES, heard.frames + 1))


def test_the_silence_after_a_turn_leads_into_the_next(heard: Heard) -> None:
    heard.speak(960).be_silent(896)
    assert heard.signals[-1] is Signal.ENDED
    heard.endpointer.settle()
    heard.speak(96)
    assert numbers(heard.endpointer.audio) == list(range(heard.frames - 2 - PREROLL_FRAMES, heard.frames + 1))


def test_the_speech_of_a_turn_is_not_part_of_the_next(heard: Heard) -> None:
    heard.speak(960)
    heard.endpointer.end()
    heard.endpointer.settle()
    heard.speak(96)
    assert numbers(heard.endpointer.audio) == list(range(31, 34))


def test_settling_repeatedly_loses_nothing(heard: Heard) -> None:
    heard.be_silent(1_024)
    for _ in range(6):
        heard.endpointer.settle()
        heard.hear(32, SPEECH, may_start=False)
    heard.note(heard.endpointer.start())
    assert numbers(heard.endpointer.audio) == list(range(heard.frames - 5 - PREROLL_FRAMES, heard.frames + 1))


def test_a_noise_that_is_too_short_for_a_word_is_discarded(heard: Heard) -> None:
    heard.speak(96).be_silent(2_000)
    assert heard.signals[-1] is Signal.DISCARDED
    assert not heard.endpointer.is_open


def test_no_turn_starts_on_its_own_while_an_answer_plays(heard: Heard) -> None:
    heard.hear(1_000, SPEECH, may_start=False)
    assert heard.signals == []


def test_a_deferred_start_includes_the_speech_from_its_beginning(heard: Heard) -> None:
    heard.be_silent(1_024).hear(192, SPEECH, may_start=False)
    heard.note(heard.endpointer.start())
    assert numbers(heard.endpointer.audio)[-6:] == [33, 34, 35, 36, 37, 38]
    assert heard.endpointer.audio_ms >= 192 + 200


def test_the_end_of_the_audio_ends_the_turn(heard: Heard) -> None:
    heard.speak(960)
    assert heard.endpointer.end() is Signal.ENDED


def test_the_end_of_the_audio_without_speech_ends_nothing(heard: Heard) -> None:
    heard.be_silent(960)
    assert heard.endpointer.end() is None


def test_discarded_audio_is_removed_from_the_turn(heard: Heard) -> None:
    heard.speak(3_200)
    before_ms = heard.endpointer.audio_ms
    heard.endpointer.drop_oldest(FRAME_BYTES * 50)
    assert heard.endpointer.audio_ms == before_ms - 50 * FRAME_MS
