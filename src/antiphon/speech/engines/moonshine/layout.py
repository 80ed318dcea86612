"""What goes into the two graphs and comes out of them."""

from typing import Final

LAYERS: Final = 8
HEADS: Final = 8
HEAD_WIDTH: Final = 52
MAX_PLACES: Final = 1_024
"""Frames of audio, 41.7 of which are a second, and tokens of a text."""

AUDIO: Final = "audio"
TOKEN: Final = "token"
NEXT_TOKEN: Final = "next_token"

_PARTS: Final = tuple(f"{layer}.{part}" for layer in range(LAYERS) for part in ("key", "value"))
CROSS: Final = tuple(f"cross.{part}" for part in _PARTS)
"""What the decoder looks up in the audio: from the encoder, the same for all tokens."""
PAST: Final = tuple(f"past.{part}" for part in _PARTS)
"""What it looks up in the tokens before. At the first token they are empty."""
PRESENT: Final = tuple(f"present.{part}" for part in _PARTS)
"""The past of the tokens after."""
