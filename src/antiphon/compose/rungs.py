"""Which model the settings give to each level of energy."""

from collections.abc import Mapping

from antiphon.config import Settings
from antiphon.models.providers.references import CASCADE, NO_VOICE, Provider
from antiphon.tools.spec import Mode


def text_rungs(settings: Settings) -> dict[int, str]:
    """Returns the text model of each level, the highest level first."""
    ladder = settings.ladder.text
    return {2: ladder.level_2 or settings.model.text, 1: ladder.level_1 or str(Provider.BUILTIN)}


def best_text(settings: Settings) -> str:
    """Returns the text model of the highest level."""
    rungs = text_rungs(settings)
    return rungs[max(rungs)]


def voice_rungs(settings: Settings) -> dict[int, str]:
    """Returns the voice model of each level, the highest level first; none if the settings want no voice."""
    if settings.model.voice == NO_VOICE:
        return {}
    ladder = settings.ladder.voice
    best = ladder.level_3 or settings.model.voice
    return {3: best, 2: ladder.level_2 or best, 1: ladder.level_1 or CASCADE}


def setting_of(settings: Settings, mode: Mode, name: str) -> str:
    """Returns the setting that names a model of a ladder."""
    levels = _given(settings, mode)
    return next((f"ladder.{mode}.{level}" for level, each in levels.items() if each == name), f"model.{mode}")


def is_named(settings: Settings, name: str) -> bool:
    """Whether the settings name a voice model. The local voice may be a fallback without being named."""
    given = _given(settings, Mode.VOICE)
    return name in given.values() or (name == settings.model.voice and not given["3"])


def _given(settings: Settings, mode: Mode) -> dict[str, str]:
    """Returns the rungs of a ladder as they are in the settings."""
    ladder: Mapping[str, str] = getattr(settings.ladder, mode).model_dump(by_alias=True)
    return dict(ladder)
