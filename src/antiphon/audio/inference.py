"""Opens ONNX models with one set of onnxruntime options."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
from numpy.typing import NDArray

from antiphon.errors import AntiphonError

_ERRORS_ONLY: Final = 3


class ModelFileError(AntiphonError):
    """A model file is missing or cannot be loaded."""

    code = "model_file"


class Session(Protocol):
    """A loaded model. It is thread-safe."""

    def run(self, outputs: Sequence[str] | None, inputs: Mapping[str, NDArray[Any]]) -> list[NDArray[np.float32]]: ...


def open_session(path: Path, rewrite: Callable[[bytes], bytes] | None = None) -> Session:
    """Loads a model. `rewrite` replaces the graph in the file by another.

    Raises `ModelFileError`.
    """
    if not path.is_file():
        raise ModelFileError(f"There is no model file at {path}. Get it with `antiphon models pull`.")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    # onnxruntime would keep a memory plan for each input length: 25 MB for Piper after 35 sentences, 10 MB for Smart
    # Turn. It makes no call faster.
    options.enable_mem_pattern = False
    # Planning which buffers share memory takes most of the second in which Piper's encoder opens, and saves nothing.
    options.enable_mem_reuse = False
    # A thread that spins while it waits for the next call takes a core from the other models of this process.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        model = path if rewrite is None else rewrite(path.read_bytes())
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])  # type: ignore[no-any-return]
    except Exception as error:  # onnxruntime's errors have no common ancestor below this one.
        raise ModelFileError(
            f"The model file {path} cannot be loaded ({error}). Remove it and get it again: `antiphon models pull`."
        ) from error
