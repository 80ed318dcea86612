"""What is done after the start, before the first user waits for it: the server of a model reads the prompt, and the
offline assistant learns what requests mean."""

import asyncio
from typing import Final

from antiphon.models.base import ModelError, Prompt, TextModel, warm
from antiphon.models.builtin import BuiltinModel
from antiphon.models.health import ModelHealth
from antiphon.models.text_live import profile_of
from antiphon.prompts.composer import Composer
from antiphon.telemetry.log import get_logger
from antiphon.tools.registry import Registry, Snapshot
from antiphon.tools.spec import Mode
from antiphon.transcript import UserMessage

CHECK_EVERY_S: Final = 1.0
"""How often it is checked whether the tools have changed."""
WARM_UP: Final = "Hello."
"""The message of the user in the prompt, since servers do not accept a prompt without one."""

log = get_logger(__name__)


class Warmer:
    """Warms a text model when the server starts and when its tools change. A failure is logged, and nothing else."""

    def __init__(self, model: TextModel, health: ModelHealth, composer: Composer, registry: Registry) -> None:
        self._model = model
        self._health = health
        self._composer = composer
        self._registry = registry

    async def run(self) -> None:
        """Runs until the tools can no longer change, or until it is cancelled."""
        warmed: str | None = None
        while True:
            if self._registry.version != warmed:
                warmed = self._registry.version
                await self.warm(self._registry.snapshot())
            if self._registry.locked:
                return
            await asyncio.sleep(CHECK_EVERY_S)

    async def warm(self, snapshot: Snapshot) -> None:
        # Text and voice share a prefix, so warming one of them is enough.
        prompt = make_prompt(self._model, self._composer, snapshot, WARM_UP)
        clock = asyncio.get_running_loop().time
        began_s = clock()
        self._health.is_warming = True
        try:
            if await warm(self._model, prompt):
                log.info("model_warmed", model=self._model.profile.name, ms=round((clock() - began_s) * 1_000))
        except ModelError as error:
            log.warning("model_not_warmed", model=self._model.profile.name, kind=error.kind, status=error.status)
        finally:
            self._health.is_warming = False


async def keep_learning(assistant: BuiltinModel, registry: Registry) -> None:
    """Lets the assistant learn what requests mean, when the server starts and when its tools change. It runs until the
    tools can no longer change, or until it is cancelled."""
    learned: str | None = None
    clock = asyncio.get_running_loop().time
    while True:
        if registry.version != learned:
            learned, began_s = registry.version, clock()
            if not await assistant.learn():
                return
            log.info("requests_learned", ms=round((clock() - began_s) * 1_000))
        if registry.locked:
            return
        await asyncio.sleep(CHECK_EVERY_S)


def make_prompt(model: TextModel, composer: Composer, snapshot: Snapshot, text: str, mode: Mode = Mode.TEXT) -> Prompt:
    """Makes the prompt of a session in which the user has said only this."""
    profile = profile_of(model)
    summaries = snapshot.names() if profile.tools_per_turn else snapshot.summaries()
    system = composer.compose(mode, tools_version=snapshot.version, summaries=summaries)
    tools = snapshot.provider_schemas(profile.tool_schemas, mode)
    return Prompt(system.text, (UserMessage(text),), tools, mode, system.mode_note)
