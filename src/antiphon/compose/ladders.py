"""The models of a server by energy level, as the settings name them: for text, and for voice.

A model that several levels name is opened once, so that they share its health.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Final

from antiphon.compose.app import App
from antiphon.compose.rungs import is_named, setting_of, text_rungs, voice_rungs
from antiphon.compose.voice import Speech, Voice, chosen_voice, open_voice, without_chosen_voice
from antiphon.config import Settings
from antiphon.errors import AntiphonError
from antiphon.models.base import TextModel
from antiphon.models.builtin import BuiltinModel
from antiphon.models.health import ModelHealth
from antiphon.models.live import ModelFactory
from antiphon.models.providers import open_live_model
from antiphon.models.providers.references import (
    CASCADE,
    ModelReference,
    ModelReferenceError,
    parse,
    parse_voice,
)
from antiphon.models.text_live import text_factory
from antiphon.server.deps import NamedHealth
from antiphon.speech.base import SpeechUnreachable
from antiphon.tools.spec import Mode

VOICE_RETRY_S: Final = (1.0, 2.0, 4.0, 8.0, 15.0)
"""The waits between attempts to reach a speech engine, which may start later than this server after a power cut."""


class NoVoiceError(AntiphonError):
    """A voice is required, and the settings have none."""

    code = "no_voice"


class LadderError(AntiphonError):
    """A model of a ladder is wrong; the text names the setting."""

    code = "ladder"


@dataclass(frozen=True, slots=True)
class OpenText:
    """A text model, ready to answer."""

    reference: ModelReference
    model: TextModel
    factory: ModelFactory

    @property
    def named_health(self) -> NamedHealth:
        return NamedHealth(self.reference.public_name, self.factory.health)


@dataclass(frozen=True, slots=True)
class TextModels:
    """The text models of a server."""

    rungs: Mapping[int, OpenText]
    assistant: BuiltinModel
    """The offline assistant, which also judges how complete a request is, whatever model answers it."""

    @property
    def best(self) -> OpenText:
        return self.rungs[max(self.rungs)]

    @property
    def factories(self) -> Mapping[int, ModelFactory]:
        return {level: each.factory for level, each in self.rungs.items()}

    @property
    def opened(self) -> Sequence[OpenText]:
        """Each model once, the best one first."""
        return list({id(each): each for _, each in sorted(self.rungs.items(), reverse=True)}.values())


async def open_text_models(app: App, stack: AsyncExitStack) -> TextModels:
    """Opens the text models of all levels. Raises `AntiphonError` if a name is wrong, or if a package or a key is
    missing."""
    settings, assistant = app.settings, await app.assistant()
    names = text_rungs(settings)
    opened: dict[str, OpenText] = {}
    for name in names.values():
        if name in opened:
            continue
        try:
            reference = parse(name)
            model = await stack.enter_async_context(app.text_model(reference, assistant))
        except AntiphonError as error:
            raise _explain(error, settings, Mode.TEXT, name) from error
        health = app.model_health if not opened else ModelHealth()
        opened[name] = OpenText(reference, model, _named(text_factory(model, health), reference.public_name))
    return TextModels({level: opened[name] for level, name in names.items()}, assistant)


@dataclass(frozen=True, slots=True)
class VoiceModels:
    """The voice models of a server."""

    rungs: Mapping[int, Voice]
    speech: Speech | None
    """The engines on this server; None if no model needs them."""
    healths: Sequence[NamedHealth]
    """Those of the models that hear and speak by themselves, the best one first. A cascade is not among them: its
    answers are those of the text model."""

    @property
    def best(self) -> Voice:
        return self.rungs[max(self.rungs)]

    @property
    def factories(self) -> Mapping[int, ModelFactory]:
        return {level: each.factory for level, each in self.rungs.items()}


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What came of opening a model."""

    voice: Voice | None
    problem: AntiphonError | None = None
    """Why it cannot be used. A model whose key is missing is there nevertheless, and tells it to whoever calls."""


async def open_voice_models(
    app: App, texts: TextModels, stack: AsyncExitStack, *, announce: Callable[[str], None], is_needed: bool = False
) -> VoiceModels | None:
    """Opens the voice models of all levels; None if there are none. What cannot be used is announced, with the reason.

    A level whose model cannot be opened uses that of the next higher level, or else of the next lower one. If
    `is_needed`, an error of the best model is raised.
    """
    names = voice_rungs(app.settings)
    if not names:
        if is_needed:
            raise NoVoiceError('there is no voice, since model.voice is "none" in the settings.')
        return None
    best = names[max(names)]
    if CASCADE in names.values():
        announce("Loading the voice…")

    async def open_model(name: str) -> _Attempt:
        if name == CASCADE:
            may_wait = is_named(app.settings, CASCADE) and not is_needed
            waits_s = VOICE_RETRY_S if may_wait else ()
            return await _open_cascade(app, texts, stack, announce=announce, waits_s=waits_s, is_best=best == CASCADE)
        return await _open_live(app.settings, name, is_best=name == best)

    references = {name: _parse(app.settings, name) for name in dict.fromkeys(names.values())}
    # The packages of providers and the speech engines take seconds to load, so they are loaded at the same time.
    attempts = dict(zip(references, await asyncio.gather(*map(open_model, references)), strict=True))
    problem = attempts[best].problem
    if problem is not None and is_needed:
        raise problem
    for line in _describe_problems(names, attempts):
        announce(line)
    rungs = {level: voice for level, name in names.items() if (voice := attempts[name].voice) is not None}
    if not rungs:
        return None
    voices = {name: attempt.voice for name, attempt in attempts.items() if attempt.voice is not None}
    return VoiceModels(
        rungs={level: rungs[_nearest(level, rungs)] for level in names},
        speech=voices[CASCADE].speech if CASCADE in voices else None,
        healths=[
            NamedHealth(reference.public_name, voices[name].factory.health)
            for name, reference in references.items()
            if reference is not None and name in voices
        ],
    )


def _nearest(level: int, levels: Mapping[int, object]) -> int:
    above = [each for each in levels if each >= level]
    return min(above) if above else max(levels)


def _describe_problems(names: Mapping[int, str], attempts: Mapping[str, _Attempt]) -> list[str]:
    """Returns a line for each model that cannot be used, or one for all if there is no voice at all."""
    best = names[max(names)]
    problems = {name: attempt.problem for name, attempt in attempts.items() if attempt.problem is not None}
    if len(problems) == len(attempts):
        return [f"There is no voice, only text: {attempts[best].problem}"]
    return [
        f"{_levels([level for level, each in names.items() if each == name])} cannot use {name}: {problem}"
        for name, problem in problems.items()
    ]


def _levels(levels: Sequence[int]) -> str:
    """Returns "Voice level 3" or "Voice levels 3 and 2"."""
    return f"Voice level{'' if len(levels) == 1 else 's'} {' and '.join(map(str, levels))}"


async def _open_cascade(
    app: App,
    texts: TextModels,
    stack: AsyncExitStack,
    *,
    announce: Callable[[str], None],
    waits_s: Sequence[float],
    is_best: bool,
) -> _Attempt:
    # A voice that is set is one of the best model's.
    settings = app.settings if is_best else without_chosen_voice(app.settings)
    waits = iter(waits_s)
    while True:
        try:
            opened = await stack.enter_async_context(
                open_voice(
                    settings,
                    texts.best.model,
                    lambda text: texts.assistant.completeness(text, Mode.VOICE),
                    texts.best.factory.health,
                    app.services.names,
                )
            )
            factory = _named_cascade(opened.factory, texts.best.reference.public_name)
            return _Attempt(replace(opened, factory=factory))
        except AntiphonError as error:
            wait_s = next(waits, None)
            if wait_s is None or not isinstance(error, SpeechUnreachable):
                return _Attempt(None, error)
            announce(f"{error} Trying again in {wait_s:g} s.")
            await asyncio.sleep(wait_s)


async def _open_live(settings: Settings, name: str, *, is_best: bool) -> _Attempt:
    reference = parse_voice(name)
    assert reference is not None
    try:
        # In a thread, since the package of a provider takes up to a second to load.
        factory, problem = await asyncio.to_thread(
            open_live_model,
            reference,
            os.environ,
            settings.model,
            chosen_voice(settings),
            needs_voice=is_best,
        )
    except AntiphonError as error:
        return _Attempt(None, error)
    return _Attempt(Voice(factory), problem)


def _named(factory: ModelFactory, name: str) -> ModelFactory:
    """Gives the models a name that clients may see, without the address of a server."""
    return replace(factory, profile=replace(factory.profile, name=name))


def _named_cascade(factory: ModelFactory, text_model: str) -> ModelFactory:
    named, parts = _named(factory, f"{CASCADE} ({text_model})"), factory.profile.cascade
    if parts is None:
        return named
    return replace(named, profile=replace(named.profile, cascade=replace(parts, text_model=text_model)))


def _parse(settings: Settings, name: str) -> ModelReference | None:
    try:
        return parse_voice(name)
    except ModelReferenceError as error:
        raise _explain(error, settings, Mode.VOICE, name) from error


def _explain(error: AntiphonError, settings: Settings, mode: Mode, name: str) -> AntiphonError:
    """Adds the setting to an error about a model of a ladder."""
    key = setting_of(settings, mode, name)
    return error if key.startswith("model.") else LadderError(f"{key}: {error}")
