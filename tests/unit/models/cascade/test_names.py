"""What a user says is recognised with the names of their own lists and notes."""

from collections.abc import Iterable
from dataclasses import replace

from antiphon.models.cascade.turn_recognizer import NAMES_EVERY_S, TurnRecognizer
from antiphon.speech.base import Urgency
from tests.fakes.talk import Talk
from tests.fakes.voice import PerfectRecognizer, Vocabulary


class Namer(PerfectRecognizer):
    """Writes the names that it expects behind each text."""

    def __init__(self, words: Vocabulary, expected: Iterable[str] = ()) -> None:
        super().__init__(words)
        self.tells_interim = False
        self._words_said = words
        self._expected = tuple(expected)

    def prefer(self, phrases: Iterable[str]) -> None:
        """All speakers expect nothing here."""

    def preferring(self, phrases: Iterable[str]) -> "Namer":
        return Namer(self._words_said, phrases)

    async def recognize(self, pcm: bytes, urgency: Urgency = Urgency.NOW) -> str:
        return " ".join([await super().recognize(pcm, urgency), *self._expected])


async def test_each_user_is_heard_with_their_own_names_which_are_read_again(talk: Talk) -> None:
    lists = ["packing"]

    async def names() -> list[str]:
        return list(lists)

    engines = replace(talk.fakes.engines, recognizer=Namer(talk.fakes.words))
    await talk.recognizer.close()
    talk.recognizer = TurnRecognizer(engines, talk.listener, names)

    async def say_hello() -> str:
        await talk.say("hello")
        assert talk.recognizer.settle()
        return talk.listener.turns[-1]

    assert await say_hello() == "hello packing"
    lists.append("camping")
    assert await say_hello() == "hello packing"
    await talk.be_silent(round(NAMES_EVERY_S * 1_000))
    assert await say_hello() == "hello packing", "the names are read when somebody speaks, and used from the next turn"
    assert await say_hello() == "hello packing camping"
    await talk.recognizer.close()
    talk.recognizer = TurnRecognizer(engines, talk.listener)
    assert await say_hello() == "hello"
