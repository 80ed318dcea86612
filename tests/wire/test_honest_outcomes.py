"""Nothing is said to be done that was not done: what the offline assistant says, and what a model is told."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.fakes.chat_server import Answer, ChatServer, Request, call_delta, stream, words
from tests.fakes.toolbox import document, write_tool
from tests.wire.caller import call
from tests.wire.served import Served, serve

pytestmark = pytest.mark.real_time

TEXT: Final = {"mode": "text"}
DECLINED: Final = "All right, I won't do that."

HANDLER: Final = """\
from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail, ok


def needs_confirmation(args: Args, untrusted: bool) -> bool:
    return args["note"] == "secret"


def preview(args: Args) -> str:
    return f"Save the note {args['note']}?"


async def execute(args: Args, context: Context) -> ToolResult:
    match args["note"]:
        case "refused":
            return fail(ErrorType.TRANSIENT, "I can't reach the notes at the moment.")
        case "half":
            raise RuntimeError("the connection broke in the middle")
    return ok()
"""
READER: Final = """\
from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok


async def execute(args: Args, context: Context) -> ToolResult:
    return ok()
"""


def write_notes(folder: Path) -> Path:
    """Two tools without words of their own: one saves a note, the other reads one."""
    note = {"type": "object", "required": ["note"], "properties": {"note": {"type": "string", "description": "Which."}}}
    parameters = {**note, "additionalProperties": False}
    common: dict[str, Any] = {"parameters": parameters}
    example = '{"note": "x"}'
    write_tool(
        folder / "tools",
        "save_it",
        category="action",
        sideEffects="writes",
        idempotent=False,
        files={
            "handler.py": HANDLER,
            "doc.md": document("save_it", example),
            "sentences.yaml": 'data:\n  - sentences: ["save my remark {note}"]\nslot_examples: {note: x}\n',
        },
        **common,
    )
    write_tool(
        folder / "tools",
        "read_it",
        category="retrieval",
        sideEffects="read_only",
        files={
            "handler.py": READER,
            "doc.md": document("read_it", example),
            "sentences.yaml": 'data:\n  - sentences: ["recite my remark {note}"]\nslot_examples: {note: x}\n',
        },
        **common,
    )
    return folder


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(write_notes(tmp_path_factory.mktemp("notes"))) as served:
        yield served


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("save my remark hello", "Done."),
        ("save my remark refused", "I can't reach the notes at the moment."),
        ("save my remark half", "Something went wrong while I was doing that, and I don't know how far it got."),
        ("save my remark secret", "Save the note secret?"),
        ("recite my remark hello", "That worked, but there is nothing to tell."),
    ],
)
async def test_the_offline_assistant_says_done_only_after_a_write(served: Served, said: str, answer: str) -> None:
    async with call(served.url, TEXT) as caller:
        assert await caller.ask(said) == answer


async def test_a_no_is_not_done_and_a_late_yes_does_nothing(served: Served) -> None:
    async with call(served.url, TEXT) as caller:
        await caller.ask("save my remark secret")
        assert await caller.ask("no") == DECLINED
        assert await caller.ask("yes") == "I haven't asked you a yes-or-no question."
    assert [result["ok"] for result in caller.every("tool_result")] == [False]


# Models


def calling(note: str) -> Answer:
    function = {"name": "save_it", "arguments": json.dumps({"note": note})}
    made = {"index": 0, "id": f"call_{note}_0123456789", "type": "function", "function": function}
    return stream(call_delta(made), finish="tool_calls")


@pytest.mark.parametrize(
    ("note", "told"),
    [("hello", None), ("refused", "nothing_done"), ("half", "unknown"), ("secret", "waiting_for_approval")],
)
async def test_a_model_is_told_what_a_call_that_failed_has_done(tmp_path: Path, note: str, told: str | None) -> None:
    def answer(request: Request) -> Answer:
        return words("I see.") if request.messages[-1]["role"] == "tool" else calling(note)

    async with ChatServer(answer, hides_warm_ups=True) as model:
        with serve(write_notes(tmp_path), model={"text": f"openai:{model.url}#m"}) as served:
            async with call(served.url, TEXT) as caller:
                await caller.ask("please keep this for me")
    result = json.loads(model.requests[-1].messages[-1]["content"])
    assert (result or {}).get("error", {}).get("outcome") == told
    [shown] = caller.every("tool_result")
    assert shown["ok"] is (told is None)


async def test_a_model_is_told_that_a_declined_call_has_done_nothing(tmp_path: Path) -> None:
    def answer(request: Request) -> Answer:
        last = request.messages[-1]
        return words("I see.") if last["role"] == "tool" or last["content"] == "no" else calling("secret")

    async with ChatServer(answer, hides_warm_ups=True) as model:
        models = {"text": f"openai:{model.url}#m", "local_first": False}
        with serve(write_notes(tmp_path), model=models) as served:
            async with call(served.url, TEXT) as caller:
                await caller.ask("please keep this for me")
                await caller.ask("no")
    results = [json.loads(each["content"]) for each in model.requests[-1].messages if each["role"] == "tool"]
    assert [each["error"]["outcome"] for each in results] == ["waiting_for_approval", "nothing_done"]


async def test_the_prompt_forbids_claims_without_a_result(tmp_path: Path) -> None:
    async with ChatServer(lambda _: words("Hello."), hides_warm_ups=True) as model:
        with serve(tmp_path, model={"text": f"openai:{model.url}#m"}) as served:
            async with call(served.url, TEXT) as caller:
                await caller.ask("why is the sky blue")
    system = model.requests[-1].messages[0]["content"]
    assert "Say that something is done only if a result says so." in system
    assert "The `outcome` of an error tells what happened: nothing, nothing yet, or unknown." in system
