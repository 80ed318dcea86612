"""The server's certificate: made for the local network, checked with clear errors, and followed when it is renewed."""

import asyncio
import contextlib
import os
import ssl
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import structlog

from antiphon.security.certificates import make_self_signed, read_certificate
from antiphon.server.serving import Endpoint
from antiphon.server.tls import (
    CHECK_S,
    TlsError,
    TlsFiles,
    describe_certificate,
    follow_renewals,
    load_context,
    prepare_self_signed,
    read_facts,
)

NOW = datetime.now(UTC)
NAMES = ["kitchen", "kitchen.local", "192.168.1.5", "fd00::5"]
LAN = Endpoint("0.0.0.0", 8000, ["127.0.0.1", "192.168.1.5"], is_tls=True)


def write(folder: Path, *, now: datetime = NOW, days: float = 90, name: str = "talk.example.org") -> TlsFiles:
    """Writes a certificate and its key, as a renewal does."""
    files = TlsFiles(folder / "cert.pem", folder / "key.pem")
    certificate, key = make_self_signed([name], now=now, validity=timedelta(days=days))
    files.certificate.write_bytes(certificate)
    files.key.write_bytes(key)
    return files


def presented(context: ssl.SSLContext) -> bytes:
    """Returns the certificate that a server with this context shows, in a handshake without a network."""
    client_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client_context.check_hostname, client_context.verify_mode = False, ssl.CERT_NONE
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(back, there)
    server = context.wrap_bio(there, back, server_side=True)
    for _ in range(5):
        for side in (client, server):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    found = client.getpeercert(binary_form=True)
    assert found is not None
    return ssl.DER_cert_to_PEM_cert(found).encode()


# A certificate of our own.


def test_a_certificate_of_our_own_is_for_this_machine_and_its_names(tmp_path: Path) -> None:
    files = prepare_self_signed(tmp_path, NAMES, NOW)
    facts = read_facts(files, NOW)
    assert facts.names == {"localhost", "127.0.0.1", "::1", *NAMES}
    assert facts.ends - NOW == pytest.approx(timedelta(days=397), abs=timedelta(seconds=1))
    assert presented(load_context(files)) == files.certificate.read_bytes()


def test_only_its_user_can_read_the_key(tmp_path: Path) -> None:
    files = prepare_self_signed(tmp_path / "data", NAMES)
    assert stat.S_IMODE(files.key.stat().st_mode) == 0o600
    assert stat.S_IMODE(files.key.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("names", [NAMES, NAMES[:2]])
def test_it_is_used_again_as_long_as_it_covers_the_names(tmp_path: Path, names: list[str]) -> None:
    first = prepare_self_signed(tmp_path, NAMES).certificate.read_bytes()
    assert prepare_self_signed(tmp_path, names).certificate.read_bytes() == first


def garble(files: TlsFiles) -> None:
    files.certificate.write_text("not a certificate")


def exchange_the_key(files: TlsFiles) -> None:
    files.key.write_bytes(make_self_signed(["other"], now=NOW, validity=timedelta(days=1))[1])


@pytest.mark.parametrize(
    ("change", "names", "now"),
    [
        pytest.param(lambda files: None, [*NAMES, "192.168.1.6"], NOW, id="a new address"),
        pytest.param(lambda files: None, NAMES, NOW + timedelta(days=368), id="near its end"),
        pytest.param(garble, NAMES, NOW, id="garbled"),
        pytest.param(exchange_the_key, NAMES, NOW, id="another key"),
        pytest.param(lambda files: files.key.unlink(), NAMES, NOW, id="no key"),
    ],
)
def test_it_is_made_anew_if_necessary(
    tmp_path: Path, change: Callable[[TlsFiles], object], names: list[str], now: datetime
) -> None:
    files = prepare_self_signed(tmp_path, NAMES, NOW)
    first = files.certificate.read_bytes()
    change(files)
    assert prepare_self_signed(tmp_path, names, now) == files
    assert files.certificate.read_bytes() != first
    assert read_facts(files, now).names.issuperset(names)


def test_a_client_that_trusts_it_accepts_it_by_the_strict_rules(tmp_path: Path) -> None:
    files = prepare_self_signed(tmp_path, NAMES)
    client_context = ssl.create_default_context(cafile=str(files.certificate))
    client_context.verify_flags |= ssl.VERIFY_X509_STRICT
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(back, there, server_hostname="192.168.1.5")
    server = load_context(files).wrap_bio(there, back, server_side=True)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    with pytest.raises(ssl.SSLWantReadError):
        server.do_handshake()
    client.do_handshake()
    assert ("IP Address", "192.168.1.5") in dict(client.getpeercert() or {})["subjectAltName"]


def test_a_folder_that_cannot_be_written_is_explained(tmp_path: Path) -> None:
    (tmp_path / "tls").write_text("a file")
    with pytest.raises(TlsError, match=r"cannot be written into .*tls: .*ANTIPHON_DATA_DIR"):
        prepare_self_signed(tmp_path, NAMES)


def test_people_are_told_its_fingerprint_and_what_a_phone_opens(tmp_path: Path) -> None:
    files = prepare_self_signed(tmp_path, NAMES, NOW)
    told = "\n".join(describe_certificate(files, LAN))
    shown = subprocess.run(
        ["openssl", "x509", "-in", files.certificate, "-noout", "-fingerprint", "-sha256"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.strip().partition("=")[2] in told
    assert "open https://192.168.1.5:8000, and accept it once" in told


def test_on_loopback_people_are_told_how_to_open_it_to_others(tmp_path: Path) -> None:
    files = prepare_self_signed(tmp_path, NAMES)
    here = Endpoint("127.0.0.1", 8000, ["127.0.0.1"], is_tls=True)
    assert "other devices can with --host 0.0.0.0" in "\n".join(describe_certificate(files, here))


# A certificate of the settings.


def use(files: TlsFiles) -> None:
    read_facts(files)
    load_context(files)


def test_a_chain_is_described_by_its_first_certificate(tmp_path: Path) -> None:
    issuer = write(tmp_path, name="issuer").certificate.read_bytes()
    files = write(tmp_path)
    files.certificate.write_bytes(files.certificate.read_bytes() + issuer)
    use(files)
    assert read_facts(files).names == {"talk.example.org"}


@pytest.mark.parametrize("days", [-1.0, 0.0])
def test_an_expired_certificate_is_refused(tmp_path: Path, days: float) -> None:
    files = write(tmp_path, now=NOW - timedelta(days=9), days=9 + days)
    with pytest.raises(TlsError, match=r"has expired: it was valid until \d{4}-\d\d-\d\d\. Renew it\."):
        use(files)


def test_a_certificate_of_the_future_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TlsError, match="is not valid before"):
        use(write(tmp_path, now=NOW + timedelta(days=2)))


def encrypt(files: TlsFiles) -> None:
    files.key.write_text(files.key.read_text().replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY"))


def exchange_files(files: TlsFiles) -> None:
    certificate, key = files.certificate.read_bytes(), files.key.read_bytes()
    files.certificate.write_bytes(key)
    files.key.write_bytes(certificate)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda files: files.certificate.unlink(), r"cert\.pem \(server\.tls_cert\) cannot be read: No such file"),
        (lambda files: files.key.unlink(), r"key\.pem \(server\.tls_key\) cannot be read: No such file"),
        (lambda files: (files.key.unlink(), files.key.mkdir()), r"\(server\.tls_key\) cannot be read: Is a directory"),
        (garble, r"cert\.pem \(server\.tls_cert\) has no certificate in PEM format"),
        (lambda files: files.certificate.write_bytes(b"\xff\x00"), r"has no certificate in PEM format"),
        (lambda files: files.key.write_text("not a key"), r"must be a certificate and its private key in PEM format"),
        (exchange_the_key, r"key\.pem \(server\.tls_key\) does not belong to the certificate .*cert\.pem"),
        (exchange_files, r"has no certificate in PEM format"),
        (encrypt, r"is protected by a password\. Remove it with `openssl pkey`"),
    ],
)
def test_unusable_files_are_explained(tmp_path: Path, damage: Callable[[TlsFiles], object], says: str) -> None:
    files = write(tmp_path)
    damage(files)
    with pytest.raises(TlsError, match=says):
        use(files)


def test_without_the_package_people_are_told_what_to_install(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from pathlib import Path; from antiphon.server.tls import TlsError, prepare_self_signed\n"
        f"try: prepare_self_signed(Path({str(tmp_path)!r}), [])\n"
        "except TlsError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "TLS needs the package cryptography. Run: pip install 'antiphon[tls]'"


# Renewals.


@pytest.fixture
async def served(tmp_path: Path) -> "tuple[ssl.SSLContext, TlsFiles]":
    files = write(tmp_path)
    return load_context(files), files


def age(files: TlsFiles, seconds: float) -> None:
    """Makes sure that the time of the files differs from before, also on a file system with coarse times."""
    for path in (files.certificate, files.key):
        os.utime(path, (path.stat().st_atime + seconds, path.stat().st_mtime + seconds))


async def test_a_renewed_certificate_is_shown_to_new_connections(
    served: tuple[ssl.SSLContext, TlsFiles], tmp_path: Path
) -> None:
    context, files = served
    following = asyncio.create_task(follow_renewals(context, files))
    await asyncio.sleep(CHECK_S / 2)
    before = presented(context)
    write(tmp_path, days=180)
    age(files, 60)
    await asyncio.sleep(CHECK_S)
    following.cancel()
    assert presented(context) == files.certificate.read_bytes() != before


async def test_half_a_renewal_is_waited_for_and_reported_once(
    served: tuple[ssl.SSLContext, TlsFiles], tmp_path: Path
) -> None:
    context, files = served
    following = asyncio.create_task(follow_renewals(context, files))
    await asyncio.sleep(CHECK_S / 2)
    before, old_key = files.certificate.read_bytes(), files.key.read_bytes()
    write(tmp_path, days=180)
    new_key = files.key.read_bytes()
    files.key.write_bytes(old_key)
    age(files, 60)
    with structlog.testing.capture_logs() as logged:
        await asyncio.sleep(3 * CHECK_S)
        assert presented(context) == before
        files.key.write_bytes(new_key)
        age(files, 120)
        await asyncio.sleep(CHECK_S)
    following.cancel()
    assert presented(context) == files.certificate.read_bytes()
    assert [line["event"] for line in logged] == ["certificate_not_loaded", "certificate_loaded"]


async def test_files_that_vanish_leave_the_old_certificate_in_use(served: tuple[ssl.SSLContext, TlsFiles]) -> None:
    context, files = served
    following = asyncio.create_task(follow_renewals(context, files))
    await asyncio.sleep(CHECK_S / 2)
    before = files.certificate.read_bytes()
    files.certificate.unlink()
    await asyncio.sleep(2 * CHECK_S)
    following.cancel()
    assert presented(context) == before


def test_the_fingerprint_of_a_certificate_is_written_as_in_browsers(tmp_path: Path) -> None:
    facts = read_certificate(write(tmp_path).certificate.read_bytes())
    assert len(facts.fingerprint.split(":")) == 32
