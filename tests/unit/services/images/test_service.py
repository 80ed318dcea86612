import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from antiphon.authoring.testing import make_context
from antiphon.models.base import Event, MessageComplete, ModelError, Prompt, StopReason, TextDelta, TextProfile
from antiphon.models.builtin import BuiltinModel
from antiphon.models.providers.references import ModelReferenceError
from antiphon.services.images import ImageService, open_images, service
from antiphon.storage.base import StoreUnavailable
from antiphon.storage.images import ImageRecord
from antiphon.storage.memory.images import MemoryImageStore
from antiphon.tools.errors import ErrorType
from tests.fakes.gates import Toolset
from tests.fakes.image_api import KEY, PNG, openai_api
from tests.fakes.scripted import ScriptedModel
from tests.unit.services.images.services import failure_of, make, openai_service, settings_for

THREE = (
    '["A lighthouse in oil paint under a low sun.", "A lighthouse as a linocut print.", "A lighthouse, pencil sketch."]'
)


async def test_without_a_setting_the_failure_says_what_to_set(tmp_path: Path) -> None:
    async with open_images(settings_for(tmp_path, ""), MemoryImageStore()) as images:
        failure = await failure_of(images)
    assert failure.type is ErrorType.PERMANENT
    assert "no image service is set up" in failure.message
    assert "images.model" in (failure.suggestion or "")


async def test_a_missing_key_does_not_stop_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    async with open_images(settings_for(tmp_path, "openai:gpt-image-2"), MemoryImageStore()) as images:
        failure = await failure_of(images)
    assert failure.type is ErrorType.PERMANENT
    assert "OPENAI_API_KEY" in (failure.suggestion or "")


@pytest.mark.parametrize("model", ["openai:http://127.0.0.1:1/v1", "openai:ftp://x#m", "gemini:a b"])
async def test_a_setting_that_names_no_model_stops_the_start(tmp_path: Path, model: str) -> None:
    with pytest.raises(ModelReferenceError, match=r"^images\.model: "):
        async with open_images(settings_for(tmp_path, model), MemoryImageStore()):
            pass


@pytest.mark.real_time
async def test_a_picture_is_stored_with_its_prompt_for_its_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    async with openai_service(tmp_path, openai_api()) as (images, _):
        made = await make(images, "a lighthouse at dusk")
        found = await images.archive.read(made.url.removeprefix("/images/"))
    assert found is not None
    record, content = found
    assert (record.user, record.prompt, record.media_type) == ("ann", "a lighthouse at dusk", "image/png")
    assert content == PNG


@pytest.mark.real_time
async def test_a_picture_that_cannot_be_stored_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(self: MemoryImageStore, record: ImageRecord, content: bytes) -> None:
        raise StoreUnavailable("The database cannot be reached.")

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(MemoryImageStore, "add", fail)
    async with openai_service(tmp_path, openai_api()) as (images, _):
        failure = await failure_of(images)
    assert failure.type is ErrorType.TRANSIENT
    assert "couldn't save it" in failure.message


# Prompts by the text model


class SlowModel:
    profile = TextProfile("slow", needs_network=False)

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        await asyncio.sleep(service.DRAFT_S + 1)
        yield TextDelta(THREE)
        yield MessageComplete(StopReason.DONE)


class FailingModel:
    profile = TextProfile("failing", needs_network=False)

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        raise ModelError("The model cannot be reached.")
        yield TextDelta("")


async def drafts(tmp_path: Path, model: object, count: int = 3) -> list[str]:
    async with open_images(settings_for(tmp_path, ""), MemoryImageStore()) as images:
        images.use_text_model(model)  # type: ignore[arg-type]
        return list(await images.draft("a lighthouse", None, count))


async def test_the_text_model_writes_the_prompts(tmp_path: Path) -> None:
    model = ScriptedModel([f"Here you are:\n```json\n{THREE}\n```"])
    assert await drafts(tmp_path, model, 2) == [
        "A lighthouse in oil paint under a low sun.",
        "A lighthouse as a linocut print.",
    ]
    assert not model.prompts[0].tools
    assert '"idea": "a lighthouse"' in model.prompts[0].messages[0].text  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "answer",
    ["I would rather not.", '["too short"]', "[1, 2, 3]", "[" * 5_000, '["a"', THREE.replace("linocut", "x" * 9_000)],
)
async def test_an_answer_that_is_not_three_prompts_is_not_used(tmp_path: Path, answer: str) -> None:
    assert await drafts(tmp_path, ScriptedModel([answer])) == []


@pytest.mark.parametrize("model", [SlowModel(), FailingModel()], ids=["slow", "failing"])
async def test_a_model_that_is_slow_or_fails_is_not_waited_for(tmp_path: Path, model: object) -> None:
    assert await drafts(tmp_path, model) == []


async def test_the_offline_assistant_is_not_asked(tmp_path: Path) -> None:
    assert await drafts(tmp_path, BuiltinModel(Toolset({}))) == []


async def test_a_session_has_images_made_for_its_own_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def generate(self: ImageService, prompt: str, shape: object, user: str) -> None:
        asked.append(user)

    monkeypatch.setattr(ImageService, "generate", generate)
    context = make_context(user="carol")
    async with open_images(settings_for(tmp_path, ""), MemoryImageStore()) as images:
        await images.offer(context.session, context.tool).generate("a lighthouse", None)
    assert asked == ["carol"]
