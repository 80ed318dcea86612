"""Requests that no template matches, understood by their meaning with the real embedding model."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from antiphon.config import load
from antiphon.embedding.base import Embedder
from antiphon.embedding.minilm import MiniLmEmbedder
from antiphon.models.base import CallRequested, MessageComplete, Prompt, TextDelta
from antiphon.models.builtin import BuiltinModel
from antiphon.models.builtin.learning import Learner
from antiphon.models.builtin.meaning import Meaning, cache_file
from antiphon.models.builtin.understanding import Understanding
from antiphon.models.builtin.understood import Ask, Need, Run, Tier, Unknown
from antiphon.models.expectation import Expectation
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, Message, UserMessage
from tests.fakes.toolkit import built_in

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(120)]

REQUESTS: list[tuple[str, str, Mapping[str, Any]]] = [
    ("set_timer", "I'd like a countdown of twelve minutes for the rice", {"duration": "twelve minutes"}),
    ("set_alarm", "ring until I am awake on Friday at six", {"time": "on Friday at six"}),
    ("get_weather", "is it going to be a wet day in Glasgow tomorrow", {"location": "Glasgow", "day": "tomorrow"}),
    ("get_disk_space", "do I still have enough gigabytes free", {}),
    ("tell_joke", "cheer me up with something funny", {}),
    ("calendar_list_events", "what is lined up for me on Thursday", {"range": "on Thursday"}),
    ("convert_units", "I ran twelve kilometres, how much is that in miles", {"from_unit": "twelve kilometres"}),
    ("get_uptime", "since when is this machine up and running", {}),
    ("quick_answer", "who was the first woman in space", {"query": "who was the first woman in space"}),
]
NO_REQUESTS = [
    "play something by the rolling stones",
    "how do I lock a door",
    "order me a taxi to the station",
    "I set the table for six people",
    "my alarm did not ring yesterday",
    "we should maybe open the blinds at some point",
    "send a message to my brother that I'm late",
    "what time does the bus to the airport leave",
]


@cache
def learned() -> Meaning:
    examples = Understanding(built_in()).known_requests()
    return Meaning.fit(examples, embedder().embed_now([text for _, text in examples]))


@cache
def embedder() -> MiniLmEmbedder:
    return MiniLmEmbedder(load(None).models_dir)


@cache
def taught() -> Understanding:
    understanding = Understanding(built_in())
    understanding.learn(learned(), embedder().embed_now)
    return understanding


@pytest.mark.parametrize(("tool", "said", "args"), REQUESTS)
def test_a_request_in_other_words_calls_its_tool(tool: str, said: str, args: Mapping[str, Any]) -> None:
    understood = taught().understand(said, Mode.TEXT)
    assert isinstance(understood, Run), understood
    (call,) = understood.calls
    assert call.tool_id == tool
    assert args.items() <= call.args.items()
    assert understood.tier is Tier.MEANING


@pytest.mark.parametrize("said", NO_REQUESTS)
def test_what_no_tool_is_for_runs_nothing(said: str) -> None:
    understood = taught().understand(said, Mode.TEXT)
    assert isinstance(understood, Unknown), understood


def test_a_question_about_the_best_time_is_no_calculation() -> None:
    understood = taught().understand("what's the best time to visit Tokyo", Mode.TEXT)
    assert not (isinstance(understood, Run) and understood.calls[0].tool_id != "quick_answer"), understood


def test_a_tool_that_writes_is_not_run_for_a_question_or_a_supposition() -> None:
    for said in ("could I have locked the front door", "if I set an alarm for six would I be rested"):
        understood = taught().understand(said, Mode.TEXT)
        writes = isinstance(understood, Run) and any(built_in()[call.tool_id].spec.writes for call in understood.calls)
        assert not writes, understood


@pytest.mark.parametrize(
    "said",
    [
        "the bedroom light was on all night",
        "the living room is too bright for a cinema",
        "don't turn the heating up",
        "did you take the bins out Tom",
    ],
)
def test_a_remark_about_a_device_changes_nothing(said: str) -> None:
    assert not isinstance(taught().understand(said, Mode.TEXT), Run)


def test_a_remark_about_a_device_may_ask_for_something() -> None:
    understood = taught().understand("the fan can go off now", Mode.TEXT)
    assert isinstance(understood, Run)
    assert understood.calls[0].args == {"entity": "fan", "action": "off"}


def test_what_is_missing_is_asked_for_and_the_answer_completes_the_request() -> None:
    need = taught().understand("put a team breakfast in my diary", Mode.TEXT)
    assert isinstance(need, Need), need
    assert need.question == "For when?"
    completed = taught().complete(need, "tomorrow at eight in the morning")
    assert isinstance(completed, Run)
    assert completed.calls[0].args["start_time"] == "tomorrow at eight in the morning"
    assert taught().complete(need, "how are you") is None


def test_suggestions_are_near_to_what_was_asked_and_short_when_spoken() -> None:
    understood = taught().understand("please reboot the oven clock with a countdown thing", Mode.VOICE)
    assert isinstance(understood, Unknown | Ask | Need), understood
    unknown = taught().understand("what time does the bus to the airport leave", Mode.VOICE)
    assert isinstance(unknown, Unknown)
    assert len(unknown.text.split()) <= 12


def test_misspelt_requests_are_still_understood() -> None:
    understood = taught().understand("flip a koin", Mode.TEXT)
    assert isinstance(understood, Run)
    assert understood.calls[0].tool_id == "flip_coin"


def test_a_slot_that_took_too_much_is_cut_back_to_what_can_be_read() -> None:
    understood = taught().understand("set an alarm for tomorrow at seven fifteen called school run", Mode.TEXT)
    assert isinstance(understood, Run)
    assert understood.calls[0].args == {"time": "tomorrow at seven fifteen", "label": "school run"}


def test_only_a_certain_guess_at_a_tool_that_reads_goes_before_a_model() -> None:
    taught().understand("do I still have enough gigabytes free", Mode.TEXT)
    certain = taught().find_certain("how many gigabytes are left on the disk", Mode.TEXT)
    assert certain is None, "it has not been embedded yet"
    taught().understand("how many gigabytes are left on the disk", Mode.TEXT)
    assert taught().find_certain("how many gigabytes are left on the disk", Mode.TEXT) is not None
    taught().understand("get me out of bed at half past six", Mode.TEXT)
    assert taught().find_certain("get me out of bed at half past six", Mode.TEXT) is None


class Box:
    def __init__(self, *names: str) -> None:
        self.tools = {name: tool for name, tool in built_in().items() if not names or name in names}


class Counting:
    """The real model, with a count of the texts that it has embedded."""

    name = "counting"

    def __init__(self, embedder: MiniLmEmbedder) -> None:
        self._embedder = embedder
        self.embed_now = embedder.embed_now
        self.aclose = embedder.aclose
        self.texts: list[str] = []

    async def embed(self, texts: Any) -> Any:
        self.texts += texts
        return await self._embedder.embed(texts)


@pytest.fixture
async def counting(models_dir: Path) -> AsyncIterator[Counting]:
    counting = Counting(MiniLmEmbedder(models_dir))
    yield counting
    await counting.aclose()


def loading(embedder: Embedder | None) -> Callable[[], Any]:
    async def load() -> Embedder | None:
        return embedder

    return load


async def say(model: BuiltinModel, *messages: Message) -> list[Any]:
    return [event async for event in model.reply(Prompt("", messages, (), Mode.TEXT))]


async def test_what_was_learned_is_kept_on_disk(counting: Counting, tmp_path: Path) -> None:
    box = Box("get_disk_space", "linkedin_lookup")
    first = BuiltinModel(box, learner=Learner(loading(counting), tmp_path))
    assert await first.learn()
    count = len(counting.texts)
    assert count > 300
    again = BuiltinModel(box, learner=Learner(loading(counting), tmp_path))
    assert await again.learn()
    assert len(counting.texts) == count
    events = await say(again, UserMessage("do I still have enough gigabytes free"))
    assert [event.call.name for event in events if isinstance(event, CallRequested)] == ["get_disk_space"]
    assert counting.texts[count:] == ["do i still have enough gigabytes free"]
    assert again.stats.tiers["meaning"].calls == 1
    asked = await say(again, UserMessage("check linkedin for somebody"))
    assert asked[0] == TextDelta("Whose profile?")
    assert isinstance(asked[-1], MessageComplete)
    assert asked[-1].expects is Expectation.NAME


async def test_a_damaged_file_is_learned_again(counting: Counting, tmp_path: Path) -> None:
    examples = Understanding(built_in()).known_requests()
    file = cache_file(tmp_path, examples, counting.name)
    file.write_bytes(b"not a file of vectors")
    assert await asyncio.to_thread(Meaning.load, file) is None


async def test_without_an_embedding_model_only_the_grammar_is_used() -> None:
    model = BuiltinModel(Box(), learner=Learner(loading(None)))
    assert not await model.learn()
    events = await say(model, UserMessage("cheer me up with something funny"))
    assert not any(isinstance(event, CallRequested) for event in events)


async def test_an_answer_to_a_question_for_what_is_missing_calls_the_tool(counting: Counting, tmp_path: Path) -> None:
    learned().save(cache_file(tmp_path, Understanding(built_in()).known_requests(), counting.name))
    model = BuiltinModel(Box(), learner=Learner(loading(counting), tmp_path))
    await model.learn()
    said = UserMessage("put a team breakfast in my diary")
    asked = "".join(event.text for event in await say(model, said) if isinstance(event, TextDelta))
    assert asked == "For when?"
    (call,) = [
        event.call
        for event in await say(model, said, AssistantMessage(asked), UserMessage("tomorrow at eight"))
        if isinstance(event, CallRequested)
    ]
    assert call.name == "calendar_create_event"
    assert call.args["start_time"] == "tomorrow at eight"
    other = await say(model, said, AssistantMessage(asked), UserMessage("what time is it"))
    assert [event.call.name for event in other if isinstance(event, CallRequested)] == ["get_current_time"]
    never = await say(model, said, AssistantMessage(asked), UserMessage("never mind"))
    assert not any(isinstance(event, CallRequested) for event in never)
