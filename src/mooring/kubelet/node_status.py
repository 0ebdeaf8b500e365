"""Node and Lease objects, and the heartbeats of all nodes.

Input: settings, nodes that join and leave, the time. Output: Node and Lease documents; renewed leases every
`lease_period_s`; node statuses every `status_period_s`, and when the stored status is wrong.

 1. Leases are renewed evenly over the period, so that the API server sees a constant load. One timer serves all nodes,
    at most every `TICK_S`. Leases that are due together are renewed together.
 2. A silent node skips its turn and keeps its place.
 3. A missing lease is created. A node that was deleted renews no lease.
 4. A node whose conditions another client changed (the node lifecycle controller, for example) corrects them within
    `CORRECTION_S`.
 5. Boot id, machine id and system uuid of a hollow node are derived from its name, so they are always the same.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from hashlib import blake2b
from heapq import heappop, heappush

from mooring.api.document import Document
from mooring.api.kinds import LEASE, NODE, RESOURCE_SLICE
from mooring.api.quantity import quantity_nano
from mooring.api.resources import is_extended_resource
from mooring.api.well_known import ARCH_LABEL, HOSTNAME, NODE_LEASE_NAMESPACE, OS_LABEL, REGION, ZONE
from mooring.client.batch_writes import batch_max, outcomes_of, renew_leases
from mooring.client.errors import AlreadyExistsError, ClientError, NotFoundError
from mooring.client.interface import Client, PatchForm
from mooring.kit.build import KUBERNETES_VERSION
from mooring.kit.clock import Clock, format_rfc3339, format_rfc3339_micro
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.node_state import NodeState
from mooring.kubelet.settings import DeviceTemplate, HostFacts, KubeletSettings, NodeCapacity
from mooring.kubelet.timers import Timers
from mooring.kubelet.write_queue import WRITES_PER_TURN, WriteQueue, one_by_one

SILENT_ANNOTATION = "mooring.dev/silent"
"""On a Node: "true" silences its kubelet until the annotation is removed."""
SIMULATED_ANNOTATION = "mooring.dev/simulated"
"""On a Node that another client created: "true" asks these kubelets to run it."""

RUNTIME_VERSION = "mooring://1.36"

_HEALTHY = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)
TICK_S = 0.1
CORRECTION_S = 1.0
RETRY_S = 2.0
REFUSED_S = 30.0
GOLDEN_RATIO = 0.618034
LEASES, STATUSES = "leases", "node statuses"

logger = logging.getLogger(__name__)


def node_document(node: NodeState, settings: KubeletSettings, wall_s: float) -> Document:
    """The Node object that a kubelet registers."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node.name,
            "labels": node_labels(node, settings),
            "annotations": {
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
                **settings.annotations,
            },
        },
        "spec": {"taints": list(taints)} if (taints := settings.kind_of(node.name, node.index)[0].taints) else {},
        "status": node_status(node, settings, wall_s),
    }


def node_labels(node: NodeState, settings: KubeletSettings) -> dict[str, str]:
    template, number = settings.kind_of(node.name, node.index)
    architecture = template.shape.architecture
    labels = {
        "beta.kubernetes.io/arch": architecture,
        "beta.kubernetes.io/os": "linux",
        ARCH_LABEL: architecture,
        HOSTNAME: node.name,
        OS_LABEL: "linux",
        **template.labels,
    }
    if template.zones:
        labels[ZONE] = template.zones[number % len(template.zones)]
    if settings.region:
        labels[REGION] = settings.region
    return labels


def node_status(node: NodeState, settings: KubeletSettings, wall_s: float) -> Document:
    """The complete status of a node."""
    now = format_rfc3339(wall_s)
    shape = settings.kind_of(node.name, node.index)[0].shape
    resources = node_resources(shape)
    return {
        "addresses": [{"type": "InternalIP", "address": node.host_ip}, {"type": "Hostname", "address": node.name}],
        "allocatable": resources,
        "capacity": resources,
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
        "nodeInfo": _node_info(node.name, settings, shape.architecture),
    }


def resource_slices(node: NodeState, settings: KubeletSettings) -> list[Document]:
    """The ResourceSlices of a node, one for each driver. They are deleted with the node."""
    assert node.view is not None, f"node {node.name} is not known to the API"
    owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.view.metadata.uid, "controller": True}
    by_driver: dict[str, list[Document]] = {}
    for template in settings.kind_of(node.name, node.index)[0].devices:
        by_driver.setdefault(template.driver, []).extend(_devices(template))
    return [
        {
            "apiVersion": RESOURCE_SLICE.api_version,
            "kind": RESOURCE_SLICE.kind,
            "metadata": {"name": f"{node.name}-{driver}", "ownerReferences": [owner]},
            "spec": {
                "driver": driver,
                "nodeName": node.name,
                "pool": {"name": node.name, "generation": 1, "resourceSliceCount": 1},
                "devices": devices,
            },
        }
        for driver, devices in by_driver.items()
    ]


def _devices(template: DeviceTemplate) -> list[Document]:
    parts: Document = {}
    if template.attributes:
        parts["attributes"] = dict(template.attributes)
    if template.capacity:
        parts["capacity"] = {name: {"value": amount} for name, amount in template.capacity.items()}
    return [{"name": f"{template.name}-{number}", **parts} for number in range(template.count)]


def node_resources(shape: NodeCapacity) -> dict[str, str]:
    return {
        "cpu": shape.cpu,
        "ephemeral-storage": shape.ephemeral_storage,
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": shape.memory,
        "pods": str(shape.pods),
        **shape.others,
    }


def heartbeat_patch(node: NodeState, settings: KubeletSettings, wall_s: float) -> Document:
    """Heartbeat times; conditions that another client changed; what is missing in the status of a node that another
    client created, such as kubelet version and address, or everything."""
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
        reported = node_status(node, settings, wall_s)
        patch["status"] = {**reported, "conditions": conditions}
    elif not view.status.addresses:
        reported = node_status(node, settings, wall_s)
        patch["status"] |= {name: reported[name] for name in ("addresses", "daemonEndpoints", "nodeInfo")}
        if not view.status.capacity:
            patch["status"]["capacity"] = dict(view.status.allocatable)
    elif extended := extended_resources_patch(node, settings):
        patch["status"]["allocatable"] = extended
    return patch


def extended_resources_patch(node: NodeState, settings: KubeletSettings) -> dict[str, str | None]:
    """Changes of allocatable so that it has the extended resources of the capacity, which users set; None removes one.

    Only of nodes that the kubelets added: an adopted node may be a clone whose devices are not all allocatable.
    """
    assert node.view is not None, f"node {node.name} is not known to the API"
    capacity, allocatable = node.view.status.capacity, node.view.status.allocatable
    if capacity == allocatable or not capacity:
        return {}
    changes: dict[str, str | None] = {
        name: str(amount)
        for name, amount in capacity.items()
        if is_extended_resource(name) and allocatable.get(name) != amount
    }
    changes.update({name: None for name in allocatable if is_extended_resource(name) and name not in capacity})
    return changes if changes and node.name in settings.node_names() else {}


def resources_patch(node: NodeState, settings: KubeletSettings) -> dict[str, str]:
    """The resources of an earlier start that are different now, as a kubelet corrects them when it starts.

    Resources that the kubelet does not know, such as those that a user added, stay.
    """
    assert node.view is not None, f"node {node.name} is not known to the API"
    stored = node.view.status.capacity
    resources = node_resources(settings.kind_of(node.name, node.index)[0].shape)
    return {
        name: amount
        for name, amount in resources.items()
        if name not in stored or quantity_nano(stored[name]) != quantity_nano(amount)
    }


def is_healthy(node: NodeState) -> bool:
    """Whether the stored status is what the kubelet would write."""
    if node.view is None:
        return False
    known = {condition.type: condition.status for condition in node.view.status.conditions}
    is_complete = bool(node.view.status.allocatable and node.view.status.addresses)
    return is_complete and all(known.get(type) == status for type, status, _, _ in _HEALTHY)


def lease_document(node: NodeState, settings: KubeletSettings, wall_s: float) -> Document:
    metadata: Document = {"name": node.name, "namespace": NODE_LEASE_NAMESPACE}
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


def _node_info(name: str, settings: KubeletSettings, architecture: str) -> Document:
    machine = _host_info(settings.host) if settings.host is not None else _hollow_info(name, architecture)
    return {
        **machine,
        "containerRuntimeVersion": RUNTIME_VERSION,
        "kubeProxyVersion": "",
        "kubeletVersion": KUBERNETES_VERSION,
        "operatingSystem": "linux",
    }


def _hollow_info(name: str, architecture: str) -> Document:
    identity = blake2b(name.encode(), digest_size=16).hexdigest()
    uuid = f"{identity[:8]}-{identity[8:12]}-{identity[12:16]}-{identity[16:20]}-{identity[20:]}"
    return {
        "architecture": architecture,
        "bootID": uuid,
        "kernelVersion": "6.12.0",
        "machineID": identity,
        "osImage": "Mooring (simulated)",
        "systemUUID": uuid,
    }


def _host_info(host: HostFacts) -> Document:
    return {
        "architecture": host.architecture,
        "bootID": host.boot_id,
        "kernelVersion": host.kernel,
        "machineID": host.machine_id,
        "osImage": host.os_image,
        "systemUUID": host.system_uuid,
    }


class Heartbeats:
    """Leases and statuses of all nodes."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        timers: Timers,
        settings: KubeletSettings,
    ) -> None:
        self._client = client
        self._clock = clock
        self._timers = timers
        self._settings = settings
        self._own_nodes = len(settings.node_names())
        self._nodes: dict[str, NodeState] = {}
        self._resources_changed: set[str] = set()
        """Nodes whose stored resources are those of an earlier start."""
        self._due: list[tuple[float, int, str, str]] = []  # due time, sequence number, node, LEASES or STATUSES
        self._periods_s = {LEASES: settings.lease_period_s, STATUSES: settings.status_period_s}
        self._number = 0
        in_flight_max = settings.node_writes_in_flight_max
        keys_max = batch_max(client, WRITES_PER_TURN)
        self._leases: WriteQueue[str] = WriteQueue(
            LEASES, self._renew, clock, timers, in_flight_max=in_flight_max, keys_max=keys_max
        )
        self._statuses: WriteQueue[str] = WriteQueue(
            STATUSES, one_by_one(self._write_status), clock, timers, in_flight_max=in_flight_max
        )
        self._queues = {LEASES: self._leases, STATUSES: self._statuses}

    def start(self, group: TaskGroup) -> None:
        for queue in self._queues.values():
            queue.start(group)

    def add(self, node: NodeState) -> None:
        """Start heartbeats of a node, the first one at once."""
        if node.name in self._nodes:
            return
        self._nodes[node.name] = node
        self._leases.add(node.name)
        # The turn of a node depends on its index, not on when it was added: all nodes are added at once.
        share, now_s = _share(node.index, self._own_nodes), self._clock.now_s()
        for queue_name, period_s in self._periods_s.items():
            self._push(now_s + (share * period_s - now_s) % period_s, node.name, queue_name)
        self._schedule()

    def remove(self, node: NodeState) -> None:
        self._nodes.pop(node.name, None)

    def correct(self, node: NodeState) -> None:
        """The stored status is wrong: write it soon."""
        if node.name in self._nodes:
            self._statuses.add_after(node.name, CORRECTION_S)

    def correct_resources(self, node: NodeState) -> None:
        """The node has the resources of an earlier start: write the present ones."""
        self._resources_changed.add(node.name)
        self._statuses.add(node.name)

    def resume(self, node: NodeState) -> None:
        """The node is not silent any more: write lease and status now."""
        self._leases.add(node.name)
        self._statuses.add(node.name)

    def statistics(self) -> dict[str, dict[str, int]]:
        return {queue_name: queue.statistics() for queue_name, queue in self._queues.items()}

    # Schedule

    def _push(self, due_s: float, name: str, queue_name: str) -> None:
        self._number += 1
        heappush(self._due, (due_s, self._number, name, queue_name))

    def _schedule(self) -> None:
        if self._due:
            delay_s = max(TICK_S, self._due[0][0] - self._clock.now_s())
            self._timers.set("heartbeats", delay_s, self._fire)

    def _fire(self) -> None:
        now_s = self._clock.now_s() + TICK_S / 2
        while self._due and self._due[0][0] <= now_s:
            due_s, _, name, queue_name = heappop(self._due)
            node = self._nodes.get(name)
            if node is None:
                continue
            self._push(due_s + self._periods_s[queue_name], name, queue_name)
            if not node.is_silent:
                self._queues[queue_name].add(name)
        self._schedule()

    # Writes

    async def _renew(self, names: Sequence[str]) -> list[float | None]:
        nodes = [node for name in names if (node := self._nodes.get(name)) is not None and not node.is_silent]
        renewed = [node.name for node in nodes]
        renewals = await renew_leases(self._client, NODE_LEASE_NAMESPACE, renewed, self._clock.wall_s())
        outcomes = dict(zip(renewed, renewals, strict=True))
        missing = [node for node in nodes if isinstance(outcomes[node.name], NotFoundError)]
        created = await outcomes_of(self._create_lease, missing)
        outcomes.update(zip((node.name for node in missing), created, strict=True))
        return [_lease_retry_s(name, outcomes.get(name)) for name in names]

    async def _create_lease(self, node: NodeState) -> bytes:
        body = lease_document(node, self._settings, self._clock.wall_s())
        try:
            return await self._client.create(LEASE, NODE_LEASE_NAMESPACE, body, is_answer_wanted=False)
        except AlreadyExistsError:
            return b""

    async def _write_status(self, name: str) -> float | None:
        node = self._nodes.get(name)
        if node is None or node.is_silent or node.view is None:
            return None
        patch = heartbeat_patch(node, self._settings, self._clock.wall_s())
        if name in self._resources_changed:
            changed = resources_patch(node, self._settings)
            patch["status"] |= {"capacity": changed, "allocatable": changed}
        try:
            await self._client.patch(NODE, "", name, patch, form=PatchForm.STRATEGIC, subresource="status")
        except NotFoundError:
            return None
        except ClientError as error:
            return _retry_s(error, f"the status of node {name}")
        self._resources_changed.discard(name)
        return None


def needs_correction(node: NodeState, settings: KubeletSettings) -> bool:
    """Whether the stored status differs from what the kubelet would write."""
    if node.is_silent or node.view is None:
        return False
    return not is_healthy(node) or bool(extended_resources_patch(node, settings))


def _share(index: int, count: int) -> float:
    """The position of a node in a period, from 0 to 1. The golden ratio spreads any number of adopted nodes."""
    return index / count if index < count else index * GOLDEN_RATIO % 1.0


def _lease_retry_s(name: str, outcome: bytes | ClientError | None) -> float | None:
    match outcome:
        case NotFoundError():
            return RETRY_S  # the API server creates the namespace some time after its start
        case ClientError():
            return _retry_s(outcome, f"the lease of {name}")
        case _:
            return None


def _retry_s(error: ClientError, what: str) -> float:
    if error.can_help_to_retry:
        return RETRY_S
    logger.warning("writing %s failed: %s", what, error)
    return REFUSED_S
