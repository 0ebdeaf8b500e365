"""Certificates for tests: an authority and certificates that it signs."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mooring.client.http.connection import Certificate

BEGAN = datetime(2025, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Authority:
    """A certificate authority."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, name: str, *, names: tuple[str, ...] = (), address: str = "") -> Certificate:
        """A certificate for a user or, with names and an address, for a server."""
        key = ec.generate_private_key(ec.SECP256R1())
        alternatives: list[x509.GeneralName] = [x509.DNSName(each) for each in names]
        if address:
            alternatives.append(x509.IPAddress(ip_address(address)))
        builder = _builder(name, self.certificate.subject, key)
        if alternatives:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        signed = builder.sign(self.key, hashes.SHA256())
        return Certificate(signed.public_bytes(serialization.Encoding.PEM), pem_of(key))

    def server_context(self, folder: Path, certificate: Certificate, *, wants_client: bool = False) -> ssl.SSLContext:
        file = folder / "server.pem"
        file.write_bytes(certificate.chain + certificate.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        if wants_client:
            context.load_verify_locations(cadata=self.pem.decode())
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def make_authority(name: str = "harbour office") -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = _builder(name, subject, key).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    return Authority(key, builder.sign(key, hashes.SHA256()))


def pem_of(key: ec.EllipticCurvePrivateKey, password: bytes = b"") -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption(),
    )


def _builder(name: str, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(BEGAN)
        .not_valid_after(BEGAN + timedelta(days=36_500))
    )
