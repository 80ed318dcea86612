"""A yes that comes after the question has expired."""

from antiphon.models.builtin import BuiltinModel
from antiphon.models.text_live import text_factory
from antiphon.protocol import server_messages as s
from antiphon.tools.confirm import EXPIRES_AFTER_MS
from antiphon.tools.spec import Mode
from tests.fakes.calls import Client, Server
from tests.fakes.gates import Counted, Toolset, make_action


async def test_a_yes_to_an_expired_question_does_nothing_and_says_so() -> None:
    handler = Counted()
    sentences = {"data": [{"sentences": ["book the {text}"]}]}
    book = make_action("book", handler, requires_confirmation=True, preview=lambda args: "Book it?")
    object.__setattr__(book, "sentences", sentences)
    server = Server(book, models={Mode.TEXT: text_factory(BuiltinModel(Toolset({"book": book})))})
    client = await Client(server).enter(mode="text")
    await client.write("book the table")
    await client.settle(EXPIRES_AFTER_MS / 1000 + 1)
    await client.write("yes")
    assert [each.text for each in client.every(s.Response)] == [
        "Book it?",
        "I can't take a yes for that any more, so I haven't done anything. Please ask me again.",
    ]
    assert handler.runs == 0
    await server.aclose()
