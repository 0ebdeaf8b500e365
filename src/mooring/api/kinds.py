"""The kinds: one row for each kind of object that the API knows.

Comes in   an apiVersion and a kind, or a view class
Goes out   a `Kind`: its names in addresses and error texts, whether it lives in a namespace, where it is stored

 1. A new kind is one row here, and known everywhere.
 2. `view` is set where somebody reads the kind through a view; the API itself keeps whole JSON objects.
 3. Objects are stored where kube-apiserver stores them (`/registry/pods/<namespace>/<name>`), old names included:
    nodes are `minions` there, and the events of both event APIs lie in one folder.
 4. There is one row for a kind, and `is` tells kinds apart. Whoever adds custom kinds makes one row for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from mooring.api.errors import UnknownKindError
from mooring.api.views.accounts import ClusterRole, ServiceAccount
from mooring.api.views.batch import CronJob, Job
from mooring.api.views.daemon_sets import ControllerRevision, DaemonSet
from mooring.api.views.definitions import CustomResourceDefinition
from mooring.api.views.devices import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from mooring.api.views.endpoints import Endpoints, EndpointSlice
from mooring.api.views.leases import Lease
from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.api.views.quotas import ResourceQuota
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
    Deployment,
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)

REGISTRY = "/registry/"


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One kind of object, in one version of its group."""

    api_version: str
    kind: str
    plural: str
    is_namespaced: bool = True
    view: type[ApiObject] | None = None
    has_status: bool = False
    """Whether its status is written through the `status` subresource only."""
    has_generation: bool = False
    """Whether `metadata.generation` counts the changes of what is wanted, that is of everything but the status."""
    folder: str = ""
    """Where it is stored below the registry, if not under its plural."""
    stored_as: Kind | None = None
    """The kind in whose form it is stored, if not its own: of custom kinds another version of the same."""
    served: Callable[[dict[str, object]], dict[str, object]] | None = None
    """How a stored object of a custom kind becomes one of this kind, if it must be changed; it may be, in place."""

    group: str = field(init=False)
    resource: str = field(init=False)
    """As error texts write it: `pods`, `deployments.apps`."""
    key_prefix: str = field(init=False)
    """What the keys of all its objects begin with."""

    def __post_init__(self) -> None:
        group, slash, _ = self.api_version.partition("/")
        group = group if slash else ""
        object.__setattr__(self, "group", group)
        object.__setattr__(self, "resource", f"{self.plural}.{group}" if group else self.plural)
        object.__setattr__(self, "key_prefix", f"{REGISTRY}{self.folder or self.plural}/")

    def key(self, namespace: str, name: str) -> str:
        """The key of one object in the store."""
        return f"{self.key_prefix}{namespace}/{name}" if self.is_namespaced else f"{self.key_prefix}{name}"

    def keys_prefix(self, namespace: str) -> str:
        """What the keys of all objects of one namespace begin with; of all namespaces if it is empty."""
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
    """The row of the kind that a view reads. Raises `UnknownKindError`."""
    return kind_named(view.api_version, view.kind)


def all_kinds() -> Iterator[Kind]:
    """Every row, in the order of the table."""
    return iter(_by_name.values())


# --- the table --------------------------------------------------------------------------------------------------

_by_name: dict[tuple[str, str], Kind] = {}


def _row(
    api_version: str,
    kind: str,
    plural: str,
    *,
    view: type[ApiObject] | None = None,
    is_namespaced: bool = True,
    has_status: bool = False,
    has_generation: bool = False,
    folder: str = "",
) -> Kind:
    row = Kind(api_version, kind, plural, is_namespaced, view, has_status, has_generation, folder)
    assert (api_version, kind) not in _by_name, f"{row} stands in the table twice"
    assert view is None or (view.api_version, view.kind) == (api_version, kind), f"{view} is no view of {row}"
    _by_name[api_version, kind] = row
    return row


# Which kinds count generations is a fact of each kind's strategy in Kubernetes, not a rule: nodes, services and volumes
# carry none, even though they have a spec.

NAMESPACE = _row("v1", "Namespace", "namespaces", view=Namespace, is_namespaced=False, has_status=True)
NODE = _row("v1", "Node", "nodes", view=Node, is_namespaced=False, has_status=True, folder="minions")
POD = _row("v1", "Pod", "pods", view=Pod, has_status=True, has_generation=True)
SERVICE = _row("v1", "Service", "services", view=Service, has_status=True, folder="services/specs")
ENDPOINTS = _row("v1", "Endpoints", "endpoints", view=Endpoints, folder="services/endpoints")
CONFIG_MAP = _row("v1", "ConfigMap", "configmaps")
SECRET = _row("v1", "Secret", "secrets")
SERVICE_ACCOUNT = _row("v1", "ServiceAccount", "serviceaccounts", view=ServiceAccount)
CORE_EVENT = _row("v1", "Event", "events")
PERSISTENT_VOLUME = _row(
    "v1", "PersistentVolume", "persistentvolumes", view=PersistentVolume, is_namespaced=False, has_status=True
)
PERSISTENT_VOLUME_CLAIM = _row(
    "v1", "PersistentVolumeClaim", "persistentvolumeclaims", view=PersistentVolumeClaim, has_status=True
)
REPLICATION_CONTROLLER = _row(
    "v1",
    "ReplicationController",
    "replicationcontrollers",
    view=ReplicationController,
    has_status=True,
    has_generation=True,
    folder="controllers",
)
LIMIT_RANGE = _row("v1", "LimitRange", "limitranges")
RESOURCE_QUOTA = _row("v1", "ResourceQuota", "resourcequotas", view=ResourceQuota, has_status=True)
POD_TEMPLATE = _row("v1", "PodTemplate", "podtemplates", has_generation=True)

DEPLOYMENT = _row("apps/v1", "Deployment", "deployments", view=Deployment, has_status=True, has_generation=True)
REPLICA_SET = _row("apps/v1", "ReplicaSet", "replicasets", view=ReplicaSet, has_status=True, has_generation=True)
STATEFUL_SET = _row("apps/v1", "StatefulSet", "statefulsets", view=StatefulSet, has_status=True, has_generation=True)
DAEMON_SET = _row("apps/v1", "DaemonSet", "daemonsets", view=DaemonSet, has_status=True, has_generation=True)
CONTROLLER_REVISION = _row("apps/v1", "ControllerRevision", "controllerrevisions", view=ControllerRevision)

JOB = _row("batch/v1", "Job", "jobs", view=Job, has_status=True, has_generation=True)
CRON_JOB = _row("batch/v1", "CronJob", "cronjobs", view=CronJob, has_status=True, has_generation=True)

POD_DISRUPTION_BUDGET = _row(
    "policy/v1",
    "PodDisruptionBudget",
    "poddisruptionbudgets",
    view=PodDisruptionBudget,
    has_status=True,
    has_generation=True,
)
PRIORITY_CLASS = _row(
    "scheduling.k8s.io/v1",
    "PriorityClass",
    "priorityclasses",
    view=PriorityClass,
    is_namespaced=False,
    has_generation=True,
)

STORAGE_CLASS = _row("storage.k8s.io/v1", "StorageClass", "storageclasses", view=StorageClass, is_namespaced=False)
CSI_NODE = _row("storage.k8s.io/v1", "CSINode", "csinodes", view=CSINode, is_namespaced=False)
CSI_DRIVER = _row("storage.k8s.io/v1", "CSIDriver", "csidrivers", view=CSIDriver, is_namespaced=False)
CSI_STORAGE_CAPACITY = _row("storage.k8s.io/v1", "CSIStorageCapacity", "csistoragecapacities", view=CSIStorageCapacity)
VOLUME_ATTACHMENT = _row(
    "storage.k8s.io/v1",
    "VolumeAttachment",
    "volumeattachments",
    view=VolumeAttachment,
    is_namespaced=False,
    has_status=True,
)

VOLUME_ATTRIBUTES_CLASS = _row(
    "storage.k8s.io/v1", "VolumeAttributesClass", "volumeattributesclasses", is_namespaced=False
)

RESOURCE_CLAIM = _row("resource.k8s.io/v1", "ResourceClaim", "resourceclaims", view=ResourceClaim, has_status=True)
RESOURCE_CLAIM_TEMPLATE = _row(
    "resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates", view=ResourceClaimTemplate
)
RESOURCE_SLICE = _row(
    "resource.k8s.io/v1",
    "ResourceSlice",
    "resourceslices",
    view=ResourceSlice,
    is_namespaced=False,
    has_generation=True,
)
DEVICE_CLASS = _row(
    "resource.k8s.io/v1",
    "DeviceClass",
    "deviceclasses",
    view=DeviceClass,
    is_namespaced=False,
    has_generation=True,
)

RUNTIME_CLASS = _row("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", is_namespaced=False)
LEASE = _row("coordination.k8s.io/v1", "Lease", "leases", view=Lease)
EVENT = _row("events.k8s.io/v1", "Event", "events")
ENDPOINT_SLICE = _row("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", view=EndpointSlice, has_generation=True)

ROLE = _row("rbac.authorization.k8s.io/v1", "Role", "roles")
ROLE_BINDING = _row("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
CLUSTER_ROLE = _row(
    "rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", view=ClusterRole, is_namespaced=False
)
CLUSTER_ROLE_BINDING = _row(
    "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", is_namespaced=False
)

CUSTOM_RESOURCE_DEFINITION = _row(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    view=CustomResourceDefinition,
    is_namespaced=False,
    has_status=True,
    has_generation=True,
    folder="apiextensions.k8s.io/customresourcedefinitions",
)
