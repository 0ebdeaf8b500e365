"""TLS of the secure port: the serving certificate and trusted client CAs.

Input: files, a minimum version, cipher suites. Output: an `ssl.SSLContext`, to which CAs can be added while it is in
use.

 1. Without files the certificate is self-signed; with a directory it is kept there. Clients do not verify it: kubelet
    probes never do, and Prometheus can be configured not to.
 2. Client certificates are requested once there is a client CA. They are optional; an invalid one ends the connection.
 3. A world-writable key is an error; a world-readable one is used, with a warning. A group may read
    it, because Kubernetes mounts secrets so.
 4. The protocol is HTTP/1.1. The minimum TLS version is 1.2, whatever is requested.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import ssl
import stat
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

log = logging.getLogger(__name__)

LIFETIME_S = 365 * 86_400
BACKDATED_S = 3_600
"""How long before its creation a certificate is valid, for clients whose clock is behind."""
_VERSIONS = {
    "": ssl.TLSVersion.TLSv1_2,
    "VersionTLS10": ssl.TLSVersion.TLSv1_2,
    "VersionTLS11": ssl.TLSVersion.TLSv1_2,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}


def self_signed(name: str, hosts: Iterable[str], wall_s: float) -> tuple[bytes, bytes]:
    """A certificate and its key, PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name}@{int(wall_s)}")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(moment(wall_s - BACKDATED_S))
        .not_valid_after(moment(wall_s + LIFETIME_S))
        .add_extension(x509.SubjectAlternativeName([general_name(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    key_pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return certificate.public_bytes(Encoding.PEM), key_pem


def stored_self_signed(directory: Path, name: str, hosts: Iterable[str], wall_s: float) -> tuple[Path, Path]:
    """The files of a certificate and its key in a directory; created if they do not exist."""
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


def general_name(host: str) -> x509.GeneralName:
    """A host as a subject alternative name."""
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def moment(wall_s: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=int(wall_s))


class ServingTlsError(ValueError):
    """An unusable certificate, version or cipher suite."""


@dataclass(frozen=True, slots=True)
class ServingTls:
    """TLS settings."""

    name: str
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1")
    certificate_file: str = ""
    key_file: str = ""
    directory: str = ""
    more: Sequence[str] = ()
    """Certificates for other names: `CERTIFICATE,KEY`, optionally with names after a colon."""
    version_min: str = ""
    ciphers: Sequence[str] = ()


def serving_context(requested: ServingTls, wall_s: float) -> ssl.SSLContext:
    """Raises `ServingTlsError`."""
    if requested.version_min not in _VERSIONS:
        known = ", ".join(version for version in _VERSIONS if version)
        raise ServingTlsError(f"--tls-min-version: found {requested.version_min!r}, wanted one of {known}")
    if bool(requested.certificate_file) != bool(requested.key_file):
        raise ServingTlsError("--tls-cert-file and --tls-private-key-file must be given together")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS[requested.version_min]
    context.set_alpn_protocols(["http/1.1"])
    _set_ciphers(context, requested.ciphers)
    _show(context, requested, wall_s)
    _show_by_name(context, requested)
    return context


def trust(context: ssl.SSLContext, authorities: bytes) -> None:
    """Also accept client certificates of these authorities. Raises `ServingTlsError`."""
    try:
        context.load_verify_locations(cadata=authorities.decode())
    except (ssl.SSLError, ValueError) as error:
        raise ServingTlsError(f"the authorities of clients cannot be read: {error}") from None
    context.verify_mode = ssl.CERT_OPTIONAL


def _show(context: ssl.SSLContext, requested: ServingTls, wall_s: float) -> None:
    if requested.certificate_file:
        _load(context, requested.certificate_file, requested.key_file)
    elif requested.directory:
        certificate_file, key_file = stored_self_signed(
            Path(requested.directory), requested.name, requested.hosts, wall_s
        )
        _load(context, str(certificate_file), str(key_file))
    else:
        certificate, key = self_signed(requested.name, requested.hosts, wall_s)
        # OpenSSL reads from files only. This one is private and removed after it was read.
        with tempfile.NamedTemporaryFile() as file:
            file.write(certificate + key)
            file.flush()
            context.load_cert_chain(file.name)


def _show_by_name(context: ssl.SSLContext, requested: ServingTls) -> None:
    """Certificates for other server names (SNI)."""
    if not requested.more:
        return
    by_name: dict[str, ssl.SSLContext] = {}
    for text in requested.more:
        certificate_file, key_file, names = _pair(text)
        other = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        other.minimum_version = context.minimum_version
        other.set_alpn_protocols(["http/1.1"])
        _load(other, certificate_file, key_file)
        for name in names or _names_in(certificate_file):
            by_name.setdefault(name, other)

    def choose(connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        server_name = (name or "").lower()
        chosen = by_name.get(server_name) or by_name.get(f"*.{server_name.partition('.')[2]}")
        if chosen is not None:
            connection.context = chosen

    context.sni_callback = choose


def _pair(text: str) -> tuple[str, str, list[str]]:
    files, _, names = text.partition(":")
    certificate_file, comma, key_file = files.partition(",")
    if not comma or not certificate_file or not key_file:
        raise ServingTlsError(f"--tls-sni-cert-key: found {text!r}, expected CERTIFICATE,KEY or CERTIFICATE,KEY:NAMES")
    return certificate_file, key_file, [name.lower() for name in names.split(",") if name]


def _names_in(certificate_file: str) -> list[str]:
    from cryptography import x509

    certificate = x509.load_pem_x509_certificate(Path(certificate_file).read_bytes())
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [name.lower() for name in names.get_values_for_type(x509.DNSName)]


def _load(context: ssl.SSLContext, certificate_file: str, key_file: str) -> None:
    try:
        mode = os.stat(key_file).st_mode
        context.load_cert_chain(certificate_file, key_file)
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        raise ServingTlsError(f"{certificate_file} and {key_file} cannot be used: {error}") from None
    if mode & stat.S_IWOTH:
        raise ServingTlsError(f"{key_file} cannot be used: it is world-writable (mode {mode & 0o777:o})")
    if mode & stat.S_IROTH:
        log.warning("the private key %s is world-readable; run chmod o= on it", key_file)


def _set_ciphers(context: ssl.SSLContext, names: Sequence[str]) -> None:
    suites = [_openssl_name(name) for name in names if not name.startswith(("TLS_AES_", "TLS_CHACHA20_"))]
    if not suites:
        return  # the suites of TLS 1.3 are always enabled
    try:
        context.set_ciphers(":".join(suites))
    except ssl.SSLError:
        raise ServingTlsError(f"--tls-cipher-suites: none of {', '.join(names)} can be used") from None


def _openssl_name(name: str) -> str:
    """`TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` -> `ECDHE-RSA-AES128-GCM-SHA256`."""
    exchange, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
    cipher = cipher.replace("AES_128", "AES128").replace("AES_256", "AES256").replace("_CBC_", "_")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    prefix = "" if exchange == "RSA" else f"{exchange}-"
    return f"{prefix}{cipher}".replace("_", "-")
