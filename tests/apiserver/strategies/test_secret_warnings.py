"""A certificate and a key fit together, or the first thing that keeps them apart is told."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime
from functools import cache

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from mooring.apiserver.strategies.secret_warnings import key_pair_warnings

BROKEN = "-----BEGIN {}-----\nAAAA\n-----END {}-----\n"


@cache
def elliptic(name: str) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@cache
def edwards() -> ed25519.Ed25519PrivateKey:
    return ed25519.Ed25519PrivateKey.generate()


def pem(key: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@cache
def certificate(name: str) -> str:
    key = elliptic(name)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), 1)
    builder = builder.not_valid_before(datetime(2026, 1, 1, tzinfo=UTC)).not_valid_after(
        datetime(2036, 1, 1, tzinfo=UTC)
    )
    return builder.sign(key, SHA256()).public_bytes(Encoding.PEM).decode()


def broken(name: str) -> str:
    return BROKEN.format(name, name)


@pytest.mark.parametrize(
    ("crt", "key", "fault"),
    [
        pytest.param(certificate("a"), pem(elliptic("a")), "", id="they fit"),
        pytest.param(
            f"# mine\n{certificate('a')}{certificate('b')}", pem(elliptic("a")), "", id="the first certificate counts"
        ),
        pytest.param(
            certificate("a"), pem(elliptic("b")), "tls: private key does not match public key", id="another key"
        ),
        pytest.param(
            certificate("a"),
            pem(edwards()),
            "tls: private key type does not match public key type",
            id="another kind of key",
        ),
        pytest.param("", "", "tls: failed to find any PEM data in certificate input", id="nothing"),
        pytest.param(certificate("a"), "x", "tls: failed to find any PEM data in key input", id="no key"),
        pytest.param(
            pem(elliptic("a")),
            certificate("a"),
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; "
            "PEM inputs may have been switched",
            id="switched",
        ),
        pytest.param(
            certificate("a"),
            certificate("a"),
            "tls: found a certificate rather than a key in the PEM for the private key",
            id="two certificates",
        ),
        pytest.param(
            broken("ODD") + broken("EVEN"),
            "",
            'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the '
            "following types: [ODD EVEN]",
            id="other blocks for a certificate",
        ),
        pytest.param(
            certificate("a"),
            broken("ODD"),
            'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of '
            "the following types: [ODD]",
            id="other blocks for a key",
        ),
        pytest.param(broken("CERTIFICATE"), pem(elliptic("a")), "x509: malformed certificate", id="a torn certificate"),
        pytest.param(certificate("a"), broken("PRIVATE KEY"), "tls: failed to parse private key", id="a torn key"),
    ],
)
def test_pairs(crt: str, key: str, fault: str) -> None:
    data = {"tls.crt": b64encode(crt.encode()).decode(), "tls.key": b64encode(key.encode()).decode()}
    assert key_pair_warnings(data) == ([fault] if fault else [])
