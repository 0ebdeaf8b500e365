"""Certificates: the certificate authority, and the certificates that it signs.

Input: names, groups and hosts; the time. Output: pairs of a certificate and its key; whether one is still valid.

    authority ── signs ──> the server's, with all names and addresses of the server
              └─ signs ──> clients': the common name is the user's name, the organizations are the groups

1. Keys are on P-256 and belong to exactly one certificate: a new certificate has a new key.
2. A certificate is renewed when less than a third of its lifetime is left.
3. No certificate is valid longer than the authority that signed it.

Keys and serial numbers come from the cryptography library and the system's random source, not from the injected
entropy: a known seed would reveal the keys. No decision depends on them, so that replays stay exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from mooring.serving.tls import BACKDATED_S, general_name, moment
from mooring.serving.users import MASTERS_GROUP

AUTHORITY_LIFETIME_S = 10 * 365 * 86_400
LIFETIME_S = 365 * 86_400

SERVER_HOSTS = (
    "localhost",
    "127.0.0.1",
    "::1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "10.96.0.1",
)


class CertificateError(ValueError):
    """A text holds no certificate with its key."""


@dataclass(frozen=True, slots=True)
class CertificateSubject:
    """The subject of a client certificate."""

    user: str
    groups: tuple[str, ...] = ()


ADMIN = CertificateSubject("admin", (MASTERS_GROUP,))
SCHEDULER = CertificateSubject("system:kube-scheduler")
KUBELET_CLIENT = CertificateSubject("kube-apiserver-kubelet-client", (MASTERS_GROUP,))
"""The API server as a client of kubelets."""


@dataclass(frozen=True, slots=True)
class CertificateAndKey:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return key_pem(self.key)


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def make_authority(now_s: float) -> CertificateAndKey:
    """A new certificate authority with a self-signed certificate."""
    key, name = new_key(), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mooring-ca")])
    builder = _builder(name, key, now_s, now_s + AUTHORITY_LIFETIME_S).issuer_name(name)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_key_usage(is_authority=True), critical=True)
    return CertificateAndKey(builder.sign(key, hashes.SHA256()), key)


def make_server_certificate(authority: CertificateAndKey, hosts: Iterable[str], now_s: float) -> CertificateAndKey:
    """A certificate for the server, with the names and addresses of `SERVER_HOSTS` and of `hosts`."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
    names = x509.SubjectAlternativeName([general_name(host) for host in all_hosts(hosts)])
    return _signed(authority, name, now_s, ExtendedKeyUsageOID.SERVER_AUTH, names)


def make_client_certificate(
    authority: CertificateAndKey, identity: CertificateSubject, now_s: float
) -> CertificateAndKey:
    return _signed(authority, _subject(identity), now_s, ExtendedKeyUsageOID.CLIENT_AUTH, None)


def all_hosts(hosts: Iterable[str]) -> tuple[str, ...]:
    """The hosts that a server's certificate names, each once."""
    return tuple(dict.fromkeys((*SERVER_HOSTS, *hosts)))


def names_hosts(certificate: x509.Certificate, hosts: Iterable[str]) -> bool:
    """Whether it is for these hosts (and the usual ones), and for no others."""
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return set(names) == {general_name(host) for host in all_hosts(hosts)}


def is_for(certificate: x509.Certificate, identity: CertificateSubject) -> bool:
    return certificate.subject == _subject(identity)


def is_signed_by(certificate: x509.Certificate, authority: CertificateAndKey) -> bool:
    try:
        certificate.verify_directly_issued_by(authority.certificate)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def needs_renewal(certificate: x509.Certificate, now_s: float) -> bool:
    """Whether less than a third of a certificate's lifetime is left, or it is not valid yet."""
    start_s = certificate.not_valid_before_utc.timestamp()
    end_s = certificate.not_valid_after_utc.timestamp()
    return now_s < start_s or (end_s - now_s) * 3 < end_s - start_s


def parse_certified(pem: bytes) -> CertificateAndKey:
    """A certificate and its key from one text. Raises `CertificateError`."""
    try:
        certificate = x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise CertificateError(f"no certificate: {error}") from None
    key = parse_key(pem)
    if key.public_key() != certificate.public_key():
        raise CertificateError("the key is not that of the certificate")
    return CertificateAndKey(certificate, key)


def parse_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """A key on P-256. Raises `CertificateError`."""
    try:
        key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise CertificateError(f"no key: {error}") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise CertificateError("the key is not on P-256")
    return key


def _signed(
    authority: CertificateAndKey,
    name: x509.Name,
    now_s: float,
    usage: x509.ObjectIdentifier,
    names: x509.SubjectAlternativeName | None,
) -> CertificateAndKey:
    key = new_key()
    end_s = min(now_s + LIFETIME_S, authority.certificate.not_valid_after_utc.timestamp())
    builder = _builder(name, key, now_s, end_s).issuer_name(authority.certificate.subject)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_key_usage(is_authority=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    signer = x509.SubjectKeyIdentifier.from_public_key(authority.key.public_key())
    signer_identifier = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(signer)
    builder = builder.add_extension(signer_identifier, critical=False)
    if names is not None:
        builder = builder.add_extension(names, critical=False)
    return CertificateAndKey(builder.sign(authority.key, hashes.SHA256()), key)


def _builder(name: x509.Name, key: ec.EllipticCurvePrivateKey, now_s: float, end_s: float) -> x509.CertificateBuilder:
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(moment(now_s - BACKDATED_S))
        .not_valid_after(moment(end_s))
        .add_extension(identifier, critical=False)
    )


def _key_usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _subject(identity: CertificateSubject) -> x509.Name:
    groups: Sequence[x509.NameAttribute[str]] = [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in identity.groups
    ]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, identity.user)])
