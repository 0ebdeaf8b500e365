"""A patched object shares its unchanged parts with the stored one; the result does not depend on that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import pytest

from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, DEPLOYMENT, LEASE, NODE, POD, REPLICA_SET, Kind
from mooring.apiserver.call import Call, FieldValidation
from mooring.apiserver.kinds.config_map import ConfigMapStrategy
from mooring.apiserver.kinds.deployment import DeploymentKindStrategy
from mooring.apiserver.kinds.lease import LeaseStrategy
from mooring.apiserver.kinds.node import NodeStrategy
from mooring.apiserver.kinds.pod.strategy import PodStrategy
from mooring.apiserver.kinds.replica_set import ReplicaSetStrategy
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.registry import patches, update
from mooring.apiserver.server import ApiServer
from mooring.apiserver.wire.decode import read_patch
from mooring.client.errors import StatusError
from mooring.client.interface import PatchForm
from mooring.kit.clock import format_rfc3339
from mooring.serving.users import User
from tests.api_servers import with_api_server
from tests.client.objects import config_map, node, pod, replica_set

NS = "default"
STRATEGIES = (
    ConfigMapStrategy,
    DeploymentKindStrategy,
    LeaseStrategy,
    NodeStrategy,
    PodStrategy,
    ReplicaSetStrategy,
)
T1, T2 = "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"


class Write(NamedTuple):
    """A patch, or a function that changes the object before it is sent back."""

    what: Any
    form: PatchForm | None = PatchForm.MERGE
    subresource: str = ""
    validation: FieldValidation = FieldValidation.STRICT


def replaced(change: Callable[[Document], object], subresource: str = "") -> Write:
    return Write(change, None, subresource)


def strategic(patch: Document, subresource: str = "") -> Write:
    return Write(patch, PatchForm.STRATEGIC, subresource)


def condition(kind: str, time: str, **more: object) -> Document:
    return {"type": kind, "status": "True", "lastTransitionTime": time, **more}


METADATA_WRITES = (
    Write({"metadata": {"labels": {"a": "b"}}}),
    Write({"metadata": {"labels": {"a": "b"}}}),
    Write({"metadata": {"labels": {"a": "not valid!"}}}),
    Write({"metadata": {"annotations": {"note": "<x>"}, "finalizers": ["example.com/wait"]}}),
    Write({"metadata": {"annotations": None, "finalizers": None, "labels": {"a": None}}}),
    Write({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]}}),
    Write({"metadata": {"resourceVersion": "1"}}),
    Write({"metadata": {"managedFields": []}}),
    Write({"metadata": {"colour": "red"}}),
    Write({"colour": "red"}),
    Write({"metadata": {"colour": "red"}}, validation=FieldValidation.IGNORE),
    Write({"metadata": {"labels": 5}}),
    Write({"spec": 5, "data": 5}),
    Write([{"op": "add", "path": "/metadata/labels", "value": {"by": "steps"}}], PatchForm.JSON),
    replaced(lambda obj: obj["metadata"].update(labels={"sent": "back"})),
    replaced(lambda obj: obj["metadata"].update(labels={"sent": 7})),
    replaced(lambda obj: obj["metadata"].pop("resourceVersion")),
    replaced(lambda obj: obj["metadata"].update(uid="another")),
    replaced(lambda obj: obj["metadata"].update(annotations={"kubernetes.io/config.mirror": "x"})),
    replaced(lambda obj: obj.update(kind="Secret")),
    replaced(lambda obj: obj.update(colour="red")),
    replaced(lambda obj: None),
)
POD_WRITES = (
    strategic({"status": {"phase": "Running", "conditions": [condition("Ready", T1, observedGeneration=1)]}}, "status"),
    strategic({"status": {"conditions": [condition("Ready", T2), condition("Initialized", T1)]}}, "status"),
    strategic({"metadata": {"labels": {"through": "status"}}}, "status"),
    strategic({"status": {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]}}, "status"),
    strategic({"status": {"qosClass": "Guaranteed"}}, "status"),
    strategic({"spec": {"containers": [{"name": "main", "image": "other:2"}]}}),
    strategic({"spec": {"containers": [{"name": "main", "env": [{"name": "A", "value": "1"}]}]}}),
    strategic({"spec": {"activeDeadlineSeconds": 60}}),
    Write({"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}),
    Write({"spec": {"nodeName": "n9"}}),
    Write({"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "many"}}}),
    Write({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}),
    replaced(lambda obj: obj["status"].update(phase="Failed"), "status"),
    replaced(lambda obj: obj["spec"]["containers"][0].update(image="third:3")),
    replaced(lambda obj: obj["spec"].update(colour="red")),
    replaced(lambda obj: obj["spec"].update(activeDeadlineSeconds=30.5)),
)
WORKLOAD_WRITES = (
    Write({"status": {"replicas": 2, "readyReplicas": 1}}, subresource="status"),
    Write({"status": {"replicas": 1, "readyReplicas": 2}}, subresource="status"),
    replaced(lambda obj: obj["status"].update(observedGeneration=1, replicas=3), "status"),
    replaced(lambda obj: obj["status"].update(replicas=-1), "status"),
    replaced(lambda obj: (obj["status"].update(replicas=4), obj["spec"].update(replicas=9)), "status"),
    replaced(lambda obj: obj["spec"].update(replicas=5)),
    Write({"spec": {"replicas": 6}}),
    Write({"spec": {"replicas": -6}}),
    Write({"metadata": {"annotations": {"deprecated.deployment.rollback.revision": "x"}}}),
    strategic({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "other:2"}]}}}}),
    strategic({"spec": {"template": {"metadata": {"labels": {"app": "other"}}}}}),
    replaced(lambda obj: obj["spec"]["template"]["spec"].update(hostNetwork=True)),
)
NODE_WRITES = (
    strategic({"status": {"capacity": {"cpu": "3000m"}, "conditions": [condition("Ready", T1)]}}, "status"),
    strategic({"status": {"conditions": [condition("Ready", T2)]}}, "status"),
    strategic({"spec": {"unschedulable": True}}),
    strategic({"spec": {"taints": [{"key": "a", "effect": "Strange"}]}}),
    replaced(lambda obj: obj["spec"].update(podCIDR="10.0.0.0/24")),
)
DATA_WRITES = (
    Write({"data": {"key": "value"}}),
    Write({"data": {"key": None, "other": "x"}}),
    Write({"data": {"not a key": "x"}}),
    Write({"immutable": True}),
    Write({"data": {"key": "frozen"}}),
    replaced(lambda obj: obj["metadata"].update(labels={"still": "free"})),
)
LEASE_WRITES = (
    Write({"spec": {"renewTime": "2026-01-01T00:00:01.000000Z", "holderIdentity": "a"}}),
    replaced(lambda obj: obj["spec"].update(renewTime="2026-01-01T00:00:02.000000Z")),
    Write({"spec": {"leaseDurationSeconds": -1}}),
    replaced(lambda obj: obj["spec"].update(strategy="OldestEmulationVersion")),
)


def deployment() -> Document:
    return {**replica_set("web"), "kind": "Deployment"}


def lease() -> Document:
    return {"apiVersion": LEASE.api_version, "kind": "Lease", "metadata": {"name": "l"}, "spec": {}}


async def outcome(api_server: ApiServer, kind: Kind, name: str, write: Write) -> object:
    """How far the revision moved, the stored object and the warnings; or the error."""
    resource, now_s = api_server.resources.of_kind(kind), api_server.clock.wall_s()
    namespace = NS if kind.is_namespaced else ""
    record = await api_server.store.get(kind.key(namespace, name))
    assert record is not None
    call = Call("patch", kind, User("u"), now_s, format_rfc3339(int(now_s)), namespace, name, write.subresource)
    call.field_manager, call.field_validation = "tester", write.validation
    try:
        if write.form is not None:
            patch = read_patch(msgspec.json.encode(write.what), write.form, call)
            changed = await patches.patch(
                api_server.context, resource, call, patch, api_server.document_reader(resource, write.form)
            )
        else:
            call.verb = "update"
            obj = msgspec.json.decode(record.value)
            obj["metadata"]["resourceVersion"] = str(record.revision)
            write.what(obj)
            body = api_server.body_reader(resource, call, msgspec.json.encode(obj), "application/json")
            changed = await update.put(api_server.context, resource, call, body)
    except StatusError as error:
        return f"{error.code} {error.message} {error.details}"
    now = await api_server.store.get(kind.key(namespace, name))
    assert now is not None
    if changed.answer is not None:
        assert msgspec.json.decode(changed.answer) == changed.document
    return now.revision - record.revision, msgspec.json.decode(now.value), call.warnings


def outcomes(kind: Kind, body: Document, writes: Sequence[Write]) -> list[object]:
    found: list[object] = []

    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        await client.create(kind, NS if kind.is_namespaced else "", body)
        for write in writes:
            await api_server.clock.wait(1.0)
            found.append(await outcome(api_server, kind, body["metadata"]["name"], write))

    with_api_server(scenario)
    return found


@pytest.mark.parametrize(
    ("kind", "body", "writes"),
    [
        pytest.param(POD, pod(), POD_WRITES, id="pods"),
        pytest.param(POD, pod(gates=["wait"]), POD_WRITES, id="gated pods"),
        pytest.param(DEPLOYMENT, deployment(), WORKLOAD_WRITES, id="deployments"),
        pytest.param(REPLICA_SET, replica_set(), WORKLOAD_WRITES, id="replica sets"),
        pytest.param(NODE, node(), NODE_WRITES, id="nodes"),
        pytest.param(CONFIG_MAP, config_map(), DATA_WRITES, id="config maps"),
        pytest.param(LEASE, lease(), LEASE_WRITES, id="leases"),
    ],
)
def test_sharing_unchanged_parts_does_not_change_the_result(
    kind: Kind, body: Document, writes: Sequence[Write], monkeypatch: pytest.MonkeyPatch
) -> None:
    all_writes = [*METADATA_WRITES, *writes, *METADATA_WRITES]
    shared = outcomes(kind, body, all_writes)
    for strategy in STRATEGIES:
        monkeypatch.setattr(strategy, "shares_parts", False)
    for write, one, other in zip(all_writes, shared, outcomes(kind, body, all_writes), strict=True):
        assert one == other, write
