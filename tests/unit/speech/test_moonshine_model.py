"""The file of tokens, and the text that they make."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from antiphon.audio.pcm import Signal
from antiphon.sound_format import MICROPHONE_HZ
from antiphon.speech.engines.moonshine.model import BEGINNING, FRESH_S, MAX_DRAFTS, Drafts
from antiphon.speech.engines.moonshine.tokens import END, START, Tokens

LONG = b"x" * 300


def pack(tokens: Sequence[bytes]) -> bytes:
    """Lengths from 128 on take two bytes."""
    lengths = (
        bytes([len(each) % 128 + 128, len(each) // 128]) if len(each) > 127 else bytes([len(each)]) for each in tokens
    )
    return b"".join(length + each for length, each in zip(lengths, tokens, strict=True))


FILE = pack([b"<unk>", b"<s>", b"</s>", "▁What".encode(), "▁time".encode(), b"?", LONG, "▁".encode(), b"\xc3", b"\xa9"])


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ([3, 4, 5], "What time?"),
        ([3, 7, 7, 4, 7], "What time"),
        ([6], LONG.decode()),
        ([8, 9], "é"),
        ([3, 8], "What"),
        ([START, 0, 3, END, 99], "What"),
        ([], ""),
    ],
)
def test_tokens_make_a_text(tokens: list[int], text: str) -> None:
    assert Tokens(FILE).write(tokens) == text


@pytest.mark.parametrize("file", [b"", pack([b"a", b"b"]), FILE[:-1], FILE + b"\x05", FILE + b"\xff"])
def test_a_damaged_file_is_refused(file: bytes) -> None:
    with pytest.raises(ValueError, match="it "):
        Tokens(file)


def test_the_model_s_own_file_has_all_its_tokens(models_dir: Path) -> None:
    assert len(Tokens((models_dir / "moonshine-base-en" / "tokenizer.bin").read_bytes())) == 32_000


class Clock:
    def __init__(self) -> None:
        self.s = 1_000.0

    def __call__(self) -> float:
        return self.s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def drafts(clock: Clock) -> Drafts:
    return Drafts(clock)


def sound(seed: int, seconds: float = 2.0) -> Signal:
    return np.random.default_rng(seed).normal(0, 0.1, int(seconds * MICROPHONE_HZ)).astype(np.float32)


def test_continued_speech_is_recognized_by_its_beginning(drafts: Drafts) -> None:
    drafts.keep(sound(1)[:MICROPHONE_HZ], [5, 6, 7])
    assert drafts.find(sound(1)) == [5, 6]


def test_other_speech_has_no_draft(drafts: Drafts) -> None:
    drafts.keep(sound(1), [5, 6, 7])
    assert drafts.find(sound(2)) == ()
    assert drafts.find(sound(1)[1:]) == ()


def test_the_newest_draft_wins(drafts: Drafts) -> None:
    drafts.keep(sound(1)[:MICROPHONE_HZ], [5, 6, 7])
    drafts.keep(sound(1), [5, 8, 9, 10])
    assert drafts.find(sound(1)) == [5, 8, 9]


def test_a_draft_is_soon_forgotten(drafts: Drafts, clock: Clock) -> None:
    drafts.keep(sound(1), [5, 6, 7])
    clock.s += FRESH_S
    assert drafts.find(sound(1)) == ()


@pytest.mark.parametrize("samples", [0, 1, BEGINNING - 1])
def test_speech_too_short_to_be_matched_is_not_kept(drafts: Drafts, samples: int) -> None:
    drafts.keep(sound(1)[:samples], [5, 6, 7])
    assert drafts.find(sound(1)[:samples]) == ()


@pytest.mark.parametrize("tokens", [[], [5]])
def test_a_draft_may_be_empty(drafts: Drafts, tokens: list[int]) -> None:
    drafts.keep(sound(1), tokens)
    assert list(drafts.find(sound(1))) == []


def test_the_oldest_drafts_are_dropped(drafts: Drafts) -> None:
    sounds = [sound(seed, 0.5) for seed in range(MAX_DRAFTS + 1)]
    for each in sounds:
        drafts.keep(each, [5, 6])
    assert drafts.find(sounds[0]) == ()
    assert drafts.find(sounds[1]) == drafts.find(sounds[-1]) == [5]
