"""Merge keys: which lists are merged item by item, and by which field their items are told apart.

Comes in   `apiVersion` and `kind`
Goes out   `Fields`: for each field that a strategic merge patch treats in a special way, how, and what is below it

The table holds the `patchStrategy` and `patchMergeKey` marks of the API types of Kubernetes v1.36.

 1. A field that is not in the table is ordinary: objects are merged, lists and everything else are replaced.
 2. Fields below a list that is replaced are not here, because nobody ever gets there.
 3. Every object has metadata, so that needs no row.
 4. Kinds of groups that Kubernetes does not bring are custom resources, which have no marks: they take no such patch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

Fields: TypeAlias = "Mapping[str, Field]"

MERGE = "merge"
REPLACE = "replace"
RETAIN_KEYS = "retainKeys"
MERGE_AND_RETAIN_KEYS = "merge,retainKeys"


@dataclass(frozen=True, slots=True)
class Field:
    """How one field is patched. `strategy` is the mark as Kubernetes writes it, empty for an ordinary field."""

    strategy: str
    merge_key: str
    below: Fields
    is_merged_list: bool
    is_replaced: bool


NO_FIELDS: Fields = {}


def merge_fields(api_version: str, kind: str) -> Fields | None:
    """The rows of a kind; None for a custom resource."""
    fields = _TABLE.get((api_version, kind))
    if fields is not None:
        return fields
    group = api_version.rpartition("/")[0]
    return _ONLY_METADATA if group in BUILT_IN_GROUPS else None


def _field(strategy: str = "", merge_key: str = "", below: Fields = NO_FIELDS) -> Field:
    return Field(
        strategy=strategy,
        merge_key=merge_key,
        below=below,
        is_merged_list=strategy in (MERGE, MERGE_AND_RETAIN_KEYS),
        is_replaced=strategy == REPLACE,
    )


def _ordinary(**below: Field) -> Field:
    return _field(below=below)


def _merged_by(merge_key: str, below: Fields = NO_FIELDS) -> Field:
    return _field(MERGE, merge_key, below)


def _named_and_retaining(below: Fields = NO_FIELDS) -> Field:
    return _field(MERGE_AND_RETAIN_KEYS, "name", below)


# --- what many kinds contain -------------------------------------------------------------------------------------

_METADATA = _ordinary(ownerReferences=_merged_by("uid"), finalizers=_field(MERGE))
_ONLY_METADATA: Fields = {"metadata": _METADATA}
_CONDITIONS = _ordinary(conditions=_merged_by("type"))

_CONTAINER: Fields = {
    "ports": _merged_by("containerPort"),
    "env": _merged_by("name"),
    "volumeMounts": _merged_by("mountPath"),
    "volumeDevices": _merged_by("devicePath"),
}
_VOLUME: Fields = {"ephemeral": _ordinary(volumeClaimTemplate=_ordinary(metadata=_METADATA))}
_POD_SPEC = _ordinary(
    volumes=_named_and_retaining(_VOLUME),
    initContainers=_merged_by("name", _CONTAINER),
    containers=_merged_by("name", _CONTAINER),
    ephemeralContainers=_merged_by("name", _CONTAINER),
    imagePullSecrets=_merged_by("name"),
    hostAliases=_merged_by("ip"),
    topologySpreadConstraints=_merged_by("topologyKey"),
    schedulingGates=_merged_by("name"),
    resourceClaims=_named_and_retaining(),
)
_POD_STATUS = _ordinary(
    conditions=_merged_by("type"),
    hostIPs=_merged_by("ip"),
    podIPs=_merged_by("ip"),
    resourceClaimStatuses=_named_and_retaining(),
)
_POD_TEMPLATE = _ordinary(metadata=_METADATA, spec=_POD_SPEC)
_JOB_SPEC = _ordinary(template=_POD_TEMPLATE)
_CLAIM_STATUS = _ordinary(reservedFor=_merged_by("uid"))
_WEBHOOKS = _merged_by("name", {"matchConditions": _merged_by("name")})


# --- the kinds ---------------------------------------------------------------------------------------------------


def _kind(**fields: Field) -> Fields:
    return {"metadata": _METADATA, **fields}


_DEVICE_VERSIONS = ("resource.k8s.io/v1", "resource.k8s.io/v1beta2", "resource.k8s.io/v1beta1")

_TABLE: Mapping[tuple[str, str], Fields] = {
    ("v1", "Pod"): _kind(spec=_POD_SPEC, status=_POD_STATUS),
    ("v1", "PodTemplate"): _kind(template=_POD_TEMPLATE),
    ("v1", "ReplicationController"): _kind(spec=_ordinary(template=_POD_TEMPLATE), status=_CONDITIONS),
    ("v1", "Node"): _kind(
        spec=_ordinary(podCIDRs=_field(MERGE)),
        status=_ordinary(conditions=_merged_by("type"), addresses=_merged_by("type")),
    ),
    ("v1", "Namespace"): _kind(status=_CONDITIONS),
    ("v1", "Service"): _kind(spec=_ordinary(ports=_merged_by("port")), status=_CONDITIONS),
    ("v1", "ServiceAccount"): _kind(secrets=_merged_by("name")),
    ("v1", "PersistentVolumeClaim"): _kind(status=_CONDITIONS),
    ("v1", "ComponentStatus"): _kind(conditions=_merged_by("type")),
    ("apps/v1", "Deployment"): _kind(
        spec=_ordinary(template=_POD_TEMPLATE, strategy=_field(RETAIN_KEYS)), status=_CONDITIONS
    ),
    ("apps/v1", "ReplicaSet"): _kind(spec=_ordinary(template=_POD_TEMPLATE), status=_CONDITIONS),
    ("apps/v1", "StatefulSet"): _kind(spec=_ordinary(template=_POD_TEMPLATE), status=_CONDITIONS),
    ("apps/v1", "DaemonSet"): _kind(spec=_ordinary(template=_POD_TEMPLATE), status=_CONDITIONS),
    ("batch/v1", "Job"): _kind(spec=_JOB_SPEC, status=_CONDITIONS),
    ("batch/v1", "CronJob"): _kind(spec=_ordinary(jobTemplate=_ordinary(metadata=_METADATA, spec=_JOB_SPEC))),
    ("policy/v1", "PodDisruptionBudget"): _kind(spec=_ordinary(selector=_field(REPLACE)), status=_CONDITIONS),
    ("autoscaling/v2", "HorizontalPodAutoscaler"): _kind(status=_CONDITIONS),
    ("networking.k8s.io/v1", "ServiceCIDR"): _kind(status=_CONDITIONS),
    ("storage.k8s.io/v1", "CSINode"): _kind(spec=_ordinary(drivers=_merged_by("name"))),
    ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema"): _kind(status=_CONDITIONS),
    ("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration"): _kind(status=_CONDITIONS),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"): _kind(webhooks=_WEBHOOKS),
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"): _kind(webhooks=_WEBHOOKS),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"): _kind(
        spec=_ordinary(matchConditions=_merged_by("name"), variables=_merged_by("name"))
    ),
    ("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy"): _kind(
        spec=_ordinary(matchConditions=_merged_by("name"))
    ),
    ("scheduling.k8s.io/v1alpha2", "PodGroup"): _kind(
        spec=_ordinary(resourceClaims=_named_and_retaining()),
        status=_ordinary(conditions=_merged_by("type"), resourceClaimStatuses=_named_and_retaining()),
    ),
    ("resource.k8s.io/v1beta2", "DeviceTaintRule"): _kind(status=_CONDITIONS),
    ("resource.k8s.io/v1alpha3", "DeviceTaintRule"): _kind(status=_CONDITIONS),
    **{(version, "ResourceClaim"): _kind(status=_CLAIM_STATUS) for version in _DEVICE_VERSIONS},
    **{(version, "ResourceClaimTemplate"): _kind(spec=_ordinary(metadata=_METADATA)) for version in _DEVICE_VERSIONS},
}

BUILT_IN_GROUPS = frozenset(
    {
        "",
        "apps",
        "autoscaling",
        "batch",
        "policy",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
        "storagemigration.k8s.io",
    }
)
