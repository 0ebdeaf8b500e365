"""apiVersion and kind of a body, and the kinds that kube-apiserver knows.

Input: a decoded body, and the kind of its path. Output: apiVersion and kind; or `IdentityError` with kube-apiserver's
message.

1. Absent values default to those of the path, kind and version independently.
2. Go ignores the case of these two field names. The last occurrence counts.
3. A known, other kind: `converting (v1.Secret) to (core.ConfigMap): unknown conversion`. An unknown kind: `no kind
   "Frob" is registered ...`. The same kind in another version can be converted, and is rejected later.
4. Versions that are no longer served are known. Custom kinds, and the definitions themselves, belong to another
   scheme.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from mooring.api.field_errors import json_type
from mooring.apiserver.wire.json_text import Pairs

_GO_TYPE = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
_NO_IDENTITY = "couldn't get version/kind; json parse error: json: cannot unmarshal "


@dataclass(frozen=True, slots=True)
class TypeMeta:
    """An apiVersion and a kind."""

    api_version: str
    kind: str

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]


class IdentityError(Exception):
    """A body without a valid apiVersion and kind. `identity` has the part that could be read."""

    def __init__(self, text: str, identity: TypeMeta | None = None) -> None:
        super().__init__(text)
        self.identity = identity


def identity_of(raw: Any, api_version: str, kind: str, data: bytes) -> TypeMeta:
    """The apiVersion and kind of a body, with `api_version` and `kind` as defaults."""
    if raw is None:
        return TypeMeta(api_version, kind)
    if not isinstance(raw, dict):
        raise IdentityError(f"{_NO_IDENTITY}{json_type(raw)} into Go value of type {_GO_TYPE}")
    found_version, found_kind = _claims(raw)
    if found_version == api_version and found_kind == kind:
        return TypeMeta(api_version, kind)
    return with_defaults(found_version, found_kind or kind, api_version, data)


def _claims(raw: dict[str, Any]) -> tuple[str, str]:
    claims = {"apiversion": "", "kind": ""}
    error: IdentityError | None = None
    for key, value in raw.pairs if isinstance(raw, Pairs) else raw.items():
        length = len(key)
        if length != 4 and length != 10:
            continue
        name = key.lower()
        if name not in claims or value is None:
            continue
        if isinstance(value, str):
            claims[name] = value
        elif error is None:
            field = "apiVersion" if name == "apiversion" else "kind"
            error = IdentityError(f"{_NO_IDENTITY}{json_type(value)} into Go struct field .{field} of type string")
    if error is not None:
        raise error
    return claims["apiversion"], claims["kind"]


def with_defaults(claimed: str, kind: str, api_version: str, data: bytes) -> TypeMeta:
    """The group and version of a body's apiVersion, where `api_version` is expected."""
    if claimed in ("", "/"):
        return TypeMeta(api_version, kind)
    if claimed.count("/") > 1:
        raise IdentityError(f"unexpected GroupVersion string: {claimed}")
    group, slash, version = claimed.partition("/")
    if not slash:
        group, version = "", claimed
    default_group, _, default_version = api_version.rpartition("/")
    if not version and group == default_group:
        version = default_version
    identity = TypeMeta(f"{group}/{version}" if group else version, kind)
    if not version:
        text = data.decode("utf-8", "replace")
        raise IdentityError(f"Object 'apiVersion' is missing in '{text}'", identity)
    return identity


LEGACY_SCHEME = "pkg/api/legacyscheme/scheme.go:30"
EXTENSIONS_SCHEME = "k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:55"
OPTIONS_SCHEME = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"

EXTENSIONS_GROUP = "apiextensions.k8s.io"
INTERNAL_VERSION = "__internal"

OPTION_KINDS = frozenset({"CreateOptions", "UpdateOptions", "PatchOptions", "DeleteOptions"})
_EVERYWHERE = OPTION_KINDS | {"WatchEvent", "ListOptions", "GetOptions"}
UNVERSIONED = frozenset({"Status", "APIVersions", "APIGroupList", "APIGroup", "APIResourceList"})

_KINDS = """
v1 Pod PodStatusResult- PodTemplate ReplicationController Service ServiceProxyOptions- Endpoints Node NodeProxyOptions-
 Binding- Event List- LimitRange ResourceQuota Namespace Secret ServiceAccount PersistentVolume PersistentVolumeClaim
 PodAttachOptions- PodLogOptions- PodExecOptions- PodPortForwardOptions- PodProxyOptions- ComponentStatus
 SerializedReference- RangeAllocation- ConfigMap
admission.k8s.io/v1 AdmissionReview-
admission.k8s.io/v1beta1 AdmissionReview-
admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration MutatingWebhookConfiguration ValidatingAdmissionPolicy
 ValidatingAdmissionPolicyBinding MutatingAdmissionPolicy MutatingAdmissionPolicyBinding
admissionregistration.k8s.io/v1alpha1 ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding MutatingAdmissionPolicy
 MutatingAdmissionPolicyBinding
admissionregistration.k8s.io/v1beta1 ValidatingWebhookConfiguration MutatingWebhookConfiguration
 ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding MutatingAdmissionPolicy MutatingAdmissionPolicyBinding
apidiscovery.k8s.io/v2 APIGroupDiscovery
apidiscovery.k8s.io/v2beta1 APIGroupDiscovery
apps/v1 Deployment StatefulSet DaemonSet ReplicaSet ControllerRevision
apps/v1beta1 Deployment DeploymentRollback- Scale- StatefulSet ControllerRevision
apps/v1beta2 Deployment Scale- StatefulSet DaemonSet ReplicaSet ControllerRevision
authentication.k8s.io/v1 TokenReview- TokenRequest- SelfSubjectReview-
authentication.k8s.io/v1alpha1 SelfSubjectReview-
authentication.k8s.io/v1beta1 SelfSubjectReview- TokenReview-
authorization.k8s.io/v1 SelfSubjectRulesReview- SelfSubjectAccessReview- SubjectAccessReview- LocalSubjectAccessReview-
authorization.k8s.io/v1beta1 SelfSubjectRulesReview- SelfSubjectAccessReview- SubjectAccessReview-
 LocalSubjectAccessReview-
autoscaling/v1 HorizontalPodAutoscaler Scale-
autoscaling/v2 HorizontalPodAutoscaler
batch/v1 Job CronJob
batch/v1beta1 CronJob
certificates.k8s.io/v1 CertificateSigningRequest
certificates.k8s.io/v1alpha1 ClusterTrustBundle
certificates.k8s.io/v1beta1 CertificateSigningRequest ClusterTrustBundle PodCertificateRequest
coordination.k8s.io/v1 Lease
coordination.k8s.io/v1alpha2 LeaseCandidate
coordination.k8s.io/v1beta1 Lease LeaseCandidate
discovery.k8s.io/v1 EndpointSlice
discovery.k8s.io/v1beta1 EndpointSlice
events.k8s.io/v1 Event
events.k8s.io/v1beta1 Event
extensions/v1beta1 Deployment DeploymentRollback- Scale- DaemonSet Ingress ReplicaSet NetworkPolicy
flowcontrol.apiserver.k8s.io/v1 FlowSchema PriorityLevelConfiguration
flowcontrol.apiserver.k8s.io/v1beta1 FlowSchema PriorityLevelConfiguration
flowcontrol.apiserver.k8s.io/v1beta2 FlowSchema PriorityLevelConfiguration
flowcontrol.apiserver.k8s.io/v1beta3 FlowSchema PriorityLevelConfiguration
imagepolicy.k8s.io/v1alpha1 ImageReview-
internal.apiserver.k8s.io/v1alpha1 StorageVersion
networking.k8s.io/v1 Ingress IngressClass NetworkPolicy IPAddress ServiceCIDR
networking.k8s.io/v1beta1 Ingress IngressClass IPAddress ServiceCIDR
node.k8s.io/v1 RuntimeClass
node.k8s.io/v1alpha1 RuntimeClass
node.k8s.io/v1beta1 RuntimeClass
policy/v1 PodDisruptionBudget Eviction-
policy/v1beta1 PodDisruptionBudget Eviction-
rbac.authorization.k8s.io/v1 Role RoleBinding ClusterRole ClusterRoleBinding
rbac.authorization.k8s.io/v1alpha1 Role RoleBinding ClusterRole ClusterRoleBinding
rbac.authorization.k8s.io/v1beta1 Role RoleBinding ClusterRole ClusterRoleBinding
resource.k8s.io/v1 DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice
resource.k8s.io/v1alpha3 DeviceTaintRule ResourcePoolStatusRequest
resource.k8s.io/v1beta1 DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice
resource.k8s.io/v1beta2 DeviceClass DeviceTaintRule ResourceClaim ResourceClaimTemplate ResourceSlice
scheduling.k8s.io/v1 PriorityClass
scheduling.k8s.io/v1alpha2 Workload PodGroup
scheduling.k8s.io/v1beta1 PriorityClass
storage.k8s.io/v1 StorageClass VolumeAttachment CSINode CSIDriver CSIStorageCapacity VolumeAttributesClass
storage.k8s.io/v1alpha1 VolumeAttachment CSIStorageCapacity VolumeAttributesClass
storage.k8s.io/v1beta1 StorageClass VolumeAttachment CSIDriver CSINode CSIStorageCapacity VolumeAttributesClass
storagemigration.k8s.io/v1beta1 StorageVersionMigration
apiextensions.k8s.io/v1 CustomResourceDefinition
apiextensions.k8s.io/v1beta1 CustomResourceDefinition
"""
"""By API version; a line that begins with a space continues the last one. A `-` means no List kind."""

_GO_PACKAGES = {
    "": "core",
    "rbac.authorization.k8s.io": "rbac",
    "flowcontrol.apiserver.k8s.io": "flowcontrol",
    "internal.apiserver.k8s.io": "apiserverinternal",
    "events.k8s.io": "core",
}
"""The Go package of the unversioned types of a group, if it is not the first part of the group's name."""

_MOVED = {
    ("extensions", "Deployment"): "apps",
    ("extensions", "DaemonSet"): "apps",
    ("extensions", "ReplicaSet"): "apps",
    ("extensions", "Ingress"): "networking",
    ("extensions", "NetworkPolicy"): "networking",
    ("extensions", "Scale"): "autoscaling",
    ("apps", "Scale"): "autoscaling",
}


def go_package(group: str, kind: str) -> str:
    """The Go package of a kind's unversioned type: `core`, `apps`."""
    moved = _MOVED.get((group, kind))
    return moved if moved is not None else _GO_PACKAGES.get(group, group.partition(".")[0])


def is_registered(api_version: str, kind: str, scheme: str) -> bool:
    """Whether the server has a kind in any version."""
    if api_version == "v1" and kind in UNVERSIONED:
        return True
    if (api_version.partition("/")[0] == EXTENSIONS_GROUP) != (scheme == EXTENSIONS_SCHEME) and api_version != "v1":
        return False
    if scheme == EXTENSIONS_SCHEME and api_version == "v1":
        return kind in _EVERYWHERE
    known = _registered().get(api_version)
    return known is not None and (kind in known or kind in _EVERYWHERE)


def not_registered(api_version: str, kind: str, scheme: str) -> str:
    return f'no kind "{kind}" is registered for version "{api_version}" in scheme "{scheme}"'


def no_conversion(version: str, kind: str, target_group: str, target_kind: str) -> str:
    package = go_package(target_group, target_kind)
    return f"converting ({version}.{kind}) to ({package}.{target_kind}): unknown conversion"


def can_be_converted(group: str, kind: str, target_group: str, target_kind: str) -> bool:
    """Whether a kind is another version of the expected one."""
    return kind == target_kind and go_package(group, kind) == go_package(target_group, target_kind)


@cache
def _registered() -> dict[str, frozenset[str]]:
    known: dict[str, frozenset[str]] = {}
    for line in _KINDS.strip().replace("\n ", " ").splitlines():
        api_version, *marked = line.split()
        kinds = {kind.removesuffix("-") for kind in marked}
        lists = {f"{kind}List" for kind in marked if not kind.endswith("-")}
        known[api_version] = frozenset(kinds | lists)
    return known
