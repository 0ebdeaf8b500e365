"""What was asked for when a cluster is brought up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mooring.apiserver.access.users import MASTERS_GROUP, User
from mooring.apiserver.http.limits import DoorLimits
from mooring.controllers.settings import ControllerSettings

DEFAULT_PORT = 6_443
SIMULATED, PROCESS = "simulated", "process"
"""What pods can be on our nodes."""
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
"""How a cluster writes its log, whichever of its processes does."""
COMPONENTS = ("scheduler", "controllers", "nodes")
"""What runs beside the API server unless it is left out."""


@dataclass(frozen=True, slots=True)
class PartSettings:
    """What the scheduler and the controllers are told, wherever they run."""

    scheduler_configuration: object | None = None
    controllers: ControllerSettings = field(default_factory=ControllerSettings)
    enabled_controllers: tuple[str, ...] = ("*",)
    """As kube-controller-manager's `--controllers`."""
    root_ca_pem: str = ""
    """The authority that signs the certificate of the API server."""


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Everything about a cluster that can be chosen."""

    data_directory: Path | None = None
    """Where the objects and keys are kept; None: nowhere, they are gone at the end."""
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
    without: frozenset[str] = frozenset()
    nodes: int = 0
    runtime: str = SIMULATED
    node_lease_s: int = 40
    """How long the leases of nodes last, which are renewed four times in that time."""
    lives: str = ""
    """What pods do on simulated nodes, in the language of `kubelet.lives_file`."""
    parts: PartSettings = field(default_factory=PartSettings)
    limits: DoorLimits = field(default_factory=DoorLimits)
    processes: int = 1
    """With 2, the scheduler and the controllers have a process of their own."""

    def runs(self, component: str) -> bool:
        """Simulated kubelets always run: they adopt nodes that ask for it, also if none are added."""
        is_there = component != "nodes" or self.nodes > 0 or self.runtime == SIMULATED
        return is_there and component not in self.without

    def tokens(self) -> dict[str, User]:
        """Who has which token."""
        admin = {self.token: User("admin", uid="admin", groups=(MASTERS_GROUP,))} if self.token else {}
        return {**self.users, **admin}
