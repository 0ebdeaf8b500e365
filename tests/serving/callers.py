"""Authorities, certificates and an API server that answers reviews, for tests of the secure port."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from mooring.api.kinds import Kind
from mooring.client.errors import NoAnswerError, NotFoundError
from mooring.client.interface import JsonObject
from mooring.kit.clock import VIRTUAL_WALL_S


@dataclass
class Authority:
    """Signs certificates."""

    name: str = "authority"
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    wall_s: float = VIRTUAL_WALL_S

    @property
    def certificate(self) -> x509.Certificate:
        return self._signed(self.key, [], self.name, is_authority=True)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    def client(self, name: str, groups: Sequence[str] = (), *, days: int = 1) -> bytes:
        """A client certificate as DER."""
        key = ec.generate_private_key(ec.SECP256R1())
        return self._signed(key, groups, name, days=days).public_bytes(Encoding.DER)

    def client_pem(self, name: str, groups: Sequence[str] = ()) -> bytes:
        """A client certificate with its key as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(key, groups, name).public_bytes(Encoding.PEM)
        return certificate + key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def _signed(
        self,
        key: ec.EllipticCurvePrivateKey,
        groups: Sequence[str],
        name: str,
        *,
        days: int = 1,
        is_authority: bool = False,
    ) -> x509.Certificate:
        now = datetime.fromtimestamp(self.wall_s, UTC)
        subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        if name:
            subject.append(x509.NameAttribute(NameOID.COMMON_NAME, name))
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name(subject))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.name)]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=2))
            .not_valid_after(now + timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .sign(self.key, hashes.SHA256())
        )


@dataclass
class Reviewer:
    """An API server that answers only token reviews and access reviews, and has one ConfigMap."""

    tokens: dict[str, dict[str, object]] = field(default_factory=dict)
    allowed: set[tuple[str, str, str]] = field(default_factory=set)
    config_map: dict[str, str] | None = None
    is_away: bool = False
    requests: list[str] = field(default_factory=list)

    async def create(self, kind: Kind, namespace: str, body: JsonObject, *, is_answer_wanted: bool = True) -> bytes:
        self.requests.append(kind.kind)
        if self.is_away:
            raise NoAnswerError("away")
        spec = body["spec"]
        assert isinstance(spec, dict)
        if kind.kind == "TokenReview":
            user = self.tokens.get(spec["token"])
            return msgspec.json.encode({"status": {"authenticated": user is not None, "user": user}})
        if "resourceAttributes" in spec:
            resource = spec["resourceAttributes"]
            wanted = (spec["user"], resource["verb"], f"{resource['resource']} of {resource['namespace']}")
        else:
            attributes = spec["nonResourceAttributes"]
            wanted = (spec["user"], attributes["verb"], attributes["path"])
        is_allowed = wanted in self.allowed
        return msgspec.json.encode({"status": {"allowed": is_allowed}})

    async def get(self, kind: Kind, namespace: str, name: str) -> bytes:
        self.requests.append(f"{namespace}/{name}")
        if self.config_map is None:
            raise NotFoundError(f'configmaps "{name}" not found')
        return msgspec.json.encode({"data": self.config_map})
