"""Which tools a model is given that is not given all of them."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from antiphon.compose.app import load_tools
from antiphon.compose.embedding import open_ranker
from antiphon.compose.warming import make_prompt
from antiphon.config import Settings
from antiphon.embedding.minilm import MiniLmEmbedder
from antiphon.models.base import Prompt, TextProfile
from antiphon.models.builtin import BuiltinModel
from antiphon.models.shortlist import GROWTH, ShortlistModel
from antiphon.models.tool_ranking import LexicalRanker, Ranker, SemanticRanker, Texts
from antiphon.prompts.composer import Composer
from antiphon.tools.registry import Snapshot
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage
from tests.fakes.scripted import ScriptedModel

REQUESTS = {
    "is there any room left on the hard drive": "get_disk_space",
    "how long has this machine been up": "get_uptime",
    "what's fifteen percent of eighty": "calculate",
    "do you know something funny": "tell_joke",
    "how late is it in New York": "get_current_time",
    "how many sleeps till Christmas": "time_until",
    "which weekday is the fourth of July": "get_day_of_week",
    "open the website of the BBC for me": "open_url",
    "put these search results in order of price": "rank_results",
    "pull the phone numbers out of this email": "extract_contacts",
    "let me see a quick sort in Python": "show_code",
    "what will the date be in 45 days": "calculate_date",
    "is the processor busy": "get_resource_usage",
}
"""Things that people ask, hardly in the words of the tool's sentences, and the tool for each."""


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    folder = tmp_path_factory.mktemp("tools")
    return load_tools(Settings(folder, folder)).snapshot()


@pytest.fixture(scope="module")
def sentences(snapshot: Snapshot) -> Texts:
    return BuiltinModel(snapshot).describe_tools()


def call(name: str, **args: object) -> Message:
    return AssistantMessage(calls=(CallMade("c1", name, args),))


def names(tools: Sequence[object]) -> list[str]:
    return [tool["function"]["name"] for tool in tools]  # type: ignore[index]


def prompt_of(snapshot: Snapshot, *messages: Message) -> Prompt:
    return Prompt("", messages, snapshot.provider_schemas("openai_chat", Mode.TEXT), Mode.TEXT)


async def chosen(snapshot: Snapshot, *messages: Message, count: int = 3, ranker: Ranker | None = None) -> list[str]:
    model = ShortlistModel(ScriptedModel([]), ranker or LexicalRanker(), count)
    return names(await model.choose(prompt_of(snapshot, *messages)))


async def test_the_model_is_given_the_nearest_tools_and_describe_tool(snapshot: Snapshot) -> None:
    inner = ScriptedModel(["Noon."])
    model = ShortlistModel(inner, LexicalRanker(), 3)
    assert [event async for event in model.reply(prompt_of(snapshot, UserMessage("what is the current time")))]
    given = names(inner.prompts[0].tools)
    assert given[:2] == ["describe_tool", "get_current_time"]
    assert len(given) == 4


async def test_tools_are_only_added_while_a_conversation_goes_on(snapshot: Snapshot) -> None:
    messages: list[Message]
    messages = [UserMessage("what is the current time"), AssistantMessage("Noon."), UserMessage("tell me a joke")]
    before, after = await chosen(snapshot, *messages[:1]), await chosen(snapshot, *messages)
    assert after[: len(before)] == before
    assert "tell_joke" in after


async def test_the_list_begins_anew_when_it_is_too_long(snapshot: Snapshot) -> None:
    messages = [UserMessage(text) for text in REQUESTS]
    lists = [await chosen(snapshot, *messages[: n + 1]) for n in range(len(messages))]
    assert max(map(len, lists)) <= GROWTH * 3 + 1
    assert any(not set(before) <= set(after) for before, after in pairwise(lists))
    assert names(snapshot.provider_schemas("openai_chat", Mode.TEXT)) != lists[-1]


async def test_a_tool_that_was_used_or_described_stays(snapshot: Snapshot) -> None:
    used = [UserMessage("hello"), call("show_code", code="1"), ToolMessage("c1", "show_code", "done")]
    assert "show_code" in await chosen(snapshot, *used)
    assert "open_url" in await chosen(snapshot, UserMessage("hello"), call("describe_tool", tool_id="open_url"))
    assert "open_url" not in await chosen(snapshot, UserMessage("hello"), call("describe_tool", tool_id=7))


async def test_a_model_with_few_tools_is_given_all(snapshot: Snapshot) -> None:
    everything = names(snapshot.provider_schemas("openai_chat", Mode.TEXT))
    assert await chosen(snapshot, UserMessage("hello"), count=len(everything)) == everything


async def test_the_profile_tells_so_that_the_prompt_has_only_names(snapshot: Snapshot) -> None:
    model = ShortlistModel(ScriptedModel([]), LexicalRanker(), 3)
    assert model.profile == TextProfile("scripted", needs_network=False, tools_per_turn=3)
    system = make_prompt(model, Composer(), snapshot, "hello").system
    assert "get_uptime, " in system
    assert "**get_uptime**" not in system


async def find(ranker: Ranker, snapshot: Snapshot, sentences: Texts) -> list[str]:
    """The requests whose tool is not among the nearest four."""
    model = ShortlistModel(ScriptedModel([]), ranker, 4, lambda: sentences)
    return [
        text
        for text, tool in REQUESTS.items()
        if tool not in names(await model.choose(prompt_of(snapshot, UserMessage(text))))
    ]


@pytest.mark.real_time
async def test_by_meaning_the_right_tool_is_nearly_always_among_the_nearest_four(
    models_dir: Path, snapshot: Snapshot, sentences: Texts
) -> None:
    embedder = MiniLmEmbedder(models_dir)
    assert len(await find(SemanticRanker(embedder), snapshot, sentences)) <= 1
    await embedder.aclose()


async def test_by_words_most_of_the_right_tools_are_found(snapshot: Snapshot, sentences: Texts) -> None:
    assert len(await find(LexicalRanker(), snapshot, sentences)) <= 3


@pytest.mark.real_time
async def test_without_the_model_files_tools_are_ranked_by_words_and_the_log_says_so(tmp_path: Path) -> None:
    with capture_logs() as logs:
        async with open_ranker(Settings(tmp_path, tmp_path)) as ranker:
            assert isinstance(ranker, LexicalRanker)
    [line] = logs
    assert line["event"] == "tools_ranked_by_words"
    assert "antiphon models pull minilm" in line["reason"]


@pytest.mark.real_time
async def test_with_the_model_files_tools_are_ranked_by_meaning(tmp_path: Path, models_dir: Path) -> None:
    async with open_ranker(Settings(tmp_path, tmp_path, shared_models_dir=models_dir)) as ranker:
        assert isinstance(ranker, SemanticRanker)
