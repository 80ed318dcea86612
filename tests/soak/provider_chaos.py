"""Two hundred conversations with each live provider, whose simulator injects random faults. `make soak` runs it.

A turn may fail, and its user is told why. The server must not fail: nothing unexpected is in its log, and once the
chaos is over, a conversation goes as it should.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.voices import VoiceServer, calling, serve
from tests.wire.simulators import RunningSimulator, run_simulator

CONVERSATIONS = 200
AT_ONCE = 6
TURN_S = 40.0
"""How long a turn may take. A provider that says nothing is given up before that."""
MIN_ANSWERED = 0.7
"""The share of questions that are answered. Seven of ten connections have a fault, but some faults do no harm."""
QUESTIONS = ("what is 17 times 6", "what time is it in Tokyo")

pytestmark = pytest.mark.real_time


@contextmanager
def serving(provider: str, seed: int, folder: Path, models_dir: Path) -> Iterator[tuple[RunningSimulator, VoiceServer]]:
    here, there = folder / "server", folder / "simulator"
    here.mkdir()
    there.mkdir()
    tls = ("--tls-dir", "tls") if provider == "gemini-live" else ()
    with run_simulator(provider, "--chaos", str(seed), *tls, folder=there) as simulator:
        address = {
            "gemini-live": f"https://localhost:{simulator.port}#gemini-3.8-live",
            "openai-realtime": f"{simulator.url}/v1#gpt-realtime-2",
        }[provider]
        (here / "antiphon.toml").write_text(f'[model]\nvoice = "{provider}:{address}"\n')
        variables = {"GEMINI_API_KEY": "any", "OPENAI_API_KEY": "any"}
        if tls:
            variables["SSL_CERT_FILE"] = str(there / "tls" / "ca.pem")
        with serve(here, models_dir, **variables) as server:
            yield simulator, server


async def converse(url: str) -> list[str]:
    """Returns what became of each question: "answered", or what the user was told."""
    outcomes: list[str] = []
    try:
        async with asyncio.timeout(TURN_S * (len(QUESTIONS) + 1)), calling(url) as person:
            for question in QUESTIONS:
                try:
                    exchange = await asyncio.wait_for(person.ask(question), TURN_S)
                except TimeoutError:
                    outcomes.append("no answer and no error")
                    continue
                outcomes.append("answered" if exchange.response and not exchange.errors else " ".join(exchange.errors))
    except TimeoutError:
        outcomes.append("no call")
    return outcomes


@pytest.mark.timeout(3_000)
@pytest.mark.parametrize("provider", ["gemini-live", "openai-realtime"])
@pytest.mark.parametrize("seed", [1, 2])
async def test_the_server_survives_a_provider_in_chaos(
    tmp_path: Path, models_dir: Path, provider: str, seed: int
) -> None:
    turns = asyncio.Semaphore(AT_ONCE)
    with serving(provider, seed, tmp_path, models_dir) as (simulator, server):

        async def run() -> list[str]:
            async with turns:
                return await converse(server.url)

        outcomes = Counter(
            each for told in await asyncio.gather(*(run() for _ in range(CONVERSATIONS))) for each in told
        )
        print("\n".join(f"{count:4} {outcome}" for outcome, count in outcomes.most_common()))
        simulator.disarm()
        assert await converse(server.url) == ["answered"] * len(QUESTIONS)
        log = (tmp_path / "server" / "log").read_text()
    assert outcomes["answered"] >= MIN_ANSWERED * CONVERSATIONS * len(QUESTIONS)
    assert "Traceback" not in log
