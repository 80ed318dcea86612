"""What `/ready` says about each part."""

import pytest

from antiphon.models.base import FailureKind
from antiphon.models.health import ModelHealth
from antiphon.server.deps import NamedHealth, VoiceParts
from antiphon.server.parts import Part, examine
from antiphon.server.refusals import STOPPING
from antiphon.storage.base import STORE_UNAVAILABLE
from antiphon.telemetry.metrics import EngineStats
from antiphon.tools.spec import Mode
from tests.fakes.web import WebApps


def model(name: str, *, failed: bool = False) -> NamedHealth:
    health = ModelHealth()
    if failed:
        health.note_failure(name, FailureKind.SERVER_ERROR, 502)
    return NamedHealth(name, health)


def engine(name: str, *, failed: bool = False) -> EngineStats:
    stats = EngineStats(name)
    if failed:
        stats.note_failure("busy")
    return stats


def told(parts: tuple[Part, ...]) -> dict[str, str]:
    return {part.name: str(part.status) for part in parts}


def test_a_store_that_cannot_be_written_to_is_down() -> None:
    assert told(examine([STORE_UNAVAILABLE], {}, VoiceParts(), answers_locally=True)) == {"store": "down"}
    assert told(examine([STOPPING], {}, VoiceParts(), answers_locally=True)) == {"store": "ok"}


@pytest.mark.parametrize(
    ("others", "answers_locally", "status", "says"),
    [
        (["builtin"], True, "degraded", "builtin takes its place where it can."),
        ([], True, "degraded", "The offline assistant takes its place where it can."),
        ([], False, "down", "Nothing takes its place."),
    ],
)
def test_a_failing_text_model_is_down_only_without_a_fallback(
    others: list[str], answers_locally: bool, status: str, says: str
) -> None:
    healths = {Mode.TEXT: [model("big", failed=True), *map(model, others)]}
    [_, part] = examine([], healths, VoiceParts(), answers_locally=answers_locally)
    assert (part.name, part.status) == ("text_model", status)
    assert part.message == f"big failed when it was last asked (server_error, HTTP 502). {says}"


def test_a_failing_fallback_does_not_concern_the_model() -> None:
    healths = {Mode.TEXT: [model("big"), model("small", failed=True)]}
    assert told(examine([], healths, VoiceParts(), answers_locally=True))["text_model"] == "ok"


def test_the_local_voice_takes_the_place_of_a_failing_one() -> None:
    healths = {Mode.VOICE: [model("gemini", failed=True)]}
    alone = VoiceParts(is_wanted=True, is_there=True)
    assert told(examine([], healths, alone, answers_locally=True))["voice"] == "down"
    with_engines = VoiceParts(is_wanted=True, is_there=True, stt=engine("ear"), tts=engine("mouth"))
    assert told(examine([], healths, with_engines, answers_locally=True)) == {
        "store": "ok",
        "voice": "degraded",
        "stt": "ok",
        "tts": "ok",
    }


def test_a_voice_that_could_not_be_loaded_is_down() -> None:
    assert told(examine([], {}, VoiceParts(is_wanted=True), answers_locally=True))["voice"] == "down"
    assert "voice" not in told(examine([], {}, VoiceParts(), answers_locally=True))


def test_an_engine_that_failed_last_is_degraded() -> None:
    stt, tts = engine("ear", failed=True), engine("mouth", failed=True)
    parts = examine([], {}, VoiceParts(is_wanted=True, is_there=True, stt=stt, tts=tts), answers_locally=True)
    assert [part.message for part in parts[1:]] == [
        "ear failed when it was last used. Typed messages are answered.",
        "mouth failed when it was last used. Answers are shown as text.",
    ]
    stt.note_success(10)
    parts = examine([], {}, VoiceParts(is_wanted=True, is_there=True, stt=stt, tts=tts), answers_locally=True)
    assert told(parts) == {"store": "ok", "stt": "ok", "tts": "degraded"}


async def test_a_failing_model_leaves_the_server_ready(apps: WebApps) -> None:
    healths = {Mode.TEXT: [model("big", failed=True)]}
    ready = await apps.open(text=[], deps={"model_healths": healths}).get("/ready", user="stranger")
    assert (ready.status_code, ready.json()["status"]) == (200, "ok")
    assert {part["name"]: part["status"] for part in ready.json()["parts"]} == {"store": "ok", "text_model": "down"}
