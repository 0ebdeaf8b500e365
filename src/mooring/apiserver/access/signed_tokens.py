"""Signed tokens: JSON Web Tokens with the signature ES256, in their compact form.

Comes in   claims to be signed; tokens to be checked
Goes out   tokens; claims whose signature is ours

 1. Only ES256 with our own key is accepted, whatever a token's head says: a head is not signed by anybody yet when it
    is read, and trusting it is how such tokens get forged.
 2. Checking a signature costs about as much as everything else in a request, so tokens that were found to be good are
    remembered, by digest. Whether they are still good (time, audience, account) is for others to ask each time.

The key comes from the cryptography library, which draws from the system: chance from a seed is for replaying, and a key
that can be replayed is none.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from hashlib import sha256
from typing import Any

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from mooring.api.document import Document
from mooring.api.memory import Memory

GOOD_TOKENS_MAX = 4_096
_HALF_LENGTH = 32
_ALGORITHM = ec.ECDSA(hashes.SHA256())


class BadSignatureError(ValueError):
    """A token that says it is ours, and is not."""


class TokenSigner:
    """Signs claims, and recognises its own signature."""

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        assert isinstance(key.curve, ec.SECP256R1), f"ES256 wants a key on P-256, not on {key.curve.name}"
        self._key = key
        self._public_key = key.public_key()
        described = self._public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        self.key_id = _encoded(sha256(described).digest())
        self._head = _encoded(msgspec.json.encode({"alg": "ES256", "kid": self.key_id}))
        self._good: Memory[bytes, Document] = Memory(GOOD_TOKENS_MAX)

    def sign(self, claims: Document) -> str:
        signed = f"{self._head}.{_encoded(msgspec.json.encode(claims))}"
        first, second = decode_dss_signature(self._key.sign(signed.encode(), _ALGORITHM))
        signature = first.to_bytes(_HALF_LENGTH) + second.to_bytes(_HALF_LENGTH)
        return f"{signed}.{_encoded(signature)}"

    def verified_claims(self, token: str) -> Document:
        """The claims of a token that we have signed. Nobody may change them. Raises `BadSignatureError`."""
        if not token.isascii():
            raise BadSignatureError("invalid signature")
        digest = sha256(token.encode()).digest()
        claims = self._good.get(digest)
        return claims if claims is not None else self._good.keep(digest, self._verify(token))

    def knows(self, token: str) -> bool:
        """Whether it has been found to be ours before."""
        return token.isascii() and sha256(token.encode()).digest() in self._good

    def public_key_document(self) -> Document:
        """The key for others to check tokens with, as a JSON Web Key."""
        numbers = self._public_key.public_numbers()
        return {
            "use": "sig",
            "kty": "EC",
            "kid": self.key_id,
            "crv": "P-256",
            "alg": "ES256",
            "x": _encoded(numbers.x.to_bytes(_HALF_LENGTH)),
            "y": _encoded(numbers.y.to_bytes(_HALF_LENGTH)),
        }

    def _verify(self, token: str) -> Document:
        signed, _, signature_text = token.rpartition(".")
        head = unverified_part(token, 0)
        signature = _decoded(signature_text)
        if head is None or signature is None or len(signature) != 2 * _HALF_LENGTH or head.get("alg") != "ES256":
            raise BadSignatureError("invalid signature")
        if head.get("kid") not in (None, "", self.key_id):
            raise BadSignatureError("invalid signature, no keys found")
        halves = int.from_bytes(signature[:_HALF_LENGTH]), int.from_bytes(signature[_HALF_LENGTH:])
        try:
            self._public_key.verify(encode_dss_signature(*halves), signed.encode(), _ALGORITHM)
        except InvalidSignature:
            raise BadSignatureError("go-jose/go-jose: error in cryptographic primitive") from None
        claims = unverified_part(token, 1)
        assert claims is not None, "what we have signed was an object"
        return claims


def unverified_part(token: str, index: int) -> Document | None:
    """The head (0) or the claims (1) of a token, for finding out whose it is. Nobody vouches for what they say."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    raw = _decoded(parts[index])
    if raw is None:
        return None
    try:
        found: Any = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found if isinstance(found, dict) else None


def _encoded(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decoded(text: str) -> bytes | None:
    try:
        return urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (Base64Error, UnicodeEncodeError):
        return None
