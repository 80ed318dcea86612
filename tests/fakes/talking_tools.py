"""A few tools as the offline assistant knows them: what they are called with, and how people ask for them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from antiphon.tools.arguments import Arguments
from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok
from antiphon.tools.spec import Category, Mode, SideEffects, ToolSpec
from antiphon.tools.tool import Tool

BOTH = (Mode.VOICE, Mode.TEXT)


async def execute(args: Args, context: Context) -> ToolResult:
    return ok(dict(args))


def make_spec(
    tool_id: str,
    properties: Mapping[str, Any] | None = None,
    *,
    required: tuple[str, ...] = (),
    writes: bool = False,
    modes: tuple[Mode, ...] = BOTH,
    outputs: dict[str, Any] | None = None,
) -> ToolSpec:
    return ToolSpec(
        tool_id=tool_id,
        version="1.0.0",
        description="A tool.",
        category=Category.ACTION if writes else Category.UTILITY,
        side_effects=SideEffects.WRITES if writes else SideEffects.NONE,
        idempotent=not writes,
        requires_confirmation=False,
        allowed_modes=modes,
        latency_budget_ms=100,
        parameters={"type": "object", "required": list(required), "properties": dict(properties or {})},
        outputs=outputs,
    )


def make_tool(spec: ToolSpec, sentences: Mapping[str, Any] | None) -> Tool:
    return Tool(
        spec=spec,
        digest="0",
        origin="tests",
        summary="A tool.",
        documentation="",
        examples="",
        provider_schemas={},
        sentences=sentences,
        arguments=Arguments(spec.parameters),
        execute=execute,
    )


@dataclass
class Box:
    """As much of a registry as a model sees."""

    tools: Mapping[str, Tool]


WORDS = {"type": "string"}
SENTENCES: dict[str, dict[str, Any]] = {
    "get_time": {
        "data": [
            {
                "sentences": [
                    "what time is it [in {timezone}]",
                    "(what's|what is) the time [in {timezone}]",
                ]
            }
        ]
    },
    "tell_joke": {"data": [{"sentences": ["tell me a [good|funny] joke", "make me laugh"]}]},
    "get_weather": {
        "data": [
            {
                "sentences": [
                    "(what's|what is|how's|how is) the weather [like] in {location}",
                    "[what's|what is] the weather forecast for {location}",
                ]
            }
        ]
    },
    "calculate": {
        "data": [
            {"sentences": ["work out {expression}", "calculate the value of {expression}"]},
            {
                "sentences": ["(what's|what is) {percent} percent of {amount}"],
                "args": {"expression": "{percent} percent of {amount}"},
                "say": "That makes {result}.",
            },
        ],
        "slot_examples": {"expression": "3 + 4", "percent": "15", "amount": "80"},
    },
    "calculate_date": {
        "data": [
            {"sentences": ["what date is it in {days} day[s]", "(what's|what is) the date {days} day[s] from now"]}
        ],
        "lists": {"days": {"range": {"from": 0, "to": 1000}}},
    },
    "set_reminder": {
        "data": [
            {
                "sentences": [
                    "remind me to {message} (at|in|on) {time}",
                    "remind me (at|in|on) {time} to {message}",
                    "set a reminder to {message} (at|in|on) {time}",
                ]
            }
        ]
    },
    "list_reminders": {"data": [{"sentences": ["(list|show|read) my reminders", "what are my reminders"]}]},
    "cancel_reminder": {"data": [{"sentences": ["(cancel|delete) [the|my] reminder (about|to) {words}"]}]},
    "open_url": {"data": [{"sentences": ["open the (page|website) {url}"]}]},
    "start_voice": {"data": [{"sentences": ["(start|switch to) voice mode [and {pending_request}]"]}]},
    "end_voice": {
        "data": [{"sentences": ["(end|stop|leave) voice mode"], "args": {"reason": "user_request"}}],
    },
}
SPECS = {
    spec.tool_id: spec
    for spec in (
        make_spec("get_time", {"timezone": WORDS}),
        make_spec("tell_joke"),
        make_spec("get_weather", {"location": WORDS}, required=("location",)),
        make_spec(
            "calculate",
            {"expression": WORDS},
            required=("expression",),
            outputs={"type": "object", "properties": {"result": {"type": "number"}}},
        ),
        make_spec("calculate_date", {"days": {"type": "integer"}}, required=("days",)),
        make_spec("set_reminder", {"message": WORDS, "time": WORDS}, required=("message", "time"), writes=True),
        make_spec("list_reminders"),
        make_spec("cancel_reminder", {"words": WORDS}, required=("words",), writes=True),
        make_spec("open_url", {"url": WORDS}, required=("url",), writes=True),
        make_spec("start_voice", {"pending_request": WORDS}, writes=True, modes=(Mode.TEXT,)),
        make_spec("end_voice", {"reason": WORDS}, required=("reason",), writes=True, modes=(Mode.VOICE,)),
    )
}


def talking_tools() -> dict[str, Tool]:
    return {tool_id: make_tool(spec, SENTENCES[tool_id]) for tool_id, spec in SPECS.items()}
