"""Random faults are the same for the same seed, and cover everything that a simulator can do."""

import pytest

from antiphon.sim.chaos import make_chaos
from antiphon.sim.faults import FaultBook
from antiphon.sim.script import Vocabulary
from antiphon.sim.vendors.gemini import GeminiLive
from antiphon.sim.vendors.openai import OpenAIRealtime

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


async def test_faults_of_a_connection_that_has_ended_are_forgotten() -> None:
    book = FaultBook(make_chaos(1, GeminiLive.vocabulary))
    for number in range(1, 5_000):
        book.connect(number)
        book.disconnect(number)
    assert book.armed() == []
