"""Splits a voice's graph in three. Piper's is VITS: text → prior → (flow) → latent → (HiFi-GAN decoder) → samples.

The encoder needs the whole text. The other two are convolutions over frames, so a stretch with enough context on both
sides yields the same samples as the whole. The first audio waits only for the encoder and a few frames.
"""

from collections.abc import Callable, Iterable
from fractions import Fraction
from math import ceil
from pathlib import Path

import msgspec
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx.utils import Extractor

from antiphon.speech.base import SpeechError
from antiphon.speech.engines.piper.files import DECODER, ENCODER, FLOW, PLAN, SPEAKER, Plan


def write_parts(model: Path, folder: Path) -> None:
    """Raises `SpeechError` if the model is not a Piper voice, and `OSError`."""
    try:
        whole = onnx.load(model)
        plan = _plan(whole.graph)
        extractor = Extractor(whole)
        inputs = [each.name for each in whole.graph.input]
        speaker = [name for name in inputs if name == SPEAKER]
        for name, taken, given in (
            (ENCODER, inputs, [plan.prior]),
            (FLOW, [plan.prior, plan.mask, *speaker], [plan.latent]),
            (DECODER, [plan.latent, *speaker], [plan.audio]),
        ):
            onnx.save(extractor.extract_model(taken, given), folder / name)
        (folder / PLAN).write_bytes(msgspec.json.encode(plan))
    except (ValueError, LookupError, DecodeError) as error:
        raise SpeechError(f"{model} is not a Piper voice ({error}). Remove it, or get it again.") from error


def _plan(graph: onnx.GraphProto) -> Plan:
    made_by = {output: node for node in graph.node for output in node.output}
    decoding = _first(graph.node, "has no decoder", lambda node: "dec.conv_pre.weight" in node.input)
    latent = decoding.input[0]
    # The last step before the decoder is `z * mask`.
    mask = made_by[latent].input[1]
    prior = _find_prior(graph)
    audio = graph.output[0].name
    flow_receptive_field, _ = _receptive_field(graph, prior, latent)
    decoder_receptive_field, frame_samples = _receptive_field(graph, latent, audio)
    return Plan(prior, mask, latent, audio, ceil(flow_receptive_field), ceil(decoder_receptive_field), frame_samples)


def _find_prior(graph: onnx.GraphProto) -> str:
    """Finds `mean + noise * …`. The noise is the last one in the graph: the one before it is for the durations."""
    noise = _first(reversed(graph.node), "has no noise", lambda node: node.op_type == "RandomNormalLike")
    noisy = set(noise.output)

    def adds_noise(node: onnx.NodeProto) -> bool:
        is_noisy = not noisy.isdisjoint(node.input)
        noisy.update(node.output if is_noisy else ())
        return is_noisy and node.op_type == "Add"

    return str(_first(graph.node, "adds its noise to nothing", adds_noise).output[0])


def _first(nodes: Iterable[onnx.NodeProto], failure: str, is_meant: Callable[[onnx.NodeProto], bool]) -> onnx.NodeProto:
    found = next((node for node in nodes if is_meant(node)), None)
    if found is None:
        raise ValueError(f"its graph {failure}")
    return found


def _receptive_field(graph: onnx.GraphProto, source: str, target: str) -> tuple[Fraction, int]:
    """Returns how many source frames on each side a target frame depends on, and how many samples it has."""
    known = {source: (Fraction(0), 1)}
    for node in graph.node:
        before = [known[each] for each in node.input if each in known]
        if not before:
            continue
        reach, samples = max(before)
        kernel, dilation, stride, pad = _geometry(node)
        if node.op_type == "Conv":
            reach += Fraction((kernel - 1) * dilation, 2 * samples)
        elif node.op_type == "ConvTranspose":
            reach += Fraction(max(pad, kernel - 1 - pad), stride * samples)
            samples *= stride
        known.update(dict.fromkeys(node.output, (reach, samples)))
    return known[target]


def _geometry(node: onnx.NodeProto) -> tuple[int, int, int, int]:
    """Returns the kernel, dilation, stride and padding of a convolution over time."""
    found = {each.name: each.ints for each in node.attribute}
    names_and_usual = (("kernel_shape", 1), ("dilations", 1), ("strides", 1), ("pads", 0))
    kernel, dilation, stride, pad = ((found.get(name) or [usual])[0] for name, usual in names_and_usual)
    return kernel, dilation, stride, pad
