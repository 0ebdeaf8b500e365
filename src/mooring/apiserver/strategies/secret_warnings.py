"""Whether a certificate and a key of a TLS secret fit together, in the words of Go's `tls` package.

Comes in   the data of a secret
Goes out   at most one warning

 1. The first certificate counts, and the first block that calls itself a private key; other blocks are skipped.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_private_key
from cryptography.x509 import load_der_x509_certificate

from mooring.api.document import Document
from mooring.apiserver.validation.secret import TLS_CERTIFICATE, TLS_KEY

_BLOCK = re.compile(
    rb"(?:^|\n)-----BEGIN ([A-Z0-9 ]*)-----[ \t\r]*\n(?:[^\n:]+:[^\n]*\n)*\s*([A-Za-z0-9+/=\s]*?)-----END \1-----"
)
_NO_DATA = "tls: failed to find any PEM data in {place} input"
_KEY_KINDS = (rsa.RSAPublicKey, ec.EllipticCurvePublicKey, ed25519.Ed25519PublicKey)


class _Block(NamedTuple):
    name: str
    content: bytes


def key_pair_warnings(data: Document) -> list[str]:
    fault = _key_pair_fault(b64decode(data.get(TLS_CERTIFICATE, "")), b64decode(data.get(TLS_KEY, "")))
    return [fault] if fault else []


def _key_pair_fault(certificate_pem: bytes, key_pem: bytes) -> str:
    blocks = _blocks(certificate_pem)
    certificates = [block for block in blocks if block.name == "CERTIFICATE"]
    if not certificates:
        return _missing_certificate([block.name for block in blocks])
    blocks = _blocks(key_pem)
    keys = [block for block in blocks if block.name == "PRIVATE KEY" or block.name.endswith(" PRIVATE KEY")]
    if not keys:
        return _missing_key([block.name for block in blocks])
    return _mismatch(certificates[0].content, keys[0].content)


def _missing_certificate(found: list[str]) -> str:
    if not found:
        return _NO_DATA.format(place="certificate")
    if len(found) == 1 and found[0].endswith("PRIVATE KEY"):
        return (
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; "
            "PEM inputs may have been switched"
        )
    return (
        'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following '
        f"types: [{' '.join(found)}]"
    )


def _missing_key(found: list[str]) -> str:
    if not found:
        return _NO_DATA.format(place="key")
    if found == ["CERTIFICATE"]:
        return "tls: found a certificate rather than a key in the PEM for the private key"
    return (
        'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of '
        f"the following types: [{' '.join(found)}]"
    )


def _mismatch(certificate_der: bytes, key_der: bytes) -> str:
    try:
        public_key = load_der_x509_certificate(certificate_der).public_key()
    except ValueError:
        return "x509: malformed certificate"
    try:
        key = load_der_private_key(key_der, None)
    except (ValueError, TypeError):
        return "tls: failed to parse private key"
    if not isinstance(public_key, _KEY_KINDS):
        return "tls: unknown public key algorithm"
    found = key.public_key()
    if not any(isinstance(public_key, kind) and isinstance(found, kind) for kind in _KEY_KINDS):
        return "tls: private key type does not match public key type"
    ours, theirs = (each.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) for each in (public_key, found))
    return "" if ours == theirs else "tls: private key does not match public key"


def _blocks(pem: bytes) -> list[_Block]:
    blocks = []
    for match in _BLOCK.finditer(pem):
        try:
            content = b64decode(b"".join(match[2].split()), validate=True)
        except Base64Error:
            continue
        blocks.append(_Block(match[1].decode(), content))
    return blocks
