"""Makes and reads X.509 certificates. Only modules that need the package `cryptography` import it (extra `tls`)."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CLOCK_SKEW: Final = timedelta(hours=1)
"""How far the clock of a client may be behind ours."""
PEM: Final = serialization.Encoding.PEM


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """What people and checks need to know about a certificate."""

    begins: datetime
    ends: datetime
    names: frozenset[str]
    """The host names and addresses that it is valid for."""
    fingerprint: str
    """SHA-256, as browsers show it: pairs of hexadecimal digits with colons."""


def read_certificate(pem: bytes) -> CertificateFacts:
    """Reads the first certificate of a PEM file, which is the server's own. Raises `ValueError` if there is none."""
    certificate = x509.load_pem_x509_certificates(pem)[0]
    return CertificateFacts(
        begins=certificate.not_valid_before_utc,
        ends=certificate.not_valid_after_utc,
        names=frozenset(_names_of(certificate)),
        fingerprint=certificate.fingerprint(hashes.SHA256()).hex(":").upper(),
    )


def make_self_signed(names: Sequence[str], *, now: datetime, validity: timedelta) -> tuple[bytes, bytes]:
    """Makes a certificate for these host names and addresses, and its key. Returns both as PEM."""
    key = new_key()
    subject = common_name(names[0])
    alternatives = x509.SubjectAlternativeName([*map(_general_name, names)])
    certificate = (
        begin_certificate(subject, now=now, validity=validity)
        .issuer_name(subject)
        .public_key(key.public_key())
        # It cannot sign other certificates, so whoever trusts it trusts this server and nothing else.
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(key_usage(signs_certificates=False), critical=True)
        .add_extension(alternatives, critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(PEM), private_pem(key)


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def begin_certificate(subject: x509.Name, *, now: datetime, validity: timedelta) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + validity)
    )


def common_name(name: str) -> x509.Name:
    # A common name has at most 64 characters; clients look at the alternative names only.
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
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


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def write_private(path: Path, data: bytes) -> None:
    """Replaces a file with one that only this user can read."""
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _names_of(certificate: x509.Certificate) -> Iterable[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return
    yield from names.get_values_for_type(x509.DNSName)
    yield from map(str, names.get_values_for_type(x509.IPAddress))
