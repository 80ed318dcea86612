"""The official files unchanged, run by onnxruntime on one core: the reference for our graphs."""

from pathlib import Path
from typing import Final

import numpy as np
import onnxruntime  # type: ignore[import-untyped]

from antiphon.audio.pcm import to_signal
from antiphon.sound_format import MICROPHONE_HZ
from antiphon.speech.engines.moonshine.tokens import END, START, Tokens
from bench.speech.answering import Recognize, answer

LAYERS: Final = 8
EMPTY: Final = np.zeros((1, 8, 0, 52), np.float32)


def main(models_dir: Path) -> None:
    answer(lambda: load(models_dir / "moonshine-base-en"))


def load(folder: Path) -> Recognize:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    encoder, decoder = (
        onnxruntime.InferenceSession(folder / name, options, providers=["CPUExecutionProvider"])
        for name in ("encoder_model.ort", "decoder_model_merged.ort")
    )
    tokens = Tokens((folder / "tokenizer.bin").read_bytes())
    outputs = [each.name for each in decoder.get_outputs()]

    def recognize(pcm: bytes, at_once: int) -> str:
        signal = to_signal(pcm)
        (hidden,) = encoder.run(None, {"input_values": signal[np.newaxis]})
        past = {each.name: EMPTY for each in decoder.get_inputs() if each.name.startswith("past")}
        written = [START]
        while len(written) < len(signal) / MICROPHONE_HZ * 7 + 6:
            is_first = len(written) == 1
            feed = {"input_ids": np.array([written[-1:]]), "encoder_hidden_states": hidden}
            found = decoder.run(None, feed | past | {"use_cache_branch": np.array([not is_first])})
            present = dict(zip(outputs, found, strict=True))
            token = int(present.pop("logits")[0, -1].argmax())
            if token == END:
                break
            written.append(token)
            # The encoder's part is made with the first token, and is empty from then on.
            kept = {name: value for name, value in present.items() if is_first or ".decoder." in name}
            past |= {name.replace("present", "past_key_values"): value for name, value in kept.items()}
        return tokens.write(written)

    return recognize
