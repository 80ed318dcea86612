"""Smart Turn's network, rewritten for turns of any length, with the weights of the official file.

The official graph always processes 8 s, most of it padding before the turn, and quantizes all activations with fixed
scales. Here a few positions stand for the padding, and only the inputs of matrix products are quantized, with dynamic
scales.

The times are for one core of an EPYC with AVX2 and without VNNI, relative to the official graph, which takes 70 ms. The
last column is the area under the ROC curve (0.5 is chance) for 400 pauses and 720 turn ends of five synthetic voices:

| graph                                     | 2 s  | 4 s  | 8 s  | AUC  |
|-------------------------------------------|------|------|------|------|
| official                                  | 1.00 | 1.00 | 1.00 | 0.47 |
| float32, all positions                    | 1.29 | 1.29 | 1.29 |      |
| int8 (overflows), all positions           | 0.90 | 0.90 | 0.90 |      |
| uint8, all positions                      | 1.04 | 1.04 | 1.04 | 0.57 |
| float32, few positions                    | 0.41 | 0.67 | 0.72 |      |
| uint8, 12 positions of silence only       |      |      |      | 0.61 |
| this one: uint8, few positions            | 0.27 | 0.56 | 0.55 | 0.62 |

For turns of 8 s, which need no padding, the AUC is 0.67 for the official graph, 0.69 with all positions, 0.68 for this
one.
"""

from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper, parser

FEATURES: Final = "features"
PLACES: Final = "places"
COUNTS: Final = "counts"

_LAYERS: Final = 4
_LAYER_FACTORS: Final = 6
_UNSIGNED_ZERO: Final = 128
_RESTORED: Final = "_DequantizeLinear_Output"

# Whisper's encoder, over some of its 400 positions. A position covers two frames and, through the convolutions, the
# frames beside them: two more frames precede the first position, and padding follows the last. `counts` weighs each
# position as if it were repeated that many times.
_GRAPH: Final = """
<ir_version: 10, opset_import: ["": 20, "com.microsoft": 1]>
smart_turn (float[1, 80, frames] features, int64[n] places, float[n] counts) => (float[1, 1] probability)
{{
    band_sums = Conv <pads = [0, 1]> (features, conv1_weight, conv1_bias)
    bands = Gelu (band_sums)
    column_sums = Conv <strides = [2]> (bands, conv2_weight, conv2_bias)
    columns = Gelu (column_sums)
    rows = Transpose <perm = [0, 2, 1]> (columns)
    chosen = Gather (waves, places)
    state_0 = Add (rows, chosen)
    logs = Log (counts)
    one_one = Constant <value_ints = [1, 1]> ()
    n = Shape (counts)
    logs_shape = Concat <axis = 0> (one_one, n, n)
    more = Expand (logs, logs_shape)
    {layers}
    heard = LayerNormalization (state_{layer_count}, norm_weight, norm_bias)
    weighed_sums = com.microsoft.DynamicQuantizeMatMul (heard, pool_values, pool_scales, pool_zeros, pool_bias)
    weighed = Tanh (weighed_sums)
    score_column = MatMul (weighed, score_weight)
    score_row = Transpose <perm = [0, 2, 1]> (score_column)
    scores = Add (score_row, logs)
    shares = Softmax (scores)
    pooled = MatMul (shares, heard)
    row_shape = Constant <value_ints = [1, 384]> ()
    pooled_row = Reshape (pooled, row_shape)
    judged_0 = Gemm <transB = 1> (pooled_row, judge_0_weight, judge_0_bias)
    judged_1 = LayerNormalization (judged_0, judge_1_weight, judge_1_bias)
    judged_2 = Gelu (judged_1)
    judged_4 = Gemm <transB = 1> (judged_2, judge_4_weight, judge_4_bias)
    judged_5 = Gelu (judged_4)
    judged_6 = Gemm <transB = 1> (judged_5, judge_6_weight, judge_6_bias)
    probability = Sigmoid (judged_6)
}}
"""
_LAYER: Final = """
    a_{n} = LayerNormalization (state_{n}, norm_a_{n}_weight, norm_a_{n}_bias)
    qkv_{n} = com.microsoft.DynamicQuantizeMatMul (a_{n}, qkv_{n}_values, qkv_{n}_scales, qkv_{n}_zeros, qkv_{n}_bias)
    q_{n}, k_{n}, v_{n} = Split <axis = -1, num_outputs = 3> (qkv_{n})
    f_{n} = com.microsoft.MultiHeadAttention <num_heads = 6> (q_{n}, k_{n}, v_{n}, , , more)
    out_{n} = com.microsoft.DynamicQuantizeMatMul (f_{n}, out_{n}_values, out_{n}_scales, out_{n}_zeros, out_{n}_bias)
    middle_{n} = Add (state_{n}, out_{n})
    b_{n} = LayerNormalization (middle_{n}, norm_b_{n}_weight, norm_b_{n}_bias)
    fc1_{n} = com.microsoft.DynamicQuantizeMatMul (b_{n}, fc1_{n}_values, fc1_{n}_scales, fc1_{n}_zeros, fc1_{n}_bias)
    w_{n} = Gelu (fc1_{n})
    fc2_{n} = com.microsoft.DynamicQuantizeMatMul (w_{n}, fc2_{n}_values, fc2_{n}_scales, fc2_{n}_zeros, fc2_{n}_bias)
    state_{after} = Add (middle_{n}, fc2_{n})
"""


def rewrite(official: bytes) -> bytes:
    """Returns the graph above with the official weights. Raises `KeyError` or `ValueError` for another file."""
    layers = "".join(_LAYER.format(n=layer, after=layer + 1) for layer in range(_LAYERS))
    model = parser.parse_model(_GRAPH.format(layers=layers, layer_count=_LAYERS))
    for name, value in _arrange(_Weights(official)).items():
        model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
    return bytes(model.SerializeToString())


class _Weights:
    """The weights of the official file, by their names there. Most of them are int8, with separate scales."""

    def __init__(self, official: bytes) -> None:
        graph = onnx.load_from_string(official).graph
        self._tensors = {each.name: each for each in graph.initializer}
        factors = [node.input[1].removesuffix(_RESTORED) for node in graph.node if node.op_type == "MatMul"]
        # In the order in which the graph uses them, since their names are only numbers.
        self.factors: Final = [name for name in factors if f"{name}_quantized" in self._tensors]
        if len(self.factors) != _LAYERS * _LAYER_FACTORS + 2:
            raise ValueError("this is not the graph of Smart Turn v3.2")

    def __getitem__(self, name: str) -> NDArray[Any]:
        return numpy_helper.to_array(self._tensors[name])

    def restore(self, name: str) -> NDArray[np.float32]:
        """Returns the weights as floats. There is one scale per row, or one for all."""
        values, scales = self[f"{name}_quantized"], self[f"{name}_scale"]
        restored: NDArray[np.float32] = (values * scales.reshape(-1, *[1] * (values.ndim - 1))).astype(np.float32)
        return restored

    def restore_bias(self, name: str) -> NDArray[np.float32]:
        values, scales = self[f"{name}_quantized"], self[f"{name}_quantized_scale"]
        restored: NDArray[np.float32] = (values * scales).astype(np.float32)
        return restored


def _arrange(weights: _Weights) -> dict[str, NDArray[Any]]:
    arranged = {"waves": weights["inner.encoder.embed_positions.weight"]}

    def arrange_norm(name: str, official: str) -> None:
        arranged[f"{name}_weight"] = weights[f"{official}.weight"]
        arranged[f"{name}_bias"] = weights[f"{official}.bias"]

    def arrange_floats(name: str, official: str) -> None:
        arranged[f"{name}_weight"] = weights.restore(f"{official}.weight")
        arranged[f"{name}_bias"] = weights.restore_bias(f"{official}.bias")

    def arrange_product(name: str, factors: list[str], bias: NDArray[np.float32]) -> None:
        values = np.concatenate([weights[f"{factor}_quantized"] for factor in factors], axis=1)
        # Without VNNI, onnxruntime's products of uint8 by int8 overflow silently: one result was 0.6 instead of 0.2.
        # Products of uint8 by uint8 take a fifth longer.
        arranged[f"{name}_values"] = (values.astype(np.int16) + _UNSIGNED_ZERO).astype(np.uint8)
        arranged[f"{name}_scales"] = np.concatenate([weights[f"{factor}_scale"] for factor in factors])
        arranged[f"{name}_zeros"] = np.full(values.shape[1], _UNSIGNED_ZERO, np.uint8)
        arranged[f"{name}_bias"] = bias

    *layers, pool, score = weights.factors
    for n in range(_LAYERS):
        official = f"inner.encoder.layers.{n}"
        key, query, value, out, fc1, fc2 = layers[n * _LAYER_FACTORS : (n + 1) * _LAYER_FACTORS]
        query_bias, value_bias = (weights[f"{official}.self_attn.{part}_proj.bias"] for part in "qv")
        arrange_norm(f"norm_a_{n}", f"{official}.self_attn_layer_norm")
        arrange_product(
            f"qkv_{n}", [query, key, value], np.concatenate([query_bias, np.zeros_like(query_bias), value_bias])
        )
        arrange_product(f"out_{n}", [out], weights[f"{official}.self_attn.out_proj.bias"])
        arrange_norm(f"norm_b_{n}", f"{official}.final_layer_norm")
        arrange_product(f"fc1_{n}", [fc1], weights[f"{official}.fc1.bias"])
        arrange_product(f"fc2_{n}", [fc2], weights[f"{official}.fc2.bias"])
    arrange_norm("norm", "inner.encoder.layer_norm")
    arrange_product("pool", [pool], weights["inner.pool_attention.0.bias"])
    # Its bias is the same for all positions, so the softmax cancels it.
    arranged["score_weight"] = weights.restore(score)
    arrange_norm("judge_1", "inner.classifier.1")
    for layer in (0, 4, 6):
        arrange_floats(f"judge_{layer}", f"inner.classifier.{layer}")
    for name in ("conv1", "conv2"):
        arrange_floats(name, f"inner.encoder.{name}")
    return arranged
