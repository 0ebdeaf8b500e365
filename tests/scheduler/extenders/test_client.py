"""The client of extenders: decisions with a real HTTP server, and everything that can fail on the way."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Callable, Mapping

import msgspec
import pytest
from aiohttp import web

from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.kit.loop import run_real
from mooring.kit.tasks import TaskGroup, run_bounded
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.engine import Engine
from mooring.scheduler.event_buffer import EventBuffer
from mooring.scheduler.extenders import client
from mooring.scheduler.extenders.client import (
    ExtenderTLSError,
    ExtenderTransport,
    bind_with_extenders,
    run_exchange,
    tls_of,
)
from mooring.scheduler.extenders.extender import Extender, ExtenderError, extenders_of
from tests.builders import node, pod
from tests.scheduler.config.builders import configuration
from tests.scheduler.extenders.builders import (
    CERTIFICATES,
    NamesAsObjects,
    Script,
    Server,
    extender,
    server_security,
    serving,
    written,
)
from tests.scheduler.harness import engine_of

NODES = (node("n1"), node("n2"), node("n3"))
NOBODY = "http://127.0.0.1:1"


def replying(**by_verb: object) -> Script:
    """Replies as JSON; bytes and whole responses as they are."""

    def script(verb: str, request: dict[str, object]) -> bytes | web.Response:
        reply = by_verb[verb]
        if isinstance(reply, web.Response):
            return web.Response(status=reply.status, body=reply.body)
        return reply if isinstance(reply, bytes) else msgspec.json.encode(reply)

    return script


def decided(
    script: Script, *extenders: Mapping[str, object], views: tuple[ApiObject, ...] = NODES, pending: Pod | None = None
) -> tuple[Decision, Server]:
    """A decision with these extenders, all of which are the one server unless they have an address of their own."""

    async def story() -> tuple[Decision, Server]:
        async with serving(script) as server:
            settings = [written(server.url, **extender) for extender in extenders]
            engine = engine_of(*views, config=configuration(extenders=settings))
            async with ExtenderTransport(extenders_of(engine.configuration)) as transport:
                record = engine.record(pending if pending is not None else pod("p", uid="up"))
                return await run_exchange(engine, record, transport, NamesAsObjects(), EventBuffer()), server

    return run_real(story())


def test_node_names_for_an_extender_with_a_node_cache() -> None:
    decision, server = decided(
        replying(filter={"NodeNames": ["n2", "n3"]}, score=[{"Host": "n3", "Score": 7}]),
        {"filterVerb": "filter", "prioritizeVerb": "score", "weight": 1, "nodeCacheCapable": True},
    )
    assert decision.node_name == "n3"
    assert [verb for verb, _ in server.requests] == ["filter", "score"]
    assert server.requests[0][1]["NodeNames"] == ["n1", "n2", "n3"]
    assert server.requests[0][1]["Nodes"] is None
    assert server.requests[1][1]["NodeNames"] == ["n2", "n3"]


def test_whole_nodes_for_one_that_does_not() -> None:
    decision, server = decided(
        lambda verb, request: msgspec.json.encode({"nodes": {"items": request["Nodes"]["items"][1:2]}}),  # type: ignore[index]
        {"filterVerb": "filter"},
    )
    assert decision.node_name == "n2"
    items = server.requests[0][1]["Nodes"]["items"]  # type: ignore[index]
    assert [item["metadata"]["name"] for item in items] == ["n1", "n2", "n3"]
    assert items[0]["spec"] == {"podCIDR": "10.0.0.0/24"}, "fields that no view of ours reads are sent, too"
    assert server.requests[0][1]["Pod"] == {"metadata": {"name": "p", "namespace": "default", "uid": "up"}}


def test_preemption_over_the_wire() -> None:
    views = (
        node("n1", cpu=1),
        node("n2", cpu=1),
        pod("a", uid="ua", cpu=1, on="n1", priority=1),
        pod("b", uid="ub", cpu=1, on="n2", priority=2),
    )
    decision, server = decided(
        replying(preempt={"NodeNameToMetaVictims": {"n2": {"Pods": [{"UID": "ub"}], "NumPDBViolations": 0}}}),
        {"preemptVerb": "preempt"},
        views=views,
        pending=pod("important", cpu=1, priority=9),
    )
    assert decision.preemption is not None
    assert (decision.preemption.node_name, [v.name for v in decision.preemption.victims]) == ("n2", ["b"])
    whole = server.requests[0][1]["NodeNameToVictims"]
    victim = {"metadata": {"name": "a", "namespace": "default", "uid": "ua"}}
    assert whole["n1"] == {"Pods": [victim], "NumPDBViolations": 0}  # type: ignore[index]


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        pytest.param(web.Response(status=503), r"failed filter with extender at URL http.*/filter, code 503", id="503"),
        pytest.param(
            b"<html>", r"extender at URL http.*/filter returned a response that cannot be read: ", id="garbage"
        ),
        pytest.param(b"", r"extender at URL http.*/filter returned a response that cannot be read: ", id="nothing"),
        pytest.param({"Error": "out of order"}, "out of order", id="its own error"),
        pytest.param(
            {"NodeNames": ["n9"]}, 'extender "http.*" claims a filtered node "n9" which is not found', id="a stranger"
        ),
    ],
)
def test_what_goes_wrong(reply: object, message: str) -> None:
    settings = {"filterVerb": "filter", "nodeCacheCapable": True}
    decision, _ = decided(replying(filter=reply), settings)
    assert (decision.node_name, decision.error) == (None, "extender")
    assert re.match(message, decision.message or ""), decision.message
    decision, server = decided(replying(filter=reply), settings | {"ignorable": True})
    assert (decision.node_name, len(server.requests)) == ("n1", 1), "passed over, if its failures may be ignored"


def test_no_server_listens() -> None:
    nobody = {"urlPrefix": NOBODY, "filterVerb": "filter"}
    decision, _ = decided(replying(), nobody)
    assert (decision.message or "").startswith(f'Post "{NOBODY}/filter": ')
    assert decided(replying(), nobody | {"ignorable": True})[0].node_name == "n1"


def test_scores_of_an_extender_that_fails_are_ignored() -> None:
    scoring = {"prioritizeVerb": "score", "weight": 1, "nodeCacheCapable": True}
    decision, _ = decided(replying(score=[{"Host": "n2", "Score": 1}]), scoring | {"urlPrefix": NOBODY}, scoring)
    assert decision.node_name == "n2"


def test_a_request_with_a_removed_node_fails() -> None:
    decision, server = decided(replying(), {"filterVerb": "filter"}, views=(node("lost-1"),))
    assert (decision.error, server.requests) == ("extender", [])
    assert (decision.message or "").endswith("was not called to filter: node lost-1 is gone")


# While it is asked


def meanwhile(change: Callable[[Engine, EventBuffer], None]) -> tuple[Decision, Engine]:
    """A decision, and something that happens while the extender thinks."""

    async def story() -> tuple[Decision, Engine]:
        asked, go_on = asyncio.Event(), asyncio.Event()

        async def think(verb: str, request: dict[str, object]) -> bytes:
            asked.set()
            await go_on.wait()
            return b'{"NodeNames":["n2"]}'

        async with serving(lambda verb, request: think(verb, request)) as server:
            settings = [written(server.url, filterVerb="filter", nodeCacheCapable=True)]
            engine, event_buffer = engine_of(*NODES, config=configuration(extenders=settings)), EventBuffer()
            async with ExtenderTransport(extenders_of(engine.configuration)) as transport, TaskGroup("test") as group:

                async def happen() -> None:
                    await asked.wait()
                    change(engine, event_buffer)
                    go_on.set()

                group.start(happen(), name="meanwhile")
                record = engine.record(pod("p"))
                return await run_exchange(engine, record, transport, NamesAsObjects(), event_buffer), engine

    return run_real(story())


def test_changes_during_a_decision_are_deferred() -> None:
    def change(engine: Engine, event_buffer: EventBuffer) -> None:
        event_buffer.run(lambda: engine.remove(node("n1")))
        event_buffer.run(lambda: engine.put(node("n4")))
        assert list(engine.columns.row_of) == ["n1", "n2", "n3"]

    decision, engine = meanwhile(change)
    assert decision.node_name == "n2"
    assert set(engine.columns.row_of) == {"n2", "n3", "n4"}


def test_a_change_that_is_not_deferred_is_an_error() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        meanwhile(lambda engine, event_buffer: engine.put(node("n4")))
    assert [type(error) for error in caught.value.exceptions] == [AssertionError]
    assert "must go through the event buffer" in str(caught.value.exceptions[0])


# Binding


def bound(script: Script, *extenders: Mapping[str, object]) -> tuple[bool, Server]:
    async def story() -> tuple[bool, Server]:
        async with serving(script) as server:
            settings = [written(server.url, **extender) for extender in extenders]
            engine = engine_of(*NODES, config=configuration(extenders=settings))
            async with ExtenderTransport(extenders_of(engine.configuration)) as transport:
                record = engine.record(pod("p", uid="up"))
                return await bind_with_extenders(extenders_of(engine.configuration), record, "n1", transport), server

    return run_real(story())


def test_an_extender_binds() -> None:
    is_bound, server = bound(replying(bind={}), {"filterVerb": "filter"}, {"bindVerb": "bind"})
    assert is_bound
    assert server.requests == [("bind", {"PodName": "p", "PodNamespace": "default", "PodUID": "up", "Node": "n1"})]


@pytest.mark.parametrize(
    "extenders",
    [
        pytest.param([{"filterVerb": "filter"}], id="no plugin binds"),
        pytest.param([{"bindVerb": "bind", "managedResources": [{"name": "example.com/gpu"}]}], id="of no interest"),
    ],
)
def test_binding_is_left_to_the_plugins(extenders: list[Mapping[str, object]]) -> None:
    is_bound, server = bound(replying(), *extenders)
    assert (is_bound, server.requests) == (False, [])


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        pytest.param({"Error": "the node is full"}, "^the node is full$", id="its own error"),
        pytest.param(web.Response(status=500), "^failed bind with extender at URL http.*, code 500$", id="500"),
        pytest.param(b"?", "^extender at URL http.*/bind returned a response that cannot be read: ", id="garbage"),
    ],
)
def test_a_binding_that_fails(reply: object, message: str) -> None:
    with pytest.raises(ExtenderError, match=message):
        bound(replying(bind=reply), {"bindVerb": "bind"})
    is_bound, _ = bound(replying(bind=reply), {"bindVerb": "bind", "ignorable": True})
    assert not is_bound, "its failures may be ignored, so that the plugins bind"


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


def replying_with(reply: bytes | web.Response) -> Script:
    return lambda verb, request: reply


def test_a_request_and_its_response() -> None:
    answer, server = response_of(replying_with(b'{"NodeNames":[]}'))
    assert answer == b'{"NodeNames":[]}'
    assert server.requests == [("filter", {"Pod": None})]
    assert server.content_types == ["application/json"]


def test_a_connection_is_used_again() -> None:
    _, server = response_of(replying_with(b"{}"), times=5)
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
        response_of(replying_with(web.Response(status=status, body=b"{}")))
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


def test_a_request_without_a_server() -> None:
    with pytest.raises(ExtenderError, match=r'^Post "http://127\.0\.0\.1:1/filter": .*127\.0\.0\.1:1'):
        run_real(ask(extender("http://127.0.0.1:1", filterVerb="filter")))


def test_a_url_without_an_address() -> None:
    with pytest.raises(ExtenderError, match=r'^Post "nowhere/filter": '):
        run_real(ask(extender("nowhere", filterVerb="filter")))


def test_a_response_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "ANSWER_BYTES_MAX", 1000)
    assert len(response_of(replying_with(b"x" * 1000))[0]) == 1000
    with pytest.raises(ExtenderError, match="returned more than 1000 bytes for filter"):
        response_of(replying_with(b"x" * 1001))


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
        async with serving(replying_with(b"secret"), tls=server_security(wants_client=wants_client)) as server:
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
