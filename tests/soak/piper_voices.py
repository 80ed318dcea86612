"""Voice files: which are found, how their graphs are split, and how the parts are cached."""

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import onnx
import onnxruntime  # type: ignore[import-untyped]
import pytest
from onnx import TensorProto, helper
from structlog.testing import capture_logs

from antiphon.audio.pcm import Signal, duration_ms
from antiphon.speech.base import SpeechError
from antiphon.speech.engines.piper import PiperSynthesizer, synthesizer
from antiphon.speech.engines.piper.files import DECODER, ENCODER, FLOW, Plan, VoiceFile, find_voices, open_parts
from antiphon.speech.engines.piper.voice import CHUNK_FRAMES, MAX_PHONEMES, PiperVoice, Prior
from antiphon.speech.workers import Workers

pytestmark = pytest.mark.real_time


@pytest.fixture(scope="module")
def joe(models_dir: Path) -> PiperVoice:
    return PiperVoice(find_voices(models_dir)["joe"])


@pytest.fixture(scope="module")
def cut(models_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder with the parts of a voice in it. Its tests leave it as it is."""
    folder = tmp_path_factory.mktemp("cut")
    (folder / "joe").symlink_to(models_dir / "joe")
    PiperVoice(find_voices(folder)["joe"])
    return folder


@pytest.fixture
def workers() -> Iterator[Workers]:
    workers = Workers(1)
    yield workers
    asyncio.run(workers.aclose())


def add_voice(source: Path, models_dir: Path, id: str, **changes: Any) -> Path:
    """Another voice, made of Joe: the same graph, with a configuration that differs."""
    model = next((source / "joe").glob("*.onnx"))
    folder = models_dir / id
    folder.mkdir()
    (folder / "voice.onnx").symlink_to(model)
    config = json.loads(model.with_suffix(".onnx.json").read_bytes()) | changes
    (folder / "voice.onnx.json").write_text(json.dumps(config))
    return folder


def speak_whole(model: Path, phonemes: list[str]) -> Any:
    """With the graph as Piper made it."""
    config = json.loads(model.with_suffix(".onnx.json").read_bytes())["phoneme_id_map"]
    ids = [1, 0, *(id for each in phonemes for id in (*config[each], 0)), 2]
    session = onnxruntime.InferenceSession(model)
    scales = np.array([0, 1, 0], np.float32)
    inputs = {"input": np.array([ids]), "input_lengths": np.array([len(ids)]), "scales": scales}
    return session.run(None, inputs)[0].reshape(-1)


def test_chunks_are_identical_to_the_whole_sample_by_sample(models_dir: Path, joe: PiperVoice) -> None:
    (phonemes,) = joe.phonemize("The weather in Berlin is going to be sunny today, with light winds.")
    prior = joe.encode(phonemes, noise_scale=0.0)
    frames = prior.shape[-1]
    pieces = [joe.decode(prior, first, min(first + 25, frames)) for first in range(0, frames, 25)]
    whole = speak_whole(find_voices(models_dir)["joe"].model, phonemes)
    assert np.abs(np.concatenate(pieces) - whole).max() < 1e-3


def test_a_sentence_ends_in_its_mark(joe: PiperVoice) -> None:
    assert [sentence[-1] for sentence in joe.phonemize("Well, yes. Is it? Good!")] == [".", "?", "!"]


@pytest.mark.parametrize("text", ["word " * 1_000, "9 " * 2_500, "x" * 5_000, "well, " * 800])
def test_a_long_sentence_is_synthesized_in_portions(joe: PiperVoice, text: str) -> None:
    portions = joe.phonemize(text)
    assert max(map(len, portions)) <= MAX_PHONEMES
    assert sum(map(len, portions)) > 1_000


def test_piper_voices_are_listed_with_the_default_first(models_dir: Path, tmp_path: Path) -> None:
    for id in ("joe", "anna"):
        add_voice(models_dir, tmp_path, id)
    (tmp_path / "smart-turn").mkdir()
    (tmp_path / "smart-turn" / "model.onnx").touch()
    assert list(find_voices(tmp_path)) == ["joe", "anna"]


def test_a_voice_has_a_name_and_a_language(models_dir: Path) -> None:
    voice = find_voices(models_dir)["joe"].voice
    assert (voice.name, voice.language) == ("Joe", "en-US")


@pytest.mark.parametrize("broken", ["", "[]", '{"audio": {}}', "{", '{"audio": {"sample_rate": 0}}'])
def test_a_voice_with_a_broken_configuration_is_skipped(models_dir: Path, tmp_path: Path, broken: str) -> None:
    add_voice(models_dir, tmp_path, "joe")
    (add_voice(models_dir, tmp_path, "bad") / "voice.onnx.json").write_text(broken)
    assert list(find_voices(tmp_path)) == ["joe"]


def test_a_voice_with_other_phonemes_is_skipped(models_dir: Path, tmp_path: Path) -> None:
    add_voice(models_dir, tmp_path, "joe")
    add_voice(models_dir, tmp_path, "pinyin", phoneme_type="pinyin")
    assert list(find_voices(tmp_path)) == ["joe"]


async def test_a_voice_at_another_rate_is_resampled_to_ours(
    models_dir: Path, tmp_path: Path, joe: PiperVoice, workers: Workers
) -> None:
    text = "Hello, how are you today?"
    add_voice(models_dir, tmp_path, "low", audio={"sample_rate": 16_000})
    piper = PiperSynthesizer(tmp_path, workers, noise_scale=0.0)
    spoken_ms = sum([duration_ms(sound.pcm, piper.output_hz) async for sound in piper.speak(text)])
    # Its samples are the same as Joe's, and so last longer.
    (phonemes,) = joe.phonemize(text)
    frames = joe.encode(phonemes, noise_scale=0.0).shape[-1]
    assert spoken_ms == pytest.approx(frames * joe.frame_samples / 16, abs=250)


async def test_a_file_that_is_not_a_voice_is_an_error_that_names_it(
    models_dir: Path, tmp_path: Path, workers: Workers
) -> None:
    model = add_voice(models_dir, tmp_path, "bad") / "voice.onnx"
    model.unlink()
    model.write_bytes(b"not a graph")
    with pytest.raises(SpeechError, match=r"voice\.onnx"):
        [sound async for sound in PiperSynthesizer(tmp_path, workers).speak("Hello.")]


def test_a_language_that_espeak_does_not_know_is_an_error(models_dir: Path, tmp_path: Path, workers: Workers) -> None:
    add_voice(models_dir, tmp_path, "bad", espeak={"voice": "klingon-x"})
    with pytest.raises(SpeechError, match="klingon-x"):
        PiperSynthesizer(tmp_path, workers).load()


def folder_of(model: Path, cache_dir: Path) -> Path:
    return open_parts(model, cache_dir, lambda folder, plan: folder)


def test_a_graph_is_split_once(models_dir: Path, tmp_path: Path) -> None:
    model = find_voices(models_dir)["joe"].model
    times = [(folder_of(model, tmp_path / "cache") / DECODER).stat().st_mtime_ns for _ in range(2)]
    assert times[0] == times[1]


def test_outdated_and_incomplete_parts_are_replaced(models_dir: Path, tmp_path: Path) -> None:
    model = find_voices(models_dir)["joe"].model
    folder = folder_of(model, tmp_path)
    (tmp_path / "0123456789abcdef-0").mkdir()
    (folder / "plan.json").write_text("{")
    with capture_logs():
        folder = folder_of(model, tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == [folder.name]


def cut_in_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def fill_with_nothing(path: Path) -> None:
    """As a power cut does."""
    path.write_bytes(bytes(path.stat().st_size))


@pytest.mark.parametrize("part", [ENCODER, FLOW, DECODER])
@pytest.mark.parametrize("spoil", [cut_in_half, fill_with_nothing, Path.unlink])
def test_a_damaged_part_is_detected_and_rebuilt(
    cut: Path, tmp_path: Path, part: str, spoil: Callable[[Path], None]
) -> None:
    shutil.copytree(cut, tmp_path / "models", symlinks=True)
    file = find_voices(tmp_path / "models")["joe"]
    (folder,) = file.cache_dir.iterdir()
    size = (folder / part).stat().st_size
    spoil(folder / part)
    with capture_logs() as logs:
        PiperVoice(file)
    assert (folder / part).stat().st_size == size
    assert [log["event"] for log in logs] == ["cache_rebuilt"]


def test_a_voice_with_cached_parts_does_not_need_the_graph_tools(cut: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from antiphon.speech.engines.piper.files import find_voices\n"
        "from antiphon.speech.engines.piper.voice import PiperVoice\n"
        "PiperVoice(find_voices(Path(sys.argv[1]))['joe'])\n"
        "print('onnx' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code, str(cut)], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


def test_loading_a_voice_decodes_no_larger_batch_than_speaking(cut: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """onnxruntime would keep the memory for as long as the process lives."""
    frames: list[int] = []
    decode = PiperVoice.decode

    def noting(voice: PiperVoice, prior: Prior, first: int, last: int) -> Signal:
        frames.append(last - first)
        return decode(voice, prior, first, last)

    monkeypatch.setattr(PiperVoice, "decode", noting)
    PiperVoice(find_voices(cut)["joe"])
    assert len(frames) > 1
    assert max(frames) <= max(CHUNK_FRAMES)


def test_without_a_writable_cache_the_parts_are_made_for_one_run(models_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder would be")
    seen: set[str] = set()

    def look(folder: Path, plan: Plan) -> Path:
        seen.update(each.name for each in folder.glob("*.onnx"))
        return folder

    with capture_logs():
        folder = open_parts(find_voices(models_dir)["joe"].model, tmp_path / "cache", look)
    assert seen == {ENCODER, FLOW, DECODER}
    assert not folder.exists()


def test_a_missing_model_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(SpeechError, match=r"gone\.onnx"):
        folder_of(tmp_path / "gone.onnx", tmp_path)


def test_a_graph_of_something_else_is_an_error(models_dir: Path, tmp_path: Path) -> None:
    vad = next((models_dir / "silero-vad").glob("*.onnx"))
    with pytest.raises(SpeechError, match="no decoder"):
        folder_of(vad, tmp_path)


class FakeVoices:
    """Voices that load instantly, and record it."""

    def __init__(self, models_dir: Path, tmp_path: Path, workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
        for id in ("joe", "anna", "bert", "carl", "slow"):
            add_voice(models_dir, tmp_path, id)
        self.loaded: list[str] = []
        self.is_loading, self.may_load = Event(), Event()
        monkeypatch.setattr(synthesizer, "PiperVoice", self._load)
        self.piper = PiperSynthesizer(tmp_path, workers)

    def _load(self, file: VoiceFile, noise_scale: float | None) -> object:
        self.loaded.append(file.voice.id)
        if file.voice.id == "slow":
            self.is_loading.set()
            assert self.may_load.wait(10)
        return object()


@pytest.fixture
def fake_voices(models_dir: Path, tmp_path: Path, workers: Workers, monkeypatch: pytest.MonkeyPatch) -> FakeVoices:
    return FakeVoices(models_dir, tmp_path, workers, monkeypatch)


def test_the_least_recently_used_voice_is_unloaded_for_another(fake_voices: FakeVoices) -> None:
    for id in ("joe", "anna", "bert", "joe", "carl"):
        fake_voices.piper.load(id)
    assert fake_voices.loaded == ["joe", "anna", "bert", "carl"]
    for id in ("joe", "bert", "carl", "anna"):
        fake_voices.piper.load(id)
    assert fake_voices.loaded[4:] == ["anna"]


def test_a_loading_voice_does_not_block_another(fake_voices: FakeVoices) -> None:
    fake_voices.piper.load("joe")
    loading = Thread(target=fake_voices.piper.load, args=["slow"])
    loading.start()
    assert fake_voices.is_loading.wait(10)
    speaking = Thread(target=fake_voices.piper.load, args=["joe"])
    speaking.start()
    speaking.join(10)
    was_kept_waiting = speaking.is_alive()
    fake_voices.may_load.set()
    loading.join(10)
    assert not was_kept_waiting


def test_a_multi_speaker_voice_is_split_with_its_speaker_input(tmp_path: Path) -> None:
    """A minimal multi-speaker model, since none is among the files here."""
    weights = [
        helper.make_tensor("embedding", TensorProto.FLOAT, [2, 1], [0.0, 1.0]),
        helper.make_tensor("flow.weight", TensorProto.FLOAT, [1, 1, 5], [1.0] * 5),
        helper.make_tensor("dec.conv_pre.weight", TensorProto.FLOAT, [1, 1, 7], [1.0] * 7),
        helper.make_tensor("dec.ups.weight", TensorProto.FLOAT, [1, 1, 8], [1.0] * 8),
    ]
    nodes = [
        helper.make_node("RandomNormalLike", ["input"], ["noise"]),
        helper.make_node("Add", ["input", "noise"], ["prior"]),
        helper.make_node("Cos", ["input"], ["mask"]),
        helper.make_node("Gather", ["embedding", "sid"], ["speaker"]),
        helper.make_node("Conv", ["prior", "flow.weight"], ["flowed"], kernel_shape=[5], pads=[2, 2]),
        helper.make_node("Add", ["flowed", "speaker"], ["toned"]),
        helper.make_node("Mul", ["toned", "mask"], ["latent"]),
        helper.make_node("Conv", ["latent", "dec.conv_pre.weight"], ["pre"], kernel_shape=[7], pads=[3, 3]),
        helper.make_node("Add", ["pre", "speaker"], ["spoken"]),
        helper.make_node(
            "ConvTranspose", ["spoken", "dec.ups.weight"], ["output"], kernel_shape=[8], strides=[4], pads=[2, 2]
        ),
    ]
    inputs = [
        helper.make_tensor_value_info("input", TensorProto.FLOAT, [1, 1, "frames"]),
        helper.make_tensor_value_info("sid", TensorProto.INT64, [1]),
    ]
    outputs = [helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, 1, "samples"])]
    between = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("prior", "mask", "latent")]
    graph = helper.make_graph(nodes, "voice", inputs, outputs, weights, value_info=between)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)]), tmp_path / "voice.onnx")
    folder, plan = open_parts(tmp_path / "voice.onnx", tmp_path / "cache", lambda folder, plan: (folder, plan))
    inputs_of = {part: [each.name for each in onnx.load(folder / part).graph.input] for part in (FLOW, DECODER)}
    assert inputs_of == {FLOW: ["prior", "mask", "sid"], DECODER: ["latent", "sid"]}
    assert (plan.flow_context_frames, plan.decoder_context_frames, plan.frame_samples) == (2, 5, 4)
