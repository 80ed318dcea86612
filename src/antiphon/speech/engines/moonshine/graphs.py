"""Rebuilds Moonshine's network for onnxruntime with the weights of the official files.

The official graphs dequantise their int8 weights at every token, and contain the decoder twice, for the first token
and for later ones. Folded into constants they are as fast as floats can be, but take 790 MB. Here the weights stay
int8, and one decoder does both. The operators are onnxruntime's fused ones: 20 a layer of the decoder instead of 150.

For 4 s of speech on one core of a Xeon of 2023 with VNNI, and a process that does nothing else:

| graphs                    | encoder | per token | resident | changed sentences of 150 | word error rate |
|---------------------------|---------|-----------|----------|--------------------------|-----------------|
| official, folded          | 80 ms   | 15 ms     | 790 MB   |                          | 3.1 %           |
| these, in float32         | 72 ms   | 11 ms     | 450 MB   | 0                        | 3.1 %           |
| these                     | 33 ms   | 3 ms      | 205 MB   | 2                        | 2.8 %           |
| and conv2 in int8         | 24 ms   | 3 ms      |          | 7                        | 2.6 %           |
| and conv3 in int8         | 21 ms   | 3 ms      |          | 22                       | 4.7 %           |
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from antiphon.speech.engines.moonshine.model import (
    AUDIO,
    CROSS,
    HEAD_WIDTH,
    HEADS,
    LAYERS,
    MAX_PLACES,
    NEXT_TOKEN,
    PAST,
    PRESENT,
    SCORES,
    TOKEN,
)
from antiphon.speech.engines.moonshine.network import MICROSOFT, Matrix, Network, Weights, read_weights

WIDTH: Final = HEADS * HEAD_WIDTH
ROTARY_WIDTH: Final = 32
"""How many values of each head are rotated by position."""


def write_graphs(encoder_source: Path, decoder_source: Path, encoder_path: Path, decoder_path: Path) -> None:
    """Writes both graphs, in about 2 s. Raises `KeyError` or `ValueError` for files of another model."""
    decoder = read_weights(decoder_source)
    build_encoder(read_weights(encoder_source), decoder).save(encoder_path)
    build_decoder(decoder).save(decoder_path)


def build_encoder(weights: Weights, decoder: Weights) -> Network:
    """Builds the graph from audio to `CROSS`. The official decoder computes these, but once per utterance is enough."""
    network = Network()
    frames = _stem(network, weights)
    normed = network.norm(frames, weights.vector("layers.0/input_layernorm/Mul"))
    rotate = _Rotation(network, start=network.constant(np.zeros(1, np.int64)), heads=HEADS)
    for layer in range(LAYERS):
        at = f"layers.{layer}"
        query, key, value = (
            network.multiply_many(normed, weights.matrix(f"{at}/self_attn/{part}_proj/MatMul")) for part in "qkv"
        )
        attention = network.apply(
            "MultiHeadAttention", rotate(query), rotate(key), value, domain=MICROSOFT, num_heads=HEADS
        )
        attended = network.multiply_many(attention, weights.matrix(f"{at}/self_attn/dense/MatMul"))
        frames = network.apply("Add", frames, attended)
        normed = network.norm(frames, weights.vector(f"{at}/post_attention_layernorm/Mul"))
        expanded = _expand(network, weights, normed, f"{at}/mlp/fc1")
        projected_mlp = network.multiply_many(
            expanded, weights.matrix(f"{at}/mlp/fc2/MatMul"), weights.vector(f"{at}/mlp/fc2/Add")
        )
        frames = network.apply("Add", frames, projected_mlp)
        after = f"layers.{layer + 1}/input_layernorm" if layer + 1 < LAYERS else "layer_norm"
        normed = network.norm(frames, weights.vector(f"{after}/Mul"))
    _add_cross_attention(network, decoder, normed)
    return network


def build_decoder(weights: Weights) -> Network:
    """Builds the graph from tokens, `CROSS` and `PAST` to the token after each and `PRESENT`."""
    network = Network()
    token = network.add_input(TOKEN, np.int64, [1, "count"])
    for names, places in ((CROSS, "frames"), (PAST, "tokens")):
        for name in names:
            network.add_input(name, np.float32, [1, HEADS, places, HEAD_WIDTH])
    embedding = weights.matrix("embed_tokens/Gather")
    state = _embed(network, embedding, token)
    rotate = _Rotation(network, start=network.apply("Shape", PAST[0], start=2, end=3), heads=2 * HEADS)
    normed = network.norm(state, weights.vector("layers.0/input_layernorm/Mul"))
    for layer in range(LAYERS):
        at = f"layers.{layer}"
        attended = _self_attention(network, weights, rotate, normed, layer)
        state = network.apply("Add", state, attended)
        normed = network.norm(state, weights.vector(f"{at}/post_attention_layernorm/Mul"))
        query = network.multiply_few(normed, weights.matrix(f"{at}/encoder_attn/q_proj/MatMul"))
        cross_attention = network.apply(
            "MultiHeadAttention", query, *_key_and_value(layer, CROSS), domain=MICROSOFT, num_heads=HEADS
        )
        state = network.apply(
            "Add", state, network.multiply_few(cross_attention, weights.matrix(f"{at}/encoder_attn/dense/MatMul"))
        )
        normed = network.norm(state, weights.vector(f"{at}/final_layernorm/Mul"))
        state = network.apply("Add", state, _mlp(network, weights, normed, f"{at}/mlp"))
        after = f"layers.{layer + 1}/input_layernorm" if layer + 1 < LAYERS else "norm"
        normed = network.norm(state, weights.vector(f"{after}/Mul"))
    words = Matrix(embedding.values.T, embedding.scale, embedding.zero)
    scores = network.apply("Identity", network.multiply_few(normed, words), output=SCORES)
    network.apply("ArgMax", scores, output=NEXT_TOKEN, axis=-1, keepdims=0)
    network.add_output(NEXT_TOKEN, np.int64, [1, "count"])
    network.add_output(SCORES, np.float32, [1, "count", "vocabulary"])
    for name in PRESENT:
        network.add_output(name, np.float32, [1, HEADS, "tokens_now", HEAD_WIDTH])
    return network


def _stem(network: Network, weights: Weights) -> str:
    """Converts audio to frames with three convolutions. They stay float32; see the table above."""

    def convolve(value: str, name: str, width: int, stride: int, bias: NDArray[np.float32] | None) -> str:
        inputs = [value, network.constant(weights.matrix(f"{name}/Conv").restore())]
        if bias is not None:
            inputs.append(network.constant(bias))
        return network.apply("Conv", *inputs, kernel_shape=[width], strides=[stride])

    audio = network.add_input(AUDIO, np.float32, [1, "samples"])
    sound = network.apply("Unsqueeze", audio, network.constant(np.array([1])))
    bands = network.apply("Tanh", convolve(sound, "conv1", 127, 64, None))
    # A group norm with one group.
    ones, zeros = network.constant(np.ones(1, np.float32)), network.constant(np.zeros(1, np.float32))
    together = network.apply("Reshape", bands, network.constant(np.array([0, 1, -1])))
    even = network.apply("InstanceNormalization", together, ones, zeros, epsilon=1e-5)
    bands = network.apply("Reshape", even, network.constant(np.array([0, WIDTH, -1])))
    bands = network.apply("Mul", bands, network.constant(weights.vector("groupnorm/Mul")))
    bands = network.apply("Add", bands, network.constant(weights.vector("groupnorm/Add")))
    bands = network.apply("Gelu", convolve(bands, "conv2", 7, 3, weights.vector("conv2/Conv")))
    bands = network.apply("Gelu", convolve(bands, "conv3", 3, 2, weights.vector("conv3/Conv")))
    return network.apply("Transpose", bands, perm=[0, 2, 1])


def _expand(network: Network, weights: Weights, frames: str, name: str) -> str:
    expanded = network.multiply_many(frames, weights.matrix(f"{name}/MatMul"), weights.vector(f"{name}/Add"))
    return network.apply("Gelu", expanded)


def _add_cross_attention(network: Network, decoder: Weights, frames: str) -> None:
    by_head = network.constant(np.array([0, 0, HEADS, HEAD_WIDTH]))
    for layer in range(LAYERS):
        for name, part in zip(_key_and_value(layer, CROSS), "kv", strict=True):
            matrix = decoder.matrix(f"layers.{layer}/encoder_attn/{part}_proj/MatMul")
            heads = network.apply("Reshape", network.multiply_many(frames, matrix), by_head)
            network.apply("Transpose", heads, output=name, perm=[0, 2, 1, 3])
            network.add_output(name, np.float32, [1, HEADS, "frames", HEAD_WIDTH])


def _embed(network: Network, embedding: Matrix, token: str) -> str:
    row = network.apply("Gather", network.constant(embedding.values), token)
    row = network.apply("Cast", row, to=1)
    row = network.apply("Sub", row, network.constant(np.float32(embedding.zero)))
    return network.apply("Mul", row, network.constant(np.float32(embedding.scale)))


def _self_attention(network: Network, weights: Weights, rotate: "_Rotation", normed: str, layer: int) -> str:
    """Adds causal self-attention over the tokens."""
    at = f"layers.{layer}/self_attn"
    projected = network.multiply_few(normed, *(weights.matrix(f"{at}/{part}_proj/MatMul") for part in "qkv"))
    # Query and key are rotated together, as if they had twice the heads.
    both, value = network.split(projected, [2 * WIDTH, WIDTH])
    query, key = network.split(rotate(both), [WIDTH, WIDTH])
    attention = f"attention.{layer}"
    inputs = (query, key, value, "", "", "", *_key_and_value(layer, PAST))
    outputs = [attention, *_key_and_value(layer, PRESENT)]
    network.apply_all(
        "MultiHeadAttention", *inputs, outputs=outputs, domain=MICROSOFT, num_heads=HEADS, unidirectional=1
    )
    return network.multiply_few(attention, weights.matrix(f"{at}/dense/MatMul"))


def _mlp(network: Network, weights: Weights, normed: str, at: str) -> str:
    """Adds a SwiGLU. With this alpha, onnxruntime's QuickGelu is SiLU."""
    up = network.multiply_few(normed, weights.matrix(f"{at}/up_proj/MatMul"), bias=weights.vector(f"{at}/up_proj/Add"))
    value, gate = network.split(up, [4 * WIDTH, 4 * WIDTH])
    gated = network.apply("Mul", network.apply("QuickGelu", gate, domain=MICROSOFT, alpha=1.0), value)
    return network.multiply_few(
        gated, weights.matrix(f"{at}/down_proj/MatMul"), bias=weights.vector(f"{at}/down_proj/Add")
    )


def _key_and_value(layer: int, names: Sequence[str]) -> Sequence[str]:
    """Returns a layer's key and value."""
    return names[2 * layer : 2 * layer + 2]


class _Rotation:
    """Rotary position embedding (RoPE), from the position `start` on."""

    def __init__(self, network: Network, start: str, heads: int) -> None:
        rates = 10_000.0 ** -(np.arange(0, ROTARY_WIDTH, 2) / ROTARY_WIDTH)
        angles = np.outer(np.arange(MAX_PLACES), rates)
        tables = (network.constant(turn(angles).astype(np.float32)) for turn in (np.cos, np.sin))
        self._network = network
        self._inputs = (start, *tables)
        self._heads = heads

    def __call__(self, value: str) -> str:
        return self._network.apply(
            "RotaryEmbedding",
            value,
            *self._inputs,
            domain=MICROSOFT,
            interleaved=1,
            num_heads=self._heads,
            rotary_embedding_dim=ROTARY_WIDTH,
        )
