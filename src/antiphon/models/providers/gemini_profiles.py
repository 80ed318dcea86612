"""What the models of Gemini Live can do, by their names. Nothing outside this table asks which model it is."""

from dataclasses import dataclass
from typing import Final

from antiphon.models.live import LiveProfile

OUTPUT_HZ: Final = 24_000
CONNECTION_S: Final = 600.0
"""How long a connection lasts by Google's documentation. Some models are given longer; `GoAway` tells the real end."""
CONTEXT_TOKENS: Final = 131_072

VOICES: Final = (
    "Puck", "Achernar", "Achird", "Algenib", "Algieba", "Alnilam", "Aoede", "Autonoe", "Callirrhoe", "Charon",
    "Despina", "Enceladus", "Erinome", "Fenrir", "Gacrux", "Iapetus", "Kore", "Laomedeia", "Leda", "Orus",
    "Pulcherrima", "Rasalgethi", "Sadachbia", "Sadaltager", "Schedar", "Sulafat", "Umbriel", "Vindemiatrix",
    "Zephyr", "Zubenelgenubi",
)  # fmt: skip
"""The prebuilt voices. A connection with an unknown voice is refused, so other names are not sent."""


@dataclass(frozen=True, slots=True)
class GeminiProfile:
    """What one family of models takes and needs. The defaults are safe for a model that is not known."""

    takes_turns: bool = False
    """Whether `clientContent` is taken during the whole session, so that typed text is a turn of its own. Otherwise
    typed text is realtime input: such a model closes the connection (1007) for `clientContent` after the history."""
    takes_notes: bool = False
    """Whether an unfinished `clientContent` may stand alone: it adds to the context and ends the answer under way
    without a new one. Models that were reported to ignore speech after it get notes with the next text only."""
    declares_history: bool = True
    """Whether the setup must declare that history follows. Such a history is complete and triggers no answer. Without
    the declaration, a history is left unfinished and must end with a turn of the user."""
    waits_for_tools: bool = True
    """Whether the model says nothing while a tool runs. Others go on, and complete their turn before the results."""
    behavior: str | None = None
    """`NON_BLOCKING` for a model that must be told not to wait; None for its own way."""
    scheduling: bool = False
    """Whether a function response may say when its result is told."""
    thinking_level: str | None = None
    """Set for a model that requires one."""
    tells_interaction: bool = False
    """Whether `turnComplete` is not the end: the model thinks on and answers again, until it says that it is idle."""
    answer_within_s: float = 30.0
    """How long the model may be silent while an answer is awaited."""


FAMILIES: Final[tuple[tuple[str, GeminiProfile], ...]] = (
    (
        "gemini-3.8-live-extended-thinking",
        # Reports about `scheduling` conflict; leaving it out is accepted by all accounts. Its only behavior is not to
        # block, so none is sent. The lowest level is the quickest, which is what a voice needs.
        GeminiProfile(
            takes_turns=True,
            takes_notes=True,
            waits_for_tools=False,
            thinking_level="LOW",
            tells_interaction=True,
            answer_within_s=100.0,
        ),
    ),
    (
        "gemini-3.8-live",
        GeminiProfile(
            takes_turns=True, takes_notes=True, waits_for_tools=False, behavior="NON_BLOCKING", scheduling=True
        ),
    ),
    ("gemini-3.1-flash-live", GeminiProfile()),
    (
        "gemini-2.5-flash-native-audio",
        GeminiProfile(
            takes_turns=True, declares_history=False, waits_for_tools=False, behavior="NON_BLOCKING", scheduling=True
        ),
    ),
)
"""The families that are known, by the beginning of their names, the more special names first."""


def gemini_profile(model: str) -> GeminiProfile:
    """Returns what the model takes; for a name that is not known, what every model takes."""
    name = model.removeprefix("models/")
    return next((profile for prefix, profile in FAMILIES if name.startswith(prefix)), GeminiProfile())


def profile_for(model: str) -> LiveProfile:
    """Returns the profile of a model of Gemini Live."""
    return LiveProfile(
        name=f"gemini-live:{model.removeprefix('models/')}",
        hears=True,
        output_hz=OUTPUT_HZ,
        needs_network=True,
        tool_schemas="gemini",
        keeps_context=True,
        resumes=True,
        voices=VOICES,
        max_session_s=CONNECTION_S,
        context_tokens=CONTEXT_TOKENS,
    )


def find_voice(name: str) -> str | None:
    """Returns a prebuilt voice by its name, in any case; None if there is no such voice."""
    return next((voice for voice in VOICES if voice.lower() == name.lower()), None)
