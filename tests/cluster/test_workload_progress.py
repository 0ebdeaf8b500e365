"""Reports about workloads: available, or why not, on virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mooring.api import kinds
from mooring.api.document import Document
from mooring.apiserver.server import ApiServer
from mooring.client.interface import PatchForm
from mooring.cluster.objects import create_object, loopback_client
from mooring.cluster.workload_progress import (
    FIRST_REASON_S,
    NO_CONTROLLERS,
    REASON_EACH_S,
    availability,
    follow_progress,
    pod_reason,
    workloads_of,
)
from mooring.kit.tasks import TaskGroup
from tests.apiserver.servers import with_api_server

UNSCHEDULABLE = "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes are"
CONTAINERS: Document = {"containers": [{"name": "c", "image": "i"}]}
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": CONTAINERS}
FERRY: Document = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "ferry"},
    "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE},
}


def pod(name: str) -> Document:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "a"}}, "spec": POD_SPEC}


POD_SPEC = {"serviceAccountName": "default", "automountServiceAccountToken": False, **CONTAINERS}
COMPLETE = {"observedGeneration": 1, "replicas": 2, "readyReplicas": 2, "availableReplicas": 2}


def condition(type_: str, status: str, **more: str) -> dict[str, str]:
    return {"type": type_, "status": status, **more}


GATED = condition("PodScheduled", "False", reason="SchedulingGated")


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        pytest.param({}, "", id="new"),
        pytest.param(
            {"conditions": [condition("PodScheduled", "False", message=UNSCHEDULABLE)]},
            "0/3 nodes are available: 3 Insufficient cpu",
            id="unschedulable: without preemption",
        ),
        pytest.param(
            {"conditions": [condition("PodScheduled", "False", reason="SchedulingGated")]},
            "SchedulingGated",
            id="gated",
        ),
        pytest.param(
            {
                "phase": "Pending",
                "conditions": [condition("PodScheduled", "True")],
                "containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}],
            },
            "",
            id="starting",
        ),
        pytest.param(
            {"containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}]},
            "ErrImagePull: not found",
            id="no image",
        ),
        pytest.param(
            {"phase": "Running", "conditions": [condition("Ready", "False", message="containers with unready status")]},
            "containers with unready status",
            id="not ready",
        ),
        pytest.param({"phase": "Running", "conditions": [condition("Ready", "True")]}, "", id="ready"),
        pytest.param({"phase": "Failed", "message": "Pod was rejected"}, "Pod was rejected", id="rejected"),
        pytest.param(
            {"phase": "Failed", "containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 3}}}]},
            "container c exited with code 3",
            id="ended",
        ),
    ],
)
def test_why_a_pod_is_not_ready(status: Document, reason: str) -> None:
    assert pod_reason({"status": status}) == reason


@pytest.mark.parametrize(
    ("kind", "spec", "status", "expected"),
    [
        pytest.param(kinds.DEPLOYMENT, {"replicas": 3}, {"observedGeneration": 1, "availableReplicas": 2}, (2, 3)),
        pytest.param(kinds.DEPLOYMENT, {"replicas": 0}, {}, (0, 0)),
        pytest.param(kinds.STATEFUL_SET, {"replicas": 2}, {"observedGeneration": 0, "availableReplicas": 2}, (0, 2)),
        pytest.param(kinds.DAEMON_SET, {}, {}, (0, 1)),
        pytest.param(
            kinds.DAEMON_SET, {}, {"observedGeneration": 1, "desiredNumberScheduled": 3, "numberAvailable": 3}, (3, 3)
        ),
        pytest.param(kinds.JOB, {"parallelism": 3, "completions": 2}, {"ready": 1, "succeeded": 1}, (2, 2)),
        pytest.param(kinds.POD, {}, {"phase": "Succeeded"}, (1, 1)),
    ],
)
def test_availability(kind: Any, spec: Document, status: Document, expected: tuple[int, int]) -> None:
    assert availability(kind, {"metadata": {"generation": 1}, "spec": spec, "status": status}) == expected


def test_reasons_are_reported_when_they_change_and_the_end() -> None:
    async def scenario(api_server: ApiServer, _: object) -> None:
        client = loopback_client(api_server)
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        for each in (account, FERRY, pod("p1"), pod("p2")):
            await create_object(api_server, client, each)
        said: list[tuple[float, str]] = []

        async def follow() -> None:
            async for line in follow_progress(api_server, client, workloads_of([FERRY])):
                said.append((round(api_server.clock.now_s(), 1), line))

        async def write(kind: Any, name: str, status: Mapping[str, object]) -> None:
            await client.patch(kind, "default", name, {"status": status}, form=PatchForm.MERGE, subresource="status")

        async with TaskGroup("scenario") as group:
            group.start(follow(), name="follow")
            unscheduled = condition("PodScheduled", "False", reason="Unschedulable", message=UNSCHEDULABLE)
            await write(kinds.POD, "p1", {"conditions": [unscheduled]})
            await api_server.clock.wait(60.0)
            for seconds in (10, 20, 40):
                waiting = {"reason": "CrashLoopBackOff", "message": f"back-off {seconds}s restarting failed container"}
                container = {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 1}
                await write(
                    kinds.POD,
                    "p1",
                    {"conditions": None, "containerStatuses": [{**container, "state": {"waiting": waiting}}]},
                )
                await api_server.clock.wait(2 * REASON_EACH_S)
            await write(kinds.DEPLOYMENT, "ferry", COMPLETE)
        first, second, last = said
        nothing = "deployment/ferry: 0 of 2 replicas are available"
        assert first[0] == pytest.approx(FIRST_REASON_S, abs=0.3)
        assert first[1] == f"{nothing}: 0/3 nodes are available: 3 Insufficient cpu"
        assert second[1] == f"{nothing}: CrashLoopBackOff: back-off 10s restarting failed container"
        assert last[1] == "deployment/ferry: 2 of 2 replicas are available"

    with_api_server(scenario)


def test_without_controllers_there_are_no_pods() -> None:
    async def scenario(api_server: ApiServer, _: object) -> None:
        client = loopback_client(api_server)
        await create_object(api_server, client, FERRY)
        lines = follow_progress(api_server, client, workloads_of([FERRY]), has_controllers=False)
        async for line in lines:
            assert line == f"deployment/ferry: 0 of 2 replicas are available: {NO_CONTROLLERS}"
            await client.delete(kinds.DEPLOYMENT, "default", "ferry")

    with_api_server(scenario)
