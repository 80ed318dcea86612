"""Certificates for the simulators: the google SDK always uses TLS, also with a server on the same machine.

Each folder gets a certificate authority of its own, which signs one certificate for `localhost`, 127.0.0.1 and ::1. A
client trusts the simulator when `SSL_CERT_FILE` names the authority's certificate.
"""

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID

from antiphon.errors import AntiphonError
from antiphon.security.certificates import (
    PEM,
    begin_certificate,
    common_name,
    key_usage,
    new_key,
    private_pem,
    write_private,
)

VALIDITY: Final = timedelta(days=30)
RENEWAL: Final = timedelta(days=1)
"""How long before its end a certificate is replaced."""
HOSTS: Final = ("localhost",)
ADDRESSES: Final = (IPv4Address("127.0.0.1"), IPv6Address("::1"))
CA_FILE: Final = "ca.pem"
CERTIFICATE_FILE: Final = "server.pem"
KEY_FILE: Final = "server.key"


class CertificateError(AntiphonError):
    """The certificates cannot be written."""

    code = "certificate"


@dataclass(frozen=True, slots=True)
class Certificates:
    ca: Path
    """The authority's certificate, which clients must trust."""
    certificate: Path
    key: Path

    def server_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.certificate, self.key)
        return context

    def client_context(self) -> ssl.SSLContext:
        """Returns a context that trusts this authority and no other."""
        return ssl.create_default_context(cafile=str(self.ca))


def make_certificates(folder: Path, now: datetime | None = None) -> Certificates:
    """Returns the certificates in the folder, and makes them if there are none or if they expire within a day."""
    now = now or datetime.now(UTC)
    made = Certificates(folder / CA_FILE, folder / CERTIFICATE_FILE, folder / KEY_FILE)
    try:
        if not _are_valid(made, now):
            folder.mkdir(parents=True, exist_ok=True)
            _write(made, now)
    except OSError as error:
        raise CertificateError(
            f"the certificates in {folder} cannot be read or written ({error.strerror}). "
            "Choose another folder with --tls-dir."
        ) from None
    return made


def _are_valid(made: Certificates, now: datetime) -> bool:
    if not all(path.exists() for path in (made.ca, made.certificate, made.key)):
        return False
    try:
        read = [x509.load_pem_x509_certificate(path.read_bytes()) for path in (made.ca, made.certificate)]
        made.server_context()
    except (ValueError, ssl.SSLError):
        return False
    authority, leaf = read
    if leaf.issuer != authority.subject:
        return False
    return all(each.not_valid_before_utc <= now < each.not_valid_after_utc - RENEWAL for each in read)


def _write(certificates: Certificates, now: datetime) -> None:
    ca_key, key = new_key(), new_key()
    ca_id = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())
    # The name differs from authority to authority: a client that still trusts an old one then reports an unknown issuer
    # instead of a bad signature.
    ca_name = common_name(f"Antiphon simulator {ca_id.digest.hex()[:8]}")
    authority = (
        begin_certificate(ca_name, now=now, validity=VALIDITY)
        .issuer_name(ca_name)
        .public_key(ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(key_usage(signs_certificates=True), critical=True)
        .add_extension(ca_id, critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    names = [*(x509.DNSName(host) for host in HOSTS), *(x509.IPAddress(address) for address in ADDRESSES)]
    leaf = (
        begin_certificate(common_name("localhost"), now=now, validity=VALIDITY)
        .issuer_name(ca_name)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(ca_id), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    certificates.ca.write_bytes(authority.public_bytes(PEM))
    certificates.certificate.write_bytes(leaf.public_bytes(PEM))
    # The authority's own key is not kept: nothing else can then be signed in its name.
    write_private(certificates.key, private_pem(key))
