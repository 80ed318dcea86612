"""all-MiniLM-L6-v2 on a CPU, quantized to 8 bits: a short sentence takes about 4 ms. It was trained on English.

This module needs the extra `local`.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from antiphon.audio.inference import open_session
from antiphon.weights.folder import locate

MODEL: Final = "minilm"
DIMENSIONS: Final = 384
MAX_TOKENS: Final = 256
"""The length that the model was trained on. The rest of a longer text is not read."""


class MiniLmEmbedder:
    """Loads the model. Raises `WeightsError` if its files are missing. Close it."""

    name = "all-MiniLM-L6-v2"

    def __init__(self, models_dir: Path) -> None:
        self._session = open_session(locate(models_dir, MODEL, "model.onnx"))
        self._tokenizer = Tokenizer.from_file(str(locate(models_dir, MODEL, "tokenizer.json")))
        # The file pads every text to 128 tokens, which takes ten times as long for a short one.
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="embedding")

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return await asyncio.get_running_loop().run_in_executor(self._pool, self.embed_now, list(texts))

    def embed_now(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeds in this thread, text by text: a batch would have to be padded, and is no faster on a CPU."""
        rows = [self._embed(encoding) for encoding in self._tokenizer.encode_batch(list(texts))]
        return np.stack(rows) if rows else np.empty((0, DIMENSIONS), np.float32)

    async def aclose(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _embed(self, encoding: Encoding) -> NDArray[np.float32]:
        given = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
        }
        tokens = self._session.run(None, {name: np.array([ids], np.int64) for name, ids in given.items()})[0]
        mean = np.asarray(tokens, np.float32)[0].mean(axis=0)
        row: NDArray[np.float32] = mean / max(float(np.linalg.norm(mean)), 1e-12)
        return row
