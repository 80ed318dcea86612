"""The doctor's checks for speech: model files, packages, remote engines and the microphone."""

import asyncio
import os
from collections.abc import Collection, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from antiphon.cli.findings import Finding, Findings, ask
from antiphon.errors import AntiphonError

if TYPE_CHECKING:
    from antiphon.cli.sound_card import SystemSoundCard
    from antiphon.config import Settings
    from antiphon.speech.references import Local, OpenAIServer, Reference, WyomingServer
    from antiphon.weights.manifest import Model

REACH_S: Final = 3.0
"""How long a remote engine may take to answer."""
RECORDED_S: Final = 3.0
QUIET_DBFS: Final = -60.0
"""A working microphone records more than this in a quiet room."""
LOUDEST: Final = 32_700
ALWAYS: Final = ("numpy", "onnxruntime", "soxr")
"""Packages that speech always needs, whatever the engines."""
PACKAGES: Final = {
    "moonshine": "onnx",
    "hibari": "hibari",
    "piper": "piper",
    "kokoro": "hibari",
    "wyoming": "wyoming",
    "openai": "openai",
}
"""What each engine needs. Kokoro reads text with the lexicon of hibari."""
DEFAULT_VOICES: Final = {"hibari": "heart", "piper": "joe", "kokoro": "af_heart"}
EXTRAS: Final = {"openai": "openai", "piper": "piper"}
"""The extra that installs a package, if it is not "local"."""


def check_voice(settings: "Settings") -> Findings:
    """Checks the voice models of all levels of energy, each once. Speech is optional: without it the server handles
    text only."""
    from antiphon.compose.rungs import is_named, voice_rungs
    from antiphon.compose.voice import without_chosen_voice
    from antiphon.models.providers.references import CASCADE

    names = list(dict.fromkeys(voice_rungs(settings).values()))
    if not names:
        yield Finding(True, 'voice: none, since model.voice is "none"')
    for name in names:
        if name != CASCADE:
            yield _check_live_model(settings, name, is_best=name == names[0])
        elif name == names[0]:
            yield from _check_local_voice(settings)
        else:
            local = without_chosen_voice(settings)
            missing = list(_missing(local))
            if missing and not is_named(settings, CASCADE):
                yield Finding(True, f"voice: no local voice takes over after a rate limit: {missing[0]}")
            else:
                yield from _check_engines(local)


def _check_local_voice(settings: "Settings") -> Findings:
    if _is_wanted(settings):
        yield from _check_engines(settings)
    else:
        yield Finding(True, "voice: none yet, only text. Run `antiphon models pull` to let it hear and speak")


def _check_engines(settings: "Settings") -> Findings:
    from antiphon.speech.references import Local, parse_stt, parse_tts

    problems = list(_missing(settings))
    for problem in problems:
        yield Finding(False, f"voice: {problem}")
    if not problems:
        stt, tts = parse_stt(settings.speech.stt), parse_tts(settings.speech.tts)
        speaker = "nothing" if tts is None else f"{tts} as {_voice(settings, tts)}" if isinstance(tts, Local) else tts
        yield Finding(True, f"voice: {stt} listens, {speaker} speaks (model files: {settings.models_dir})")
        yield from _check_remote_engines(stt, tts)


def _missing(settings: "Settings") -> Iterator[str]:
    """Finds the model files and packages that the engines need and lack."""
    from antiphon.speech.references import parse_stt, parse_tts

    stt, tts = parse_stt(settings.speech.stt), parse_tts(settings.speech.tts)
    yield from _missing_models(settings, stt, tts)
    yield from _missing_packages(stt, tts)


def _check_live_model(settings: "Settings", name: str, *, is_best: bool) -> Finding:
    """Checks what can be known about a provider's model without connecting it, which may cost money."""
    from antiphon.compose import chosen_voice
    from antiphon.models.providers import open_live_model
    from antiphon.models.providers.references import parse_voice

    try:
        reference = parse_voice(name)
        assert reference is not None
        _, problem = open_live_model(reference, os.environ, settings.model, chosen_voice(settings), needs_voice=is_best)
    except AntiphonError as error:
        return Finding(False, f"voice: {error}")
    if problem is not None:
        return Finding(False, f"voice: {problem}")
    return Finding(True, f"voice: {reference} hears and speaks (not connected; try `antiphon models test {reference}`)")


def check_microphone(settings: "Settings") -> Findings:
    """Records a few seconds. This runs only on request, since users do not expect a check to record."""
    from antiphon.speech.base import needs_extra

    with needs_extra("local", "a microphone"):
        from antiphon.cli.sound_card import SystemSoundCard, load_portaudio

    yield from examine_microphone(SystemSoundCard(load_portaudio()))


def examine_microphone(card: "SystemSoundCard") -> Findings:
    from antiphon.audio.pcm import level_dbfs, to_samples

    devices = card.inputs()
    for device in devices:
        usual = ", default" if device.is_default else ""
        yield Finding(True, f"microphone: {device.name} ({device.hz} Hz{usual})")
    if not devices:
        yield Finding(False, "microphone: this machine has none. Plug one in, or talk from a browser elsewhere.")
        return
    yield Finding(True, f"microphone: listening for {RECORDED_S:.0f} seconds, say something…")
    pcm = card.record(RECORDED_S)
    level, peak = level_dbfs(pcm), max(abs(to_samples(pcm).astype(int)), default=0)
    told = f"microphone: {level:.0f} dBFS on average, {100 * peak / 32_768:.0f} % at the loudest"
    if level < QUIET_DBFS:
        yield Finding(False, f"{told}. That is silence: check whether it is muted or the wrong one.")
    elif peak >= LOUDEST:
        yield Finding(False, f"{told}. That is too loud to be understood well: turn it down.")
    else:
        yield Finding(True, told)


def _is_wanted(settings: "Settings") -> bool:
    """Whether a speech setting was given, or a model file was pulled."""
    from antiphon.weights.folder import State, state_of
    from antiphon.weights.manifest import VOICE

    is_set = any(key == "model.voice" or key.startswith("speech.") for key in settings.given)
    return is_set or any(
        state_of(settings.models_dir, model, file) is not State.MISSING for model in VOICE for file in model.files
    )


def _missing_models(settings: "Settings", stt: "Reference", tts: "Reference | None") -> Iterator[str]:
    from antiphon.speech.references import Local
    from antiphon.weights.folder import State, state_of
    from antiphon.weights.manifest import KOKORO, MODELS, VOICE

    needed = ["silero-vad", "smart-turn"]
    if stt is Local.MOONSHINE:
        needed.append("moonshine-base-en")
    if isinstance(tts, Local):
        voice = _voice(settings, tts)
        if tts is Local.KOKORO:
            needed.append(KOKORO.name)
        elif tts is Local.PIPER and voice in MODELS:
            needed.append(voice)
        elif tts is Local.PIPER and not any((settings.models_dir / voice).glob("*.onnx")):
            there = f"in {settings.models_dir}. Put its files into a folder of that name there."
            yield f'there is no voice "{voice}" {there}'
        if (known := _known_voices(tts)) and voice not in known:
            yield f'{tts} has no voice "{voice}" on this machine. It has {", ".join(known)}.'
    for name in needed:
        model: Model = MODELS[name]
        states = {state_of(settings.models_dir, model, file) for file in model.files}
        if states != {State.PRESENT}:
            state = State.DAMAGED if State.DAMAGED in states else State.MISSING
            pulled = "" if model in VOICE else f" {name}"
            yield f"the model {name} is {state} in {settings.models_dir}. Run `antiphon models pull{pulled}`."


def _voice(settings: "Settings", engine: "Local") -> str:
    """Returns the configured voice, or the engine's default."""
    from antiphon.compose import chosen_voice

    return chosen_voice(settings) or DEFAULT_VOICES[engine]


def _known_voices(engine: "Local") -> Collection[str]:
    """Returns the voices of an engine that has the same ones everywhere, as far as they are known."""
    from antiphon.speech.references import Local
    from antiphon.weights.manifest import KOKORO_VOICES

    if engine is Local.KOKORO:
        return KOKORO_VOICES
    if engine is Local.HIBARI and not any(find_spec(package) is None for package in (*ALWAYS, "hibari")):
        from antiphon.speech.engines.hibari.synthesizer import find_voices

        return find_voices()
    return ()


def _missing_packages(stt: "Reference", tts: "Reference | None") -> Iterator[str]:
    needed = [*ALWAYS, *(PACKAGES[str(each).partition(":")[0]] for each in (stt, tts) if each is not None)]
    for package in dict.fromkeys(needed):
        if find_spec(package) is None:
            extra = EXTRAS.get(package, "local")
            yield f"the package {package} is not installed. Run: pip install 'antiphon[{extra}]'"


def _check_remote_engines(stt: "Reference", tts: "Reference | None") -> Findings:
    """Checks the engines outside the server process."""
    from antiphon.speech.references import OpenAIServer, WyomingServer

    for engine, listens in ((stt, True), (tts, False)):
        try:
            if isinstance(engine, WyomingServer):
                yield _ask_wyoming(engine, listens=listens)
            elif isinstance(engine, OpenAIServer):
                yield _ask_openai(engine)
        except AntiphonError as error:
            yield Finding(False, f"voice: {error}")


def _ask_wyoming(server: "WyomingServer", *, listens: bool) -> Finding:
    from antiphon.speech.engines.wyoming import WyomingRecognizer, WyomingSynthesizer

    kind = WyomingRecognizer if listens else WyomingSynthesizer
    engine = kind(server.host, server.port, connect_timeout_s=REACH_S, answer_timeout_s=REACH_S)
    asyncio.run(engine.open())
    return Finding(True, f"voice: {server} answers, and {'recognises speech' if listens else 'speaks'}")


def _ask_openai(server: "OpenAIServer") -> Finding:
    server.key(os.environ)
    if server.url is None:
        return Finding(True, f"voice: {server} (not on this machine, so it was not tried)")
    if ask(f"{server.url}/models") is not None:
        return Finding(True, f"voice: {server}; its server answers")
    return Finding(False, f"voice: nothing answers at {server.url}. Start the server of {server}.")
