"""A server for text alone starts without the packages that only extras install."""

import subprocess
import sys
from typing import Final

OPTIONAL: Final = (
    *("numpy", "soxr", "onnx", "onnxruntime", "hibari", "piper", "wyoming", "tokenizers", "sounddevice", "soundfile"),
    *("openai", "httpx2", "google", "cryptography", "mcp", "mcp_types"),
)
SCRIPT: Final = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1:]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import antiphon.cli
import antiphon.serve
"""


def test_the_server_and_the_commands_import_without_the_extras() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, *OPTIONAL], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
