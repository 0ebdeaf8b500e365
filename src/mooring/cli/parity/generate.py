"""Random clusters for `mooring parity`: nodes, placed pods, and pending pods that together use every plugin.

The same entropy gives the same cluster. Each pending pod gets a few features, each of which makes a plugin act:

  requests, images, priorities, host ports, node selectors and affinity, tolerations, pod affinity and anti-affinity,
  topology spread, claims bound to volumes of a zone with limits by node, ReadWriteOncePod claims, device claims
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mooring.api.document import Document
from mooring.api.well_known import HOSTNAME, ZONE
from mooring.kit.entropy import Entropy

NAMESPACE = "parity"
NODES_MIN, NODES_MORE = 6, 14
PLACED_PER_NODE = 3
PENDING = 30
FEATURES_MAX = 3
CLAIMS = 8
DEVICES_PER_NODE = 2
ZONES = ("zone-a", "zone-b", "zone-c")
APPS = ("web", "db", "cache")
PRIORITIES = {"low": -10, "high": 1_000}
IMAGES = {"registry.example.com/large:1": 900_000_000, "registry.example.com/small:1": 30_000_000}
DRIVER = "disks.example.com"
DEVICE_DRIVER = "gpu.example.com"

Feature = Callable[[Document, Entropy, int], None]
"""Adds a feature to a pod with a number."""


def random_cluster(entropy: Entropy) -> list[Document]:
    """The documents of a cluster; pending pods are those without a node."""
    nodes = NODES_MIN + entropy.integer_below(NODES_MORE + 1)
    documents = [_head("v1", "Namespace", NAMESPACE), *_classes(), *_workloads()]
    documents += [_node(entropy, number) for number in range(nodes)]
    documents += [_csi_node(entropy, number) for number in range(nodes)]
    documents += [_slice(number) for number in range(0, nodes, 2)]
    for number in range(CLAIMS):
        documents += _volume_and_claim(entropy, number)
        documents.append(_device_claim(number))
    documents += [_placed_pod(entropy, number, nodes) for number in range(nodes * PLACED_PER_NODE)]
    documents += [_pending_pod(entropy, number) for number in range(PENDING)]
    return documents


def _head(api_version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Document:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def _classes() -> list[Document]:
    scheduling = "scheduling.k8s.io/v1"
    selector = {"cel": {"expression": f'device.driver == "{DEVICE_DRIVER}"'}}
    return [
        *(_head(scheduling, "PriorityClass", name, value=value) for name, value in PRIORITIES.items()),
        _head(
            "storage.k8s.io/v1",
            "StorageClass",
            "disks",
            provisioner=DRIVER,
            volumeBindingMode="WaitForFirstConsumer",
        ),
        _head("storage.k8s.io/v1", "CSIDriver", DRIVER, spec={"attachRequired": True}),
        _head("resource.k8s.io/v1", "DeviceClass", DEVICE_DRIVER, spec={"selectors": [selector]}),
    ]


def _workloads() -> list[Document]:
    """A Service of one app, so that its pods are spread by default, and a PodDisruptionBudget of another."""
    service = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    budget = {"minAvailable": "80%", "selector": {"matchLabels": {"app": "db"}}}
    return [
        _head("v1", "Service", "web", NAMESPACE, spec=service),
        {
            **_head("policy/v1", "PodDisruptionBudget", "db", NAMESPACE, spec=budget),
            "status": {"disruptionsAllowed": 1, "currentHealthy": 5, "desiredHealthy": 4, "expectedPods": 5},
        },
    ]


def _node(entropy: Entropy, number: int) -> Document:
    name = f"node-{number}"
    labels = {HOSTNAME: name, "disk": entropy.choose(("fast", "slow"))}
    if number % 7 != 6:  # a node without a zone
        labels[ZONE] = ZONES[number % len(ZONES)]
    capacity = {
        "cpu": str(2 + 2 * entropy.integer_below(3)),
        "memory": f"{4 + 4 * entropy.integer_below(3)}Gi",
        "ephemeral-storage": "40Gi",
        "pods": entropy.choose(("6", "110")),
    }
    taints: list[Document] = []
    if entropy.integer_below(5) == 0:
        taints.append({"key": "dedicated", "value": "batch", "effect": "NoSchedule"})
    if entropy.integer_below(4) == 0:
        taints.append({"key": "spot", "value": "true", "effect": "PreferNoSchedule"})
    images = [{"names": [image], "sizeBytes": size} for image, size in IMAGES.items() if entropy.integer_below(2) == 0]
    node = _head("v1", "Node", name, spec={"taints": taints} if taints else {})
    node["metadata"]["labels"] = labels
    if entropy.integer_below(10) == 0:
        node["spec"]["unschedulable"] = True
    conditions = [{"type": "Ready", "status": "True"}]
    node["status"] = {"capacity": capacity, "allocatable": capacity, "conditions": conditions, "images": images}
    return node


def _csi_node(entropy: Entropy, number: int) -> Document:
    driver = {
        "name": DRIVER,
        "nodeID": f"node-{number}",
        "topologyKeys": [ZONE],
        "allocatable": {"count": 1 + entropy.integer_below(3)},
    }
    return _head("storage.k8s.io/v1", "CSINode", f"node-{number}", spec={"drivers": [driver]})


def _slice(number: int) -> Document:
    spec = {
        "driver": DEVICE_DRIVER,
        "nodeName": f"node-{number}",
        "pool": {"name": f"node-{number}", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{device}"} for device in range(DEVICES_PER_NODE)],
    }
    return _head("resource.k8s.io/v1", "ResourceSlice", f"node-{number}-gpu", spec=spec)


def _volume_and_claim(entropy: Entropy, number: int) -> list[Document]:
    """A volume of one zone and its claim, bound. Every fourth is ReadWriteOncePod."""
    modes = ["ReadWriteOncePod"] if number % 4 == 3 else ["ReadWriteOnce"]
    size = {"storage": "1Gi"}
    claim_uid = f"00000000-0000-4000-8000-{number:012x}"
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": NAMESPACE, "name": f"data-{number}"}
    zones = {"key": ZONE, "operator": "In", "values": [entropy.choose(ZONES)]}
    volume = _head(
        "v1",
        "PersistentVolume",
        f"volume-{number}",
        spec={
            "accessModes": modes,
            "capacity": size,
            "storageClassName": "disks",
            "csi": {"driver": DRIVER, "volumeHandle": f"disk-{number}"},
            "claimRef": {**reference, "uid": claim_uid},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [zones]}]}},
        },
        status={"phase": "Bound"},
    )
    if number % 2:  # the older way to say it, which VolumeZone reads
        volume["metadata"]["labels"] = {ZONE: zones["values"][0]}
    claim = _head(
        "v1",
        "PersistentVolumeClaim",
        f"data-{number}",
        NAMESPACE,
        spec={
            "accessModes": modes,
            "resources": {"requests": size},
            "storageClassName": "disks",
            "volumeName": f"volume-{number}",
        },
        status={"phase": "Bound", "accessModes": modes, "capacity": size},
    )
    claim["metadata"] |= {"uid": claim_uid, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    return [claim, volume]


def _device_claim(number: int) -> Document:
    request = {"name": "gpu", "exactly": {"deviceClassName": DEVICE_DRIVER}}
    return _head(
        "resource.k8s.io/v1", "ResourceClaim", f"gpu-{number}", NAMESPACE, spec={"devices": {"requests": [request]}}
    )


def _pod(entropy: Entropy, name: str) -> Document:
    requests = {
        "cpu": f"{100 * (1 + entropy.integer_below(8))}m",
        "memory": f"{128 * (1 + entropy.integer_below(8))}Mi",
    }
    container: Document = {"name": "main", "image": entropy.choose(tuple(IMAGES))}
    if entropy.integer_below(6):
        container["resources"] = {"requests": requests}
    pod = _head("v1", "Pod", name, NAMESPACE, spec={"containers": [container]})
    pod["metadata"]["labels"] = {"app": entropy.choose(APPS)}
    return pod


def _placed_pod(entropy: Entropy, number: int, nodes: int) -> Document:
    pod = _pod(entropy, f"placed-{number}")
    pod["spec"]["nodeName"] = f"node-{number % nodes}"
    if entropy.integer_below(2):
        pod["spec"]["priorityClassName"] = "low"
    if entropy.integer_below(6) == 0:
        _pod_anti_affinity(pod, entropy, number)
    # Of equal victims the one that started last goes first: no two start together, so that there are no ties.
    started = f"2026-01-{1 + number // 1440:02d}T{number // 60 % 24:02d}:{number % 60:02d}:00Z"
    ready = {"type": "Ready", "status": "True"}
    pod["status"] = {"phase": "Running", "startTime": started, "conditions": [ready]}
    return pod


def _pending_pod(entropy: Entropy, number: int) -> Document:
    pod = _pod(entropy, f"pending-{number}")
    for _ in range(entropy.integer_below(FEATURES_MAX + 1)):
        entropy.choose(FEATURES)(pod, entropy, number)
    return pod


# ------------------------------------------------------------------------------------------------------------ features


def _part(holder: Document, *names: str) -> Document:
    for name in names:
        holder = holder.setdefault(name, {})
    return holder


def _large(pod: Document, entropy: Entropy, number: int) -> None:
    """Rarely fits without preemption."""
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2500m", "memory": "2Gi"}}


def _important(pod: Document, entropy: Entropy, number: int) -> None:
    pod["spec"]["priorityClassName"] = "high"
    _large(pod, entropy, number)


def _host_port(pod: Document, entropy: Entropy, number: int) -> None:
    port = 8_000 + entropy.integer_below(2)
    pod["spec"]["containers"][0]["ports"] = [{"containerPort": port, "hostPort": port}]


def _node_selector(pod: Document, entropy: Entropy, number: int) -> None:
    pod["spec"]["nodeSelector"] = {"disk": entropy.choose(("fast", "slow", "none"))}


def _node_affinity(pod: Document, entropy: Entropy, number: int) -> None:
    zones = [{"key": ZONE, "operator": entropy.choose(("In", "NotIn")), "values": [entropy.choose(ZONES)]}]
    preferred = {"weight": 1 + entropy.integer_below(100), "preference": {"matchExpressions": zones}}
    affinity = _part(pod["spec"], "affinity", "nodeAffinity")
    affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [preferred]
    if entropy.integer_below(2):
        exists = [{"key": ZONE, "operator": "Exists"}]
        required = {"nodeSelectorTerms": [{"matchExpressions": exists}]}
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = required


def _tolerations(pod: Document, entropy: Entropy, number: int) -> None:
    pod["spec"]["tolerations"] = [
        {"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"},
        *([{"key": "spot", "operator": "Exists"}] if entropy.integer_below(2) else []),
    ]


def _term(entropy: Entropy) -> Document:
    return {
        "topologyKey": entropy.choose((ZONE, HOSTNAME)),
        "labelSelector": {"matchLabels": {"app": entropy.choose(APPS)}},
    }


def _pod_affinity(pod: Document, entropy: Entropy, number: int) -> None:
    affinity = _part(pod["spec"], "affinity", "podAffinity")
    affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
        {"weight": 1 + entropy.integer_below(100), "podAffinityTerm": _term(entropy)}
    ]
    if entropy.integer_below(3) == 0:
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = [_term(entropy)]


def _pod_anti_affinity(pod: Document, entropy: Entropy, number: int) -> None:
    affinity = _part(pod["spec"], "affinity", "podAntiAffinity")
    affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
        {"weight": 1 + entropy.integer_below(100), "podAffinityTerm": _term(entropy)}
    ]
    if entropy.integer_below(3) == 0:
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = [{**_term(entropy), "topologyKey": HOSTNAME}]


def _spread(pod: Document, entropy: Entropy, number: int) -> None:
    pod["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 1 + entropy.integer_below(2),
            "topologyKey": key,
            "whenUnsatisfiable": entropy.choose(("DoNotSchedule", "ScheduleAnyway")),
            "labelSelector": {"matchLabels": {"app": pod["metadata"]["labels"]["app"]}},
        }
        for key in (ZONE, HOSTNAME)
    ]


def _volume(pod: Document, entropy: Entropy, number: int) -> None:
    claim = {"claimName": f"data-{entropy.integer_below(CLAIMS)}"}
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": claim}]


def _device(pod: Document, entropy: Entropy, number: int) -> None:
    claim = f"gpu-{entropy.integer_below(CLAIMS)}"
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
    pod["spec"]["containers"][0].setdefault("resources", {})["claims"] = [{"name": "gpu"}]


FEATURES: tuple[Feature, ...] = (
    _large,
    _important,
    _host_port,
    _node_selector,
    _node_affinity,
    _tolerations,
    _pod_affinity,
    _pod_anti_affinity,
    _spread,
    _volume,
    _device,
)
