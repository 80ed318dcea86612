"""Reads the weights of the official `.ort` files, and writes ONNX graphs that use them."""

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
from onnx import TensorProto, helper, numpy_helper

_PREFIX: Final = re.compile(r"^/(model/decoder/)?")
_DEQUANTIZED: Final = "_add_tensor"
"""A matrix is dequantised by Cast, Mul and Add. The output of Add is named after the matrix, with this suffix."""
_ERRORS_ONLY: Final = 3


@dataclass(frozen=True, slots=True)
class Matrix:
    """A quantised matrix: its value is `(values - zero) * scale`."""

    values: NDArray[np.int8]
    scale: float
    zero: int

    def restore(self) -> NDArray[np.float32]:
        return ((self.values.astype(np.float32) - self.zero) * np.float32(self.scale)).astype(np.float32)


class Weights:
    """Weights by the node that uses them, as in "layers.0/self_attn/q_proj/MatMul". Raises `KeyError`."""

    def __init__(self, model: onnx.ModelProto) -> None:
        graphs = list(_graphs(model.graph))
        self._tensors = {each.name: each for graph in graphs for each in graph.initializer}
        self._inputs = {_PREFIX.sub("", node.name): node.input for graph in graphs for node in graph.node}

    def matrix(self, node: str) -> Matrix:
        (name,) = (each for each in self._inputs[node] if each.endswith(_DEQUANTIZED))
        name = name.removesuffix(_DEQUANTIZED)
        scale, shift = (float(self._array(f"{name}_{part}").item()) for part in ("scale", "zero_point"))
        # The file's zero point is already scaled, and is added.
        return Matrix(self._array(f"{name}_quantized"), scale, round(-shift / scale))

    def vector(self, node: str) -> NDArray[np.float32]:
        """Returns a bias, or the weights of a norm."""
        (name,) = (each for each in self._inputs[node] if each in self._tensors)
        return self._array(name)

    def _array(self, name: str) -> NDArray[Any]:
        return numpy_helper.to_array(self._tensors[name])


def read_weights(path: Path) -> Weights:
    """Lets onnxruntime convert its own `.ort` format to ONNX. Takes half a second."""
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
    """Yields the graph and those of its branches."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _graphs(attribute.g)


MICROSOFT: Final = "com.microsoft"
"""The domain of operators that only onnxruntime has."""
OPSET: Final = 20
IR_VERSION: Final = 10

_BLOCK: Final = 32
_INT8_COMPUTE: Final = 4
_UNSIGNED_ZERO: Final = 128
_EPSILON: Final = 1e-5

_TYPES: Final = {np.float32: TensorProto.FLOAT, np.int64: TensorProto.INT64}
Shape = list[int | str]


class Network:
    """Builds an ONNX graph. Values are the names of their tensors."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    def add_input(self, name: str, type: Any, shape: Shape) -> str:
        self._inputs.append(helper.make_tensor_value_info(name, _TYPES[type], shape))
        return name

    def add_output(self, name: str, type: Any, shape: Shape) -> str:
        self._outputs.append(helper.make_tensor_value_info(name, _TYPES[type], shape))
        return name

    def constant(self, value: NDArray[Any] | np.generic) -> str:
        name = f"constant.{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def apply(self, operator: str, *inputs: str, output: str | None = None, domain: str = "", **attributes: Any) -> str:
        output = output or f"{operator}.{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [output], domain=domain, **attributes))
        return output

    def apply_all(self, operator: str, *inputs: str, outputs: list[str], domain: str = "", **attributes: Any) -> None:
        """Adds an operator with several outputs."""
        self._nodes.append(helper.make_node(operator, inputs, outputs, domain=domain, **attributes))

    def split(self, value: str, sizes: list[int]) -> list[str]:
        outputs = [f"Split.{len(self._nodes)}.{place}" for place in range(len(sizes))]
        self.apply_all("Split", value, self.constant(np.array(sizes)), outputs=outputs, axis=-1)
        return outputs

    def norm(self, value: str, weight: NDArray[np.float32]) -> str:
        # onnxruntime's own SkipLayerNormalization would do the addition before it too, but is twice as slow.
        return self.apply("LayerNormalization", value, self.constant(weight), axis=-1, epsilon=_EPSILON)

    def multiply_many(self, rows: str, matrix: Matrix, bias: NDArray[np.float32] | None = None) -> str:
        """Multiplies many rows at once. All are quantised to int8 with one scale."""
        inputs = [rows, self.constant(matrix.values), self.constant(np.float32(matrix.scale))]
        inputs.append(self.constant(np.int8(matrix.zero)))
        if bias is not None:
            inputs.append(self.constant(bias))
        return self.apply("DynamicQuantizeMatMul", *inputs, domain=MICROSOFT)

    def multiply_few(self, rows: str, *matrices: Matrix, bias: NDArray[np.float32] | None = None) -> str:
        """Multiplies a few rows by matrices side by side. Every 32 values of a row are quantised with their own scale.

        Reading the matrices dominates the time, so int8 is four times as fast as float.
        """
        width = matrices[0].values.shape[0]
        blocks = width // _BLOCK
        values, scales, zeros = [], [], []
        for each in matrices:
            unsigned = (each.values.astype(np.int16) + _UNSIGNED_ZERO).astype(np.uint8)
            values.append(unsigned.T.reshape(-1, blocks, _BLOCK))
            scales.append(np.full((unsigned.shape[1], blocks), each.scale, np.float32))
            zeros.append(np.full((unsigned.shape[1], blocks), each.zero + _UNSIGNED_ZERO, np.uint8))
        inputs = [rows, *(self.constant(np.concatenate(each)) for each in (values, scales, zeros))]
        if bias is not None:
            inputs += ["", self.constant(bias)]
        return self.apply(
            "MatMulNBits",
            *inputs,
            domain=MICROSOFT,
            K=width,
            N=sum(each.values.shape[1] for each in matrices),
            bits=8,
            block_size=_BLOCK,
            accuracy_level=_INT8_COMPUTE,
        )

    def save(self, path: Path) -> None:
        """Writes the weights to a separate file, which onnxruntime maps into memory."""
        graph = helper.make_graph(self._nodes, path.stem, self._inputs, self._outputs, self._constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        onnx.save(model, path, save_as_external_data=True, location=f"{path.stem}.weights", size_threshold=4_096)
