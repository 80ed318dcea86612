"""The request of `POST /v1/chat/completions`: read, checked, and converted to a prompt's messages and tools."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from antiphon.gateway.api_errors import ApiError, invalid, unsupported
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage

MAX_TOOLS: Final = 128
MAX_MESSAGES: Final = 2_000

FunctionName = Annotated[str, Meta(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]


class TextPart(Struct, tag_field="type", tag="text"):
    text: str


class ImagePart(Struct, tag_field="type", tag="image_url"):
    pass


class AudioPart(Struct, tag_field="type", tag="input_audio"):
    pass


class FilePart(Struct, tag_field="type", tag="file"):
    pass


class RefusalPart(Struct, tag_field="type", tag="refusal"):
    refusal: str


Part = TextPart | ImagePart | AudioPart | FilePart | RefusalPart
Content = str | list[Part]


class FunctionCall(Struct):
    name: FunctionName
    arguments: str


class CallInHistory(Struct, tag_field="type", tag="function"):
    id: str
    function: FunctionCall


class SystemEntry(Struct, tag_field="role", tag="system"):
    content: Content


class DeveloperEntry(Struct, tag_field="role", tag="developer"):
    content: Content


class UserEntry(Struct, tag_field="role", tag="user"):
    content: Content


class AssistantEntry(Struct, tag_field="role", tag="assistant"):
    content: Content | None = None
    tool_calls: list[CallInHistory] | None = None


class ToolEntry(Struct, tag_field="role", tag="tool"):
    content: Content
    tool_call_id: str


HistoryEntry = SystemEntry | DeveloperEntry | UserEntry | AssistantEntry | ToolEntry


class Function(Struct):
    name: FunctionName
    description: str | None = None
    parameters: dict[str, Any] | None = None


class FunctionTool(Struct, tag_field="type", tag="function"):
    function: Function


class StreamOptions(Struct):
    include_usage: bool | None = None


class ResponseFormat(Struct):
    type: str


class Body(Struct, forbid_unknown_fields=True):
    """The fields that OpenAI's endpoint takes. What is not used here is accepted and ignored, or refused."""

    messages: Annotated[list[HistoryEntry], Meta(min_length=1, max_length=MAX_MESSAGES)]
    model: str
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    tools: Annotated[list[FunctionTool], Meta(max_length=MAX_TOOLS)] | None = None
    tool_choice: Any = None

    # Refused, since an answer that ignores them would be wrong.
    n: int | None = None
    stop: Any = None
    response_format: ResponseFormat | None = None
    modalities: list[str] | None = None
    audio: Any = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    functions: Any = None
    function_call: Any = None
    web_search_options: Any = None
    moderation: Any = None

    # Ignored, since they only tune or label an answer.
    frequency_penalty: Any = None
    logit_bias: Any = None
    max_completion_tokens: Any = None
    max_tokens: Any = None
    metadata: Any = None
    parallel_tool_calls: Any = None
    prediction: Any = None
    presence_penalty: Any = None
    prompt_cache_key: Any = None
    prompt_cache_options: Any = None
    prompt_cache_retention: Any = None
    reasoning_effort: Any = None
    safety_identifier: Any = None
    seed: Any = None
    service_tier: Any = None
    store: Any = None
    temperature: Any = None
    top_p: Any = None
    user: Any = None
    verbosity: Any = None


@dataclass(frozen=True, slots=True)
class ChatRequest:
    model: str
    messages: Sequence[Message]
    """The conversation. It ends with the user's message, or with results of the client's tools."""
    instructions: str
    """What the client's system and developer messages say."""
    tools: Mapping[str, Mapping[str, Any]]
    """The client's tools by name, each in the format of chat completions."""
    calls_tools: bool
    """Whether any tool may be called, the server's included."""
    is_streamed: bool
    includes_usage: bool
    """Whether the stream ends with a chunk about the tokens."""

    @property
    def text(self) -> str | None:
        """The user's words, unless the request brings results of tools."""
        last = self.messages[-1]
        return last.text if isinstance(last, UserMessage) else None

    @property
    def turn_key(self) -> str:
        """Identifies the turn by the conversation up to and including the user's last message."""
        return _key_of(_until_user(self.messages))

    @property
    def previous_turn_key(self) -> str | None:
        """The `turn_key` of the request before the user's last message; None if that was the first."""
        before = _until_user(_until_user(self.messages)[:-1])
        return _key_of(before) if before else None

    @property
    def last_call_id(self) -> str | None:
        """The id of a call of the client's tools whose result ends the request."""
        last = self.messages[-1]
        return last.call_id if isinstance(last, ToolMessage) else None


def read_chat_request(body: bytes) -> ChatRequest:
    """Raises `ApiError`, which names the field that is wrong."""
    try:
        read = msgspec.json.decode(body, type=Body)
    except msgspec.ValidationError as error:
        raise explain(error) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise invalid(f"The body is not JSON: {str(error).rstrip('.')}.") from None
    _refuse_unsupported(read)
    if read.stream_options is not None and not read.stream:
        raise invalid("`stream_options` is only allowed with `stream`.", "stream_options")
    tools = {tool.function.name: _schema_of(tool.function) for tool in read.tools or ()}
    if len(tools) < len(read.tools or ()):
        raise invalid("Two of the tools have the same name.", "tools")
    return ChatRequest(
        model=read.model,
        messages=_convert(read.messages),
        instructions="\n\n".join(
            _text_of(each.content, f"messages[{place}].content")
            for place, each in enumerate(read.messages)
            if isinstance(each, SystemEntry | DeveloperEntry)
        ).strip(),
        tools=tools,
        calls_tools=read.tool_choice != "none",
        is_streamed=bool(read.stream),
        includes_usage=bool(read.stream_options is not None and read.stream_options.include_usage),
    )


_AT: Final = re.compile(r"(?P<what>.*) - at `\$\.?(?P<path>.*)`", re.DOTALL)
"""How msgspec says where a value is wrong."""
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(?P<name>.*)`", re.DOTALL)


def explain(error: msgspec.ValidationError) -> ApiError:
    """Makes the error for a body that does not have the right fields."""
    found = _AT.fullmatch(str(error))
    what, path = (found["what"], found["path"]) if found else (str(error), "")
    if unknown := _UNKNOWN.fullmatch(what):
        return invalid(f"Unrecognized request argument supplied: {unknown['name']}", unknown["name"])
    if missing := _MISSING.fullmatch(what):
        param = f"{path}.{missing['name']}".lstrip(".")
        return invalid(f"Missing required parameter: '{param}'.", param, "missing_required_parameter")
    return invalid(f"Invalid value for '{path or 'the body'}': {what}.", path or None, "invalid_value")


def _refuse_unsupported(body: Body) -> None:
    if body.n not in (None, 1):
        raise unsupported("n", "This server gives one answer to a request. Leave `n` at 1.")
    if body.stop not in (None, [], ""):
        raise unsupported("stop", "This server does not support `stop`. Cut the answer in the client.")
    if body.response_format is not None and body.response_format.type != "text":
        raise unsupported("response_format", "This server answers with plain text only. Leave `response_format` out.")
    if body.audio is not None or any(each != "text" for each in body.modalities or ()):
        raise unsupported("modalities", "This endpoint answers with text only. Use /v1/audio/speech or /v1/realtime.")
    if body.logprobs or body.top_logprobs:
        raise unsupported("logprobs", "This server does not report log probabilities. Leave `logprobs` out.")
    if body.functions is not None or body.function_call is not None:
        raise unsupported("functions", "`functions` and `function_call` are outdated. Use `tools` and `tool_choice`.")
    if body.web_search_options is not None:
        raise unsupported("web_search_options", "This server searches with its own tools. Leave this field out.")
    if body.moderation is not None:
        raise unsupported("moderation", "This server has no moderation. Leave `moderation` out.")
    if body.tool_choice not in (None, "auto", "none"):
        raise unsupported("tool_choice", "`tool_choice` may be `auto` or `none`: a call cannot be forced here.")


def _schema_of(function: Function) -> Mapping[str, Any]:
    described = {
        "name": function.name,
        "description": function.description or "",
        "parameters": function.parameters or {"type": "object", "properties": {}},
    }
    return {"type": "function", "function": described}


def _text_of(content: Content | None, at: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    texts = []
    for place, part in enumerate(content):
        match part:
            case TextPart(text=text) | RefusalPart(refusal=text):
                texts.append(text)
            case _:
                kind = part.__struct_config__.tag
                raise unsupported(f"{at}[{place}].type", f"This server reads text only, not parts of type `{kind}`.")
    return "\n".join(texts)


def _convert(entries: Sequence[HistoryEntry]) -> Sequence[Message]:
    """Converts the history. Every call must be followed by its result, as OpenAI demands."""
    messages: list[Message] = []
    waiting: dict[str, str] = {}
    """The names of the calls of the last message that have no result yet, by their ids."""
    for place, entry in enumerate(entries):
        at = f"messages[{place}]"
        if waiting and not isinstance(entry, ToolEntry):
            raise _unanswered(waiting, at)
        match entry:
            case UserEntry(content=content):
                messages.append(UserMessage(_text_of(content, f"{at}.content")))
            case AssistantEntry(content=content, tool_calls=calls):
                made = tuple(_call_of(call, f"{at}.tool_calls[{n}]") for n, call in enumerate(calls or ()))
                messages.append(AssistantMessage(_text_of(content, f"{at}.content"), made))
                waiting = {call.id: call.name for call in made}
                if len(waiting) < len(made):
                    raise invalid("Two calls of one message have the same `id`.", f"{at}.tool_calls")
            case ToolEntry(content=content, tool_call_id=id):
                if id not in waiting:
                    message = "A message with the role `tool` must answer a call in the `tool_calls` before it."
                    raise invalid(message, f"{at}.tool_call_id")
                messages.append(ToolMessage(id, waiting.pop(id), _result_of(_text_of(content, f"{at}.content"))))
    at = f"messages[{len(entries) - 1}]"
    if waiting:
        raise _unanswered(waiting, at)
    if not messages or isinstance(messages[-1], AssistantMessage):
        raise invalid("The last message must have the role `user` or `tool`.", f"{at}.role")
    if isinstance(messages[-1], UserMessage) and not messages[-1].text.strip():
        raise invalid("The last message is blank. It must have some text.", f"{at}.content")
    return messages


def _unanswered(waiting: Mapping[str, str], at: str) -> ApiError:
    ids = ", ".join(waiting)
    message = f"A message with `tool_calls` must be followed by a `tool` message for each. These are missing: {ids}."
    return invalid(message, at)


def _call_of(call: CallInHistory, at: str) -> CallMade:
    try:
        args = msgspec.json.decode(call.function.arguments or "{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise invalid("The arguments of a call must be JSON.", f"{at}.function.arguments") from None
    return CallMade(call.id, call.function.name, args)


def _result_of(text: str) -> Any:
    """A result that is JSON is given to the model as it is; any other is a text."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text


def _until_user(messages: Sequence[Message]) -> Sequence[Message]:
    last = max((place for place, each in enumerate(messages) if isinstance(each, UserMessage)), default=-1)
    return messages[: last + 1]


def _key_of(messages: Sequence[Message]) -> str:
    """Hashes who said what. White space does not count, since clients trim what they store."""
    digest = sha256()
    for message in messages:
        if not isinstance(message, ToolMessage):
            role = "user" if isinstance(message, UserMessage) else "assistant"
            digest.update(msgspec.json.encode((role, " ".join(message.text.split()))))
    return digest.hexdigest()[:32]
