"""A certificate for a server to which nobody gave one.

Comes in   host names and addresses, the time
Goes out   a key and a certificate that it has signed itself, PEM; kept in a directory if there is one

Whoever connects cannot verify it, and is not meant to: the kubelet's probes do not, and Prometheus is told not to.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME_S = 365 * 86_400
BACKDATED_S = 3_600
"""How far before its making it is good already, for clients whose clock is behind."""


def self_signed(name: str, hosts: Iterable[str], wall_s: float) -> tuple[bytes, bytes]:
    """A certificate and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name}@{int(wall_s)}")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_moment(wall_s - BACKDATED_S))
        .not_valid_after(_moment(wall_s + LIFETIME_S))
        .add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    key_pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return certificate.public_bytes(Encoding.PEM), key_pem


def kept_self_signed(directory: Path, name: str, hosts: Iterable[str], wall_s: float) -> tuple[Path, Path]:
    """The files of a certificate and its key below a directory: those that are there, or new ones."""
    certificate_file, key_file = directory / f"{name}.crt", directory / f"{name}.key"
    if certificate_file.exists() and key_file.exists():
        return certificate_file, key_file
    directory.mkdir(parents=True, exist_ok=True)
    certificate, key = self_signed(name, hosts, wall_s)
    descriptor = os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(key)
    certificate_file.write_bytes(certificate)
    return certificate_file, key_file


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _moment(wall_s: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=int(wall_s))
