"""What a node says of itself: the Node that a kubelet registers, its status, its Lease.

Comes in   the settings of a fleet, the name and number of a node, the time
Goes out   bodies and patches, as JSON

Everything that looks like chance (boot id, machine id) is made from the name: the same node has the same, always.
"""

from __future__ import annotations

import logging
from hashlib import blake2b
from heapq import heappop, heappush

from mooring.api.document import Document
from mooring.api.kinds import LEASE, NODE
from mooring.client.errors import AlreadyExistsError, ClientError, NotFoundError
from mooring.client.interface import Client, PatchForm
from mooring.kit.clock import Clock, format_rfc3339, format_rfc3339_micro
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.node_state import FleetNode
from mooring.kubelet.settings import VERSION, FleetSettings, HostFacts
from mooring.kubelet.timers import Alarms
from mooring.kubelet.write_queue import Outbox

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
TICK_S = 0.1
CORRECTION_S = 1.0
RETRY_S = 2.0
REFUSED_S = 30.0
GOLDEN_RATIO = 0.618034
LEASES, STATUSES = "leases", "node statuses"

logger = logging.getLogger(__name__)


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


class Heartbeats:
    """Of all nodes of a fleet."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        alarms: Alarms,
        settings: FleetSettings,
    ) -> None:
        self._client = client
        self._clock = clock
        self._alarms = alarms
        self._settings = settings
        self._nodes: dict[str, FleetNode] = {}
        self._due: list[tuple[float, int, str, str]] = []  # when, a number that keeps the order, which node, what
        self._number = 0
        in_flight_max = settings.node_writes_in_flight_max
        self._leases: Outbox[str] = Outbox(LEASES, self._renew, clock, alarms, in_flight_max=in_flight_max)
        self._statuses: Outbox[str] = Outbox(STATUSES, self._tell_status, clock, alarms, in_flight_max=in_flight_max)

    def start(self, group: TaskGroup) -> None:
        self._leases.start(group)
        self._statuses.start(group)

    def add(self, node: FleetNode) -> None:
        """From now on, say that it is alive; for the first time at once."""
        if node.name in self._nodes:
            return
        self._nodes[node.name] = node
        self._leases.put(node.name)
        # Where it stands in the fleet decides when its turn is, not when it came: they all come at once.
        share, now_s = _share(node.index, self._settings.count), self._clock.now_s()
        for what, period_s in ((LEASES, self._settings.lease_period_s), (STATUSES, self._settings.status_period_s)):
            self._push(now_s + (share * period_s - now_s) % period_s, node.name, what)
        self._wind()

    def remove(self, node: FleetNode) -> None:
        self._nodes.pop(node.name, None)

    def correct(self, node: FleetNode) -> None:
        """The API believes something else of it: say how it is."""
        if node.name in self._nodes:
            self._statuses.put_after(node.name, CORRECTION_S)

    def wake(self, node: FleetNode) -> None:
        """It was silent, and is not any more."""
        self._leases.put(node.name)
        self._statuses.put(node.name)

    def statistics(self) -> dict[str, dict[str, int]]:
        return {LEASES: self._leases.statistics(), STATUSES: self._statuses.statistics()}

    # -------------------------------------------------------------------------------------------- whose turn

    def _push(self, due_s: float, name: str, what: str) -> None:
        self._number += 1
        heappush(self._due, (due_s, self._number, name, what))

    def _wind(self) -> None:
        if self._due:
            delay_s = max(TICK_S, self._due[0][0] - self._clock.now_s())
            self._alarms.set("heartbeats", delay_s, self._ring)

    def _ring(self) -> None:
        now_s = self._clock.now_s() + TICK_S / 2
        while self._due and self._due[0][0] <= now_s:
            due_s, _, name, what = heappop(self._due)
            node = self._nodes.get(name)
            if node is None:
                continue
            is_lease = what == LEASES
            self._push(due_s + self._period_s(is_lease), name, what)
            if not node.is_silenced:
                (self._leases if is_lease else self._statuses).put(name)
        self._wind()

    def _period_s(self, is_lease: bool) -> float:
        return self._settings.lease_period_s if is_lease else self._settings.status_period_s

    # ------------------------------------------------------------------------------------------------ telling

    async def _renew(self, name: str) -> float | None:
        node = self._nodes.get(name)
        if node is None or node.is_silenced:
            return None
        patch = renewal_patch(self._clock.wall_s())
        try:
            await self._client.patch(LEASE, LEASE_NAMESPACE, name, patch, form=PatchForm.MERGE)
        except NotFoundError:
            return await self._create_lease(node)
        except ClientError as error:
            return _retry_s(error, f"the lease of {name}")
        return None

    async def _create_lease(self, node: FleetNode) -> float | None:
        body = lease_body(node, self._settings, self._clock.wall_s())
        try:
            await self._client.create(LEASE, LEASE_NAMESPACE, body, is_answer_wanted=False)
        except AlreadyExistsError:
            return None
        except NotFoundError:
            return RETRY_S  # the namespace is made by the API server, some time after its start
        except ClientError as error:
            return _retry_s(error, f"the lease of {node.name}")
        return None

    async def _tell_status(self, name: str) -> float | None:
        node = self._nodes.get(name)
        if node is None or node.is_silenced or node.view is None:
            return None
        patch = heartbeat_patch(node, self._settings, self._clock.wall_s())
        try:
            await self._client.patch(NODE, "", name, patch, form=PatchForm.STRATEGIC, subresource="status")
        except NotFoundError:
            return None
        except ClientError as error:
            return _retry_s(error, f"the status of node {name}")
        return None


def needs_correction(node: FleetNode) -> bool:
    """Whether the API believes of a node what its kubelet would not say."""
    return not node.is_silenced and node.view is not None and not is_well(node)


def _share(index: int, count: int) -> float:
    """Where in a period a node has its turn, from 0 to 1. The golden ratio spreads any number of adopted nodes."""
    return index / count if index < count else index * GOLDEN_RATIO % 1.0


def _retry_s(error: ClientError, what: str) -> float:
    if error.can_help_to_retry:
        return RETRY_S
    logger.warning("%s is refused: %s", what, error)
    return REFUSED_S
