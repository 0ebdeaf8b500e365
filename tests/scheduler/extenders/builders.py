"""Extenders for tests: settings, scripted responses, objects as JSON, and a real HTTP server on the loopback."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
from aiohttp import web

from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config import load_configuration
from mooring.scheduler.extenders.cycle import Exchange, ExtenderRequest, ExtenderResponse
from mooring.scheduler.extenders.extender import Extender, ExtenderFailure, ExtenderFilterResult
from tests.scheduler.config.builders import configuration
from tests.waiting import LIMIT_S

Result = TypeVar("Result")
Written = dict[str, object]


def written(url: str = "http://extender.test", /, **fields: object) -> Written:
    """An extender as it stands in a configuration."""
    return {"urlPrefix": url, "httpTimeout": f"{LIMIT_S:g}s", **fields}


def extender(url: str = "http://extender.test", /, **fields: object) -> Extender:
    loaded = load_configuration(configuration(extenders=[written(url, **fields)]))
    return Extender(loaded.extenders[0])


def only(
    *names: str, failed: Mapping[str, str] | None = None, for_good: Mapping[str, str] | None = None
) -> ExtenderFilterResult:
    """These nodes are left, by an extender that knows nodes by name."""
    return ExtenderFilterResult(node_names=names, failed=failed or {}, failed_and_unresolvable=for_good or {})


def drive(
    exchange: Exchange[Result], response: Callable[[ExtenderRequest], ExtenderResponse]
) -> tuple[Result, list[tuple[ExtenderRequest, ...]]]:
    """The result of a consultation, and what was asked for it, round by round."""
    rounds: list[tuple[ExtenderRequest, ...]] = []
    try:
        requests = next(exchange)
        while True:
            rounds.append(requests)
            requests = exchange.send(tuple(response(request) for request in requests))
    except StopIteration as end:
        result: Result = end.value
        return result, rounds


def answering(**by_verb: ExtenderResponse) -> Callable[[ExtenderRequest], ExtenderResponse]:
    """The same answer to every question with a verb."""

    def response(request: ExtenderRequest) -> ExtenderResponse:
        return by_verb.get(request.verb, ExtenderFailure(f"nobody answers {request.verb}"))

    return response


class NamesAsObjects:
    """Objects that consist of little more than their names. Nodes called `lost…` are gone."""

    def node(self, name: str) -> bytes:
        if name.startswith("lost"):
            raise LookupError(f"node {name} is gone")
        return msgspec.json.encode({"metadata": {"name": name}, "spec": {"podCIDR": "10.0.0.0/24"}})

    def pod(self, pod: PodInfo) -> bytes:
        return msgspec.json.encode({"metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}})


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
