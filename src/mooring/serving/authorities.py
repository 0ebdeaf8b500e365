"""Trusted certificate authorities, from files or from the cluster.

Input: files; the ConfigMap `extension-apiserver-authentication`, which kube-apiserver publishes. Output: a `Trust`
that is kept up to date, and the authorities of the TLS context.

 1. A file overrides the ConfigMap, separately for clients and proxies.
 2. If the ConfigMap cannot be read, no certificate is trusted; whether the start fails then is an option. The
    ConfigMap is read again every `LOOK_AGAIN_S`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from cryptography import x509

from mooring.api.kinds import CONFIG_MAP
from mooring.client.errors import ClientError
from mooring.client.interface import Client
from mooring.kit.clock import Clock
from mooring.serving.authentication import ProxyRules, Trust

NAMESPACE = "kube-system"
NAME = "extension-apiserver-authentication"
LOOK_AGAIN_S = 60.0

logger = logging.getLogger(__name__)


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
        self._logged: set[bytes] = set()
        if files.clients:
            self.trust.client_authorities = self._take(_content(files.clients), files.clients)
        if files.proxies:
            self.trust.proxy_authorities = self._take(_content(files.proxies), files.proxies)
            self.trust.proxy = files.proxy or ProxyRules()

    @property
    def _are_files_enough(self) -> bool:
        return bool(self._files.clients and self._files.proxies)

    async def look_up(self) -> None:
        """Read the ConfigMap. Raises `AuthoritiesError`."""
        if self._client is None or self._are_files_enough:
            return
        try:
            raw = await self._client.get(CONFIG_MAP, NAMESPACE, NAME)
        except ClientError as error:
            raise AuthoritiesError(f"reading the ConfigMap {NAMESPACE}/{NAME} failed: {error}") from None
        document: dict[str, Any] = msgspec.json.decode(raw)
        self._believe(document.get("data") or {})

    async def keep_looking(self) -> None:
        """Read the ConfigMap periodically until cancelled."""
        while True:
            await self._clock.wait(LOOK_AGAIN_S)
            try:
                await self.look_up()
            except AuthoritiesError as error:
                logger.debug("%s", error)

    def _believe(self, data: Mapping[str, str]) -> None:
        where = f"the ConfigMap {NAMESPACE}/{NAME}"
        if not self._files.clients and data.get("client-ca-file"):
            self.trust.client_authorities = self._take(data["client-ca-file"].encode(), where)
        if not self._files.proxies and data.get("requestheader-client-ca-file"):
            self.trust.proxy_authorities = self._take(data["requestheader-client-ca-file"].encode(), where)
            self.trust.proxy = ProxyRules(
                _names(data, "requestheader-allowed-names", is_header=False),
                _names(data, "requestheader-username-headers"),
                _names(data, "requestheader-uid-headers"),
                _names(data, "requestheader-group-headers"),
                _names(data, "requestheader-extra-headers-prefix"),
            )

    def _take(self, pem: bytes, where: str) -> tuple[x509.Certificate, ...]:
        try:
            certificates = tuple(x509.load_pem_x509_certificates(pem))
        except ValueError as error:
            raise AuthoritiesError(f"{where}: has no valid certificates: {error}") from None
        if pem not in self._logged:
            self._logged.add(pem)
            self._trust_in_tls(pem)
        return certificates


def _content(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise AuthoritiesError(f"{path}: cannot be read: {error.strerror}") from None


def _names(data: Mapping[str, str], key: str, *, is_header: bool = True) -> tuple[str, ...]:
    names = json.loads(data.get(key) or "[]")
    return tuple(str(name).lower() if is_header else str(name) for name in names)
