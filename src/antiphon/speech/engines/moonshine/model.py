"""The model in memory: a stretch of speech to text, token by token."""

import platform
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import Final

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
from onnxruntime import OrtValue

from antiphon.audio.pcm import Signal
from antiphon.sound_format import MICROPHONE_HZ
from antiphon.speech.base import SpeechError
from antiphon.speech.engines.moonshine.drafts import Drafts
from antiphon.speech.engines.moonshine.files import DECODER, ENCODER, ModelFiles, open_graphs
from antiphon.speech.engines.moonshine.layout import (
    AUDIO,
    CROSS,
    HEAD_WIDTH,
    HEADS,
    NEXT_TOKEN,
    PAST,
    PRESENT,
    TOKEN,
)
from antiphon.speech.engines.moonshine.tokens import END, START, Tokens

TOKENS_PER_S: Final = 7
"""Nobody speaks faster. A model that does is in a loop."""
SPARE_TOKENS: Final = 6

LOOP_PERIODS: Final = range(1, 9)
LOOP_TOKENS: Final = 12
LOOP_ROUNDS: Final = 4
"""What comes so often in a row, and fills so many tokens, was not said. "Zero zero zero zero" may have been."""

DRAFTED: Final = 8
"""Tokens of a draft that are checked at a time. On an EPYC without VNNI that takes as long as three without a draft."""

_ERRORS_ONLY: Final = 3


class Moonshine:
    """Any number of threads may use it at the same time."""

    def __init__(self, files: ModelFiles) -> None:
        """Takes 0.2 s, and the first time some 3 s, when the graphs are made. Raises `SpeechError`."""
        try:
            self._tokens = Tokens(files.tokenizer.read_bytes())
        except (OSError, ValueError) as error:
            raise SpeechError(
                f"{files.tokenizer} cannot be read ({error}). Remove it and get it again: `antiphon models pull`."
            ) from error
        self._encoder, self._decoder = open_graphs(files, _open)
        self._drafts = Drafts()
        self._no_past = OrtValue.ortvalue_from_numpy(np.zeros((1, HEADS, 0, HEAD_WIDTH), np.float32))

    def transcribe(self, signal: Signal, abandoned: Event) -> str:
        """From 56 ms, the least that the network can take, to 24 s. Looks at the event between tokens, and stops."""
        limit = len(signal) * TOKENS_PER_S // MICROPHONE_HZ + SPARE_TOKENS
        cross = self._encoder.run_with_ort_values(CROSS, {AUDIO: OrtValue.ortvalue_from_numpy(signal[np.newaxis])})
        tokens = self._decode(cross, self._drafts.find(signal), limit, abandoned)
        self._drafts.keep(signal, tokens)
        return self._tokens.write(tokens)

    def _decode(self, cross: Sequence[OrtValue], draft: Sequence[int], limit: int, abandoned: Event) -> Sequence[int]:
        """Greedy. The draft changes nothing but the time: where the network says the same, its tokens come by eights.

        The tensors go round as they are: to make arrays of them takes half a millisecond a token.
        """
        tokens: list[int] = []
        last = START
        feed = dict(zip(CROSS, cross, strict=True)) | dict.fromkeys(PAST, self._no_past)
        while len(tokens) < limit and not abandoned.is_set():
            guessed = draft[len(tokens) : len(tokens) + DRAFTED - 1]
            feed[TOKEN] = OrtValue.ortvalue_from_numpy(np.array([[last, *guessed]]))
            following, *present = self._decoder.run_with_ort_values((NEXT_TOKEN, *PRESENT), feed)
            said = following.numpy()[0].tolist()
            agreed = next((place for place, guess in enumerate(guessed) if guess != said[place]), len(guessed))
            if agreed < len(guessed):
                draft, present = (), [_cut(each, len(tokens) + agreed + 1) for each in present]
            feed.update(zip(PAST, present, strict=True))
            for last in said[: agreed + 1]:
                if last == END:
                    return tokens
                tokens.append(last)
                if (kept := find_loop(tokens)) is not None:
                    return tokens[:kept]
        return tokens


def _cut(looked_up: OrtValue, tokens: int) -> OrtValue:
    """Without those after the first tokens."""
    return OrtValue.ortvalue_from_numpy(np.ascontiguousarray(looked_up.numpy()[:, :, :tokens]))


def find_loop(tokens: Sequence[int]) -> int | None:
    """How many tokens to keep of a text that has begun to repeat itself without end, one round too; else None."""
    for period in LOOP_PERIODS:
        length = max(LOOP_ROUNDS * period, LOOP_TOKENS)
        if len(tokens) >= length and tokens[-length:-period] == tokens[period - length :]:
            return len(tokens) - length + period
    return None


def _open(folder: Path) -> tuple[onnxruntime.InferenceSession, onnxruntime.InferenceSession]:
    options = onnxruntime.SessionOptions()
    # One core a call: there are others who talk.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    if not _is_int8_exact():
        options.add_session_config_entry("session.x64quantprecision", "1")
    encoder, decoder = (
        onnxruntime.InferenceSession(folder / name, options, providers=["CPUExecutionProvider"])
        for name in (ENCODER, DECODER)
    )
    return encoder, decoder


def _is_int8_exact() -> bool:
    """Whether this processor sums int8 products in 32 bits. Older x86 ones use 16 and clip, unless told to be slower.

    onnxruntime has no such question: its own test takes all x86 processors for old ones.
    """
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return True
    try:
        return "vnni" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
