"""The secure port of a component. Users are authenticated and authorized by an API server.

Input: an address, certificates, connections to the API server, pages. Output: a port that is served while the block
lasts.

1. Without a connection for authentication every token is rejected. Without one for authorization, only administrators
   see more than the paths that are always allowed.
2. If the cluster does not publish its authority of client certificates, no client certificate is accepted. The start
   fails only if the operator wants that.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from mooring.client.http.client import HttpClient, HttpLimits
from mooring.client.http.connection import Connection
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup
from mooring.serving.authentication import (
    Authorities,
    AuthoritiesError,
    AuthorityFiles,
    DelegatingAuthenticator,
)
from mooring.serving.authorization import AllowedPaths, Attributes, DelegatingAuthorizer, by_path
from mooring.serving.console import LOGIN, ConsolePaths, ConsoleSessions
from mooring.serving.http.listener import EVERYWHERE
from mooring.serving.server import Page, SecureServer
from mooring.serving.tls import ServingTls, serving_context, trust
from mooring.serving.users import AUTHENTICATED_GROUP, MASTERS_GROUP, User

REVIEW_LIMITS = HttpLimits(requests_per_s=200.0, burst=400, request_s_max=10.0)
ALLOWED_PATHS = ("/healthz", "/readyz", "/livez")
CONSOLE_USER = User("mooring:console", groups=(MASTERS_GROUP, AUTHENTICATED_GROUP))
"""The user of the link. Its session reads the console of this component and nothing else."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConsoleLogin:
    """How users of the web console log in."""

    announce: Callable[[str], None]
    """Called with a link that logs in once, when the port is open."""
    new_link: str = 'curl -k -H "Authorization: Bearer $TOKEN" https://HOST:PORT/console/link'
    """How to get another link."""


@dataclass(frozen=True, slots=True)
class SecurePort:
    """Settings of a secure port."""

    host: str
    port: int
    tls: ServingTls
    authorities: AuthorityFiles = field(default_factory=AuthorityFiles)
    authentication: Connection | None = field(default=None, repr=False)
    authorization: Connection | None = field(default=None, repr=False)
    is_lookup_skipped: bool = False
    is_lookup_failure_tolerated: bool = True
    allowed_paths: tuple[str, ...] = ALLOWED_PATHS
    token_remembered_s: float = 10.0
    allowed_remembered_s: float = 10.0
    denied_remembered_s: float = 10.0
    shares_address: bool = False
    shares_port: bool = False
    attributes: Attributes = by_path
    console: ConsoleLogin | None = None
    """Serve the web console."""


@asynccontextmanager
async def open_secure_port(
    requested: SecurePort, pages: Mapping[str, Page], clock: Clock, entropy: Entropy
) -> AsyncIterator[int]:
    """Yields the number of the port."""
    tls = serving_context(requested.tls, clock.wall_s())
    async with AsyncExitStack() as stack:
        authentication = await _client(stack, requested.authentication, clock, entropy.fork("authentication"))
        authorization = await _client(stack, requested.authorization, clock, entropy.fork("authorization"))
        authorities = Authorities(
            requested.authorities, authentication, clock, trust_in_tls=lambda pem: trust(tls, pem)
        )
        if not requested.is_lookup_skipped:
            await _read_authorities(authorities, requested)
        authenticator = DelegatingAuthenticator(
            authorities.trust, authentication, clock, cache_s=requested.token_remembered_s
        )
        authorizer = DelegatingAuthorizer(
            AllowedPaths(requested.allowed_paths),
            authorization,
            clock,
            allowed_s=requested.allowed_remembered_s,
            denied_s=requested.denied_remembered_s,
            attributes=requested.attributes,
        )
        sessions = ConsoleSessions(clock)
        server = SecureServer(
            pages,
            authenticator,
            authorizer,
            clock,
            host=requested.host,
            port=requested.port,
            tls=tls,
            shares_address=requested.shares_address,
            shares_port=requested.shares_port,
            console=ConsolePaths(sessions, requested.console.new_link) if requested.console is not None else None,
        )
        group = await stack.enter_async_context(TaskGroup("secure port"))
        if not requested.is_lookup_skipped:
            group.start_background(authorities.refresh(), name="authorities")
        await stack.enter_async_context(server)
        if requested.console is not None:
            token = sessions.new_login(CONSOLE_USER)
            requested.console.announce(f"{_reachable(requested.host, server.port)}{LOGIN}?token={token}")
        yield server.port


def _reachable(host: str, port: int) -> str:
    """The URL of the port for a browser on this machine."""
    if host in EVERYWHERE:
        host = "127.0.0.1"
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


async def _client(
    stack: AsyncExitStack, connection: Connection | None, clock: Clock, entropy: Entropy
) -> HttpClient | None:
    if connection is None:
        return None
    client = HttpClient(connection, clock, entropy, limits=REVIEW_LIMITS, component="reviews")
    return await stack.enter_async_context(client)


async def _read_authorities(authorities: Authorities, requested: SecurePort) -> None:
    try:
        await authorities.read_config_map()
    except AuthoritiesError as error:
        if not requested.is_lookup_failure_tolerated:
            raise
        logger.warning("%s; client certificates are not accepted", error)
