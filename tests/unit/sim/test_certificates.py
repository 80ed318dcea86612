"""The simulators' certificates: a client that trusts the authority gets a TLS connection, any other does not."""

import asyncio
import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from antiphon.sim.certificates import CertificateError, Certificates, make_certificates


async def _greet(certificates: Certificates, host: str, trusted: ssl.SSLContext, name: str) -> bytes:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    server = await asyncio.start_server(greet, host, 0, ssl=certificates.server_context())
    async with server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection(host, port, ssl=trusted, server_hostname=name)
        try:
            return await reader.read()
        finally:
            writer.close()
            await writer.wait_closed()


@pytest.mark.real_time
@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
async def test_a_client_that_trusts_the_authority_connects(tmp_path: Path, name: str) -> None:
    certificates = make_certificates(tmp_path)
    context = certificates.client_context()
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    assert await _greet(certificates, "127.0.0.1", context, name) == b"hello"


@pytest.mark.real_time
async def test_a_client_of_another_authority_refuses(tmp_path: Path) -> None:
    other = make_certificates(tmp_path / "other")
    with pytest.raises(ssl.SSLCertVerificationError):
        await _greet(make_certificates(tmp_path / "own"), "127.0.0.1", other.client_context(), "localhost")


def test_valid_certificates_are_used_again_so_that_clients_keep_their_trust(tmp_path: Path) -> None:
    first = make_certificates(tmp_path).ca.read_bytes()
    assert make_certificates(tmp_path).ca.read_bytes() == first


@pytest.mark.parametrize("damage", ["expired", "garbled", "another key", "missing"])
def test_unusable_certificates_are_replaced(tmp_path: Path, damage: str) -> None:
    made = make_certificates(tmp_path)
    first, now = made.ca.read_bytes(), datetime.now(UTC)
    match damage:
        case "expired":
            now += timedelta(days=29, hours=1)
        case "garbled":
            made.certificate.write_text("not a certificate")
        case "another key":
            made.key.write_bytes(make_certificates(tmp_path / "other").key.read_bytes())
        case "missing":
            made.ca.unlink()
    again = make_certificates(tmp_path, now)
    assert again.ca.read_bytes() != first
    again.server_context()


def test_only_the_owner_can_read_the_key(tmp_path: Path) -> None:
    assert stat.S_IMODE(make_certificates(tmp_path).key.stat().st_mode) == 0o600


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CertificateError, match="--tls-dir"):
        make_certificates(tmp_path / "file" / "tls")
