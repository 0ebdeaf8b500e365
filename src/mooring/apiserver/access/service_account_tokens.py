"""Tokens of service accounts: JSON web tokens with the signature ES256, in compact form; and TokenRequests.

Input: service accounts; tokens of clients. Output: tokens; the user of a token, or why the token is invalid.

1. A token is valid for a time, for an audience, for an account with its uid, and while the pod, secret or node exists
   that it is bound to. Each authentication checks all of this again.
2. Clocks differ: one minute is tolerated on both sides, and for an object that is being deleted.
3. `lookup` does not await: it reads objects that a watch delivers, so that authentication does not wait for the store.
4. Only ES256 with our own key is accepted, whatever the header of a token says, because the header is read before the
   signature is verified.
5. Verifying a signature costs about as much as the rest of a request, so that valid signatures are cached by digest.
6. Keys come from the cryptography library and the system's random source, not from the injected entropy.

TokenRequests (`serviceaccounts/NAME/token`):

7. A token may be bound to a pod of the account, to a node or to a secret, and ends with it.
8. The usual token of a pod (3607 s, for the API server) is valid for a year, with a time after which its holder
   should have a new one. kube-apiserver does the same for old client libraries.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from mooring.api.caches import BoundedCache
from mooring.api.document import Document
from mooring.apiserver.access.authorization import listed
from mooring.apiserver.errors import invalid_object
from mooring.apiserver.validation.fields import invalid
from mooring.client.errors import BadRequestError, ConflictError, NotFoundError
from mooring.kit.clock import Clock, TimestampError, format_rfc3339, parse_rfc3339
from mooring.kit.entropy import Entropy
from mooring.serving.users import (
    CREDENTIAL_KEY,
    NODE_NAME_KEY,
    NODE_UID_KEY,
    POD_NAME_KEY,
    POD_UID_KEY,
    User,
    service_account_groups,
    service_account_username,
)

GOOD_TOKENS_MAX = 4_096
_HALF_LENGTH = 32
_ALGORITHM = ec.ECDSA(hashes.SHA256())


class BadSignatureError(ValueError):
    """The signature of a token is not valid."""


class TokenSigner:
    """Signs claims, and verifies its own signatures."""

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        assert isinstance(key.curve, ec.SECP256R1), f"ES256 needs a key on P-256, not on {key.curve.name}"
        self._key = key
        self._public_key = key.public_key()
        described = self._public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        self.key_id = _encoded(sha256(described).digest())
        self._head = _encoded(msgspec.json.encode({"alg": "ES256", "kid": self.key_id}))
        self._good: BoundedCache[bytes, Document] = BoundedCache(GOOD_TOKENS_MAX)

    def sign(self, claims: Document) -> str:
        signed = f"{self._head}.{_encoded(msgspec.json.encode(claims))}"
        first, second = decode_dss_signature(self._key.sign(signed.encode(), _ALGORITHM))
        signature = first.to_bytes(_HALF_LENGTH) + second.to_bytes(_HALF_LENGTH)
        return f"{signed}.{_encoded(signature)}"

    def verified_claims(self, token: str) -> Document:
        """The claims of a token that we have signed; do not change them. Raises `BadSignatureError`."""
        if not token.isascii():
            raise BadSignatureError("invalid signature")
        digest = sha256(token.encode()).digest()
        claims = self._good.get(digest)
        return claims if claims is not None else self._good.put(digest, self._verify(token))

    def knows(self, token: str) -> bool:
        """Whether the signature of a token is already known to be valid."""
        return token.isascii() and sha256(token.encode()).digest() in self._good

    def public_key_document(self) -> Document:
        """The public key, with which others verify tokens, as a JSON Web Key."""
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
    """The head (0) or the claims (1) of a token, to find its issuer. They are not verified."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    raw = _decoded(parts[index])
    if raw is None:
        return None
    try:
        found: Any = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _encoded(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decoded(text: str) -> bytes | None:
    try:
        return urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (Base64Error, UnicodeEncodeError):
        return None


DEFAULT_ISSUER = "https://kubernetes.default.svc.cluster.local"
SHORT_AUDIENCE = "https://kubernetes.default.svc"
"""The usual issuer of clusters, which many clients request as audience. It is accepted besides the server's own."""
LEEWAY_S = 60.0

Lookup = Callable[[str, str, str], Document | None]
"""Looks up an object by plural, namespace (or none) and name."""


class InvalidTokenError(Exception):
    """A token of our issuer is invalid. Only token reviews report the text."""


@dataclass(frozen=True, slots=True)
class BoundObject:
    """The object that a token is bound to. For a pod with its node, as a claim for other readers."""

    kind: str
    name: str
    uid: str
    node_name: str = ""
    node_uid: str = ""


class ServiceAccountTokens:
    def __init__(self, signer: TokenSigner, clock: Clock, entropy: Entropy, lookup: Lookup) -> None:
        self._signer = signer
        self._clock = clock
        self._entropy = entropy
        self._lookup = lookup
        self.issuer = DEFAULT_ISSUER
        self.audiences = (DEFAULT_ISSUER, SHORT_AUDIENCE)
        """The accepted audiences. The first one is the default of a TokenRequest."""

    def issue(
        self,
        account: Document,
        *,
        lifetime_s: int,
        audiences: Sequence[str],
        bound: BoundObject | None = None,
        warn_after_s: int = 0,
    ) -> str:
        metadata = account["metadata"]
        now_s = int(self._clock.wall_s())
        about = {
            "namespace": metadata["namespace"],
            "serviceaccount": {"name": metadata["name"], "uid": metadata["uid"]},
            **_bound_claims(bound),
        }
        if warn_after_s:
            about["warnafter"] = now_s + warn_after_s
        return self._signer.sign(
            {
                "aud": list(audiences),
                "exp": now_s + lifetime_s,
                "iat": now_s,
                "iss": self.issuer,
                "jti": self._entropy.uuid(),
                "kubernetes.io": about,
                "nbf": now_s,
                "sub": service_account_username(metadata["namespace"], metadata["name"]),
            }
        )

    def authenticate(self, token: str, audiences: Sequence[str]) -> tuple[User, tuple[str, ...]] | None:
        """The user of a token, and which of the audiences it is valid for.

        None when it is not one of ours at all. Raises `InvalidTokenError`.
        """
        if not self._signer.knows(token) and (unverified_part(token, 1) or {}).get("iss") != self.issuer:
            return None
        try:
            claims = self._signer.verified_claims(token)
        except BadSignatureError as error:
            raise InvalidTokenError(str(error)) from None
        meant_for = _texts(claims.get("aud")) or self.audiences
        accepted = tuple(audience for audience in meant_for if audience in audiences)
        if not accepted:
            raise InvalidTokenError(
                f"token audiences {listed(meant_for)} is invalid for the target audiences {listed(audiences)}"
            )
        self._check_times(claims)
        about = claims["kubernetes.io"]
        self._check_objects(about)
        return _user_of(about, claims.get("jti") or ""), accepted

    def discovery_document(self, keys_url: str) -> Document:
        """The response of `/.well-known/openid-configuration`."""
        return {
            "issuer": self.issuer,
            "jwks_uri": keys_url,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        }

    def keys_document(self) -> Document:
        """The response of `/openid/v1/jwks`."""
        return {"keys": [self._signer.public_key_document()]}

    def _check_times(self, claims: Document) -> None:
        now_s = self._clock.wall_s()
        if now_s + LEEWAY_S < claims["nbf"]:
            raise InvalidTokenError("service account token is not valid yet")
        if now_s - LEEWAY_S > claims["exp"]:
            raise InvalidTokenError("service account token has expired")
        if now_s + LEEWAY_S < claims["iat"]:
            raise InvalidTokenError("service account token is issued in the future")

    def _check_objects(self, about: Document) -> None:
        namespace, account = about["namespace"], about["serviceaccount"]
        self._check_account(namespace, account)
        if "secret" in about:
            self._check_bound("secrets", namespace, about["secret"])
        if "pod" in about:
            self._check_bound("pods", namespace, about["pod"])
        elif "node" in about:
            self._check_bound("nodes", "", about["node"])

    def _check_account(self, namespace: str, reference: Document) -> None:
        found = self._lookup("serviceaccounts", namespace, reference["name"])
        if found is None:
            raise InvalidTokenError(f'serviceaccounts "{reference["name"]}" not found')
        uid = found["metadata"].get("uid")
        if uid != reference["uid"]:
            raise InvalidTokenError(f"service account UID ({uid}) does not match claim ({reference['uid']})")
        if self._is_long_deleted(found):
            raise InvalidTokenError(f"service account {namespace}/{reference['name']} has been deleted")

    def _check_bound(self, resource: str, namespace: str, reference: Document) -> None:
        found = self._lookup(resource, namespace, reference["name"])
        if found is None:
            raise InvalidTokenError("service account token has been invalidated")
        uid, noun = found["metadata"].get("uid"), resource[:-1]
        if uid != reference["uid"]:
            raise InvalidTokenError(
                f"{noun} UID ({uid}) does not match service account {noun} ref claim ({reference['uid']})"
            )
        if self._is_long_deleted(found):
            raise InvalidTokenError("service account token has been invalidated")

    def _is_long_deleted(self, found: Document) -> bool:
        deleted = found["metadata"].get("deletionTimestamp")
        try:
            return deleted is not None and parse_rfc3339(deleted) < self._clock.wall_s() - LEEWAY_S
        except TimestampError:
            return True


def _bound_claims(bound: BoundObject | None) -> Document:
    if bound is None:
        return {}
    claims: Document = {bound.kind.lower(): {"name": bound.name, "uid": bound.uid}}
    if bound.node_name:
        claims["node"] = {"name": bound.node_name, **({"uid": bound.node_uid} if bound.node_uid else {})}
    return claims


def _user_of(about: Document, token_id: str) -> User:
    namespace, account = about["namespace"], about["serviceaccount"]
    extra: dict[str, tuple[str, ...]] = {}
    if token_id:
        extra[CREDENTIAL_KEY] = (f"JTI={token_id}",)
    if "pod" in about:
        extra[POD_NAME_KEY] = (about["pod"]["name"],)
        extra[POD_UID_KEY] = (about["pod"]["uid"],)
    if "node" in about:
        extra[NODE_NAME_KEY] = (about["node"]["name"],)
        if about["node"].get("uid"):
            extra[NODE_UID_KEY] = (about["node"]["uid"],)
    name = service_account_username(namespace, account["name"])
    return User(name, account["uid"], service_account_groups(namespace), extra)


def _texts(value: str | Iterable[str] | None) -> tuple[str, ...]:
    """An audience may be written as one text or as a list of them."""
    return (value,) if isinstance(value, str) else tuple(value or ())


LIFETIME_S_MIN = 10 * 60
LIFETIME_S_MAX = 2**32
LIFETIME_S_DEFAULT = 60 * 60
POD_LIFETIME_S = 60 * 60 + 7
"""The lifetime that kubelets request, by which their requests are recognized."""
POD_LIFETIME_S_EXTENDED = 365 * 24 * 60 * 60

_GROUP = "authentication.k8s.io"
_KIND = "TokenRequest"
_RESOURCES = {"Pod": "pods", "Node": "nodes", "Secret": "secrets"}


def requested_token(
    request: Document,
    account: Document,
    tokens: ServiceAccountTokens,
    lookup: Lookup,
    clock: Clock,
) -> Document:
    """The TokenRequest of an existing service account with its token. Raises `StatusError`s."""
    metadata = _checked_metadata(request, account)
    spec = dict(request.get("spec") or {})
    spec["audiences"] = spec.get("audiences") or [tokens.audiences[0]]
    requested_s = spec.get("expirationSeconds")
    lifetime_s = LIFETIME_S_DEFAULT if requested_s is None else requested_s
    _check_lifetime(lifetime_s)
    bound = _bound_object(spec.get("boundObjectRef"), account, lookup)
    spec["expirationSeconds"] = lifetime_s
    spec.setdefault("boundObjectRef", None)
    now_s = clock.wall_s()
    is_extended = _is_for_an_old_pod(bound, lifetime_s, spec["audiences"], tokens)
    token = tokens.issue(
        account,
        lifetime_s=POD_LIFETIME_S_EXTENDED if is_extended else lifetime_s,
        audiences=spec["audiences"],
        bound=bound,
        warn_after_s=lifetime_s if is_extended else 0,
    )
    return {
        "kind": _KIND,
        "apiVersion": f"{_GROUP}/v1",
        "metadata": {**metadata, "creationTimestamp": format_rfc3339(now_s)},
        "spec": spec,
        "status": {"token": token, "expirationTimestamp": format_rfc3339(now_s + lifetime_s)},
    }


def _checked_metadata(request: Document, account: Document) -> Document:
    given, real = dict(request.get("metadata") or {}), account["metadata"]
    for field in ("name", "namespace"):
        value = given.get(field)
        if value and value != real[field]:
            rule = f"must match the service account {field} if specified"
            raise invalid_object(_KIND, _GROUP, real["name"], [invalid(f"metadata.{field}", value, rule)])
    if given.get("uid") and given["uid"] != real["uid"]:
        text = (
            f"the UID in the token request ({given['uid']}) "
            f"does not match the UID of the service account ({real['uid']})"
        )
        raise _conflict(_GROUP, _KIND, real["name"], text)
    return {**given, "name": real["name"], "namespace": real["namespace"], "uid": real["uid"]}


def _check_lifetime(lifetime_s: int) -> None:
    if LIFETIME_S_MIN <= lifetime_s <= LIFETIME_S_MAX:
        return
    bound = "less than 10 minutes" if lifetime_s < LIFETIME_S_MIN else "larger than 2^32 seconds"
    error = invalid("spec.expirationSeconds", lifetime_s, f"may not specify a duration {bound}")
    raise invalid_object(_KIND, _GROUP, "", [error])


def _bound_object(reference: Document | None, account: Document, lookup: Lookup) -> BoundObject | None:
    if not reference:
        return None
    kind, name = reference.get("kind") or "", reference.get("name") or ""
    group, slash, version = (reference.get("apiVersion") or "").rpartition("/")
    if group or slash or kind not in _RESOURCES:
        raise BadRequestError(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    namespace = "" if kind == "Node" else account["metadata"]["namespace"]
    found = lookup(_RESOURCES[kind], namespace, name)
    if found is None:
        raise NotFoundError(f'{_RESOURCES[kind]} "{name}" not found', details={"name": name, "kind": _RESOURCES[kind]})
    bound = _bound_pod(found, account, lookup) if kind == "Pod" else BoundObject(kind, name, found["metadata"]["uid"])
    if reference.get("uid") and reference["uid"] != bound.uid:
        text = (
            f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        raise _conflict("", kind, name, text)
    return bound


def _bound_pod(pod: Document, account: Document, lookup: Lookup) -> BoundObject:
    spec, metadata = pod.get("spec") or {}, pod["metadata"]
    name = account["metadata"]["name"]
    if spec.get("serviceAccountName") != name:
        raise BadRequestError(
            f'cannot bind token for serviceaccount "{name}" to pod running with different serviceaccount name.'
        )
    node_name = spec.get("nodeName") or ""
    node = lookup("nodes", "", node_name) if node_name else None
    node_uid = node["metadata"]["uid"] if node is not None else ""
    return BoundObject("Pod", metadata["name"], metadata["uid"], node_name, node_uid)


def _is_for_an_old_pod(
    bound: BoundObject | None, lifetime_s: int, audiences: Sequence[str], tokens: ServiceAccountTokens
) -> bool:
    is_for_us = all(audience in tokens.audiences for audience in audiences)
    return bound is not None and bound.kind == "Pod" and lifetime_s == POD_LIFETIME_S and is_for_us


def _conflict(group: str, kind: str, name: str, text: str) -> ConflictError:
    qualified = f"{kind}.{group}" if group else kind
    return ConflictError(
        f'Operation cannot be fulfilled on {qualified} "{name}": {text}',
        details={key: value for key, value in (("name", name), ("group", group), ("kind", kind)) if value},
    )
