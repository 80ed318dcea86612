"""The parts of a server as `/ready` lists them: which of them is unwell, and what takes its place."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from antiphon.server.deps import NamedHealth, VoiceParts
from antiphon.storage.base import STORE_UNAVAILABLE
from antiphon.telemetry.metrics import EngineStats
from antiphon.tools.spec import Mode


class PartStatus(StrEnum):
    OK = "ok"
    DEGRADED = "degraded"
    """It failed when it was last used, and something else takes its place."""
    DOWN = "down"
    """It does not work, and nothing takes its place."""


class Part(Struct, frozen=True):
    name: str
    """One of store, text_model, voice, stt and tts."""
    status: PartStatus
    message: str
    """A sentence for operators."""


def examine(
    problems: Sequence[str], healths: Mapping[Mode, Sequence[NamedHealth]], voice: VoiceParts, *, answers_locally: bool
) -> tuple[Part, ...]:
    """Judges all parts. `answers_locally` says that the offline assistant answers what it knows before the model."""
    parts = [_examine_store(problems)]
    texts, voices = healths.get(Mode.TEXT, ()), healths.get(Mode.VOICE, ())
    if texts:
        others = [each.name for each in texts[1:]] or (["The offline assistant"] if answers_locally else [])
        parts.append(_examine_model("text_model", texts, others))
    if voice.is_wanted and not voice.is_there:
        parts.append(Part("voice", PartStatus.DOWN, "There is no voice. Conversations go on in text."))
    elif voices:
        others = [each.name for each in voices[1:]] or (["The local voice"] if voice.stt is not None else [])
        parts.append(_examine_model("voice", voices, others))
    if voice.stt is not None:
        parts.append(_examine_engine("stt", voice.stt, "Typed messages are answered."))
    if voice.tts is not None:
        parts.append(_examine_engine("tts", voice.tts, "Answers are shown as text."))
    return tuple(parts)


def _examine_store(problems: Sequence[str]) -> Part:
    if STORE_UNAVAILABLE in problems:
        return Part("store", PartStatus.DOWN, STORE_UNAVAILABLE)
    return Part("store", PartStatus.OK, "It can be written to.")


def _examine_model(part: str, models: Sequence[NamedHealth], fallbacks: Sequence[str]) -> Part:
    best = models[0]
    failure = best.health.last_failure
    if failure is None:
        told = "is loading" if best.health.is_warming else "answered when it was last asked, or was not asked yet"
        return Part(part, PartStatus.OK, f"{best.name} {told}.")
    status = "" if failure.status is None else f", HTTP {failure.status}"
    told = f"{best.name} failed when it was last asked ({failure.kind}{status})."
    if not fallbacks:
        return Part(part, PartStatus.DOWN, f"{told} Nothing takes its place.")
    return Part(part, PartStatus.DEGRADED, f"{told} {fallbacks[0]} takes its place where it can.")


def _examine_engine(part: str, stats: EngineStats, meanwhile: str) -> Part:
    if not stats.last_failed:
        return Part(part, PartStatus.OK, f"{stats.engine} works.")
    return Part(part, PartStatus.DEGRADED, f"{stats.engine} failed when it was last used. {meanwhile}")
