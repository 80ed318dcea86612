"""Telephone audio."""

import numpy as np
import pytest

from antiphon.audio import g711

CODECS = [(g711.encode_ulaw, g711.decode_ulaw), (g711.encode_alaw, g711.decode_alaw)]


@pytest.mark.parametrize(("encode", "decode"), CODECS)
def test_a_sound_survives_with_a_small_error(encode: object, decode: object) -> None:
    samples = (np.sin(np.arange(8_000) / 8) * 20_000).astype(np.int16)
    back = np.frombuffer(decode(encode(samples.tobytes())), np.int16)  # type: ignore[operator]
    error = np.abs(back.astype(np.int32) - samples)
    assert (error <= np.maximum(16, np.abs(samples.astype(np.int32)) / 16)).all()


@pytest.mark.parametrize(("encode", "decode"), CODECS)
def test_every_code_stands_for_itself(encode: object, decode: object) -> None:
    pcm = decode(bytes(range(256)))  # type: ignore[operator]
    assert decode(encode(pcm)) == pcm  # type: ignore[operator]


def test_known_codes() -> None:
    assert np.frombuffer(g711.decode_ulaw(b"\xff\x00\x80"), np.int16).tolist() == [0, -32_124, 32_124]
    assert np.frombuffer(g711.decode_alaw(b"\xd5\x2a\xaa"), np.int16).tolist() == [8, -32_256, 32_256]
