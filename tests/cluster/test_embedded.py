"""A cluster in the process of the caller."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

import pytest

from mooring import Cluster
from mooring.api.decode import decode_as
from mooring.api.kinds import NODE, POD
from mooring.api.views.pod import Pod
from mooring.client.errors import NotFoundError
from mooring.cluster.cluster import ClusterError
from mooring.cluster.settings import ClusterSettings
from mooring.kit.clock import SystemClock
from mooring.kit.loop import run_real
from mooring.serving.users import User
from tests.waiting import LIMIT_S

official: Any = import_module("kubernetes.client")

# The official client leaves its connections to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def pod(name: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "c:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def test_nodes_are_ready_when_the_block_begins_and_nothing_is_left_when_it_ends() -> None:
    with Cluster(nodes=3) as cluster:
        assert cluster.url.startswith("https://127.0.0.1:")
        kubeconfig = cluster.kubeconfig
        assert cluster.url in kubeconfig.read_text()
        with cluster.client() as api:
            nodes = official.CoreV1Api(api).list_node().items
        ready = [
            condition.status for node in nodes for condition in node.status.conditions if condition.type == "Ready"
        ]
        assert ready == ["True"] * 3
    assert not kubeconfig.parent.exists()


def test_it_runs_on_the_loop_of_the_caller_and_schedules() -> None:
    async def story() -> str:
        async with asyncio.timeout(LIMIT_S), Cluster(nodes=2) as cluster, cluster.async_client() as client:
            assert len((await client.list(NODE)).items) == 2
            await client.create(POD, "default", pod("web"))
            while True:
                found = decode_as(Pod, await client.get(POD, "default", "web"))
                if found.status.phase == "Running":
                    return found.spec.node_name
                await SystemClock().wait(0.01)

    assert run_real(story()).startswith("node-")


def test_clusters_run_side_by_side_and_without_parts() -> None:
    users = ClusterSettings(users={"secret": User("anna")})
    with Cluster(without=("scheduler",), settings=users) as one, Cluster(nodes=2) as other:
        assert one.url != other.url
        assert one.kubeconfig != other.kubeconfig


def test_what_keeps_it_from_starting_is_raised_where_it_is_started() -> None:
    settings = ClusterSettings(disabled_admission_plugins=frozenset(("Nosuch",)))
    with pytest.raises(ClusterError, match="Nosuch"), Cluster(settings=settings):
        raise AssertionError("it started")


def test_an_error_in_the_block_is_passed_on() -> None:
    async def story() -> None:
        async with Cluster() as cluster, cluster.async_client() as client:
            await client.get(POD, "default", "nobody")

    with pytest.raises(NotFoundError):
        run_real(story())
    with pytest.raises(KeyError), Cluster():
        raise KeyError("mine")
