"""Turns in a stream of frames, of which only their likelihood to be speech matters here."""

import pytest

from antiphon.models.cascade.ear import FRAME_BYTES, FRAME_MS, MOST_HUSHED_FRAMES, PREROLL_FRAMES, Ear, Sign

SPEECH, SILENCE = 0.9, 0.05
SHORT_MS = 300


def frame(number: int) -> bytes:
    return number.to_bytes(2, "little") * (FRAME_BYTES // 2)


class Heard:
    """An ear, and the signs it gave with the frame that each came at."""

    def __init__(self, *, long_ms: int = 900) -> None:
        self.ear = Ear(long_ms)
        self.signs: list[Sign] = []
        self.at_ms: dict[Sign, int] = {}
        self.frames = 0

    def hear(self, ms: int, probability: float, *, may_start: bool = True) -> "Heard":
        for _ in range(round(ms / FRAME_MS)):
            self.frames += 1
            self.note(self.ear.hear(probability, frame(self.frames), may_start=may_start))
        return self

    def note(self, sign: Sign | None) -> None:
        if sign is not None:
            self.signs.append(sign)
            self.at_ms[sign] = self.frames * FRAME_MS

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


def test_the_sound_stops_before_the_silence_is_known_as_one() -> None:
    ear = Ear(900)
    hushed = []
    for probability, sound in [(SPEECH, LOUD)] * 5 + [(SPEECH, SOFT)] * 2 + [(SILENCE, SOFT)]:
        ear.hear(probability, sound)
        hushed.append(ear.is_hushed)
    assert hushed == [False] * 5 + [True] * 3
    assert ear.silence_ms == FRAME_MS


def test_a_soft_sound_that_goes_on_as_speech_is_speech() -> None:
    ear = Ear(900)
    for probability, sound in [(SPEECH, LOUD)] * 5 + [(SPEECH, SOFT)] * (MOST_HUSHED_FRAMES + 1):
        ear.hear(probability, sound)
    assert not ear.is_hushed


def test_the_silence_before_somebody_goes_on_is_over_then(heard: Heard) -> None:
    heard.speak(960).be_silent(320).speak(64)
    assert not heard.ear.is_hushed


def test_silence_is_no_turn(heard: Heard) -> None:
    heard.be_silent(5_000)
    assert heard.signs == []


def test_speech_starts_a_turn_within_a_tenth_of_a_second(heard: Heard) -> None:
    heard.be_silent(1_000).speak(96)
    assert heard.signs == [Sign.STARTED]


def test_a_click_starts_nothing(heard: Heard) -> None:
    heard.be_silent(500).speak(32).be_silent(500).speak(64).be_silent(2_000)
    assert heard.signs == []


def test_a_turn_begins_before_its_first_sound(heard: Heard) -> None:
    heard.be_silent(1_024).speak(96)
    assert numbers(heard.ear.turn) == list(range(32 + 1 - PREROLL_FRAMES, 32 + 1 + 3))


def test_a_turn_without_evidence_waits_for_the_long_silence(heard: Heard) -> None:
    heard.speak(1_600).be_silent(2_000)
    assert heard.signs == [Sign.STARTED, Sign.PAUSED, Sign.ENDED]
    assert heard.at_ms[Sign.ENDED] == pytest.approx(1_600 + 900, abs=FRAME_MS)


def test_a_turn_that_seems_complete_waits_for_the_short_silence(heard: Heard) -> None:
    heard.speak(1_600).be_silent(192)
    heard.note(heard.ear.content_with(SHORT_MS))
    heard.be_silent(1_000)
    assert heard.at_ms[Sign.ENDED] == pytest.approx(1_600 + 300, abs=FRAME_MS)


def test_evidence_that_comes_after_the_short_silence_ends_the_turn_at_once(heard: Heard) -> None:
    heard.speak(1_600).be_silent(512)
    assert heard.ear.content_with(SHORT_MS) is Sign.ENDED


def test_evidence_for_one_pause_says_nothing_about_the_next(heard: Heard) -> None:
    heard.speak(1_600).be_silent(192)
    heard.ear.content_with(SHORT_MS)
    heard.speak(640).be_silent(640)
    assert Sign.ENDED not in heard.signs


def test_evidence_that_comes_when_speech_has_gone_on_is_ignored(heard: Heard) -> None:
    heard.speak(1_600).be_silent(192).speak(128)
    assert heard.ear.content_with(SHORT_MS) is None


def test_whoever_pauses_and_goes_on_is_in_the_same_turn(heard: Heard) -> None:
    heard.speak(960).be_silent(512).speak(960).be_silent(1_000)
    assert heard.signs == [Sign.STARTED, Sign.PAUSED, Sign.RESUMED, Sign.PAUSED, Sign.ENDED]
    assert heard.ear.turn_ms >= 960 + 512 + 960


def test_a_click_in_a_pause_does_not_make_it_longer(heard: Heard) -> None:
    heard.speak(960).be_silent(448).speak(32).be_silent(512)
    assert heard.signs[-1] is Sign.ENDED


def test_words_that_trail_off_are_still_speech(heard: Heard) -> None:
    heard.speak(640).hear(640, 0.4)
    assert heard.signs == [Sign.STARTED]


def test_speech_after_the_end_reopens_the_turn_until_it_is_settled(heard: Heard) -> None:
    heard.speak(960).be_silent(1_000).speak(96)
    assert heard.signs[-1] is Sign.REOPENED
    assert heard.ear.turn_ms >= 960 + 1_000


def test_speech_after_a_settled_turn_is_another_one(heard: Heard) -> None:
    heard.speak(960).be_silent(1_000)
    heard.ear.settle()
    heard.be_silent(320).speak(96)
    assert heard.signs[-1] is Sign.STARTED
    assert heard.ear.turn_ms <= 96 + 320


def test_a_turn_that_waits_for_its_answer_does_not_grow(heard: Heard) -> None:
    heard.speak(960).be_silent(1_000)
    before_ms = heard.ear.turn_ms
    heard.be_silent(60_000)
    assert heard.ear.turn_ms == before_ms
    heard.speak(96)
    assert numbers(heard.ear.turn)[-3 - PREROLL_FRAMES :] == list(
        range(heard.frames - 2 - PREROLL_FRAMES, heard.frames + 1)
    )


def test_a_turn_that_is_reopened_has_no_frame_twice(heard: Heard) -> None:
    heard.speak(960).be_silent(1_000).speak(320).be_silent(1_000).speak(96)
    frames = numbers(heard.ear.turn)
    assert frames == sorted(set(frames))


def test_speech_that_begins_as_the_turn_is_settled_keeps_its_beginning(heard: Heard) -> None:
    heard.speak(960).be_silent(1_000).speak(64)
    heard.ear.settle()
    heard.speak(32)
    assert heard.signs[-1] is Sign.STARTED
    assert numbers(heard.ear.turn) == list(range(heard.frames - 2 - PREROLL_FRAMES, heard.frames + 1))


def test_the_silence_after_a_turn_is_the_lead_of_the_next(heard: Heard) -> None:
    heard.speak(960).be_silent(896)
    assert heard.signs[-1] is Sign.ENDED
    heard.ear.settle()
    heard.speak(96)
    assert numbers(heard.ear.turn) == list(range(heard.frames - 2 - PREROLL_FRAMES, heard.frames + 1))


def test_the_speech_of_a_turn_is_no_part_of_the_next(heard: Heard) -> None:
    heard.speak(960)
    heard.ear.end()
    heard.ear.settle()
    heard.speak(96)
    assert numbers(heard.ear.turn) == list(range(31, 34))


def test_to_settle_again_and_again_loses_nothing(heard: Heard) -> None:
    heard.be_silent(1_024)
    for _ in range(6):
        heard.ear.settle()
        heard.hear(32, SPEECH, may_start=False)
    heard.note(heard.ear.start())
    assert numbers(heard.ear.turn) == list(range(heard.frames - 5 - PREROLL_FRAMES, heard.frames + 1))


def test_a_noise_that_is_too_short_for_a_word_is_discarded(heard: Heard) -> None:
    heard.speak(96).be_silent(2_000)
    assert heard.signs[-1] is Sign.DISCARDED
    assert not heard.ear.is_open


def test_nothing_starts_by_itself_while_an_answer_plays(heard: Heard) -> None:
    heard.hear(1_000, SPEECH, may_start=False)
    assert heard.signs == []


def test_a_start_that_was_held_back_has_the_speech_from_its_beginning(heard: Heard) -> None:
    heard.be_silent(1_024).hear(192, SPEECH, may_start=False)
    heard.note(heard.ear.start())
    assert numbers(heard.ear.turn)[-6:] == [33, 34, 35, 36, 37, 38]
    assert heard.ear.turn_ms >= 192 + 200


def test_the_end_of_the_audio_ends_the_turn(heard: Heard) -> None:
    heard.speak(960)
    assert heard.ear.end() is Sign.ENDED


def test_the_end_of_the_audio_without_speech_ends_nothing(heard: Heard) -> None:
    heard.be_silent(960)
    assert heard.ear.end() is None


def test_what_is_forgotten_is_gone_from_the_turn(heard: Heard) -> None:
    heard.speak(3_200)
    before_ms = heard.ear.turn_ms
    heard.ear.forget(FRAME_BYTES * 50)
    assert heard.ear.turn_ms == before_ms - 50 * FRAME_MS
