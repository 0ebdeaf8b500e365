"""DefaultBinder: asks the API server, and lets what it says against it through."""

from __future__ import annotations

import pytest

from mooring.api.decode import decode_as
from mooring.api.kinds import NAMESPACE, POD
from mooring.api.views.pod import Pod
from mooring.client.errors import ConflictError, NoAnswerError
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.scheduler.plugins.default_binder import DefaultBinder
from tests.api_servers import open_loopback_client
from tests.builders import namespace, node, pod
from tests.scheduler.harness import engine_of, plugin_of
from tests.scheduler.world import plain


def bound_to(*node_names: str) -> str:
    """Binds a pod to one node after the other. Its node, or the first conflict."""

    async def story() -> str:
        async with open_loopback_client(VirtualClock()) as client:
            await client.create(NAMESPACE, "", plain(namespace("shop")))
            created = decode_as(Pod, await client.create(POD, "shop", plain(pod("web", namespace="shop"))))
            record = engine_of().record(created)
            try:
                for node_name in node_names:
                    await DefaultBinder(client).bind(record, node_name)
            except ConflictError as error:
                return str(error)
            return decode_as(Pod, await client.get(POD, "shop", "web")).spec.node_name

    return run(story())


def test_the_pod_is_bound() -> None:
    assert bound_to("n1") == "n1"


def test_what_the_api_server_says_against_it_is_raised() -> None:
    assert 'pod web is already assigned to node "n1"' in bound_to("n1", "n2")


def test_an_engine_alone_binds_nothing() -> None:
    engine = engine_of(node("n1"))

    async def binding() -> None:
        await plugin_of(engine, DefaultBinder).bind(engine.record(pod("web")), "n1")

    with pytest.raises(NoAnswerError, match="cannot bind default/web to n1: there is no API server here"):
        run(binding())
