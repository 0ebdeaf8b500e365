"""What the scheduler has in mind, as people see it."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from mooring.api.views.pod import Container, Pod, ResourceRequirements
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.scheduler.binding.assumed_pods import AssumedPods
from mooring.scheduler.binding.cycle import Binding, BindingStage
from mooring.scheduler.framework.waiting_pods import WaitingPods
from mooring.scheduler.pages import UNKNOWN_POD, cache_page, pod_page, pod_resources_text, queue_page, unit_of
from mooring.scheduler.queue.queue import SchedulingQueue
from tests.builders import node, pod
from tests.scheduler.harness import engine_of


def test_the_queue() -> None:
    clock = VirtualClock()

    async def main() -> None:
        engine = engine_of(node("n1"))
        profiles = {name: cycle.profile for name, cycle in engine.cycles.items()}
        queue = SchedulingQueue(profiles, clock=clock)
        for view in (pod("rejected", priority=7), pod("ready"), pod("gated", gates=["wait"])):
            queue.add(engine.record(view))
        entry = queue.pop()
        assert entry is not None
        queue.requeue(entry, frozenset(("NodeResourcesFit",)))
        reported = queue_page(queue, {}, WaitingPods(), clock)
        json.dumps(reported)
        assert reported["counts"] == {
            "active": 1,
            "backoff": 0,
            "unschedulable": 1,
            "gated": 1,
            "inFlight": 0,
            "binding": 0,
        }
        pods = reported["pods"]
        assert isinstance(pods, list)
        by_name = {row["pod"]: row for row in pods}
        assert by_name["default/rejected"]["state"] == "unschedulable"
        assert by_name["default/rejected"]["rejectedBy"] == ["NodeResourcesFit"]
        assert by_name["default/rejected"]["retriedAtTheLatest"] == "2026-01-01T00:05:00.000000Z"
        assert by_name["default/rejected"]["priority"] == 7
        assert by_name["default/gated"]["gatedBy"] == "SchedulingGates"
        assert by_name["default/ready"]["state"] == "active"
        assert pod_page("default/ready", queue, {}, WaitingPods(), engine, clock)["shown"] == 1

    run(main(), clock)


def test_the_page_of_a_pod_in_any_state() -> None:
    """At each stop of its way: in flight, waiting for Permit, for PreBind, for the API server; on its node; nowhere."""
    clock = VirtualClock()

    async def main() -> None:
        engine = engine_of(node("n1"), pod("there", on="n1"))
        profiles = {name: cycle.profile for name, cycle in engine.cycles.items()}
        queue, waiting, running = SchedulingQueue(profiles, clock=clock), WaitingPods(), dict[str, Binding]()

        def page_of(key: str) -> dict[str, object]:
            reported = pod_page(key, queue, running, waiting, engine, clock)
            json.dumps(reported)
            pods = reported["pods"]
            assert isinstance(pods, list)
            (row,) = pods
            picked = {name: row[name] for name in ("state", "stage", "node", "waitsFor") if name in row}
            return {**picked, "binding": _counts(queue, running, waiting, clock)["binding"]}

        queue.add(engine.record(pod("web")))
        entry = queue.pop()
        assert entry is not None
        assert page_of("default/web") == {"state": "in flight", "binding": 0}

        (profile,) = profiles.values()
        assumption = AssumedPods(None).add(entry.pod, "n1")
        binding = running[entry.pod.uid] = Binding(entry, profile, assumption, profile.pre_binds[:1], 0.0)
        binding.stage = BindingStage.WAITING
        waiter = waiting.add(entry.pod, "n1", {"Gang": 60.0}, lambda status: None)
        where = {"state": "in flight", "stage": "waiting for Permit", "node": "n1", "waitsFor": ["Gang"], "binding": 0}
        assert page_of("default/web") == where

        waiter.allow("Gang")
        queue.done(entry.pod.uid)
        binding.stage = BindingStage.PREPARING
        named = [plugin.name for plugin in profile.pre_binds[:1]]
        assert page_of("default/web") == {
            "state": "binding",
            "stage": "PreBind",
            "node": "n1",
            "waitsFor": named,
            "binding": 1,
        }

        binding.stage = BindingStage.BINDING
        assert page_of("default/web") == {"state": "binding", "stage": "Bind", "node": "n1", "binding": 1}
        assert page_of("default/there") == {"state": "on its node", "node": "n1", "binding": 1}
        assert page_of("default/nobody") == {"state": UNKNOWN_POD, "binding": 1}

    run(main(), clock)


def _counts(
    queue: SchedulingQueue, running: dict[str, Binding], waiting: WaitingPods, clock: VirtualClock
) -> dict[str, int]:
    counts = queue_page(queue, running, waiting, clock)["counts"]
    assert isinstance(counts, dict)
    return counts


def test_the_cache() -> None:
    engine = engine_of(node("n1", cpu=4), node("n2", cpu=2), pod("a", cpu="500m", on="n1"), pod("b", on="n1"))
    reported = cache_page(engine.columns, AssumedPods(None))
    json.dumps(reported)
    assert reported["counts"] == {"nodes": 2, "pods": 2, "assumedPods": 0}
    nodes = reported["nodes"]
    assert isinstance(nodes, list)
    first, second = nodes
    assert (first["node"], first["pods"], first["requested"]) == ("n1", 2, {"cpuMilli": 500, "pods": 2})
    assert second["allocatable"]["cpuMilli"] == 2000
    assert "podNames" not in first
    chosen = cache_page(engine.columns, AssumedPods(None), node="n1")["nodes"]
    assert isinstance(chosen, list)
    assert [plan["podNames"] for plan in chosen] == [["default/a", "default/b"]]


def container(*, requests: dict[str, str], limits: dict[str, str], **fields: str) -> Container:
    return Container(name="c", resources=ResourceRequirements(requests=requests, limits=limits), **fields)  # type: ignore[arg-type]


def made(*containers: Container, init: tuple[Container, ...] = (), overhead: dict[str, str] | None = None) -> Pod:
    view = pod("web", on="n1")
    spec = replace(view.spec, containers=containers, init_containers=init, overhead=overhead or {}, priority=5)
    return replace(view, spec=spec)


@pytest.mark.parametrize(
    ("view", "requests", "limits"),
    [
        pytest.param(
            made(container(requests={"cpu": "500m", "memory": "1Gi"}, limits={"cpu": "2"})),
            {"cpu": 0.5, "memory": 2**30},
            {"cpu": 2.0},
            id="what one container says",
        ),
        pytest.param(
            made(
                container(requests={"cpu": "1"}, limits={"cpu": "1"}),
                init=(container(requests={"cpu": "3"}, limits={"cpu": "4"}),),
            ),
            {"cpu": 3.0},
            {"cpu": 4.0},
            id="the most at any time",
        ),
        pytest.param(
            made(container(requests={"cpu": "1"}, limits={"cpu": "1"}), overhead={"cpu": "250m", "memory": "1Gi"}),
            {"cpu": 1.25, "memory": 2**30},
            {"cpu": 1.25},
            id="overhead counts for limits only where there is one",
        ),
        pytest.param(made(container(requests={"cpu": "0"}, limits={})), {}, {}, id="nothing"),
    ],
)
def test_amounts(view: Pod, requests: dict[str, float], limits: dict[str, float]) -> None:
    engine = engine_of(node("n1"), view)
    said = pod_resources_text(engine.columns.pods.values()).decode()
    found: dict[str, dict[str, float]] = {"request": {}, "limit": {}}
    for line in said.splitlines():
        if line.startswith("kube_pod_resource_"):
            head, _, value = line.rpartition(" ")
            kind = head.removeprefix("kube_pod_resource_").partition("{")[0]
            found[kind][head.partition('resource="')[2].partition('"')[0]] = float(value)
            assert 'namespace="default",node="n1",pod="web",priority="5"' in head
    assert found == {"request": requests, "limit": limits}


@pytest.mark.parametrize(
    ("resource", "unit"),
    [
        ("cpu", "cores"),
        ("memory", "bytes"),
        ("ephemeral-storage", "bytes"),
        ("hugepages-2Mi", "bytes"),
        ("attachable-volumes-csi-x", "integer"),
        ("example.com/gpu", ""),
    ],
)
def test_units(resource: str, unit: str) -> None:
    assert unit_of(resource) == unit
