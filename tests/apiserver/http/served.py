"""An API server in this process for tests of its request handler: memory store, configurable limits, optional TLS."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp

from mooring.apiserver.access.certificates import new_key
from mooring.apiserver.assembly import Settings, open_api_server
from mooring.apiserver.http.handler import RequestHandler
from mooring.apiserver.http.request import RequestLimits
from mooring.apiserver.http.server import HttpServer
from mooring.apiserver.server import ApiServer
from mooring.kit.clock import SystemClock
from mooring.kit.entropy import Entropy
from mooring.serving.users import MASTERS_GROUP, User
from mooring.store.interface import Store
from mooring.store.memory import MemoryStore

ADMIN_TOKEN = "token-of-the-administrator"
ADMIN_HEADERS: Mapping[str, str] = {"Authorization": f"Bearer {ADMIN_TOKEN}"}


@dataclass(frozen=True, slots=True)
class Served:
    """A running server and a client session."""

    server: HttpServer
    handler: RequestHandler
    api_server: ApiServer
    session: aiohttp.ClientSession

    def url(self, path: str) -> str:
        return f"{self.server.url}{path}"

    async def create_config_map(self, name: str, data: Mapping[str, str] | None = None) -> int:
        """Create a config map in `default` and return the status code."""
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data or {}}
        async with self.session.post(self.url("/api/v1/namespaces/default/configmaps"), json=body) as response:
            await response.read()
            return response.status


@asynccontextmanager
async def served(
    limits: RequestLimits | None = None,
    *,
    store: Store | None = None,
    is_anonymous_allowed: bool = True,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Served]:
    """Run a server inside of the `with` block."""
    limits = limits or RequestLimits()
    tokens = {ADMIN_TOKEN: User("admin", groups=(MASTERS_GROUP,)), "limited": User("limited", groups=("few-rights",))}
    settings = Settings(
        new_key(), tokens, is_anonymous_allowed, disabled_admission_plugins=frozenset(("ServiceAccount",))
    )
    async with open_api_server(store or MemoryStore(), SystemClock(), Entropy(7), settings) as api_server:
        handler = RequestHandler(api_server, limits)
        async with (
            HttpServer(handler, limits, tls=tls) as server,
            aiohttp.ClientSession(headers=dict(ADMIN_HEADERS), connector=aiohttp.TCPConnector(limit=0)) as session,
        ):
            yield Served(server, handler, api_server, session)
