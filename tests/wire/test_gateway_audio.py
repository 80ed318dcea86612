"""The unmodified openai SDK speaks and transcribes with the server's own engines."""

import io
import wave
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import numpy as np
import openai
import pytest
from openai import AsyncOpenAI

from antiphon.audio.resample import resample
from antiphon.audio.wav import read_wav
from antiphon.security.quota import Kind, Limit, Rate
from antiphon.sound_format import write_wav
from tests.fakes.spelling import spell
from tests.wire.served import UNLIMITED, Served, serve

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(120)]

TEXT: Final = "The train to the coast leaves at half past seven in the morning."
RATE: Final = 24_000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Served]:
    """A server with its real voice."""
    folder = tmp_path_factory.mktemp("voice")
    with serve(folder, limits=UNLIMITED, models_dir=models_dir, model={"voice": "cascade"}) as served:
        yield served


@pytest.fixture
async def client(served: Served) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=f"{served.http}/v1", api_key="sk-local", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
async def recording(served: Served) -> bytes:
    """The text as a WAV file."""
    async with AsyncOpenAI(base_url=f"{served.http}/v1", api_key="sk-local", max_retries=0) as client:
        spoken = await client.audio.speech.create(model="tts-1", voice="alloy", input=TEXT, response_format="wav")
        return spoken.content
