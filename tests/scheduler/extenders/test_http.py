"""Asking over HTTP: a real server, and everything that can go wrong on the way."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable

import pytest
from aiohttp import web

from mooring.kit.loop import run_real
from mooring.kit.tasks import run_bounded
from mooring.scheduler.extenders import client
from mooring.scheduler.extenders.client import ExtenderTLSError, ExtenderTransport, tls_of
from mooring.scheduler.extenders.extender import Extender, ExtenderError
from tests.scheduler.extenders.builders import extender
from tests.scheduler.extenders.server import CERTIFICATES, Script, Server, server_security, serving

BODY = b'{"Pod":null}'


async def ask(asked: Extender, verb: str = "filter", *, times: int = 1) -> bytes:
    answer = b""
    async with ExtenderTransport([asked]) as transport:
        for _ in range(times):
            answer = await transport.send(asked, verb, BODY)
    return answer


def response_of(script: Script, *, times: int = 1, **fields: object) -> tuple[bytes, Server]:
    async def story() -> tuple[bytes, Server]:
        async with serving(script) as server:
            return await ask(extender(server.url, filterVerb="filter", **fields), times=times), server

    return run_real(story())


def replying(reply: bytes | web.Response) -> Script:
    return lambda verb, request: reply


def test_a_question_and_its_answer() -> None:
    answer, server = response_of(replying(b'{"NodeNames":[]}'))
    assert answer == b'{"NodeNames":[]}'
    assert server.requests == [("filter", {"Pod": None})]
    assert server.content_types == ["application/json"]


def test_a_connection_is_used_again() -> None:
    _, server = response_of(replying(b"{}"), times=5)
    assert (len(server.requests), len(server.connections)) == (5, 1)


def test_several_questions_at_once() -> None:
    async def story() -> int:
        arrived = asyncio.Barrier(3)

        async def together(verb: str, request: dict[str, object]) -> bytes:
            await arrived.wait()  # nobody is answered until all have asked
            return verb.encode()

        async with serving(lambda verb, request: together(verb, request)) as server:
            asked = extender(server.url, filterVerb="filter")
            async with ExtenderTransport([asked]) as transport:

                async def one(verb: str) -> bytes:
                    return await transport.send(asked, verb, BODY)

                responses = await run_bounded(one, ["a", "b", "c"], limit=3, name="questions")
            assert responses == [b"a", b"b", b"c"]
            return len(server.connections)

    assert run_real(story()) == 3


@pytest.mark.parametrize("status", [201, 404, 500])
def test_any_other_status_than_200_is_a_failure(status: int) -> None:
    with pytest.raises(ExtenderError) as caught:
        response_of(replying(web.Response(status=status, body=b"{}")))
    assert str(caught.value).startswith("failed filter with extender at URL http://127.0.0.1:")
    assert str(caught.value).endswith(f"/scheduler/filter, code {status}")


def test_an_extender_that_takes_too_long() -> None:
    async def forever(verb: str, request: dict[str, object]) -> bytes:
        await asyncio.Event().wait()
        return b""

    with pytest.raises(ExtenderError) as caught:
        response_of(lambda verb, request: forever(verb, request), httpTimeout="50ms")
    assert str(caught.value).endswith(
        '/scheduler/filter": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
    )


def test_no_server_listens() -> None:
    with pytest.raises(ExtenderError, match=r'^Post "http://127\.0\.0\.1:1/filter": .*127\.0\.0\.1:1'):
        run_real(ask(extender("http://127.0.0.1:1", filterVerb="filter")))


def test_no_address_at_all() -> None:
    with pytest.raises(ExtenderError, match=r'^Post "nowhere/filter": '):
        run_real(ask(extender("nowhere", filterVerb="filter")))


def test_an_endless_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "ANSWER_BYTES_MAX", 1000)
    assert len(response_of(replying(b"x" * 1000))[0]) == 1000
    with pytest.raises(ExtenderError, match="answers filter with more than 1000 bytes"):
        response_of(replying(b"x" * 1001))


@pytest.mark.parametrize(("code", "method"), [(302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")])
def test_a_redirect_is_followed_as_go_follows_it(code: int, method: str) -> None:
    async def story() -> tuple[bytes, list[tuple[str, bytes]]]:
        requests = []

        async def page(request: web.Request) -> web.Response:
            requests.append((request.method, await request.read()))
            if request.path == "/filter":
                return web.Response(status=code, headers={"Location": "/elsewhere"})
            return web.Response(body=b"{}")

        application = web.Application()
        application.router.add_route("*", "/{tail:.*}", page)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            return await ask(extender(f"http://127.0.0.1:{runner.addresses[0][1]}", filterVerb="filter")), requests
        finally:
            await runner.cleanup()

    answer, requests = run_real(story())
    assert (answer, requests) == (b"{}", [("POST", BODY), (method, BODY if method == "POST" else b"")])


def test_redirects_end() -> None:
    with pytest.raises(ExtenderError, match=r'/scheduler/filter": stopped after 10 redirects$'):
        response_of(lambda verb, question: web.Response(status=307, headers={"Location": "filter"}))


def test_an_unused_transport_closes() -> None:
    async def story() -> None:
        async with ExtenderTransport([]):
            pass

    run_real(story())


# TLS


def file(name: str) -> str:
    return str(CERTIFICATES / name)


def data(name: str) -> str:
    return base64.b64encode((CERTIFICATES / name).read_bytes()).decode()


KNOWN_FILE = {"caFile": file("authority.pem"), "serverName": "extender.test"}
KNOWN_DATA = {"caData": data("authority.pem"), "serverName": "extender.test"}
CLIENT_FILE = {"certFile": file("client.pem"), "keyFile": file("client.key")}
CLIENT_DATA = {"certData": data("client.pem"), "keyData": data("client.key")}


def sent_over_tls(tls: dict[str, object] | None, *, wants_client: bool = False, enable_https: bool = True) -> bytes:
    async def story() -> bytes:
        async with serving(replying(b"secret"), tls=server_security(wants_client=wants_client)) as server:
            return await ask(extender(server.url, filterVerb="filter", enableHTTPS=enable_https, tlsConfig=tls))

    return run_real(story())


@pytest.mark.parametrize(
    ("tls", "wants_client", "enable_https"),
    [
        pytest.param(KNOWN_FILE, False, True, id="an authority from a file"),
        pytest.param(KNOWN_DATA, False, True, id="an authority from the configuration"),
        pytest.param(KNOWN_DATA, False, False, id="the address alone says that it is HTTPS"),
        pytest.param(None, False, True, id="no authority: nobody is verified"),
        pytest.param({"insecure": True}, False, False, id="insecure on purpose"),
        pytest.param(KNOWN_FILE | CLIENT_FILE, True, True, id="a client's certificate from files"),
        pytest.param(KNOWN_DATA | CLIENT_DATA, True, True, id="a client's certificate from the configuration"),
        pytest.param({"insecure": True} | CLIENT_DATA, True, False, id="we show ourselves, but verify nobody"),
    ],
)
def test_how_the_other_side_is_known(tls: dict[str, object] | None, wants_client: bool, enable_https: bool) -> None:
    assert sent_over_tls(tls, wants_client=wants_client, enable_https=enable_https) == b"secret"


@pytest.mark.parametrize(
    ("tls", "wants_client", "enable_https"),
    [
        pytest.param(None, False, False, id="nobody vouches for the server"),
        pytest.param({"caFile": file("authority.pem")}, False, True, id="the name on its certificate is another"),
        pytest.param(
            {"caFile": file("client.pem"), "serverName": "extender.test"}, False, True, id="a wrong authority"
        ),
        pytest.param(KNOWN_FILE, True, True, id="the server wants to know who asks"),
    ],
)
def test_a_side_that_is_not_known(tls: dict[str, object] | None, wants_client: bool, enable_https: bool) -> None:
    with pytest.raises(ExtenderError, match=r'^Post "https://127\.0\.0\.1:\d+/scheduler/filter": '):
        sent_over_tls(tls, wants_client=wants_client, enable_https=enable_https)


@pytest.mark.parametrize(
    ("tls", "text"),
    [
        pytest.param(
            {"caFile": file("authority.pem"), "insecure": True},
            "specifying a root certificates file with the insecure flag is not allowed",
            id="verify, and do not",
        ),
        pytest.param(
            {"certFile": "c"}, "there is a client certificate but no key: set keyFile or keyData", id="no key"
        ),
        pytest.param(
            {"keyData": data("client.key")},
            "there is a client key but no certificate: set certFile or certData",
            id="no certificate",
        ),
        pytest.param({"caFile": "/nowhere.pem"}, "a certificate or key cannot be read: ", id="no such file"),
        pytest.param(
            {"caData": base64.b64encode(b"garbage").decode()}, "a certificate or key cannot be read: ", id="garbage"
        ),
    ],
)
def test_settings_that_cannot_work_are_reported_at_the_start(tls: dict[str, object], text: str) -> None:
    with pytest.raises(ExtenderTLSError) as caught:
        ExtenderTransport([extender("https://a", filterVerb="f", tlsConfig=tls)])
    assert str(caught.value).startswith(f"extender https://a: tlsConfig: {text}")


def test_plain_http_needs_no_context() -> None:
    build: Callable[[Extender], object] = tls_of
    assert build(extender("http://a", filterVerb="f")) is None
