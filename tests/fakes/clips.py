"""Synthesised speech, kept between runs: the same voice saying the same text need not be made twice.

A clip is kept under a digest of everything that it depends on. Two workers may make the same one: the last one that is
written stays, whole.
"""

import hashlib
import os
import tempfile
from collections.abc import Awaitable, Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final

from tests.fakes.tree import ROOT

CLIPS: Final = ROOT / ".pytest_cache" / "clips"
SOURCES: Final = (
    "src/antiphon/speech",
    "src/antiphon/audio",
    "src/antiphon/weights/manifest.py",
    "tests/fakes/spoken.py",
    "tests/e2e/voices.py",
)
"""What makes a clip of a text, apart from libraries. The manifest pins the models."""


async def kept_clip(voice: str, text: str, make: Callable[[], Awaitable[bytes]]) -> bytes:
    """The clip of this voice and text. `make` is called if there is none, and must give the same each time."""
    name = hashlib.sha256("\0".join((_origin(), voice, text)).encode()).hexdigest()
    path = CLIPS / f"{name}.pcm"
    try:
        return path.read_bytes()
    except FileNotFoundError:
        clip = await make()
        _write(path, clip)
        return clip


@cache
def _origin() -> str:
    """A digest of the code and the versions that clips are made with."""
    digest = hashlib.sha256("".join(map(version, ("piper-tts", "onnxruntime", "soxr", "numpy"))).encode())
    for source in SOURCES:
        path = ROOT / source
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _write(path: Path, clip: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, unfinished = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(clip)
    os.replace(unfinished, path)
