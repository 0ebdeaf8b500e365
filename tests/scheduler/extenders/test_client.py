"""Asking: whole decisions with a real server at the other end."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping

import msgspec
import pytest
from aiohttp import web

from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.kit.loop import run_real
from mooring.kit.tasks import TaskGroup
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.engine import Engine
from mooring.scheduler.event_buffer import EventBuffer
from mooring.scheduler.extenders.client import ExtenderTransport, bind_with_extenders, run_exchange
from mooring.scheduler.extenders.extender import ExtenderError, extenders_of
from tests.builders import node, pod
from tests.scheduler.config.builders import configuration
from tests.scheduler.extenders.builders import NamesAsObjects, written
from tests.scheduler.extenders.server import Script, Server, serving
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
            settings = [written(server.url, **each) for each in extenders]
            engine = engine_of(*views, config=configuration(extenders=settings))
            async with ExtenderTransport(extenders_of(engine.configuration)) as transport:
                record = engine.record(pending if pending is not None else pod("p", uid="up"))
                return await run_exchange(engine, record, transport, NamesAsObjects(), EventBuffer()), server

    return run_real(story())


def test_names_for_an_extender_that_knows_nodes() -> None:
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
        pytest.param(b"<html>", r"extender at URL http.*/filter gave an answer that cannot be read: ", id="garbage"),
        pytest.param(b"", r"extender at URL http.*/filter gave an answer that cannot be read: ", id="nothing"),
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


def test_a_node_that_is_gone_cannot_be_asked_about() -> None:
    decision, server = decided(replying(), {"filterVerb": "filter"}, views=(node("lost-1"),))
    assert (decision.error, server.requests) == ("extender", [])
    assert (decision.message or "").endswith("could not be asked to filter: node lost-1 is gone")


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


def test_what_happens_meanwhile_waits() -> None:
    def change(engine: Engine, event_buffer: EventBuffer) -> None:
        event_buffer.run(lambda: engine.remove(node("n1")))
        event_buffer.run(lambda: engine.put(node("n4")))
        assert list(engine.columns.row_of) == ["n1", "n2", "n3"]

    decision, engine = meanwhile(change)
    assert decision.node_name == "n2"
    assert set(engine.columns.row_of) == {"n2", "n3", "n4"}


def test_who_does_not_wait_is_reported() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        meanwhile(lambda engine, event_buffer: engine.put(node("n4")))
    assert [type(error) for error in caught.value.exceptions] == [AssertionError]
    assert "must go through the event buffer" in str(caught.value.exceptions[0])


# Binding


def bound(script: Script, *extenders: Mapping[str, object]) -> tuple[bool, Server]:
    async def story() -> tuple[bool, Server]:
        async with serving(script) as server:
            settings = [written(server.url, **each) for each in extenders]
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
        pytest.param(b"?", "^extender at URL http.*/bind gave an answer that cannot be read: ", id="garbage"),
    ],
)
def test_a_binding_that_fails(reply: object, message: str) -> None:
    with pytest.raises(ExtenderError, match=message):
        bound(replying(bind=reply), {"bindVerb": "bind"})
    is_bound, _ = bound(replying(bind=reply), {"bindVerb": "bind", "ignorable": True})
    assert not is_bound, "its failures may be ignored, so that the plugins bind"
