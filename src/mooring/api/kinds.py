"""The table of kinds: one row for each built-in kind of the API.

Input: an apiVersion and a kind, or a view class. Output: a `Kind` with its names, verbs, subresources and storage
key.

1. A row is the only registration of a kind. The API server derives discovery and OpenAPI from it, and imports the
   module of the kind (`mooring.apiserver.kinds`), which has its defaults, validation, table columns and strategy.
2. `view` is set for kinds that a component reads through a view. The API server works on whole documents.
3. Storage keys are those of kube-apiserver (`/registry/pods/<namespace>/<name>`), including old names: nodes are
   stored as `minions`, and the events of both event APIs share one prefix.
4. There is one row for each kind, and kinds are compared by identity. A custom kind has one row per version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from mooring.api.errors import UnknownKindError
from mooring.api.views.administration import ClusterRole, CustomResourceDefinition, ResourceQuota, ServiceAccount
from mooring.api.views.devices import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Lease, Node
from mooring.api.views.pod import Pod
from mooring.api.views.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from mooring.api.views.workloads import (
    ControllerRevision,
    CronJob,
    DaemonSet,
    Deployment,
    Endpoints,
    EndpointSlice,
    Job,
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)

REGISTRY = "/registry/"

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CHANGING_VERBS = ("get", "patch", "update")
PROXY_VERBS = ("create", "delete", "get", "patch", "update")

_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource of a kind: `status`, `scale`, `log`."""

    name: str
    verbs: tuple[str, ...]
    kind: str = ""
    """The kind of its bodies; empty if it is the kind of the object."""
    api_version: str = ""


STATUS = Subresource("status", CHANGING_VERBS)
SCALE = Subresource("scale", CHANGING_VERBS, "Scale", "autoscaling/v1")


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One kind of object, in one version of its group."""

    api_version: str
    kind: str
    plural: str
    is_namespaced: bool = True
    view: type[ApiObject] | None = None
    has_status: bool = False
    """Whether the status is written through the `status` subresource only."""
    has_generation: bool = False
    """Whether `metadata.generation` counts changes of the spec."""
    folder: str = ""
    """The storage key below the registry, if it is not the plural."""
    stored_as: Kind | None = None
    """Of a custom kind: the version in which its objects are stored, if it is another one."""
    served: Callable[[dict[str, object]], dict[str, object]] | None = None
    """Of a custom kind: converts a stored object to this version, possibly in place."""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: tuple[Subresource, ...] = ()
    """Subresources besides `status`."""
    returns_deleted: bool = False
    """Whether a DELETE returns the object. Otherwise it returns a Status."""
    module: str = ""
    """The module in `mooring.apiserver.kinds`, if it is not the kind in snake case."""

    group: str = field(init=False)
    resource: str = field(init=False)
    """As in error texts: `pods`, `deployments.apps`."""
    key_prefix: str = field(init=False)
    """The common prefix of the storage keys of all objects."""

    def __post_init__(self) -> None:
        group, slash, _ = self.api_version.partition("/")
        group = group if slash else ""
        object.__setattr__(self, "group", group)
        object.__setattr__(self, "resource", f"{self.plural}.{group}" if group else self.plural)
        object.__setattr__(self, "key_prefix", f"{REGISTRY}{self.folder or self.plural}/")

    @property
    def module_name(self) -> str:
        """The module in `mooring.apiserver.kinds`: `CSIDriver` is in `csi_driver`."""
        return self.module or _WORD_START.sub("_", self.kind).lower()

    def key(self, namespace: str, name: str) -> str:
        """The storage key of one object."""
        return f"{self.key_prefix}{namespace}/{name}" if self.is_namespaced else f"{self.key_prefix}{name}"

    def keys_prefix(self, namespace: str) -> str:
        """The common prefix of the storage keys of one namespace, or of all namespaces if it is empty."""
        return f"{self.key_prefix}{namespace}/" if namespace and self.is_namespaced else self.key_prefix

    def __str__(self) -> str:
        return f"{self.api_version} {self.kind}"


def kind_named(api_version: str, kind: str) -> Kind:
    """The row of a kind. Raises `UnknownKindError`."""
    row = _by_name.get((api_version, kind))
    if row is None:
        known_versions = tuple(sorted(version for version, known in _by_name if known == kind))
        raise UnknownKindError(api_version, kind, known_versions)
    return row


def kind_of_view(view: type[ApiObject]) -> Kind:
    """The row of the kind of a view. Raises `UnknownKindError`."""
    return kind_named(view.api_version, view.kind)


def place_of(view: ApiObject) -> tuple[Kind, str, str]:
    """Kind, namespace and name, as the calls of a client take them. Raises `UnknownKindError`."""
    return kind_of_view(type(view)), view.metadata.namespace, view.metadata.name


def all_kinds() -> Iterator[Kind]:
    """Every row, in the order of the table."""
    return iter(_by_name.values())


# Kubernetes decides for each kind whether it has a generation: nodes, services and volumes have a spec but none.

NAMESPACE = Kind(
    "v1",
    "Namespace",
    "namespaces",
    view=Namespace,
    is_namespaced=False,
    has_status=True,
    short_names=("ns",),
    subresources=(Subresource("finalize", ("update",)),),
    verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
    returns_deleted=True,
)
NODE = Kind(
    "v1",
    "Node",
    "nodes",
    view=Node,
    is_namespaced=False,
    has_status=True,
    folder="minions",
    short_names=("no",),
    subresources=(Subresource("proxy", PROXY_VERBS, "NodeProxyOptions"),),
)
POD = Kind(
    "v1",
    "Pod",
    "pods",
    view=Pod,
    has_status=True,
    has_generation=True,
    short_names=("po",),
    categories=("all",),
    subresources=(
        Subresource("attach", ("create", "get"), "PodAttachOptions"),
        Subresource("binding", ("create",), "Binding"),
        Subresource("ephemeralcontainers", CHANGING_VERBS),
        Subresource("eviction", ("create",), "Eviction", "policy/v1"),
        Subresource("exec", ("create", "get"), "PodExecOptions"),
        Subresource("log", ("get",)),
        Subresource("portforward", ("create", "get"), "PodPortForwardOptions"),
        Subresource("proxy", PROXY_VERBS, "PodProxyOptions"),
        Subresource("resize", CHANGING_VERBS),
    ),
    returns_deleted=True,
)
SERVICE = Kind(
    "v1",
    "Service",
    "services",
    view=Service,
    has_status=True,
    folder="services/specs",
    short_names=("svc",),
    categories=("all",),
    subresources=(Subresource("proxy", PROXY_VERBS, "ServiceProxyOptions"),),
    returns_deleted=True,
)
ENDPOINTS = Kind("v1", "Endpoints", "endpoints", view=Endpoints, folder="services/endpoints", short_names=("ep",))
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps", short_names=("cm",))
SECRET = Kind("v1", "Secret", "secrets")
SERVICE_ACCOUNT = Kind(
    "v1",
    "ServiceAccount",
    "serviceaccounts",
    view=ServiceAccount,
    short_names=("sa",),
    subresources=(Subresource("token", ("create",), "TokenRequest", "authentication.k8s.io/v1"),),
    returns_deleted=True,
)
CORE_EVENT = Kind("v1", "Event", "events", short_names=("ev",))
PERSISTENT_VOLUME = Kind(
    "v1",
    "PersistentVolume",
    "persistentvolumes",
    view=PersistentVolume,
    is_namespaced=False,
    has_status=True,
    short_names=("pv",),
    returns_deleted=True,
)
PERSISTENT_VOLUME_CLAIM = Kind(
    "v1",
    "PersistentVolumeClaim",
    "persistentvolumeclaims",
    view=PersistentVolumeClaim,
    has_status=True,
    short_names=("pvc",),
    returns_deleted=True,
)
REPLICATION_CONTROLLER = Kind(
    "v1",
    "ReplicationController",
    "replicationcontrollers",
    view=ReplicationController,
    has_status=True,
    has_generation=True,
    folder="controllers",
    short_names=("rc",),
    categories=("all",),
    subresources=(SCALE,),
)
LIMIT_RANGE = Kind("v1", "LimitRange", "limitranges", short_names=("limits",))
RESOURCE_QUOTA = Kind(
    "v1",
    "ResourceQuota",
    "resourcequotas",
    view=ResourceQuota,
    has_status=True,
    short_names=("quota",),
    returns_deleted=True,
)
POD_TEMPLATE = Kind("v1", "PodTemplate", "podtemplates", has_generation=True, returns_deleted=True)

DEPLOYMENT = Kind(
    "apps/v1",
    "Deployment",
    "deployments",
    view=Deployment,
    has_status=True,
    has_generation=True,
    short_names=("deploy",),
    categories=("all",),
    subresources=(SCALE,),
)
REPLICA_SET = Kind(
    "apps/v1",
    "ReplicaSet",
    "replicasets",
    view=ReplicaSet,
    has_status=True,
    has_generation=True,
    short_names=("rs",),
    categories=("all",),
    subresources=(SCALE,),
)
STATEFUL_SET = Kind(
    "apps/v1",
    "StatefulSet",
    "statefulsets",
    view=StatefulSet,
    has_status=True,
    has_generation=True,
    short_names=("sts",),
    categories=("all",),
    subresources=(SCALE,),
)
DAEMON_SET = Kind(
    "apps/v1",
    "DaemonSet",
    "daemonsets",
    view=DaemonSet,
    has_status=True,
    has_generation=True,
    short_names=("ds",),
    categories=("all",),
)
CONTROLLER_REVISION = Kind("apps/v1", "ControllerRevision", "controllerrevisions", view=ControllerRevision)

JOB = Kind("batch/v1", "Job", "jobs", view=Job, has_status=True, has_generation=True, categories=("all",))
CRON_JOB = Kind(
    "batch/v1",
    "CronJob",
    "cronjobs",
    view=CronJob,
    has_status=True,
    has_generation=True,
    short_names=("cj",),
    categories=("all",),
)

POD_DISRUPTION_BUDGET = Kind(
    "policy/v1",
    "PodDisruptionBudget",
    "poddisruptionbudgets",
    view=PodDisruptionBudget,
    has_status=True,
    has_generation=True,
    short_names=("pdb",),
)
PRIORITY_CLASS = Kind(
    "scheduling.k8s.io/v1",
    "PriorityClass",
    "priorityclasses",
    view=PriorityClass,
    is_namespaced=False,
    has_generation=True,
    short_names=("pc",),
)

STORAGE_CLASS = Kind(
    "storage.k8s.io/v1",
    "StorageClass",
    "storageclasses",
    view=StorageClass,
    is_namespaced=False,
    short_names=("sc",),
    returns_deleted=True,
)
CSI_NODE = Kind("storage.k8s.io/v1", "CSINode", "csinodes", view=CSINode, is_namespaced=False, returns_deleted=True)
CSI_DRIVER = Kind(
    "storage.k8s.io/v1", "CSIDriver", "csidrivers", view=CSIDriver, is_namespaced=False, returns_deleted=True
)
CSI_STORAGE_CAPACITY = Kind("storage.k8s.io/v1", "CSIStorageCapacity", "csistoragecapacities", view=CSIStorageCapacity)
VOLUME_ATTACHMENT = Kind(
    "storage.k8s.io/v1",
    "VolumeAttachment",
    "volumeattachments",
    view=VolumeAttachment,
    is_namespaced=False,
    has_status=True,
    returns_deleted=True,
)

VOLUME_ATTRIBUTES_CLASS = Kind(
    "storage.k8s.io/v1",
    "VolumeAttributesClass",
    "volumeattributesclasses",
    is_namespaced=False,
    short_names=("vac",),
    returns_deleted=True,
)

RESOURCE_CLAIM = Kind(
    "resource.k8s.io/v1", "ResourceClaim", "resourceclaims", view=ResourceClaim, has_status=True, returns_deleted=True
)
RESOURCE_CLAIM_TEMPLATE = Kind(
    "resource.k8s.io/v1",
    "ResourceClaimTemplate",
    "resourceclaimtemplates",
    view=ResourceClaimTemplate,
    returns_deleted=True,
)
RESOURCE_SLICE = Kind(
    "resource.k8s.io/v1",
    "ResourceSlice",
    "resourceslices",
    view=ResourceSlice,
    is_namespaced=False,
    has_generation=True,
    returns_deleted=True,
)
DEVICE_CLASS = Kind(
    "resource.k8s.io/v1",
    "DeviceClass",
    "deviceclasses",
    view=DeviceClass,
    is_namespaced=False,
    has_generation=True,
    returns_deleted=True,
)

RUNTIME_CLASS = Kind("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", is_namespaced=False)
LEASE = Kind("coordination.k8s.io/v1", "Lease", "leases", view=Lease)
EVENT = Kind("events.k8s.io/v1", "Event", "events", short_names=("ev",))
ENDPOINT_SLICE = Kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", view=EndpointSlice, has_generation=True)

ROLE = Kind("rbac.authorization.k8s.io/v1", "Role", "roles")
ROLE_BINDING = Kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
CLUSTER_ROLE = Kind(
    "rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", view=ClusterRole, is_namespaced=False, module="role"
)
CLUSTER_ROLE_BINDING = Kind(
    "rbac.authorization.k8s.io/v1",
    "ClusterRoleBinding",
    "clusterrolebindings",
    is_namespaced=False,
    module="role_binding",
)

CUSTOM_RESOURCE_DEFINITION = Kind(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    view=CustomResourceDefinition,
    is_namespaced=False,
    has_status=True,
    has_generation=True,
    folder="apiextensions.k8s.io/customresourcedefinitions",
    short_names=("crd", "crds"),
    categories=("api-extensions",),
)

_rows = [row for row in globals().values() if isinstance(row, Kind)]
_by_name = {(row.api_version, row.kind): row for row in _rows}
assert len(_by_name) == len(_rows), "a kind has two rows"
