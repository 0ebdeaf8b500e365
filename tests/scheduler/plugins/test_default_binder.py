"""DefaultBinder: asks the API server, and lets what it says against it through."""

from __future__ import annotations

import pytest

from mooring.api.decode import decode_as
from mooring.api.kinds import POD
from mooring.api.views.pod import Pod
from mooring.client.errors import ConflictError, NoAnswerError
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.scheduler.plugins.default_binder import DefaultBinder
from mooring.store.memory import MemoryStore
from tests.builders import node, pod
from tests.fakes.raw_client import RawClient
from tests.scheduler.harness import engine_of, plugin_of
from tests.scheduler.world import plain


def bound_to(*node_names: str) -> str:
    """Binds a pod to one node after the other. Where it is then."""

    async def story() -> str:
        client = RawClient(MemoryStore(), VirtualClock(), Entropy(1))
        created = decode_as(Pod, await client.create(POD, "shop", plain(pod("web", namespace="shop"))))
        record = engine_of().record(created)
        for node_name in node_names:
            await DefaultBinder(client).bind(record, node_name)
        return decode_as(Pod, await client.get(POD, "shop", "web")).spec.node_name

    return run(story())


def test_the_pod_is_bound() -> None:
    assert bound_to("n1") == "n1"


def test_what_the_api_server_says_against_it_is_raised() -> None:
    with pytest.raises(ConflictError, match='pod web is already assigned to node "n1"'):
        bound_to("n1", "n2")


def test_an_engine_alone_binds_nothing() -> None:
    engine = engine_of(node("n1"))

    async def binding() -> None:
        await plugin_of(engine, DefaultBinder).bind(engine.record(pod("web")), "n1")

    with pytest.raises(NoAnswerError, match="cannot bind default/web to n1: there is no API server here"):
        run(binding())
