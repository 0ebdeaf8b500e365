"""What a node says of itself: the Node that a kubelet registers, its status, its Lease.

Comes in   the settings of a fleet, the name and number of a node, the time
Goes out   bodies and patches, as JSON

Everything that looks like chance (boot id, machine id) is made from the name: the same node has the same, always.
"""

from __future__ import annotations

from hashlib import blake2b

from mooring.api.document import Document
from mooring.kit.clock import format_rfc3339, format_rfc3339_micro
from mooring.kubelet.host import HostFacts
from mooring.kubelet.node_state import FleetNode
from mooring.kubelet.settings import VERSION, FleetSettings

LEASE_NAMESPACE = "kube-node-lease"
SILENT_ANNOTATION = "mooring.dev/silent"
"""On a Node: "true" silences its kubelet until it is taken away."""
SIMULATED_ANNOTATION = "mooring.dev/simulated"
"""On a Node that somebody else made: "true" asks the fleet to run its kubelet."""

RUNTIME_VERSION = "mooring://1.36"

_HEALTHY = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def node_body(node: FleetNode, settings: FleetSettings, wall_s: float) -> Document:
    """The Node that a kubelet registers."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node.name,
            "labels": node_labels(node, settings),
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        },
        "spec": {},
        "status": node_status(node, settings, wall_s),
    }


def node_labels(node: FleetNode, settings: FleetSettings) -> dict[str, str]:
    architecture = settings.shape.architecture
    labels = {
        "beta.kubernetes.io/arch": architecture,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": architecture,
        "kubernetes.io/hostname": node.name,
        "kubernetes.io/os": "linux",
        **settings.labels,
    }
    if settings.zones:
        labels["topology.kubernetes.io/zone"] = settings.zones[node.index % len(settings.zones)]
    if settings.region:
        labels["topology.kubernetes.io/region"] = settings.region
    return labels


def node_status(node: FleetNode, settings: FleetSettings, wall_s: float) -> Document:
    """All that a kubelet tells of its node."""
    now = format_rfc3339(wall_s)
    amounts = node_amounts(settings)
    return {
        "addresses": [{"type": "InternalIP", "address": node.host_ip}, {"type": "Hostname", "address": node.name}],
        "allocatable": amounts,
        "capacity": amounts,
        "conditions": [
            {
                "type": type,
                "status": status,
                "lastHeartbeatTime": now,
                "lastTransitionTime": now,
                "reason": reason,
                "message": message,
            }
            for type, status, reason, message in _HEALTHY
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": settings.port}},
        "nodeInfo": _node_info(node.name, settings),
    }


def node_amounts(settings: FleetSettings) -> dict[str, str]:
    shape = settings.shape
    return {
        "cpu": shape.cpu,
        "ephemeral-storage": shape.ephemeral_storage,
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": shape.memory,
        "pods": str(shape.pods),
        **shape.others,
    }


def heartbeat_patch(node: FleetNode, settings: FleetSettings, wall_s: float) -> Document:
    """What a node tells now and then: that it is well, and what it is if the API has never heard of that.

    A condition that somebody else changed meanwhile gets the time of its change back to ours.
    """
    view = node.view
    assert view is not None, f"node {node.name} is not known to the API"
    now = format_rfc3339(wall_s)
    known = {condition.type: condition.status for condition in view.status.conditions}
    conditions = []
    for type, status, reason, message in _HEALTHY:
        condition: Document = {"type": type, "lastHeartbeatTime": now}
        if known.get(type) != status:
            condition |= {"status": status, "lastTransitionTime": now, "reason": reason, "message": message}
        conditions.append(condition)
    patch: Document = {"status": {"conditions": conditions}}
    if not view.status.allocatable:
        told = node_status(node, settings, wall_s)
        patch["status"] = {**told, "conditions": conditions}
    return patch


def is_well(node: FleetNode) -> bool:
    """Whether the API has of a node what its kubelet would say."""
    if node.view is None:
        return False
    known = {condition.type: condition.status for condition in node.view.status.conditions}
    return all(known.get(type) == status for type, status, _, _ in _HEALTHY) and bool(node.view.status.allocatable)


def lease_body(node: FleetNode, settings: FleetSettings, wall_s: float) -> Document:
    metadata: Document = {"name": node.name, "namespace": LEASE_NAMESPACE}
    if node.view is not None:
        owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.view.metadata.uid}
        metadata["ownerReferences"] = [owner]
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {
            "holderIdentity": node.name,
            "leaseDurationSeconds": settings.lease_s,
            "renewTime": format_rfc3339_micro(wall_s),
        },
    }


def renewal_patch(wall_s: float) -> Document:
    """The smallest thing that keeps a lease: 5,000 nodes send 500 of them each second."""
    return {"spec": {"renewTime": format_rfc3339_micro(wall_s)}}


def _node_info(name: str, settings: FleetSettings) -> Document:
    if settings.host is not None:
        return _host_info(settings.host)
    identity = blake2b(name.encode(), digest_size=16).hexdigest()
    uuid = f"{identity[:8]}-{identity[8:12]}-{identity[12:16]}-{identity[16:20]}-{identity[20:]}"
    return {
        "architecture": settings.shape.architecture,
        "bootID": uuid,
        "containerRuntimeVersion": RUNTIME_VERSION,
        "kernelVersion": "6.12.0",
        "kubeProxyVersion": "",
        "kubeletVersion": VERSION,
        "machineID": identity,
        "operatingSystem": "linux",
        "osImage": "Mooring (simulated)",
        "systemUUID": uuid,
    }


def _host_info(host: HostFacts) -> Document:
    return {
        "architecture": host.architecture,
        "bootID": host.boot_id,
        "containerRuntimeVersion": RUNTIME_VERSION,
        "kernelVersion": host.kernel,
        "kubeProxyVersion": "",
        "kubeletVersion": VERSION,
        "machineID": host.machine_id,
        "operatingSystem": "linux",
        "osImage": host.os_image,
        "systemUUID": host.system_uuid,
    }
