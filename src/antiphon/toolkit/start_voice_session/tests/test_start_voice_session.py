import json
from pathlib import Path

import pytest

from antiphon.authoring.testing import Outbox, make_context
from antiphon.toolkit.start_voice_session import handler
from antiphon.toolkit.start_voice_session.handler import execute
from antiphon.tools.arguments import Arguments, compile_schema
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.tools.messages import Message, VoiceSessionStart

SCHEMA = json.loads((Path(handler.__file__).parent / "schema.json").read_text())


class NoClient:
    async def send(self, message: Message) -> None:
        raise ToolError(ErrorType.TRANSIENT, "Nobody is connected.", retryable=True)


async def test_voice_is_requested() -> None:
    result = await execute({}, make_context())
    assert result.data == {
        "voice_session_requested": True,
        "pending_request": None,
        "message": "Voice session will be activated by client",
        "session_id": "s1",
    }


async def test_the_page_is_told_to_start() -> None:
    outbox = Outbox()
    await execute({}, make_context(messaging=outbox))
    assert outbox.sent == [VoiceSessionStart("s1", pending_request=None)]


async def test_the_pending_request_is_sent_to_the_page() -> None:
    outbox = Outbox()
    await execute({"pending_request": "tell me a joke"}, make_context(messaging=outbox))
    assert outbox.sent == [VoiceSessionStart("s1", pending_request="tell me a joke")]


async def test_the_pending_request_is_in_the_data() -> None:
    result = await execute({"pending_request": "  tell me a joke "}, make_context())
    assert result.data["pending_request"] == "tell me a joke"


@pytest.mark.parametrize("blank", ["", " ", "\n\t "])
async def test_a_blank_request_counts_as_missing(blank: str) -> None:
    outbox = Outbox()
    result = await execute({"pending_request": blank}, make_context(messaging=outbox))
    assert result.data["pending_request"] is None
    assert outbox.sent == [VoiceSessionStart("s1", pending_request=None)]


async def test_the_spoken_answer_says_what_happens() -> None:
    assert (await execute({}, make_context())).spoken == "Let's switch to voice mode."


async def test_the_session_is_not_changed_by_the_tool_itself() -> None:
    assert (await execute({}, make_context())).intents == ()


async def test_without_a_page_to_notify_it_does_not_claim_success() -> None:
    with pytest.raises(ToolError) as raised:
        await execute({}, make_context(messaging=NoClient()))
    assert raised.value.type is ErrorType.TRANSIENT


async def test_the_data_matches_the_output_schema() -> None:
    result = await execute({"pending_request": "tell me a joke"}, make_context())
    assert compile_schema(SCHEMA["outputs"]).is_valid(result.data)


@pytest.mark.parametrize(("length", "accepted"), [(0, True), (200, True), (201, False)])
def test_a_pending_request_has_at_most_two_hundred_characters(length: int, accepted: bool) -> None:
    assert Arguments(SCHEMA["parameters"]).accepts({"pending_request": "x" * length}) is accepted
