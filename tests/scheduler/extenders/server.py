"""An extender to ask: a real HTTP server on the loopback, which answers as a test says and remembers its questions."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from aiohttp import web

CERTIFICATES = Path(__file__).parent / "certificates"

Reply = bytes | web.Response
Script = Callable[[str, dict[str, object]], Reply | Awaitable[Reply]]


class Server:
    """What a server was asked, and where it is."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.url = ""
        self.requests: list[tuple[str, dict[str, object]]] = []
        self.content_types: list[str] = []
        self.connections: set[object] = set()

    async def handle(self, request: web.Request) -> web.Response:
        verb, question = request.path.removeprefix("/scheduler/"), msgspec.json.decode(await request.read(), type=dict)
        self.requests.append((verb, question))
        self.content_types.append(request.content_type)
        self.connections.add(request.transport)
        reply = self._script(verb, question)
        reply = reply if isinstance(reply, bytes | web.Response) else await reply
        return reply if isinstance(reply, web.Response) else web.Response(body=reply, content_type="application/json")


@asynccontextmanager
async def serving(script: Script, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """A server on a free port, for as long as the block lasts."""
    server = Server(script)
    application = web.Application(client_max_size=64 << 20)
    application.router.add_post("/scheduler/{verb}", server.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        host, port = runner.addresses[0][:2]
        server.url = f"{'https' if tls is not None else 'http'}://{host}:{port}/scheduler"
        yield server
    finally:
        await runner.cleanup()


def server_security(*, wants_client: bool = False) -> ssl.SSLContext:
    """How the server shows who it is (`extender.test`), and whether it wants to know who asks."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "server.pem", CERTIFICATES / "server.key")
    if wants_client:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(CERTIFICATES / "authority.pem")
    return context
