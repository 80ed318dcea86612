"""The real server with the real engines, and what is said to it through the browser's microphone."""

import socket
import subprocess
import wave
from pathlib import Path
from typing import Final

from tests.e2e.terminal import COMMAND, Terminal

VOICE: Final = "slt"
HZ: Final = 16_000
STOP_S: Final = 60.0


class RealServer:
    """`antiphon serve` with a voice, always on the same port and the same data."""

    def __init__(self, folder: Path, models_dir: Path) -> None:
        self._terminal = Terminal(folder)
        self._models_dir = models_dir
        self._process: subprocess.Popen[str] | None = None
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = int(free.getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/"

    def start(self) -> None:
        variables = {"ANTIPHON_MODELS_DIR": str(self._models_dir), "PYTHONUNBUFFERED": "1"}
        with (self._terminal.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [COMMAND, "serve", "--port", str(self._port)],
                cwd=self._terminal.folder,
                env=self._terminal.environment(**variables),
                text=True,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self._process.stdout is not None
        announced: list[str] = []
        while not announced or not announced[-1].startswith("Try it"):
            line = self._process.stdout.readline()
            assert line, f"the server did not start: {announced}\n{(self._terminal.folder / 'log').read_text()}"
            announced.append(line)
        assert not any("no voice" in line for line in announced), announced

    def restart(self) -> None:
        """Restarts it as an operator does: it is asked to stop, and tells its clients before it does."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(STOP_S)
        self.kill()
        self.start()

    def kill(self) -> None:
        """kill -9: no handler runs, nothing is flushed."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None


def record(file: Path, *script: str | float) -> Path:
    """Writes a WAV file of spoken sentences, and of silences in seconds."""
    with wave.open(str(file), "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(HZ)
        for part in script:
            written.writeframes(_speak(file, part) if isinstance(part, str) else bytes(2 * int(HZ * part)))
    return file


def _speak(file: Path, sentence: str) -> bytes:
    spoken = file.with_suffix(".spoken.wav")
    subprocess.run(["flite", "-voice", VOICE, "-t", sentence, "-o", str(spoken)], check=True)
    with wave.open(str(spoken)) as read:
        assert (read.getframerate(), read.getnchannels(), read.getsampwidth()) == (HZ, 1, 2)
        return bytes(read.readframes(read.getnframes()))
