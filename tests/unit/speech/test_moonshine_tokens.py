"""The file of tokens, and the text that they make."""

from collections.abc import Sequence
from pathlib import Path

import pytest

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
def test_a_file_that_is_damaged_is_refused(file: bytes) -> None:
    with pytest.raises(ValueError, match="it "):
        Tokens(file)


def test_the_model_s_own_file_has_all_its_tokens(models_dir: Path) -> None:
    assert len(Tokens((models_dir / "moonshine-base-en" / "tokenizer.bin").read_bytes())) == 32_000
