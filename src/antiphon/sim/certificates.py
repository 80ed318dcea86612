"""Certificates for the simulators: the google SDK always uses TLS, also with a server on the same machine.

Each folder gets a certificate authority of its own, which signs one certificate for `localhost`, 127.0.0.1 and ::1. A
client trusts the simulator when `SSL_CERT_FILE` names the authority's certificate.
"""

import os
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from antiphon.errors import AntiphonError

VALIDITY: Final = timedelta(days=30)
RENEWAL: Final = timedelta(days=1)
"""How long before its end a certificate is replaced."""
CLOCK_SKEW: Final = timedelta(hours=1)
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
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_id = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())
    # The name differs from authority to authority: a client that still trusts an old one then reports an unknown issuer
    # instead of a bad signature.
    ca_name = _name(f"Antiphon simulator {ca_id.digest.hex()[:8]}")
    usages = _key_usage(signs_certificates=True)
    authority = (
        _builder(ca_name, now)
        .issuer_name(ca_name)
        .public_key(ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usages, critical=True)
        .add_extension(ca_id, critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    names = [*(x509.DNSName(host) for host in HOSTS), *(x509.IPAddress(address) for address in ADDRESSES)]
    leaf = (
        _builder(_name("localhost"), now)
        .issuer_name(ca_name)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(ca_id), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    certificates.ca.write_bytes(authority.public_bytes(pem))
    certificates.certificate.write_bytes(leaf.public_bytes(pem))
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    # The authority's own key is not kept: nothing else can then be signed in its name.
    certificates.key.unlink(missing_ok=True)
    with open(os.open(certificates.key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secret)


def _builder(subject: x509.Name, now: datetime) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + VALIDITY)
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
