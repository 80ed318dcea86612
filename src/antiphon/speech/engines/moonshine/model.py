"""The loaded model: it turns speech into text, token by token."""

import platform
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from threading import Event, Lock
from time import monotonic
from typing import Final

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
from onnxruntime import OrtValue

from antiphon.audio.pcm import Signal
from antiphon.sound_format import MICROPHONE_HZ
from antiphon.speech.base import SpeechError
from antiphon.speech.engines.moonshine.bias import Bias
from antiphon.speech.engines.moonshine.files import DECODER, ENCODER, ModelFiles, open_graphs
from antiphon.speech.engines.moonshine.tokens import END, START, Tokens

LAYERS: Final = 8
HEADS: Final = 8
HEAD_WIDTH: Final = 52
MAX_PLACES: Final = 1_024
"""The most frames of audio (41.7 per second) and the most tokens."""

AUDIO: Final = "audio"
TOKEN: Final = "token"
NEXT_TOKEN: Final = "next_token"
SCORES: Final = "scores"
"""The logits of all tokens."""

_PARTS: Final = tuple(f"{layer}.{part}" for layer in range(LAYERS) for part in ("key", "value"))
CROSS: Final = tuple(f"cross.{part}" for part in _PARTS)
"""The keys and values of cross-attention, computed once by the encoder."""
PAST: Final = tuple(f"past.{part}" for part in _PARTS)
"""The keys and values of the previous tokens; empty at the first one."""
PRESENT: Final = tuple(f"present.{part}" for part in _PARTS)
"""The keys and values including the new tokens."""

BEGINNING: Final = MICROPHONE_HZ // 2
"""The samples that identify an utterance. No two microphones record the same half second."""
FRESH_S: Final = 3.0
MAX_DRAFTS: Final = 256
"""How many utterances are remembered. A draft is a few tokens, and a wrong one costs a few milliseconds."""


class Drafts:
    """It is thread-safe."""

    def __init__(self, now_s: Callable[[], float] = monotonic) -> None:
        self._now_s = now_s
        self._drafts: OrderedDict[int, tuple[float, Sequence[int]]] = OrderedDict()
        self._looking = Lock()

    def find(self, signal: Signal) -> Sequence[int]:
        """Returns the tokens that an utterance with this beginning probably starts with."""
        key = _key(signal)
        with self._looking:
            at_s, tokens = self._drafts.get(key, (0.0, ()))
            return tokens if self._now_s() < at_s + FRESH_S else ()

    def keep(self, signal: Signal, tokens: Sequence[int]) -> None:
        if len(signal) < BEGINNING:
            return
        key = _key(signal)
        with self._looking:
            # The last token is mostly a full stop where the audio ended.
            self._drafts[key] = (self._now_s(), tokens[:-1])
            self._drafts.move_to_end(key)
            if len(self._drafts) > MAX_DRAFTS:
                self._drafts.popitem(last=False)


def _key(signal: Signal) -> int:
    return hash(signal[:BEGINNING].tobytes())


TOKENS_PER_S: Final = 7
"""People do not speak faster: more tokens mean that the model is looping."""
SPARE_TOKENS: Final = 6

LOOP_PERIODS: Final = range(1, 9)
LOOP_TOKENS: Final = 12
LOOP_ROUNDS: Final = 4
"""A sequence repeated this often, over this many tokens, was not said. "Zero zero zero zero" may have been."""

DRAFTED: Final = 8
"""How many draft tokens are verified at a time. On an EPYC without VNNI that takes as long as decoding three."""

LEAST_DOUBT: Final = 0.03
"""How probable a first token must be to be taken although silence is more probable. Digits that are said one by one
often give no text otherwise: 8 of 40 numbers in ten good voices. There a token has 0.04 to 0.3, and the text is right.
Of 66 recordings of coughs, laughs, animals and instruments two have more than this, and both would be "You"."""
MIN_DOUBTED_TOKENS: Final = 3

_ERRORS_ONLY: Final = 3


class Moonshine:
    """It is thread-safe."""

    def __init__(self, files: ModelFiles) -> None:
        """Takes 0.2 s, and about 3 s the first time, when the graphs are built. Raises `SpeechError`."""
        try:
            self._tokens = Tokens(files.tokenizer.read_bytes())
        except (OSError, ValueError) as error:
            raise SpeechError(
                f"{files.tokenizer} cannot be read ({error}). Remove it and get it again: `antiphon models pull`."
            ) from error
        self._encoder, self._decoder = open_graphs(files, _open)
        self._drafts = Drafts()
        self._bias = Bias(self._tokens, ())
        self._no_past = OrtValue.ortvalue_from_numpy(np.zeros((1, HEADS, 0, HEAD_WIDTH), np.float32))

    def transcribe(
        self,
        signal: Signal,
        abandoned: Event,
        known_by: Signal | None = None,
        *,
        has_speech: bool = False,
        names: Bias | None = None,
    ) -> str:
        """Transcribes 56 ms (the network's minimum) to 24 s. Stops between tokens once the event is set.

        `known_by`: audio whose beginning stays the same while the utterance grows, if that of the signal does not.
        `has_speech`: whether there is more than a steady noise, so that no text at all would be odd.
        `names`: those of one speaker, besides those of all (`prefer`).
        """
        known_by = signal if known_by is None else known_by
        limit = len(signal) * TOKENS_PER_S // MICROPHONE_HZ + SPARE_TOKENS
        cross = self._encoder.run_with_ort_values(CROSS, {AUDIO: OrtValue.ortvalue_from_numpy(signal[np.newaxis])})
        tokens = self._decode(cross, self._drafts.find(known_by), limit, abandoned, names=names)
        is_odd = has_speech and not tokens and not abandoned.is_set()
        if is_odd and (first := self._find_doubt(cross)) is not None:
            tokens = self._decode(cross, (first,), limit, abandoned, first)
            tokens = tokens if len(tokens) >= MIN_DOUBTED_TOKENS else ()
        self._drafts.keep(known_by, tokens)
        return self._tokens.write(tokens)

    def prefer(self, phrases: Iterable[str]) -> None:
        """Biases what is transcribed from now on towards these names, instead of earlier ones."""
        self._bias = self.expect(phrases)

    def expect(self, phrases: Iterable[str]) -> Bias:
        """Makes the names of one speaker, for `transcribe`."""
        return Bias(self._tokens, phrases)

    def _find_doubt(self, cross: Sequence[OrtValue]) -> int | None:
        """Returns the first token of what may have been said although the network says nothing; None if it is sure."""
        feed = dict(zip(CROSS, cross, strict=True)) | dict.fromkeys(PAST, self._no_past)
        feed[TOKEN] = OrtValue.ortvalue_from_numpy(np.array([[START]]))
        (scores,) = self._decoder.run_with_ort_values((SCORES,), feed)
        logits = scores.numpy()[0, 0]
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        shares[END] = 0
        first = int(shares.argmax())
        return first if shares[first] >= LEAST_DOUBT else None

    def _decode(
        self,
        cross: Sequence[OrtValue],
        draft: Sequence[int],
        limit: int,
        abandoned: Event,
        first: int | None = None,
        names: Bias | None = None,
    ) -> Sequence[int]:
        """Decodes greedily. A draft only saves time: where the network agrees, eight tokens are accepted at once.

        `first` is a token that comes first whatever the network says; the draft begins with it. The tensors stay
        OrtValues: converting them to arrays takes half a millisecond per token.
        """
        tokens: list[int] = []
        last = START
        feed = dict(zip(CROSS, cross, strict=True)) | dict.fromkeys(PAST, self._no_past)
        biases = [each for each in (self._bias, names) if each] if first is None else []
        begun = biases[0].follow(*biases[1:]) if biases else None
        while len(tokens) < limit and not abandoned.is_set():
            guessed = draft[len(tokens) : len(tokens) + DRAFTED - 1]
            feed[TOKEN] = OrtValue.ortvalue_from_numpy(np.array([[last, *guessed]]))
            wanted = NEXT_TOKEN if begun is None else SCORES
            following, *present = self._decoder.run_with_ort_values((wanted, *PRESENT), feed)
            said = following.numpy()[0].tolist() if begun is None else begun.choose_all(following.numpy()[0], guessed)
            if first is not None and not tokens:
                said[0] = first
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
    """Drops everything after the first tokens."""
    return OrtValue.ortvalue_from_numpy(np.ascontiguousarray(looked_up.numpy()[:, :, :tokens]))


def find_loop(tokens: Sequence[int]) -> int | None:
    """Returns how many tokens to keep of a text that has begun to loop, including one round; None if it has not."""
    for period in LOOP_PERIODS:
        length = max(LOOP_ROUNDS * period, LOOP_TOKENS)
        if len(tokens) >= length and tokens[-length:-period] == tokens[period - length :]:
            return len(tokens) - length + period
    return None


def _open(folder: Path) -> tuple[onnxruntime.InferenceSession, onnxruntime.InferenceSession]:
    options = onnxruntime.SessionOptions()
    # One core per call, since other sessions are active.
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
    """Whether this CPU accumulates int8 products in 32 bits. Older x86 CPUs saturate at 16 unless told otherwise.

    onnxruntime does not expose this, and its own check treats all x86 CPUs as old.
    """
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return True
    try:
        return "vnni" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
