"""The weights in the official `.ort` files: int8 matrices, each with one scale and one zero point, and vectors."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime  # type: ignore[import-untyped]
from numpy.typing import NDArray
from onnx import numpy_helper

_PREFIX: Final = re.compile(r"^/(model/decoder/)?")
_DEQUANTIZED: Final = "_add_tensor"
"""A matrix is restored by Cast, Mul and Add. The end of the last one's output, whose beginning is the matrix's name."""
_ERRORS_ONLY: Final = 3


@dataclass(frozen=True, slots=True)
class Matrix:
    """What it stands for is `(values - zero) * scale`."""

    values: NDArray[np.int8]
    scale: float
    zero: int

    def restore(self) -> NDArray[np.float32]:
        return ((self.values.astype(np.float32) - self.zero) * np.float32(self.scale)).astype(np.float32)


class Weights:
    """Of one file, by the nodes that use them, as in "layers.0/self_attn/q_proj/MatMul". Raises `KeyError`."""

    def __init__(self, model: onnx.ModelProto) -> None:
        graphs = list(_graphs(model.graph))
        self._tensors = {each.name: each for graph in graphs for each in graph.initializer}
        self._inputs = {_PREFIX.sub("", node.name): node.input for graph in graphs for node in graph.node}

    def matrix(self, node: str) -> Matrix:
        (name,) = (each for each in self._inputs[node] if each.endswith(_DEQUANTIZED))
        name = name.removesuffix(_DEQUANTIZED)
        scale, shift = (float(self._array(f"{name}_{part}").item()) for part in ("scale", "zero_point"))
        # What the file calls the zero point is already scaled, and added.
        return Matrix(self._array(f"{name}_quantized"), scale, round(-shift / scale))

    def vector(self, node: str) -> NDArray[np.float32]:
        """A bias, or the weights of a norm."""
        (name,) = (each for each in self._inputs[node] if each in self._tensors)
        return self._array(name)

    def _array(self, name: str) -> NDArray[Any]:
        return numpy_helper.to_array(self._tensors[name])


def read_weights(path: Path) -> Weights:
    """`.ort` is a format of onnxruntime only, which writes it as ONNX if it is asked to. Takes half a second."""
    with TemporaryDirectory(prefix="antiphon-moonshine-") as folder:
        copy = Path(folder, "model.onnx")
        options = onnxruntime.SessionOptions()
        options.log_severity_level = _ERRORS_ONLY
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.optimized_model_filepath = str(copy)
        options.add_session_config_entry("session.save_model_format", "ONNX")
        onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return Weights(onnx.load(copy))


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Itself and those of its branches."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _graphs(attribute.g)
