"""What the intents of a tool's result do to the session."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.fakes.scripted_live import Call, Say, Step
from tests.fakes.toolbox import document, write_tool
from tests.wire.caller import Caller, call
from tests.wire.served import Served, serve

pytestmark = pytest.mark.real_time

HANDLER: Final = """\
from antiphon.tools.context import Args, Context
from antiphon.tools.result import Intent, IntentType, ToolResult, ok


async def execute(args: Args, context: Context) -> ToolResult:
    return ok({}, intents=[Intent(IntentType.%s)])
"""
NOTHING: Final = {"type": "object", "additionalProperties": False, "required": [], "properties": {}}
REQUEST: Final = "What is 2 plus 3?"


def write_intent_tool(folder: Path, tool_id: str, intent: str) -> None:
    files = {"handler.py": HANDLER % intent, "doc.md": document(tool_id, "{}")}
    write_tool(folder / "tools", tool_id, parameters=NOTHING, files=files)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    write_intent_tool(tmp_path, "hide_words", "SUPPRESS_TRANSCRIPT, value=True")
    write_intent_tool(tmp_path, "note_request", f'SET_PENDING_MESSAGE, message="{REQUEST}"')
    script: list[Step] = [
        *(Say("Let me see. ", goes_on=True), Call("hide_words"), Say("These words are only spoken.")),
        *(Say("And these are shown."), Call("note_request"), Say("Noted."), Say("It is 5.")),
    ]
    with serve(tmp_path, voice=script) as served:
        yield served


async def ask(caller: Caller, text: str) -> str:
    """Returns the text of a spoken answer, which is not listened to."""
    await caller.send("text_message", text=text)
    answer: str = (await caller.until("response"))["text"]
    await caller.send("interrupt")
    await caller.until("state", state="listening")
    return answer


async def test_a_suppressed_transcript_is_spoken_but_not_shown_until_the_end_of_the_turn(served: Served) -> None:
    async with call(served.url) as caller:
        assert await ask(caller, "Tell me in private.") == "Let me see. "
        assert caller.every("audio")
        assert await ask(caller, "And now?") == "And these are shown."
    chunks = "".join(chunk["text"] for chunk in caller.every("response_chunk"))
    assert "only spoken" not in chunks


async def test_a_pending_message_is_the_first_request_of_the_next_call(served: Served) -> None:
    async with call(served.url) as caller:
        for text in ("Tell me in private.", "And now?", "Remember my sum."):
            await ask(caller, text)
        await caller.send("end_voice")
        await caller.until("end_voice_session")
        await caller.send("start_voice")
        assert (await caller.until("transcript", is_final=True))["text"] == REQUEST
