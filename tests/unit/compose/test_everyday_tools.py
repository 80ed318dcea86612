"""The everyday tools as people ask for them: from a sentence through the gate to the answer, in text and in voice."""

from collections.abc import AsyncIterator

import pytest

from antiphon.authoring.testing import Outbox
from antiphon.clock import SystemClock
from antiphon.compose import load_tools
from antiphon.compose.services import open_services
from antiphon.config import Settings, Storage
from antiphon.models.builtin.model import BuiltinModel
from antiphon.models.builtin.understood import Run
from antiphon.storage.memory import MemoryDatabase
from antiphon.tools.call import ToolCall
from antiphon.tools.errors import ErrorType
from antiphon.tools.executor import Executor
from antiphon.tools.result import ToolResult
from antiphon.tools.session import ToolSession
from antiphon.tools.spec import Mode

pytestmark = pytest.mark.real_time

MODES = [Mode.TEXT, Mode.VOICE]


class Person:
    """Somebody who says things to the offline assistant."""

    def __init__(self, executor: Executor, assistant: BuiltinModel, database: MemoryDatabase, mode: Mode) -> None:
        self.executor = executor
        self.database = database
        self._assistant = assistant
        self.session = ToolSession("s1", "ann", executor.registry.snapshot(), mode=mode, messaging=Outbox())
        self.session.state.voice_active = mode is Mode.VOICE

    async def ask(self, said: str) -> ToolResult:
        self.executor.begin_turn(self.session)
        request = self._assistant.find_request(said, self.session.mode)
        assert isinstance(request, Run), f"{said!r} is not understood"
        (call,) = request.calls
        return await self.executor.execute(ToolCall(None, call.tool_id, dict(call.args)), self.session)

    async def hear(self, said: str) -> str | None:
        """The answer. A failure is said by its message."""
        result = await self.ask(said)
        return result.spoken or (result.error.message if result.error is not None else None)

    async def answer(self, said: str) -> None:
        """Answers the assistant's question."""
        self.executor.begin_turn(self.session)
        decision = await self.executor.hear(said, self.session)
        if decision is not None:
            await self.executor.carry_out(decision, self.session)

    async def items(self) -> tuple[str, ...]:
        return tuple(item.text for item in await self.database.lists.items("ann"))


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("everyday")
    return Settings(folder, folder / "data", storage=Storage(url="memory"))


@pytest.fixture(scope="module")
def assistant(settings: Settings) -> BuiltinModel:
    registry = load_tools(settings)
    registry.snapshot().warm()
    assistant = BuiltinModel(registry)
    assistant.compile()
    return assistant


@pytest.fixture(params=MODES)
async def person(request: pytest.FixtureRequest, settings: Settings, assistant: BuiltinModel) -> AsyncIterator[Person]:
    database = MemoryDatabase()
    async with open_services(settings, database) as services:
        executor = Executor(
            assistant._toolbox,  # type: ignore[arg-type]
            calls=database.calls,
            confirmations=database.confirmations,
            audit=database.audit,
            limits=database.limits,
            clock=SystemClock(),
            offers=services.offers,
        )
        yield Person(executor, assistant, database, request.param)
        await executor.aclose()


async def test_a_shopping_list_by_word_of_mouth(person: Person) -> None:
    assert await person.hear("put milk on the shopping list") == "I've put milk on your shopping list."
    added = await person.hear("add eggs and bread to my shopping list")
    assert added == "I've put eggs and bread on your shopping list."
    assert await person.hear("add milk to the grocery list") == "Milk is already on your shopping list."
    assert await person.hear("what's on my shopping list") == "Your shopping list has milk, eggs and bread."
    assert await person.hear("i bought the milk") == "I've taken milk off your shopping list."
    assert await person.hear("take the bread off my list") == "I've taken bread off your shopping list."
    assert await person.hear("what do i need to buy") == "Your shopping list has eggs."
    assert await person.hear("remove cheese from the shopping list") == "Cheese isn't on your shopping list."


async def test_notes_by_word_of_mouth(person: Person) -> None:
    assert await person.hear("do i have any notes") == "You don't have any notes."
    assert await person.hear("take a note the plumber comes on friday") == "I've made a note of that."
    assert await person.hear("make a note that the key is under the mat") == "I've made a note of that."
    read = await person.hear("read my notes")
    assert read == "You have 2 notes. The plumber comes on friday. The key is under the mat."
    assert await person.hear("delete the note about the plumber") == "I've deleted that note."
    assert await person.hear("what are my notes") == "You have one note. The key is under the mat."


async def test_several_lists_by_word_of_mouth(person: Person) -> None:
    await person.ask("add call the bank to my to do list")
    await person.ask("put a tent on my camping list")
    lists = await person.hear("which lists do i have")
    assert lists == "You have a camping list with one item and a to do list with one item."
    question = await person.hear("add milk to my list")
    assert question == "You have several lists. Which one do you mean: your camping list or your to do list?"


@pytest.mark.parametrize(
    ("answer", "left"), [("yes", ()), ("no", ("milk",)), ("what time is it", ("milk",))], ids=["yes", "no", "other"]
)
async def test_a_list_is_cleared_only_after_a_yes(person: Person, answer: str, left: tuple[str, ...]) -> None:
    await person.ask("put milk on the shopping list")
    result = await person.ask("clear the shopping list")
    assert result.error is not None
    assert result.error.type is ErrorType.CONFIRMATION_REQUIRED
    assert result.error.confirmation_request is not None
    assert result.error.confirmation_request.preview == "Shall I delete everything on your shopping list?"
    assert result.error.confirmation_request.title == "Remove from a list"
    assert await person.items() == ("milk",)
    await person.answer(answer)
    assert await person.items() == left


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("how many feet in a mile", "1 mile is 5,280 feet."),
        ("convert 5 miles to kilometers", "5 miles is about 8.047 kilometers."),
        ("convert five and a half miles into kilometers", "5.5 miles is about 8.851 kilometers."),
        ("what's 100 fahrenheit in celsius", "100 degrees Fahrenheit is about 37.8 degrees Celsius."),
        ("how many cups are there in a liter", "1 liter is about 4.227 cups."),
        ("20 pounds in kilos", "20 pounds is about 9.072 kilograms."),
        ("how many kilos is twenty pounds", "20 pounds is about 9.072 kilograms."),
        ("how tall is six foot two in centimeters", "6 feet 2 inches is about 188 centimeters."),
        ("what's 350 f in c", "350 degrees Fahrenheit is about 176.7 degrees Celsius."),
        ("how many grams in a cup", "Cups and grams can't be converted without knowing what is weighed."),
        ("convert 5 dollars to euros", "I can't convert money, since exchange rates change all the time."),
    ],
)
async def test_units_by_word_of_mouth(person: Person, said: str, answer: str) -> None:
    assert await person.hear(said) == answer


async def test_chance_by_word_of_mouth(person: Person) -> None:
    assert await person.hear("flip a coin") in ("It's heads.", "It's tails.")
    assert (await person.ask("roll a die")).data["total"] in range(1, 7)
    assert (await person.ask("roll two dice")).data["dice"] == "2d6"
    assert (await person.ask("roll a d20")).data["dice"] == "d20"
    assert (await person.ask("roll three six sided dice")).data["dice"] == "3d6"
    assert (await person.ask("pick a number between one and ten")).data["total"] in range(1, 11)
    assert (await person.ask("choose between tea and coffee")).data["picked"] in ("tea", "coffee")
    assert (await person.ask("pick one of pizza, sushi or tacos")).data["picked"] in ("pizza", "sushi", "tacos")


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("list_add", {}),
        ("list_add", {"item": " "}),
        ("list_add", {"item": "milk", "list": "x" * 61}),
        ("list_add", {"items": ["milk"]}),
        ("list_show", {"list": ""}),
        ("list_remove", {"item": 5}),
        ("convert_units", {"value": "five", "from_unit": "m", "to_unit": "km"}),
        ("convert_units", {"value": 1e31, "from_unit": "m", "to_unit": "km"}),
        ("convert_units", {"from_unit": "m"}),
        ("flip_coin", {"times": 3}),
        ("roll_dice", {"dice": 6}),
        ("pick_one", {"options": ["one"]}),
        ("pick_one", {"options": [str(number) for number in range(51)]}),
        ("pick_one", {}),
    ],
)
async def test_arguments_that_do_not_fit_the_schema_are_refused(person: Person, name: str, args: object) -> None:
    result = await person.executor.execute(ToolCall(None, name, args), person.session)
    assert result.error is not None
    assert result.error.type is ErrorType.VALIDATION
