"""View of Nodes: allocatable resources, taints, images, conditions and attached volumes; and of Leases.

Most updates of a node are heartbeats, which change no field of this view.
"""

from typing import ClassVar

from msgspec import field

from mooring.api.views.meta import ApiObject, Condition, Int64, ResourceList, Timestamp, View


class Taint(View):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: Timestamp | None = None


class ContainerImage(View):
    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class AttachedVolume(View):
    name: str = ""
    device_path: str = ""


class NodeCondition(Condition):
    last_heartbeat_time: Timestamp | None = None


class NodeAddress(View):
    type: str = ""
    address: str = ""


class NodeSpec(View):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeSystemInfo(View):
    kubelet_version: str = ""


NO_SYSTEM_INFO = NodeSystemInfo()


class NodeStatus(View):
    capacity: ResourceList = field(default_factory=dict)
    allocatable: ResourceList = field(default_factory=dict)
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    volumes_attached: tuple[AttachedVolume, ...] = ()
    declared_features: tuple[str, ...] = ()
    node_info: NodeSystemInfo = NO_SYSTEM_INFO


class Node(ApiObject):
    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "Node"

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class LeaseSpec(View):
    holder_identity: str | None = None
    renew_time: Timestamp | None = None


class Lease(ApiObject):
    api_version: ClassVar[str] = "coordination.k8s.io/v1"
    kind: ClassVar[str] = "Lease"

    spec: LeaseSpec = LeaseSpec()
