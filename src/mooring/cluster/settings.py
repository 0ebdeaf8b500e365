"""The settings of a cluster."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mooring.apiserver.access.users import MASTERS_GROUP, User
from mooring.apiserver.event_expiry import EVENT_TTL_S
from mooring.apiserver.http.request import RequestLimits
from mooring.controllers.settings import ControllerSettings

DEFAULT_PORT = 6_443
SIMULATED, PROCESS = "simulated", "process"
"""What pods are on our nodes."""
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
"""The log format of all processes of a cluster."""
STORE_FOLDER, KEYS_FOLDER, PODS_FOLDER, VOLUMES_FOLDER = "store", "keys", "pods", "volumes"
"""Folders of the data directory."""
SERVICE_ACCOUNT_PLUGIN = "ServiceAccount"
COMPONENTS = ("scheduler", "controllers", "nodes")
"""Components that run beside the API server unless `without` names them."""


COMPONENT_NAMES = {"scheduler": "kube-scheduler", "controllers": "kube-controller-manager"}
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
class ControlPlaneSettings:
    """Settings of the scheduler and the controllers, in whichever process they run."""

    scheduler_configuration: object | None = None
    controllers: ControllerSettings = field(default_factory=ControllerSettings)
    enabled_controllers: tuple[str, ...] = ("*",)
    """As kube-controller-manager's `--controllers`."""
    root_ca_pem: str = ""
    """The authority that signs the certificate of the API server."""
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
    """What pods do on simulated nodes, in the language of `kubelet.lives_file`."""
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
