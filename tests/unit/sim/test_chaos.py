"""Random faults are the same for the same seed, and cover everything that a simulator can do."""

import asyncio

import pytest

from antiphon.sim.chaos import make_chaos
from antiphon.sim.faults import FaultBook
from antiphon.sim.script import Vocabulary
from antiphon.sim.vendors.gemini import GeminiLive
from antiphon.sim.vendors.openai import OpenAIRealtime
from tests.unit.sim.simulated import GEMINI_PATH, SETUP, resume, simulate_gemini, text

VOCABULARIES = [GeminiLive.vocabulary, OpenAIRealtime.vocabulary]


@pytest.mark.parametrize("vocabulary", VOCABULARIES, ids=lambda each: each.vendor)
def test_the_same_seed_gives_the_same_faults(vocabulary: Vocabulary) -> None:
    first, again, other = (make_chaos(seed, vocabulary) for seed in (7, 7, 8))
    numbers = range(1, 101)
    assert [first(n) for n in numbers] == [again(n) for n in numbers]
    assert [first(n) for n in numbers] != [other(n) for n in numbers]


@pytest.mark.parametrize("vocabulary", VOCABULARIES, ids=lambda each: each.vendor)
def test_every_kind_of_fault_comes_and_some_connections_are_calm(vocabulary: Vocabulary) -> None:
    chaos = make_chaos(1, vocabulary)
    picked = [chaos(number) for number in range(1, 1_001)]
    kinds = {type(fault.do[0]) for faults in picked for fault in faults}
    not_random = {vocabulary.actions["send"], vocabulary.actions["drop"]}
    assert kinds == set(vocabulary.actions.values()) - not_random
    assert 200 < sum(not faults for faults in picked) < 400
    assert {fault.when.occasion for faults in picked for fault in faults} <= vocabulary.occasions


async def test_every_connection_of_a_long_chaos_ends_cleanly() -> None:
    simulated, _ = simulate_gemini()
    simulated.faults.chaos = make_chaos(3, simulated.vendor.vocabulary)
    completed, handle = 0, None
    for _ in range(150):
        async with simulated.connect(GEMINI_PATH) as client:
            client.say(SETUP if handle is None else resume(handle))
            client.say(text("hello"))
            client.say(text("call"))
            client.say(text("hello"))
            try:
                async with asyncio.timeout(60):
                    while (event := await client.event())["type"] in ("websocket.accept", "websocket.send"):
                        is_update = "newHandle" in str(event.get("bytes"))
                        completed += is_update
                        handle = "handle-1" if is_update else handle
            except TimeoutError:
                pass
    assert completed > 100
    assert simulated.injector.describe()["connections"] == []


async def test_faults_of_a_connection_that_has_ended_are_forgotten() -> None:
    book = FaultBook(make_chaos(1, GeminiLive.vocabulary))
    for number in range(1, 5_000):
        book.connect(number)
        book.disconnect(number)
    assert book.armed() == []


async def test_clearing_the_faults_ends_the_chaos() -> None:
    book = FaultBook(make_chaos(1, GeminiLive.vocabulary))
    book.clear()
    for number in range(1, 20):
        book.connect(number)
    assert book.armed() == []
