"""The Gemini Live models that the simulator knows, and what each of them refuses."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from antiphon.sim.vendors.base import CloseWith, Message

INVALID_ARGUMENT: Final = CloseWith(1007, "Request contains an invalid argument.")
NO_THINKING: Final = CloseWith(1007, "Thinking level is not supported for this model")
NO_SCHEDULING: Final = CloseWith(1007, "Function response scheduling is not supported for this model")


class Thinking(StrEnum):
    OPTIONAL = "optional"
    FORBIDDEN = "forbidden"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class GeminiModel:
    family: str
    """A handle works only with a model of the family that it was issued for."""
    thinking: Thinking = Thinking.OPTIONAL
    asynchronous_calls: bool = True
    blocking_calls: bool = True
    scheduling: bool = True
    content_at_any_time: bool = True
    """Whether clientContent is accepted after the initial history."""
    affective_dialog: bool = True
    proactivity_can_be_off: bool = True
    text_output: bool = True

    def refuse_setup(self, setup: Message) -> CloseWith | None:
        generation: Message = setup.get("generationConfig") or {}
        thinks = bool(generation.get("thinkingConfig"))
        if thinks and self.thinking is Thinking.FORBIDDEN:
            return NO_THINKING
        declared = [each for tool in setup.get("tools") or () for each in tool.get("functionDeclarations") or ()]
        behaviors = {each.get("behavior") for each in declared}
        wants_proactivity = (setup.get("proactivity") or {}).get("proactiveAudio")
        is_refused = (
            (not thinks and self.thinking is Thinking.REQUIRED)
            or ("NON_BLOCKING" in behaviors and not self.asynchronous_calls)
            or ("BLOCKING" in behaviors and not self.blocking_calls)
            or (bool(generation.get("enableAffectiveDialog")) and not self.affective_dialog)
            or (wants_proactivity is False and not self.proactivity_can_be_off)
            or ("TEXT" in (generation.get("responseModalities") or ()) and not self.text_output)
        )
        return INVALID_ARGUMENT if is_refused else None

    def refuse_response(self, response: Message) -> CloseWith | None:
        return NO_SCHEDULING if response.get("scheduling") and not self.scheduling else None


_NATIVE_AUDIO: Final = GeminiModel("2.5-native-audio", text_output=False)
_LIVE_38: Final = GeminiModel(
    "3.8-live",
    thinking=Thinking.FORBIDDEN,
    affective_dialog=False,
    proactivity_can_be_off=False,
    text_output=False,
)

MODELS: Final[Mapping[str, GeminiModel]] = {
    "gemini-3.8-live": _LIVE_38,
    "gemini-3.8-live-extended-thinking": GeminiModel(
        "3.8-live-extended-thinking",
        thinking=Thinking.REQUIRED,
        blocking_calls=False,
        scheduling=False,
        affective_dialog=False,
        proactivity_can_be_off=False,
        text_output=False,
    ),
    "gemini-3.1-flash-live-preview": GeminiModel(
        "3.1-flash-live",
        asynchronous_calls=False,
        scheduling=False,
        content_at_any_time=False,
        affective_dialog=False,
    ),
    "gemini-2.5-flash-native-audio-preview-12-2025": _NATIVE_AUDIO,
    "gemini-2.5-flash-native-audio-latest": _NATIVE_AUDIO,
    "gemini-live-2.5-flash-native-audio": _NATIVE_AUDIO,
}


def find_model(name: str, extra: frozenset[str]) -> GeminiModel | None:
    """Returns a model by its name, with or without its path. A model that the user added refuses nothing."""
    short = name.rpartition("/")[2]
    return MODELS.get(short) or (GeminiModel(short) if short in extra else None)
