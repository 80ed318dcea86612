"""Writes an ONNX graph, one layer of a network after the other."""

from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from antiphon.speech.engines.moonshine.weights import Matrix

MICROSOFT: Final = "com.microsoft"
"""The operators that only onnxruntime has."""
OPSET: Final = 20
IR_VERSION: Final = 10

_BLOCK: Final = 32
_INT8_COMPUTE: Final = 4
_UNSIGNED_ZERO: Final = 128
_EPSILON: Final = 1e-5

_TYPES: Final = {np.float32: TensorProto.FLOAT, np.int64: TensorProto.INT64}
Shape = list[int | str]


class Network:
    """Values go by the names of their tensors."""

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
        """For an operator with more than one output."""
        self._nodes.append(helper.make_node(operator, inputs, outputs, domain=domain, **attributes))

    def split(self, value: str, sizes: list[int]) -> list[str]:
        outputs = [f"Split.{len(self._nodes)}.{place}" for place in range(len(sizes))]
        self.apply_all("Split", value, self.constant(np.array(sizes)), outputs=outputs, axis=-1)
        return outputs

    def norm(self, value: str, weight: NDArray[np.float32]) -> str:
        # onnxruntime's own SkipLayerNormalization would do the addition before it too, but is twice as slow.
        return self.apply("LayerNormalization", value, self.constant(weight), axis=-1, epsilon=_EPSILON)

    def multiply_many(self, rows: str, matrix: Matrix, bias: NDArray[np.float32] | None = None) -> str:
        """For many rows at once. All of them are rounded to int8 by one scale."""
        inputs = [rows, self.constant(matrix.values), self.constant(np.float32(matrix.scale))]
        inputs.append(self.constant(np.int8(matrix.zero)))
        if bias is not None:
            inputs.append(self.constant(bias))
        return self.apply("DynamicQuantizeMatMul", *inputs, domain=MICROSOFT)

    def multiply_few(self, rows: str, *matrices: Matrix, bias: NDArray[np.float32] | None = None) -> str:
        """For a row or a few, by matrices side by side. Each 32 values of a row are rounded by a scale of their own.

        What takes the time is to read the matrices, so that int8 is four times as fast as float.
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
        """The weights go to a file of their own, which onnxruntime maps into memory instead of reading it."""
        graph = helper.make_graph(self._nodes, path.stem, self._inputs, self._outputs, self._constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        onnx.save(model, path, save_as_external_data=True, location=f"{path.stem}.weights", size_threshold=4_096)
