"""Writes docs/reference/models.md from the profiles of the models. It needs no provider's package."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from antiphon.models.live import LiveProfile
from antiphon.models.providers import gemini_profiles, realtime_profiles
from antiphon.models.providers.gemini_profiles import GeminiProfile
from antiphon.models.providers.references import KEY_VARIABLES, Provider

INTRODUCTION: Final = """\
# Models

What the models of each provider can do, as far as Antiphon knows it without asking them. `make reference` writes this
page from the code. [`antiphon models test`](../providers/choosing-a-model.md#test-it) finds out what a model really
does, and [the pages of the providers](../providers/README.md) say how to set it up.
"""

VOICE: Final = """\
## Voice models

These are for `model.voice`. The local voice, `"cascade"`, is not in the table: it hears and speaks with the engines of
`[speech]` for any text model, reads the stored conversation, waits to answer, and has no limit of its own.
"""

VOICE_COLUMNS: Final = {
    "setting": "what to write as `model.voice`.",
    "hears": "whether the model takes the audio of the microphone, without a recogniser on the server.",
    "speaks": "whether it answers with audio, and at which rate.",
    "own context": "whether the provider keeps the conversation while a connection lasts. A new connection is given "
    "the stored conversation.",
    "waits to answer": "whether Antiphon decides when an answer begins, after it has read what was said. Otherwise the "
    "model answers what it hears by itself.",
    "resumes": "whether the provider can continue a session on a new connection. Otherwise a new session begins, with "
    "the conversation so far.",
    "longest connection": "how long the provider lets a connection last. Then a new one takes over.",
    "context": "how many tokens the model takes. A longer conversation is given to a new connection as a summary and "
    "its newest turns.",
    "voices": "how many voices can be chosen.",
    "network": "whether it needs a network. A compatible server on this machine does not.",
}

GEMINI: Final = """\
## Gemini Live, by family

A family is recognised by the beginning of the model's name. For other names, only what all models accept is used.
"""

GEMINI_COLUMNS: Final = {
    "name begins with": "the name after `gemini-live:`.",
    "typed text": "how text reaches the model during a call: as a turn of its own (`clientContent`), or as realtime "
    "input, because the model would close the connection.",
    "notes": "whether the model can be told something without answering it. Otherwise it is told with the next text.",
    "history": "how a new session is given the conversation: as a history that the setup declares, or as a turn that "
    "is left unfinished.",
    "while a tool runs": "whether the model waits for the result, or goes on talking.",
    "non-blocking": "whether tools are declared as `NON_BLOCKING`. Otherwise the model's own behavior applies.",
    "scheduling": "whether a result can say when it is told: at once, when the model is idle, or never.",
    "thinking": "the thinking level that is sent, for a model that requires one.",
    "answers within": "how long the model may be silent before an answer counts as failed.",
}

REALTIME: Final = """\
## OpenAI and Azure Realtime, by family

A family is recognised by a part of the model's name, on Azure by the name of the deployment.
"""

REALTIME_COLUMNS: Final = {
    "name contains": "the name after `openai-realtime:`, or the name of the deployment.",
    "reasons": "whether the model reasons before it answers, so that `model.reasoning_effort` is sent.",
    "parallel tool calls": "whether Antiphon allows several calls in one response (`parallel_tool_calls`). Otherwise "
    "the model's own default applies.",
}

TEXT: Final = """\
## Text models

These are for `model.text`. With `model.voice = "cascade"` they are also used in calls.
"""

TEXT_COLUMNS: Final = {
    "setting": "what to write as `model.text`.",
    "streams": "whether words come while the answer is being written, so that speech can begin early.",
    "tools": "how tools are called. Calls that a model writes as text are recognised from any server.",
    "usage": "whether the tokens of an answer are counted.",
    "prefix warm-up": "whether the server reads the prompt before the first user waits for it. That is done only on "
    "this machine or in its network, since elsewhere it may cost money.",
    "network": "whether it needs a network. A server on this machine does not.",
    "key": "the environment variable of the key.",
}


@dataclass(frozen=True, slots=True)
class TextKind:
    """How one kind of text model is used. These models have no profile by family: a test finds out what one can do."""

    provider: Provider
    settings: str
    streams: str
    tools: str
    usage: str
    warm_up: str


TEXT_KINDS: Final = (
    TextKind(
        Provider.BUILTIN,
        "`builtin`",
        streams="not needed",
        tools="by the sentences that they define",
        usage="no tokens",
        warm_up="not needed",
    ),
    TextKind(
        Provider.OPENAI,
        "`openai:NAME`, `openai:URL#NAME`",
        streams="yes",
        tools="`tools` of chat completions",
        usage="if the server sends it",
        warm_up="yes",
    ),
    TextKind(
        Provider.GEMINI,
        "`gemini:NAME`",
        streams="yes",
        tools="`tools` of chat completions",
        usage="if the server sends it",
        warm_up="no, it is not your own server",
    ),
    TextKind(
        Provider.OLLAMA,
        "`ollama:NAME`, `ollama:URL#NAME`",
        streams="yes",
        tools="`tools` of `/api/chat`",
        usage="yes",
        warm_up="yes",
    ),
)

VOICE_NAMES: Final = """\
## Voices

The first one is the default.
"""


def markdown() -> str:
    parts = [
        INTRODUCTION,
        VOICE,
        _table(VOICE_COLUMNS, [_describe_live(setting, profile) for setting, profile in _live_profiles()]),
        _explain(VOICE_COLUMNS),
        GEMINI,
        _table(GEMINI_COLUMNS, [_describe_gemini(name, kind) for name, kind in _gemini_families()]),
        _explain(GEMINI_COLUMNS),
        REALTIME,
        _table(REALTIME_COLUMNS, _realtime_rows()),
        _explain(REALTIME_COLUMNS),
        TEXT,
        _table(TEXT_COLUMNS, _text_rows()),
        _explain(TEXT_COLUMNS),
        VOICE_NAMES,
        f"- Gemini Live: {', '.join(gemini_profiles.VOICES)}.\n- OpenAI and Azure Realtime: "
        f"{', '.join(realtime_profiles.VOICES)}, and the ids of your own (`{realtime_profiles.CUSTOM_VOICE}…`).\n",
    ]
    return "\n".join(parts)


def _live_profiles() -> list[tuple[str, LiveProfile]]:
    return [
        ("`gemini-live:NAME`", gemini_profiles.profile_for("NAME")),
        ("`openai-realtime:NAME`", realtime_profiles.profile_for("NAME")),
        ("`azure-realtime:URL#DEPLOYMENT`", realtime_profiles.profile_for("DEPLOYMENT")),
    ]


def _describe_live(setting: str, profile: LiveProfile) -> Sequence[str]:
    longest_s = profile.max_session_s
    return (
        setting,
        _yes(profile.hears),
        f"yes, {profile.output_hz:,} Hz" if profile.speaks else "no",
        _yes(profile.keeps_context),
        _yes(profile.waits_to_answer),
        _yes(profile.resumes),
        "no limit known" if longest_s is None else f"{longest_s / 60:g} minutes",
        "not known" if profile.context_tokens is None else f"{profile.context_tokens:,} tokens",
        str(len(profile.voices)),
        _yes(profile.needs_network),
    )


def _gemini_families() -> list[tuple[str, GeminiProfile]]:
    return [(f"`{prefix}`", kind) for prefix, kind in gemini_profiles.FAMILIES] + [("any other", GeminiProfile())]


def _describe_gemini(name: str, kind: GeminiProfile) -> Sequence[str]:
    return (
        name,
        "a turn" if kind.takes_turns else "realtime input",
        _yes(kind.takes_notes),
        "declared" if kind.declares_history else "an unfinished turn",
        "waits" if kind.waits_for_tools else "goes on",
        "declared" if kind.behavior == "NON_BLOCKING" else "not declared",
        _yes(kind.scheduling),
        f"`{kind.thinking_level}`" if kind.thinking_level else "not sent",
        f"{kind.answer_within_s:g} s",
    )


def _realtime_rows() -> list[Sequence[str]]:
    families = [(f"`{name}`", traits) for name, traits in realtime_profiles.TRAITS]
    families.append(("any other", realtime_profiles.UNKNOWN))
    return [(name, _yes(traits.reasons), _yes(traits.reasons)) for name, traits in families]


def _text_rows() -> list[Sequence[str]]:
    return [
        (
            kind.settings,
            kind.streams,
            kind.tools,
            kind.usage,
            kind.warm_up,
            _yes(kind.provider is not Provider.BUILTIN),
            f"`{KEY_VARIABLES[kind.provider]}`" if kind.provider in KEY_VARIABLES else "none",
        )
        for kind in TEXT_KINDS
    ]


def _table(columns: Iterable[str], rows: Sequence[Sequence[str]]) -> str:
    names = list(columns)
    lines = [f"| {' | '.join(cells)} |\n" for cells in (names, *rows)]
    lines.insert(1, f"|{'---|' * len(names)}\n")
    return "".join(lines)


def _explain(columns: Mapping[str, str]) -> str:
    return "".join(f"- **{name}**: {meaning}\n" for name, meaning in columns.items())


def _yes(value: bool) -> str:
    return "yes" if value else "no"
