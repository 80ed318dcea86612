"""TLS of the server itself: loads a certificate, makes one for the local network, and follows renewals on the disk."""

import asyncio
import os
import ssl
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from antiphon.errors import AntiphonError
from antiphon.server.serving import Endpoint
from antiphon.telemetry.log import get_logger

if TYPE_CHECKING:
    from antiphon.security.certificates import CertificateFacts

SELF_SIGNED_VALIDITY: Final = timedelta(days=397)
"""Safari refuses certificates that are valid for longer than 398 days."""
SELF_SIGNED_RENEWAL: Final = timedelta(days=30)
"""How long before its end a certificate of our own is replaced, at a start."""
WARNING: Final = timedelta(days=14)
"""How long before its end a certificate is reported."""
CHECK_S: Final = 30.0
"""How often the files are looked at: a renewed certificate is used after this time at the latest."""
ALWAYS: Final = ("localhost", "127.0.0.1", "::1")

_log = get_logger(__name__)


class TlsError(AntiphonError):
    """The certificate or its key cannot be used; the text says why, and what to do."""

    code = "tls"


@dataclass(frozen=True, slots=True)
class TlsFiles:
    certificate: Path
    """PEM: the server's own certificate, followed by those of its issuers."""
    key: Path
    is_self_signed: bool = False


def self_signed_files(data_dir: Path) -> TlsFiles:
    """Returns where `serve --self-signed` keeps its certificate. The files need not exist."""
    folder = data_dir / "tls"
    return TlsFiles(folder / "self-signed.pem", folder / "self-signed.key", is_self_signed=True)


def prepare_self_signed(data_dir: Path, names: Iterable[str], now: datetime | None = None) -> TlsFiles:
    """Returns a certificate that is valid for these names, besides `ALWAYS`; makes a new one only if that is necessary.

    Browsers ask again after each new certificate, so one with more names than these is still used.
    """
    with _needs_package():
        from antiphon.security.certificates import make_self_signed, write_private
    now = now or datetime.now(UTC)
    files, wanted = self_signed_files(data_dir), list(dict.fromkeys([*ALWAYS, *names]))
    if _covers(files, wanted, now):
        return files
    certificate, key = make_self_signed(wanted, now=now, validity=SELF_SIGNED_VALIDITY)
    try:
        files.key.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(files.key, key)
        write_private(files.certificate, certificate)
    except OSError as error:
        raise TlsError(
            f"the certificate cannot be written into {files.key.parent}: {error.strerror}. "
            "Give this user write permission, or set ANTIPHON_DATA_DIR."
        ) from None
    return files


def _covers(files: TlsFiles, names: Sequence[str], now: datetime) -> bool:
    if not (files.certificate.exists() and files.key.exists()):
        return False
    try:
        facts = read_facts(files, now)
        load_context(files)
    except TlsError:
        return False
    return facts.names.issuperset(names) and now < facts.ends - SELF_SIGNED_RENEWAL


def read_facts(files: TlsFiles, now: datetime | None = None) -> "CertificateFacts":
    """Reads the certificate. Raises `TlsError` if it cannot be read, or is not valid at this time."""
    with _needs_package():
        from antiphon.security.certificates import read_certificate
    now, path = now or datetime.now(UTC), files.certificate
    try:
        facts = read_certificate(_read(path, "server.tls_cert"))
    except ValueError:
        raise TlsError(f"{path} (server.tls_cert) has no certificate in PEM format.") from None
    if facts.ends <= now:
        raise TlsError(f"the certificate {path} has expired: it was valid until {facts.ends:%Y-%m-%d}. Renew it.")
    if facts.begins > now:
        raise TlsError(
            f"the certificate {path} is not valid before {facts.begins:%Y-%m-%d %H:%M} UTC. "
            "Check this machine's clock, or wait."
        )
    return facts


def load_context(files: TlsFiles) -> ssl.SSLContext:
    """Makes a server's context. Raises `TlsError` if the certificate and the key cannot be used together."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    # WebSockets begin with an HTTP/1.1 request, so nothing else is offered.
    context.set_alpn_protocols(["http/1.1"])
    load_into(context, files)
    return context


def load_into(context: ssl.SSLContext, files: TlsFiles) -> None:
    """Loads the files for the connections that are accepted from now on. If they are refused, nothing is changed.

    Raises `TlsError`.
    """
    _read(files.certificate, "server.tls_cert")
    if b"ENCRYPTED" in _read(files.key, "server.tls_key"):
        # OpenSSL would ask for the password at the terminal, and a server has none.
        raise TlsError(f"{files.key} (server.tls_key) is protected by a password. Remove it with `openssl pkey`.")
    try:
        # A failure in the middle would leave a certificate without its key in the context, so another one is tried.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(files.certificate, files.key)
        context.load_cert_chain(files.certificate, files.key)
    except ssl.SSLError as error:
        if "MISMATCH" in (error.reason or ""):
            raise TlsError(
                f"the key {files.key} (server.tls_key) does not belong to the certificate {files.certificate}. "
                "Use the key that the certificate was made with."
            ) from None
        raise TlsError(
            f"{files.certificate} and {files.key} (server.tls_cert, tls_key) must be a certificate and its private key "
            f"in PEM format ({(error.reason or 'unreadable').lower().replace('_', ' ')})."
        ) from None


async def follow_renewals(context: ssl.SSLContext, files: TlsFiles) -> None:
    """Looks at the files from time to time, and loads them into the context when they have changed.

    Connections that are open keep theirs. Files that do not fit together, as in the middle of a renewal, are tried
    again later, and the old certificate stays in use. Runs until it is cancelled.
    """
    loaded = _state_of(files)
    refused: object = None
    while True:
        await asyncio.sleep(CHECK_S)
        state = _state_of(files)
        if state == loaded:
            continue
        try:
            facts = read_facts(files)
            load_into(context, files)
        except TlsError as error:
            if state != refused:
                refused = state
                _log.warning("certificate_not_loaded", error=str(error))
            continue
        loaded, refused = state, None
        _log.info("certificate_loaded", path=str(files.certificate), ends=facts.ends.isoformat())


def describe_certificate(files: TlsFiles, endpoint: Endpoint) -> Iterator[str]:
    """Describes the certificate of a server in lines for people. Raises `TlsError` if it is not valid now."""
    facts = read_facts(files)
    if not files.is_self_signed:
        yield f"TLS: {files.certificate}, valid {describe_end(facts)}."
        return
    yield f"TLS: {files.certificate}, which this server has signed itself, valid {describe_end(facts)}."
    yield f"SHA-256 fingerprint: {facts.fingerprint}"
    where = " or ".join(endpoint.outside_urls)
    advice = (
        f"On a phone in the same network, open {where}, and accept it once."
        if where
        else "Only this machine can reach the server; other devices can with --host 0.0.0.0."
    )
    yield f"A browser warns of this certificate, since nobody else vouches for it: compare the fingerprint. {advice}"


def describe_end(facts: "CertificateFacts", now: datetime | None = None) -> str:
    """Describes until when a certificate is valid."""
    left = facts.ends - (now or datetime.now(UTC))
    days = "1 day" if left.days == 1 else f"{left.days} days"
    return f"until {facts.ends:%Y-%m-%d} ({days})"


def _state_of(files: TlsFiles) -> tuple[object, ...]:
    """Returns what changes with the files. A renewal often replaces a symbolic link, so the target is looked at."""

    def of(path: Path) -> object:
        try:
            found = os.stat(path)
        except OSError:
            return None
        return (found.st_mtime_ns, found.st_size, found.st_ino)

    return of(files.certificate), of(files.key)


def _read(path: Path, setting: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TlsError(f"{path} ({setting}) cannot be read: {error.strerror}.") from None


@contextmanager
def _needs_package() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "cryptography":
            raise
        raise TlsError("TLS needs the package cryptography. Run: pip install 'antiphon[tls]'") from error
