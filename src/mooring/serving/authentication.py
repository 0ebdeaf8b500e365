"""Authentication: which user sends a request, and which certificate authorities are trusted for it.

Input: a verified client certificate and the headers. Output: a `User`; None if the credentials are invalid.

    certificate of a trusted proxy, with X-Remote-User ───────> that user
    certificate of a client CA ───────────────────────────────> its common name and organizations
    bearer token, by TokenReview ─────────────────────────────> that user
    nothing, or a token and no API server for its review ─────> system:anonymous

 1. A token is reviewed by the API server once within `cache_s`, whatever the result.
 2. If the API server does not answer, the token is rejected and the error logged.
 3. Tokens are cached by their hash.

The authorities come from files, or from the ConfigMap `extension-apiserver-authentication`, which kube-apiserver
publishes. `Authorities` keeps a `Trust` and the authorities of the TLS context up to date.

 4. A file overrides the ConfigMap, separately for clients and proxies.
 5. If the ConfigMap cannot be read, no certificate is trusted; whether the start fails then is an option. The
    ConfigMap is read again every `REFRESH_S`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import unquote

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import NameOID

from mooring.api.kinds import CONFIG_MAP, Kind
from mooring.client.errors import ClientError
from mooring.client.interface import Client
from mooring.kit.clock import Clock
from mooring.serving.users import User, anonymous, authenticated

CACHED_MAX = 4_096

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_TOKEN_REVIEW = Kind("authentication.k8s.io/v1", "TokenReview", "tokenreviews", is_namespaced=False)

logger = logging.getLogger(__name__)


class ExpiringCache(Generic[Key, Value]):
    """Values by key, each for a limited time. At most `CACHED_MAX`; the oldest is dropped first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answers: dict[Key, tuple[float, Value]] = {}

    def get(self, key: Key) -> tuple[bool, Value | None]:
        """Whether there is a value, and the value."""
        found = self._answers.get(key)
        if found is None or found[0] <= self._clock.now_s():
            return False, None
        return True, found[1]

    def put(self, key: Key, response: Value, for_s: float) -> None:
        self._answers.pop(key, None)
        if len(self._answers) >= CACHED_MAX:
            del self._answers[next(iter(self._answers))]
        self._answers[key] = (self._clock.now_s() + for_s, response)


@dataclass(slots=True)
class ProxyRules:
    """Headers in which a trusted proxy sends the user, in lower case."""

    allowed_names: tuple[str, ...] = ()
    """Common names of trusted proxies; empty: all that the CA signed."""
    user_headers: tuple[str, ...] = ("x-remote-user",)
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ("x-remote-group",)
    extra_prefixes: tuple[str, ...] = ("x-remote-extra-",)


@dataclass(slots=True)
class Trust:
    """Trusted authorities. `authorities` changes it while it is in use."""

    client_authorities: tuple[x509.Certificate, ...] = ()
    proxy_authorities: tuple[x509.Certificate, ...] = ()
    proxy: ProxyRules = field(default_factory=ProxyRules)


class DelegatingAuthenticator:
    """Authenticates requests. Without a client, tokens are ignored."""

    def __init__(self, trust: Trust, client: Client | None, clock: Clock, *, cache_s: float = 10.0) -> None:
        self._trust = trust
        self._client = client
        self._clock = clock
        self._tokens: ExpiringCache[bytes, User | None] = ExpiringCache(clock)
        self._cache_s = cache_s

    async def caller(self, certificate: bytes | None, headers: Mapping[str, Sequence[str]]) -> User | None:
        """`headers` by lower-case name; `certificate` (DER) was verified by TLS."""
        presented = x509.load_der_x509_certificate(certificate) if certificate else None
        if presented is not None and not self._is_current(presented):
            return None
        if presented is not None and (named := self._proxied_user(presented, headers)) is not None:
            return named
        if presented is not None and _is_signed_by_one_of(presented, self._trust.client_authorities):
            return _certificate_user(presented)
        token = _bearer_token(headers)
        if token and self._client is not None:
            return await self._token_user(token, self._client)
        return anonymous()

    def _is_current(self, certificate: x509.Certificate) -> bool:
        now_s = self._clock.wall_s()
        start_s = certificate.not_valid_before_utc.timestamp()
        return start_s <= now_s <= certificate.not_valid_after_utc.timestamp()

    def _proxied_user(self, presented: x509.Certificate, headers: Mapping[str, Sequence[str]]) -> User | None:
        rules = self._trust.proxy
        if not _is_signed_by_one_of(presented, self._trust.proxy_authorities):
            return None
        if rules.allowed_names and _common_name(presented) not in rules.allowed_names:
            return None
        name = _first(headers, rules.user_headers)
        if not name:
            return None
        groups = tuple(group for header in rules.group_headers for group in headers.get(header, ()))
        extra = {
            unquote(header.removeprefix(prefix)): tuple(values)
            for prefix in rules.extra_prefixes
            for header, values in headers.items()
            if header.startswith(prefix)
        }
        return authenticated(User(name, _first(headers, rules.uid_headers), groups, extra))

    async def _token_user(self, token: str, client: Client) -> User | None:
        key = sha256(token.encode()).digest()
        is_known, owner = self._tokens.get(key)
        if is_known:
            return owner
        review = {"apiVersion": _TOKEN_REVIEW.api_version, "kind": _TOKEN_REVIEW.kind, "spec": {"token": token}}
        try:
            response = await client.create(_TOKEN_REVIEW, "", review)
        except ClientError as error:
            logger.error("TokenReview failed: %s", error)
            return None
        owner = _reviewed(response)
        self._tokens.put(key, owner, self._cache_s)
        return owner


def _reviewed(response: bytes) -> User | None:
    review: dict[str, Any] = msgspec.json.decode(response)
    status = review.get("status") or {}
    user = status.get("user") or {}
    if not status.get("authenticated") or not user.get("username"):
        return None
    groups = tuple(user.get("groups") or ())
    extra = {key: tuple(values) for key, values in (user.get("extra") or {}).items()}
    return authenticated(User(user["username"], user.get("uid") or "", groups, extra))


def _certificate_user(certificate: x509.Certificate) -> User | None:
    organisations = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    groups = tuple(str(attribute.value) for attribute in organisations)
    name = _common_name(certificate)
    return authenticated(User(name, groups=groups)) if name else None


def _common_name(certificate: x509.Certificate) -> str:
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if names else ""


def _is_signed_by_one_of(certificate: x509.Certificate, authorities: Sequence[x509.Certificate]) -> bool:
    for authority in authorities:
        try:
            certificate.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return True
    return False


def _bearer_token(headers: Mapping[str, Sequence[str]]) -> str:
    scheme, _, token = _first(headers, ("authorization",)).partition(" ")
    return token if scheme.lower() == "bearer" else ""


def _first(headers: Mapping[str, Sequence[str]], names: Sequence[str]) -> str:
    return next((values[0] for name in names if (values := headers.get(name))), "")


NAMESPACE = "kube-system"
NAME = "extension-apiserver-authentication"
REFRESH_S = 60.0


class AuthoritiesError(ValueError):
    """A file or the ConfigMap with authorities cannot be read."""


@dataclass(frozen=True, slots=True)
class AuthorityFiles:
    """Files of the command line; empty: use the ConfigMap."""

    clients: str = ""
    proxies: str = ""
    proxy: ProxyRules | None = None


class Authorities:
    """Maintains a `Trust`."""

    def __init__(
        self,
        files: AuthorityFiles,
        client: Client | None,
        clock: Clock,
        *,
        trust_in_tls: Callable[[bytes], None],
    ) -> None:
        """`trust_in_tls` is called with new authorities (PEM). Raises `AuthoritiesError` for the files."""
        self.trust = Trust()
        self._files = files
        self._client = client
        self._clock = clock
        self._trust_in_tls = trust_in_tls
        self._trusted_in_tls: set[bytes] = set()
        if files.clients:
            self.trust.client_authorities = self._parse(_read_file(files.clients), files.clients)
        if files.proxies:
            self.trust.proxy_authorities = self._parse(_read_file(files.proxies), files.proxies)
            self.trust.proxy = files.proxy or ProxyRules()

    @property
    def _are_files_enough(self) -> bool:
        return bool(self._files.clients and self._files.proxies)

    async def read_config_map(self) -> None:
        """Read the ConfigMap. Raises `AuthoritiesError`."""
        if self._client is None or self._are_files_enough:
            return
        try:
            raw = await self._client.get(CONFIG_MAP, NAMESPACE, NAME)
        except ClientError as error:
            raise AuthoritiesError(f"reading the ConfigMap {NAMESPACE}/{NAME} failed: {error}") from None
        document: dict[str, Any] = msgspec.json.decode(raw)
        self._use_config_map(document.get("data") or {})

    async def refresh(self) -> None:
        """Read the ConfigMap periodically until cancelled."""
        while True:
            await self._clock.wait(REFRESH_S)
            try:
                await self.read_config_map()
            except AuthoritiesError as error:
                logger.debug("%s", error)

    def _use_config_map(self, data: Mapping[str, str]) -> None:
        where = f"the ConfigMap {NAMESPACE}/{NAME}"
        if not self._files.clients and data.get("client-ca-file"):
            self.trust.client_authorities = self._parse(data["client-ca-file"].encode(), where)
        if not self._files.proxies and data.get("requestheader-client-ca-file"):
            self.trust.proxy_authorities = self._parse(data["requestheader-client-ca-file"].encode(), where)
            self.trust.proxy = ProxyRules(
                _names(data, "requestheader-allowed-names", is_header=False),
                _names(data, "requestheader-username-headers"),
                _names(data, "requestheader-uid-headers"),
                _names(data, "requestheader-group-headers"),
                _names(data, "requestheader-extra-headers-prefix"),
            )

    def _parse(self, pem: bytes, where: str) -> tuple[x509.Certificate, ...]:
        try:
            certificates = tuple(x509.load_pem_x509_certificates(pem))
        except ValueError as error:
            raise AuthoritiesError(f"{where}: has no valid certificates: {error}") from None
        if pem not in self._trusted_in_tls:
            self._trusted_in_tls.add(pem)
            self._trust_in_tls(pem)
        return certificates


def _read_file(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise AuthoritiesError(f"{path}: cannot be read: {error.strerror}") from None


def _names(data: Mapping[str, str], key: str, *, is_header: bool = True) -> tuple[str, ...]:
    names = json.loads(data.get(key) or "[]")
    return tuple(str(name).lower() if is_header else str(name) for name in names)
