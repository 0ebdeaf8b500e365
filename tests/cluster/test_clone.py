"""Cloning a cluster: a dump of a running one, cloned and started, stays as it is."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from mooring.api.document import Document
from mooring.api.kinds import (
    JOB,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    PRIORITY_CLASS,
    REPLICA_SET,
    all_kinds,
)
from mooring.apiserver.assembly import Settings, open_api_server
from mooring.apiserver.server import ApiServer
from mooring.cli.manifests.read import find_sources, read_objects
from mooring.client.interface import PatchForm
from mooring.cluster.clone import CloneReport, clone, clone_body, clone_status, implied_objects, in_waves
from mooring.cluster.components import run_components
from mooring.cluster.objects import create_object, loopback_client
from mooring.cluster.settings import ClusterSettings
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.node_status import SILENT_ANNOTATION
from mooring.store.memory import MemoryStore
from tests.api_servers import TOKEN_KEY, with_api_server

EXAMPLES = Path(__file__).parents[2] / "examples"
MERGE = PatchForm.MERGE
SETTLED_S = 200.0
"""Long enough for leases, graces and garbage collection to have had their turn."""

WORKLOADS = """
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: local},
 provisioner: kubernetes.io/no-provisioner, volumeBindingMode: WaitForFirstConsumer}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: local
  local: {path: /disk}
  nodeAffinity:
    required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node-1]}]}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      priorityClassName: high
      containers: [{name: c, image: web, resources: {requests: {cpu: "2"}}}]
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 1
              podAffinityTerm:
                topologyKey: kubernetes.io/hostname
                labelSelector: {matchLabels: {app: web}}
                matchLabelKeys: [pod-template-hash]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  serviceName: db
  replicas: 1
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: db, volumeMounts: [{name: data, mountPath: /data}]}]}
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], storageClassName: local, resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: kube-system}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: c, image: agent}]}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop},
 spec: {selector: {app: web}, ports: [{port: 80}]}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, namespace: shop},
 spec: {minAvailable: 4, selector: {matchLabels: {app: web}}}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: once, namespace: shop},
 spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: once}]}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: huge, namespace: shop},
 spec: {containers: [{name: c, image: huge, resources: {requests: {cpu: "100"}}}]}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: boats.sea.example},
 spec: {group: sea.example, scope: Namespaced, names: {kind: Boat, plural: boats},
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object,
   x-kubernetes-preserve-unknown-fields: true}}}]}}
---
{apiVersion: sea.example/v1, kind: Boat, metadata: {name: anna, namespace: shop}, spec: {sails: 3}}
"""

Scenario = Callable[[ApiServer], Awaitable[None]]


def play(scenario: Scenario, nodes: int, fill: Scenario) -> None:
    """A cluster with all components on virtual time; `fill` comes before they start."""
    clock = VirtualClock()

    async def main() -> None:
        async with open_api_server(MemoryStore(), clock, Entropy(nodes), Settings(TOKEN_KEY)) as api_server:
            await fill(api_server)
            async with TaskGroup("components") as group:
                settings, ready = ClusterSettings(nodes=nodes), asyncio.Event()
                components = run_components(settings, api_server, clock, Entropy(1), None, ready)
                group.start_background(components, name="components")
                await scenario(api_server)

    run(main(), clock)


async def listed(api_server: ApiServer, kind: Any) -> list[Document]:
    return [msgspec.json.decode(raw) for raw in (await loopback_client(api_server).list(kind)).items]


async def dump_of(api_server: ApiServer) -> list[Document]:
    kinds = dict.fromkeys([*all_kinds(), *(resource.kind for resource in api_server.resources)])
    return [document for kind in kinds for document in await listed(api_server, kind)]


@cache
def original() -> bytes:
    """The dump of a cluster in which everything has settled."""
    dumps: list[bytes] = []

    async def fill(api_server: ApiServer) -> None:
        return

    async def scenario(api_server: ApiServer) -> None:
        client = loopback_client(api_server)
        await api_server.clock.wait(10)
        taint = {"spec": {"taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}]}}
        await client.patch(NODE, "", "node-3", taint, form=MERGE)
        await client.patch(NODE, "", "node-4", {"spec": {"unschedulable": True}}, form=MERGE)
        await client.patch(NODE, "", "node-5", {"metadata": {"annotations": {SILENT_ANNOTATION: "true"}}}, form=MERGE)
        for document in yaml.safe_load_all(WORKLOADS):
            await create_object(api_server, client, document)
        await api_server.clock.wait(120)
        dumps.append(msgspec.json.encode(await dump_of(api_server)))

    play(scenario, nodes=6, fill=fill)
    return dumps[0]


def dump() -> list[Document]:
    documents: list[Document] = msgspec.json.decode(original())
    return documents


def of_kind(documents: list[Document], kind: str) -> dict[str, Document]:
    return {document["metadata"]["name"]: document for document in documents if document["kind"] == kind}


def bindings(documents: list[Document]) -> dict[str, tuple[str | None, str]]:
    return {
        name: (pod["spec"].get("nodeName"), pod["status"]["phase"])
        for name, pod in of_kind(documents, "Pod").items()
        if not pod["metadata"].get("deletionTimestamp")
    }


def condition(document: Document, type_: str) -> tuple[str, str]:
    (found,) = (each for each in document["status"]["conditions"] if each["type"] == type_)
    return found["status"], found.get("message", "")


def test_a_clone_stays_as_the_original_was() -> None:
    before = dump()
    report = CloneReport()
    uids: dict[str, str] = {}

    async def fill(api_server: ApiServer) -> None:
        nonlocal report
        report = await clone(api_server, before)
        uids.update({pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in await listed(api_server, POD)})

    async def scenario(api_server: ApiServer) -> None:
        await api_server.clock.wait(SETTLED_S)
        after = await dump_of(api_server)
        pods = of_kind(after, "Pod")
        assert bindings(after) == bindings(before)
        assert {name: pod["metadata"]["uid"] for name, pod in pods.items()} == uids, "no pod was deleted or created"
        assert {name: pod["spec"] for name, pod in pods.items()} == {
            name: pod["spec"] for name, pod in of_kind(before, "Pod").items()
        }
        assert condition(pods["huge"], "PodScheduled") == condition(of_kind(before, "Pod")["huge"], "PodScheduled")
        assert "0/6 nodes are available" in condition(pods["huge"], "PodScheduled")[1]
        for kind in ("Deployment", "ReplicaSet", "StatefulSet", "PodDisruptionBudget"):
            statuses = {name: each["status"] for name, each in of_kind(before, kind).items()}
            assert {name: each["status"] for name, each in of_kind(after, kind).items()} == statuses
        assert condition(of_kind(after, "Job")["once"], "Complete")[0] == "True"
        assert of_kind(after, "Boat")["anna"]["spec"] == {"sails": 3}

    play(scenario, nodes=0, fill=fill)
    assert report.failures == []
    assert report.ownerless == {}
    assert (report.cloned["Node"], report.nodes_not_ready) == (6, 1)
    assert report.pods == {"bound": 12, "pending": 1, "finished": 1}


def with_clone(documents: list[Document], scenario: Callable[[ApiServer, CloneReport], Awaitable[None]]) -> None:
    """The objects as they are before any component has started."""

    async def cloned(api_server: ApiServer, _: object) -> None:
        await scenario(api_server, await clone(api_server, documents))

    with_api_server(cloned, Settings(TOKEN_KEY))


def test_references_point_to_the_clones() -> None:
    async def scenario(api_server: ApiServer, report: CloneReport) -> None:
        (replicas,), (job,) = await listed(api_server, REPLICA_SET), await listed(api_server, JOB)
        pods = {pod["metadata"]["name"]: pod for pod in await listed(api_server, POD)}
        owners = {
            name: [owner["uid"] for owner in pod["metadata"].get("ownerReferences", ())] for name, pod in pods.items()
        }
        assert [uids for name, uids in owners.items() if name.startswith("web-")] == [[replicas["metadata"]["uid"]]] * 6
        (name,) = (name for name in pods if name.startswith("once-"))
        assert owners[name] == [job["metadata"]["uid"]]
        assert pods[name]["metadata"]["labels"]["batch.kubernetes.io/controller-uid"] == job["metadata"]["uid"]
        assert job["spec"]["selector"]["matchLabels"] == {"batch.kubernetes.io/controller-uid": job["metadata"]["uid"]}
        (volume,), (claim,) = (
            await listed(api_server, PERSISTENT_VOLUME),
            await listed(api_server, PERSISTENT_VOLUME_CLAIM),
        )
        assert volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
        assert (volume["status"]["phase"], claim["status"]["phase"]) == ("Bound", "Bound")
        assert claim["spec"]["volumeName"] == "disk"

    with_clone(dump(), scenario)


def test_nodes_keep_what_scheduling_reads() -> None:
    async def scenario(api_server: ApiServer, report: CloneReport) -> None:
        before = of_kind(dump(), "Node")
        for node in await listed(api_server, NODE):
            name, old = node["metadata"]["name"], before[node["metadata"]["name"]]
            assert node["metadata"]["labels"] == old["metadata"]["labels"]
            assert node["spec"] == old["spec"]
            assert node["status"]["allocatable"] == old["status"]["allocatable"]
            assert condition(node, "Ready")[0] == ("Unknown" if name == "node-5" else "True")

    with_clone(dump(), scenario)


# --- fields -----------------------------------------------------------------------------------------------------------

METADATA = {
    "name": "x",
    "uid": "old",
    "resourceVersion": "7",
    "generation": 3,
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "selfLink": "/x",
    "managedFields": [{}],
    "labels": {"a": "b"},
    "finalizers": ["example.com/f"],
}
KEPT_METADATA = {"name": "x", "labels": {"a": "b"}, "finalizers": ["example.com/f"]}
SIMULATED = {"mooring.dev/simulated": "true"}
NEW = {"old-owner": "new-owner", "old-claim": "new-claim"}


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        pytest.param("ConfigMap", {"data": {"k": "v"}}, {"data": {"k": "v"}}, id="data stays"),
        pytest.param("apps/Deployment", {"status": {"replicas": 1}}, {}, id="a status is written afterwards"),
        pytest.param(
            "Pod",
            {"spec": {"nodeName": "n", "ephemeralContainers": [{}]}, "status": {"phase": "Running"}},
            {"spec": {"nodeName": "n"}},
            id="a pod keeps its node",
        ),
        pytest.param(
            "Service",
            {
                "spec": {
                    "clusterIP": "10.0.0.7",
                    "clusterIPs": ["10.0.0.7"],
                    "ipFamilies": ["IPv4"],
                    "ports": [{"port": 80, "nodePort": 7}],
                }
            },
            {"spec": {"ports": [{"port": 80}]}},
            id="a service gets another address and node port",
        ),
        pytest.param("Service", {"spec": {"clusterIP": "None"}}, {"spec": {"clusterIP": "None"}}, id="headless"),
        pytest.param(
            "batch/Job",
            {
                "spec": {
                    "selector": {"matchLabels": {"controller-uid": "old"}},
                    "template": {"metadata": {"labels": {"controller-uid": "old", "job-name": "x", "a": "b"}}},
                }
            },
            {"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}},
            id="the server derives the selector of a job",
        ),
        pytest.param(
            "batch/Job",
            {"spec": {"manualSelector": True, "selector": {"matchLabels": {"a": "b"}}}},
            {"spec": {"manualSelector": True, "selector": {"matchLabels": {"a": "b"}}}},
            id="unless its author chose it",
        ),
        pytest.param(
            "sea.example/Job",
            {"spec": {"selector": {"controller-uid": "old"}}},
            {"spec": {"selector": {"controller-uid": "old"}}},
            id="a custom kind of the same name",
        ),
        pytest.param(
            "PersistentVolume",
            {"spec": {"claimRef": {"name": "c", "uid": "old-claim", "resourceVersion": "3"}}},
            {"spec": {"claimRef": {"name": "c", "uid": "new-claim"}}},
            id="a volume is bound to the clone of its claim",
        ),
        pytest.param(
            "Node",
            {
                "spec": {"taints": [{"key": "node.kubernetes.io/disk-pressure"}, {"key": "team"}]},
                "status": {
                    "images": [{}],
                    "conditions": [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "True"}],
                },
            },
            {
                "metadata": {**KEPT_METADATA, "annotations": SIMULATED},
                "spec": {"taints": [{"key": "team"}]},
                "status": {
                    "images": [{}],
                    "conditions": [
                        {"type": "Ready", "status": "True"},
                        {"type": "DiskPressure", "status": "False"},
                        {"type": "MemoryPressure", "status": "False"},
                        {"type": "PIDPressure", "status": "False"},
                    ],
                },
            },
            id="a ready node is healthy, and a simulated kubelet adopts it",
        ),
        pytest.param(
            "Node",
            {
                "spec": {"taints": [{"key": "node.kubernetes.io/unreachable"}]},
                "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
            },
            {
                "metadata": {**KEPT_METADATA, "annotations": {**SIMULATED, "mooring.dev/silent": "true"}},
                "spec": {"taints": [{"key": "node.kubernetes.io/unreachable"}]},
                "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
            },
            id="a node that is not ready stays so, with a silent kubelet",
        ),
        pytest.param(
            "Pod",
            {"metadata": {"name": "x", "ownerReferences": [{"uid": "old-owner"}, {"uid": "not in the dump"}]}},
            {"metadata": {"name": "x", "ownerReferences": [{"uid": "new-owner"}]}, "spec": {}},
            id="owners are the clones, and those without one are dropped",
        ),
    ],
)
def test_fields(kind: str, given: Document, expected: Document) -> None:
    group, _, kind = kind.rpartition("/")
    head = {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind}
    document = {**head, "metadata": METADATA, **given}
    expected = {**head, "metadata": KEPT_METADATA, **expected}
    assert clone_body(document, NEW, has_status=True) == expected


@pytest.mark.parametrize(
    ("observed", "expected"), [pytest.param(3, 1, id="up to date"), pytest.param(2, 0, id="the controller is behind")]
)
def test_the_status_names_the_clone(observed: int, expected: int) -> None:
    status = {
        "observedGeneration": observed,
        "conditions": [{"type": "A", "observedGeneration": observed}],
        "reservedFor": [{"name": "p", "uid": "old-owner"}],
    }
    written = clone_status({"metadata": METADATA, "status": status}, NEW, generation=1)
    assert written == {
        "observedGeneration": expected,
        "conditions": [{"type": "A", "observedGeneration": expected}],
        "reservedFor": [{"name": "p", "uid": "new-owner"}],
    }


# --- order, and what is missing ---------------------------------------------------------------------------------------


def plain(kind: str, name: str, *owners: str, **fields: object) -> Document:
    group, _, kind = kind.rpartition("/")
    metadata = {"name": name, "uid": name, "ownerReferences": [{"uid": owner} for owner in owners]}
    return {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, "metadata": metadata, **fields}


@pytest.mark.parametrize(
    ("documents", "order"),
    [
        pytest.param(
            [plain("Pod", "p"), plain("Node", "n"), plain("Namespace", "ns"), plain("ResourceQuota", "q")],
            [["ns"], ["n"], ["p"], ["q"]],
            id="by kind",
        ),
        pytest.param(
            [
                plain("Pod", "p", "rs"),
                plain("apps/ReplicaSet", "rs", "d"),
                plain("apps/Deployment", "d", "boat"),
                plain("Boat", "boat"),
            ],
            [["boat"], ["d"], ["rs"], ["p"]],
            id="owners first",
        ),
        pytest.param(
            [
                plain("PersistentVolumeClaim", "c", "p"),
                plain("PersistentVolume", "v", spec={"claimRef": {"uid": "c"}}),
                plain("Pod", "p"),
            ],
            [["p"], ["c"], ["v"]],
            id="a pod before the claim that it owns, and that before its volume",
        ),
        pytest.param([plain("A", "a", "b"), plain("A", "b", "a")], [["b"], ["a"]], id="a cycle of owners ends"),
    ],
)
def test_the_order_of_creation(documents: list[Document], order: list[list[str]]) -> None:
    assert [[each["metadata"]["name"] for each in wave] for wave in in_waves(documents)] == order


def test_a_default_priority_class_does_not_apply_to_older_pods() -> None:
    group = "scheduling.k8s.io/v1"
    by_default = {
        "apiVersion": group,
        "kind": "PriorityClass",
        "metadata": {"name": "d"},
        "value": 5,
        "globalDefault": True,
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "old", "namespace": "default"}}
    older = {**pod, "spec": {"priority": 0, "containers": [{"name": "c", "image": "i"}]}}

    async def scenario(api_server: ApiServer, report: CloneReport) -> None:
        assert report.failures == []
        assert [pod["spec"]["priority"] for pod in await listed(api_server, POD)] == [0]
        classes = {each["metadata"]["name"]: each for each in await listed(api_server, PRIORITY_CLASS)}
        assert classes["d"]["globalDefault"] is True

    with_clone([by_default, older], scenario)


def test_what_a_partial_dump_names_is_added() -> None:
    spec = {"priorityClassName": "high", "priority": 7, "runtimeClassName": "gvisor", "overhead": {"cpu": "1"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop"}, "spec": spec}
    system = {**pod, "metadata": {"name": "s"}, "spec": {"priorityClassName": "system-node-critical"}}
    assert implied_objects([system]) == []  # every cluster has this class, and rejects another one
    assert [
        (implied_object["kind"], implied_object["metadata"]["name"]) for implied_object in implied_objects([pod])
    ] == [
        ("Namespace", "shop"),
        ("PriorityClass", "high"),
        ("RuntimeClass", "gvisor"),
    ]

    async def scenario(api_server: ApiServer, report: CloneReport) -> None:
        assert report.failures == []
        (cloned,) = await listed(api_server, POD)
        assert {name: cloned["spec"][name] for name in spec} == spec
        assert report.added == ["Namespace shop", "PriorityClass high", "RuntimeClass gvisor"]

    with_clone([{**pod, "spec": {**spec, "containers": [{"name": "c", "image": "i"}]}}], scenario)


def test_the_cluster_of_the_examples_is_cloned_as_a_whole() -> None:
    sources = find_sources([str(EXAMPLES / "clusters")])

    async def scenario(api_server: ApiServer, report: CloneReport) -> None:
        assert (report.failures, report.left_out) == ([], {})
        assert {condition(node, "Ready")[0] for node in await listed(api_server, NODE)} == {"True"}

    with_clone([read_object.document for read_object in read_objects(sources, io.BytesIO())], scenario)


def test_pods_have_their_service_accounts() -> None:
    """Those that the dump does not contain are added; those that it contains come before their pods."""

    def pod(name: str, **spec: str) -> Document:
        containers = [{"name": "c", "image": "i"}]
        metadata = {"name": name, "namespace": "shop"}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**spec, "containers": containers}}

    cruise = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "cruise", "namespace": "shop", "uid": "of-cruise"},
        "spec": {
            "selector": {"matchLabels": {"app": "cruise"}},
            "template": {
                "metadata": {"labels": {"app": "cruise"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    }
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "cruise", "uid": "of-cruise"}
    owned = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "owned", "namespace": "shop", "ownerReferences": [owner]},
        "imagePullSecrets": [{"name": "pull"}],
    }

    async def scenario(api_server: ApiServer, report: CloneReport) -> None:
        assert report.failures == []
        assert report.added == ["Namespace shop", "ServiceAccount shop/named"]
        specs = {each["metadata"]["name"]: each["spec"] for each in await listed(api_server, POD)}
        assert {name: spec["serviceAccountName"] for name, spec in specs.items()} == {
            "a": "default",
            "b": "named",
            "c": "owned",
        }
        assert specs["c"]["imagePullSecrets"] == [{"name": "pull"}]

    pods = [pod("a"), pod("b", serviceAccountName="named"), pod("c", serviceAccountName="owned")]
    with_clone([*pods, owned, cruise], scenario)


def test_what_cannot_be_added_is_named() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "no_name"}, "spec": {}}

    async def scenario(api_server: ApiServer, report: CloneReport) -> None:
        assert [failure.partition(" is invalid")[0] for failure in report.failures] == [
            'Namespace no_name: Namespace "no_name"',
            'Pod no_name/p: namespaces "no_name" not found',
        ]

    with_clone([pod], scenario)


def test_what_is_not_taken_over_is_counted_and_named() -> None:
    containers = {"containers": [{"name": "c", "image": "i"}]}
    documents = [
        plain("Event", "e"),
        plain("coordination.k8s.io/Lease", "l"),
        plain("networking.k8s.io/Ingress", "i"),
        plain("Namespace", "default"),
        {**plain("Pod", "stray"), "spec": {**containers, "nodeName": "elsewhere"}},
        {**plain("Pod", "orphan", "nobody"), "spec": containers},
        {**plain("Pod", "bad"), "spec": {"containers": []}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "going", "deletionTimestamp": "2026-01-01T00:00:00Z"}},
    ]

    async def scenario(api_server: ApiServer, report: CloneReport) -> None:
        assert {reason: dict(by_kind) for reason, by_kind in report.left_out.items()} == {
            "the clone writes its own": {"Event": 1, "Lease": 1},
            "bound to a node that is not in the dump": {"Pod": 1},
            "being deleted": {"Pod": 1},
            "this API server has no such kind": {"Ingress": 1},
            "every cluster has its own": {"Namespace": 1},
        }
        assert report.ownerless == {"Pod": 1}
        assert report.failures == ['Pod bad: Pod "bad" is invalid: spec.containers: Required value']
        assert report.cloned == {"Pod": 1}

    with_clone(documents, scenario)
