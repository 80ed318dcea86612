"""Silero's network, rewritten to run many sessions in one batch, with the weights of the official file.

The official graph convolves the spectra of each session separately, and branches on the sample rate and the shapes of
its inputs. Here each layer is one matrix product for the whole batch. Probabilities differ by less than 1e-5. Time per
frame, on one core of a Xeon of 2023:

| sessions in a batch | 1      | 4     | 10    | 31    | 100   |
|---------------------|--------|-------|-------|-------|-------|
| the official graph  | 122 µs | 59 µs | 57 µs | 43 µs | 46 µs |
| this one            | 56 µs  | 20 µs | 14 µs | 12 µs | 10 µs |
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper, parser

FRAMES: Final = "frames"
MEMORY: Final = "memory"

# A spectrum covers 256 samples and overlaps the next by half. Four of them cover the 64 samples before a frame, the
# frame, and 64 samples that mirror its end. Then come four convolutions of width three, two of them with stride two, so
# that one position is left; products with the zero padding are left out. An LSTM cell keeps the state.
_GRAPH: Final = """
<ir_version: 10, opset_import: ["": 20]>
silero (int16[n, 512] frames, float[n, 320] memory) => (float[n] probability, float[n, 320] memory_after)
{
    begin = Constant <value_ints = [0]> ()
    one = Constant <value_ints = [1]> ()
    two = Constant <value_ints = [2]> ()
    four = Constant <value_ints = [4]> ()
    five = Constant <value_ints = [5]> ()
    end = Constant <value_ints = [512]> ()

    loud = Cast <to = 1> (frames)
    full_scale = Constant <value_float = 32768.0> ()
    frame = Div (loud, full_scale)
    memory_sizes = Constant <value_ints = [64, 128, 128]> ()
    before, hidden, cell = Split <axis = 1> (memory, memory_sizes)
    heard = Concat <axis = 1> (before, frame)
    mirrored = Constant <value_ints = [0, 0, 0, 64]> ()
    padded = Pad <mode = "reflect"> (heard, mirrored)

    halves_shape = Constant <value_ints = [0, 5, 128]> ()
    halves = Reshape (padded, halves_shape)
    first_halves = Slice (halves, begin, four, one)
    second_halves = Slice (halves, one, five, one)
    stretches = Concat <axis = 2> (first_halves, second_halves)
    waves = MatMul (stretches, basis)
    waves_sizes = Constant <value_ints = [129, 129]> ()
    real, imaginary = Split <axis = 2> (waves, waves_sizes)
    real_power = Mul (real, real)
    imaginary_power = Mul (imaginary, imaginary)
    power = Add (real_power, imaginary_power)
    spectra = Sqrt (power)

    both_sides = Constant <value_ints = [0, 1, 0, 0, 1, 0]> ()
    spectra_around = Pad (spectra, both_sides)
    six = Constant <value_ints = [6]> ()
    previous = Slice (spectra_around, begin, four, one)
    next = Slice (spectra_around, two, six, one)
    triples = Concat <axis = 2> (previous, spectra, next)
    products_0 = MatMul (triples, kernel_0)
    sums_0 = Add (products_0, bias_0)
    layer_0 = Relu (sums_0)

    left_side = Constant <value_ints = [0, 1, 0, 0, 0, 0]> ()
    layer_0_after_nothing = Pad (layer_0, left_side)
    three = Constant <value_ints = [3]> ()
    early_three = Slice (layer_0_after_nothing, begin, three, one)
    late_three = Slice (layer_0_after_nothing, two, five, one)
    row_shape = Constant <value_ints = [0, 384]> ()
    early = Reshape (early_three, row_shape)
    late = Reshape (late_three, row_shape)
    early_sums = Gemm (early, kernel_1, bias_1)
    late_sums = Gemm (late, kernel_1, bias_1)
    sums_1 = Concat <axis = 1> (early_sums, late_sums)
    layer_1 = Relu (sums_1)
    sums_2 = Gemm (layer_1, kernel_2, bias_2)
    layer_2 = Relu (sums_2)
    sums_3 = Gemm (layer_2, kernel_3, bias_3)
    layer_3 = Relu (sums_3)

    known = Concat <axis = 1> (layer_3, hidden)
    gates = Gemm (known, kernel_cell, bias_cell)
    gate_sizes = Constant <value_ints = [128, 128, 128, 128]> ()
    input_sum, forget_sum, cell_sum, output_sum = Split <axis = 1> (gates, gate_sizes)
    input_gate = Sigmoid (input_sum)
    forget_gate = Sigmoid (forget_sum)
    cell_gate = Tanh (cell_sum)
    output_gate = Sigmoid (output_sum)
    kept_cell = Mul (forget_gate, cell)
    added_cell = Mul (input_gate, cell_gate)
    cell_after = Add (kept_cell, added_cell)
    cell_output = Tanh (cell_after)
    hidden_after = Mul (output_gate, cell_output)

    activated = Relu (hidden_after)
    score = Gemm (activated, kernel_speech, bias_speech)
    speech = Sigmoid (score)
    probability = Squeeze (speech, one)
    frame_end = Constant <value_ints = [448]> ()
    before_next = Slice (frame, frame_end, end, one)
    memory_after = Concat <axis = 1> (before_next, hidden_after, cell_after)
}
"""


def rewrite(official: bytes) -> bytes:
    """Returns the graph above with the official 16 kHz weights. Raises `KeyError` or `ValueError` for another file."""
    model = parser.parse_model(_GRAPH)
    for name, value in _arrange(_read_weights(official)).items():
        model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(value, np.float32), name))
    return bytes(model.SerializeToString())


def _read_weights(official: bytes) -> dict[str, NDArray[Any]]:
    """Returns the weights by their names in Silero's own code."""
    for node in onnx.load_from_string(official).graph.node:
        for attribute in node.attribute:
            # There are two networks in it, one for each rate.
            if attribute.name == "then_branch":
                constants = [each for each in attribute.g.node if each.op_type == "Constant"]
                return {
                    each.output[0].rpartition("__")[2]: numpy_helper.to_array(each.attribute[0].t) for each in constants
                }
    raise ValueError("this is not the graph of Silero v6")


def _arrange(weights: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Arranges the weights as matrices with one row per input."""

    def kernel(layer: int, *places: int) -> NDArray[Any]:
        convolution = weights[f"encoder.{layer}.reparam_conv.weight"]
        return np.concatenate([convolution[:, :, place].T for place in places])

    biases = {f"bias_{layer}": weights[f"encoder.{layer}.reparam_conv.bias"] for layer in range(4)}
    return biases | {
        "basis": weights["stft.forward_basis_buffer"][:, 0].T,
        "kernel_0": kernel(0, 0, 1, 2),
        "kernel_1": kernel(1, 0, 1, 2),
        "kernel_2": kernel(2, 1, 2),
        "kernel_3": kernel(3, 1),
        "kernel_cell": np.concatenate([weights["decoder.rnn.weight_ih"].T, weights["decoder.rnn.weight_hh"].T]),
        "bias_cell": weights["decoder.rnn.bias_ih"] + weights["decoder.rnn.bias_hh"],
        "kernel_speech": weights["decoder.decoder.2.weight"][0],
        "bias_speech": weights["decoder.decoder.2.bias"],
    }
