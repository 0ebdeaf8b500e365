"""The scheduler as its own process, with exactly the rights that `deploy/` gives it, doing all that needs some."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from mooring.api.kinds import DEVICE_CLASS, POD, PRIORITY_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE, kind_named
from mooring.client.interface import Deletion, PatchForm
from mooring.kit.loop import run_real
from tests.cluster.processes import ApiServer, api_server, scheduler_process
from tests.deploy.manifests import installed

ACCOUNT = "system:serviceaccount:mooring-system:mooring-scheduler"
RIGHTS = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
LEASE_FLAGS = ("--leader-elect-resource-namespace=mooring-system", "--leader-elect-resource-name=mooring-scheduler")


def test_everything_works_with_these_rights(tmp_path: Path) -> None:
    async def main() -> None:
        async with api_server(tmp_path) as server:
            for document in installed():
                if document["kind"] in RIGHTS:
                    await _apply(server, document)
            await server.add_node("n1", cpu="1")
            kubeconfig = server.kubeconfig("account", server.url, user=ACCOUNT)
            async with scheduler_process(server, "mooring", *LEASE_FLAGS, kubeconfig=kubeconfig) as scheduler:
                await _binds_and_preempts(server)
                await _gives_devices(server)
                log = scheduler.log
            assert "leading: the lease mooring-system/mooring-scheduler is ours" in log
            assert "forbidden" not in log, log

    run_real(main())


async def _apply(server: ApiServer, document: dict[str, Any]) -> None:
    kind = kind_named(document["apiVersion"], document["kind"])
    await server.client.create(kind, document["metadata"].get("namespace", ""), document)


async def _binds_and_preempts(server: ApiServer) -> None:
    await server.add_pod("low-1", "mooring", cpu="900m")
    await server.wait_bound("low-", 1)
    important = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "important"},
        "value": 1_000,
    }
    await server.client.create(PRIORITY_CLASS, "", important)
    container = {"name": "main", "image": "pause:3.9", "resources": {"requests": {"cpu": "800m"}}}
    spec = {"schedulerName": "mooring", "priorityClassName": "important", "containers": [container]}
    await server.client.create(
        POD, "default", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "high-1"}, "spec": spec}
    )

    async def is_leaving() -> bool:
        pod = msgspec.json.decode(await server.client.get(POD, "default", "low-1"))
        return "deletionTimestamp" in pod["metadata"]

    await server.wait_until(is_leaving, "the lesser pod has to go")
    # Nobody plays the kubelet here, which would say that it has gone.
    await server.client.patch(POD, "default", "low-1", {"metadata": {"finalizers": None}}, form=PatchForm.MERGE)
    await server.client.delete(POD, "default", "low-1", Deletion(grace_s=0))
    await server.wait_bound("high-", 1)


async def _gives_devices(server: ApiServer) -> None:
    version = "resource.k8s.io/v1"
    await server.client.create(
        DEVICE_CLASS, "", {"apiVersion": version, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
    )
    slice_spec = {
        "driver": "gpu.example.com",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0"}],
    }
    await server.client.create(
        RESOURCE_SLICE,
        "",
        {"apiVersion": version, "kind": "ResourceSlice", "metadata": {"name": "n1-gpu"}, "spec": slice_spec},
    )
    request = {"name": "one", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
    claim = {"devices": {"requests": [request]}}
    await server.client.create(
        RESOURCE_CLAIM,
        "default",
        {"apiVersion": version, "kind": "ResourceClaim", "metadata": {"name": "mine"}, "spec": claim},
    )
    spec = {
        "schedulerName": "mooring",
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "mine"}],
        "containers": [{"name": "main", "image": "pause:3.9", "resources": {"claims": [{"name": "gpu"}]}}],
    }
    await server.client.create(
        POD, "default", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "device-1"}, "spec": spec}
    )
    await server.wait_bound("device-", 1)


@pytest.mark.parametrize("kind", RIGHTS)
def test_there_is_one_of_each(kind: str) -> None:
    assert any(document["kind"] == kind for document in installed())
