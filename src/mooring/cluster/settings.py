"""The settings of a cluster."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mooring.apiserver.event_expiry import EVENT_TTL_S
from mooring.apiserver.http.request import RequestLimits
from mooring.controllers.settings import ControllerSettings
from mooring.serving.users import MASTERS_GROUP, User

if TYPE_CHECKING:
    from mooring.kubelet.settings import KubeletSettings  # imported late: the API server answers before

DEFAULT_PORT = 6_443
SIMULATED, PROCESS = "simulated", "process"
"""What pods are on our nodes."""
STORE_FOLDER, KEYS_FOLDER, PODS_FOLDER, VOLUMES_FOLDER = "store", "keys", "pods", "volumes"
"""Folders of the data directory."""
SERVICE_ACCOUNT_PLUGIN = "ServiceAccount"
COMPONENTS = ("scheduler", "controllers", "nodes")
"""Components that run beside the API server unless `without` names them."""


ZONES = ("zone-a", "zone-b", "zone-c")
"""The zones of hollow nodes, in turn."""
ADDED_ANNOTATIONS = {"mooring.dev/added-by": "mooring-up"}
"""On each node that `mooring up` adds: a later start recognizes the nodes of an earlier one."""
NODE_LIFECYCLE = "node-lifecycle-controller"
SCHEDULER = "scheduler"
COMPONENT_NAMES = {SCHEDULER: "kube-scheduler", "controllers": "kube-controller-manager"}
"""The names that components have in Kubernetes."""


TWO_PROCESSES_NODES_MIN = 500
"""Below this number of nodes a worker process costs more memory and time to start than it saves."""


def processes_for(nodes: int) -> int:
    """The number of processes that a cluster of this size should have on this machine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 2 if nodes >= TWO_PROCESSES_NODES_MIN and cores > 1 else 1


ROUTINE_EVENTS_NODES_MAX = 500
"""From this number of nodes on, routine events are not recorded by default: they would be most of the writes."""


@dataclass(frozen=True, slots=True)
class NodeShapes:
    """What hollow nodes are like, for `mooring up` and `mooring nodes`."""

    cpu: str = "32"
    memory: str = "256Gi"
    pods: int = 110
    zones: tuple[str, ...] = ZONES
    """Assigned to the nodes in turn."""
    templates: str = ""
    """The content of a file of node templates, whose nodes are added to those of the other fields."""
    templates_file: str = ""
    """Its name, for messages."""

    def kubelet_settings(
        self,
        count: int,
        *,
        name_prefix: str = "node-",
        lease_s: int = 40,
        stages: str = "",
        annotations: Mapping[str, str] | None = None,
        records_normal_events: bool = False,
    ) -> KubeletSettings:
        """Settings of so many nodes, and of those of the templates. Raises `ValueError`."""
        from mooring.kubelet.node_templates import load_node_templates  # imports the kubelet
        from mooring.kubelet.settings import KubeletSettings, NodeCapacity

        return KubeletSettings(
            count=count,
            name_prefix=name_prefix,
            zones=self.zones,
            shape=NodeCapacity(cpu=self.cpu, memory=self.memory, pods=self.pods),
            templates=load_node_templates(self.templates, self.templates_file) if self.templates else (),
            lease_s=lease_s,
            stages=stages,
            annotations=annotations or {},
            records_normal_events=records_normal_events,
        )


@dataclass(frozen=True, slots=True)
class ControlPlaneSettings:
    """Settings of the scheduler and the controllers, in whichever process they run."""

    scheduler_configuration: object | None = None
    controllers: ControllerSettings = field(default_factory=ControllerSettings)
    enabled_controllers: tuple[str, ...] = ("*",)
    """As kube-controller-manager's `--controllers`."""
    root_ca_pem: str = ""
    """The authority that signs the certificate of the API server."""
    plugins: tuple[str, ...] = ()
    """Scheduler plugins: Python files, or `package.module:Class`."""
    record: str = ""
    """The file that the scheduler records to; empty: it does not."""
    record_bytes_max: int = 1 << 30
    log_format: str = "text"
    """The log format of all processes of the cluster: `text` or `json`."""
    local_volumes: str = ""
    """The directory of volumes of the default StorageClass; empty: there is none. Set when the cluster starts."""


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Settings of a whole cluster."""

    data_directory: Path | None = None
    """Where objects and keys are stored; None: in memory only."""
    store_url: str = ""
    """An etcd instead of a file: `etcd://host:port`."""
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    kubeconfig: Path | None = None
    may_overwrite_kubeconfig: bool = False
    token: str = field(default="", repr=False)
    """A fixed token of the administrator."""
    users: Mapping[str, User] = field(default_factory=dict, repr=False)
    """Other users, by their tokens."""
    is_anonymous_allowed: bool = False
    disabled_admission_plugins: frozenset[str] | None = None
    """As kube-apiserver's `--disable-admission-plugins`; None: those that do not work with the components that run."""
    event_ttl_s: float = EVENT_TTL_S
    """As kube-apiserver's `--event-ttl`; 0: events are never deleted."""
    without: frozenset[str] = frozenset()
    nodes: int = 0
    shapes: NodeShapes = field(default_factory=NodeShapes)
    prunes_nodes: bool = False
    """Delete the nodes that an earlier start added, and this one does not."""
    runtime: str = SIMULATED
    has_default_storage_class: bool = True
    """Whether a StorageClass `standard` provisions volumes: directories of the nodes."""
    pod_users: str = ""
    """Users of pods that are processes: `separate` or `host`; empty: `separate` for root."""
    server_url: str = ""
    """Where processes of this machine reach the API server; set when it listens."""
    node_lease_s: int = 40
    """Duration of the leases of nodes, which are renewed four times in that time."""
    routine_events: bool | None = None
    """Whether kubelets record Pulled, Created, Started and Killing; None: below `ROUTINE_EVENTS_NODES_MAX` nodes."""
    stages: str = ""
    """What pods do on hollow nodes, as a file of stage sets (docs/kubelets.md)."""
    control_plane: ControlPlaneSettings = field(default_factory=ControlPlaneSettings)
    limits: RequestLimits = field(default_factory=RequestLimits)
    processes: int = 1
    """With 2, the scheduler and the controllers have a process of their own."""

    def runs(self, component: str) -> bool:
        """Simulated kubelets always run: they adopt nodes that ask for it, also if none are added."""
        is_there = component != "nodes" or self.nodes > 0 or self.runtime == SIMULATED
        return is_there and component not in self.without

    def records_routine_events(self) -> bool:
        return self.routine_events if self.routine_events is not None else self.nodes < ROUTINE_EVENTS_NODES_MAX

    def control_plane_components(self) -> list[str]:
        """The components that may run in a worker process."""
        return [component for component in COMPONENT_NAMES if self.runs(component)]

    @property
    def adds_nodes(self) -> bool:
        return self.runs("nodes") and bool(self.nodes or self.shapes.templates)

    def kubelet_settings(self) -> KubeletSettings:
        """The nodes that the cluster adds."""
        if self.runtime == PROCESS:
            from mooring.kubelet.settings import host_facts, host_settings

            return replace(
                host_settings(host_facts(), self.nodes),
                annotations=ADDED_ANNOTATIONS,
                records_normal_events=self.records_routine_events(),
            )
        return self.shapes.kubelet_settings(
            self.nodes,
            lease_s=self.node_lease_s,
            stages=self.stages,
            annotations=ADDED_ANNOTATIONS,
            records_normal_events=self.records_routine_events(),
        )

    def removes_node_taints(self) -> bool:
        """Whether the controller runs that removes the taints of new nodes when they are ready."""
        enabled = self.control_plane.enabled_controllers
        is_enabled = NODE_LIFECYCLE in enabled or ("*" in enabled and f"-{NODE_LIFECYCLE}" not in enabled)
        return self.runs("controllers") and is_enabled

    def admission_plugins_off(self) -> frozenset[str]:
        """Without controllers no service account is created, and ServiceAccount would reject every pod."""
        if self.disabled_admission_plugins is not None:
            return self.disabled_admission_plugins
        return frozenset() if self.runs("controllers") else frozenset((SERVICE_ACCOUNT_PLUGIN,))

    def creates_default_accounts(self) -> bool:
        """Whether the account `default` of the first namespaces exists before the server answers."""
        return self.runs("controllers") and SERVICE_ACCOUNT_PLUGIN not in self.admission_plugins_off()

    def tokens(self) -> dict[str, User]:
        """Users by their fixed tokens."""
        admin = {self.token: User("admin", uid="admin", groups=(MASTERS_GROUP,))} if self.token else {}
        return {**self.users, **admin}
