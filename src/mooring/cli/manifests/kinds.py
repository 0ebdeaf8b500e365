"""Kinds that a dump of a cluster may hold and that `mooring explain` does not decide by.

1. A kind of a group of Kubernetes must exist in Kubernetes: a typing error in `kind` is an error, because skipping the
   object would change the answer without notice.
2. All kinds of other groups (custom resources) are skipped.
3. The other kinds of `mooring.api.decode.KINDS` are read, in the version of that table.
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.views.workloads import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)

UNREAD: Mapping[str, frozenset[str]] = {
    group: frozenset(kinds.split())
    for group, kinds in {
        "": "Binding ComponentStatus ConfigMap Endpoints Event LimitRange PodTemplate ResourceQuota Secret "
        "ServiceAccount",
        "admissionregistration.k8s.io": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding "
        "MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding "
        "ValidatingWebhookConfiguration",
        "apiextensions.k8s.io": "CustomResourceDefinition",
        "apiregistration.k8s.io": "APIService",
        "apps": "ControllerRevision DaemonSet Deployment",
        "authentication.k8s.io": "SelfSubjectReview TokenReview",
        "authorization.k8s.io": "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview "
        "SubjectAccessReview",
        "autoscaling": "HorizontalPodAutoscaler Scale",
        "batch": "CronJob Job",
        "certificates.k8s.io": "CertificateSigningRequest ClusterTrustBundle PodCertificateRequest",
        "coordination.k8s.io": "Lease LeaseCandidate",
        "discovery.k8s.io": "EndpointSlice",
        "events.k8s.io": "Event",
        "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
        "internal.apiserver.k8s.io": "StorageVersion",
        "networking.k8s.io": "IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR",
        "node.k8s.io": "RuntimeClass",
        "policy": "Eviction",
        "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding Role RoleBinding",
        "resource.k8s.io": "DeviceTaintRule ResourcePoolStatusRequest",
        "scheduling.k8s.io": "PodGroup Workload",
        "storage.k8s.io": "VolumeAttributesClass",
        "storagemigration.k8s.io": "StorageVersionMigration",
    }.items()
}
"""Skipped kinds by group, in any version; workloads and policies in the version below are read."""

POLICY_KINDS = frozenset((("v1", "LimitRange"), ("node.k8s.io/v1", "RuntimeClass")))
"""API version and kind of objects that only admission reads."""

CONFIGURATION_GROUP = "kubescheduler.config.k8s.io"

WORKLOADS = (CronJob, DaemonSet, Deployment, Job, ReplicaSet, ReplicationController, StatefulSet)
"""Kinds that `mooring explain` expands into pods."""
_WORKLOAD_VERSIONS: Mapping[str, str] = {view.kind: view.api_version for view in WORKLOADS}


def is_skipped(api_version: str, kind: str) -> bool:
    """Whether an object is of a kind that scheduling does not read, and may be skipped."""
    if _WORKLOAD_VERSIONS.get(kind) == api_version:
        return False
    group = group_of(api_version)
    if group == CONFIGURATION_GROUP:
        return False
    if group in UNREAD:
        return kind in UNREAD[group]
    return "." in group


def advice_for(api_version: str) -> str:
    """What to do about an object that is neither read nor skipped."""
    if group_of(api_version) == CONFIGURATION_GROUP:
        return "pass a scheduler's configuration with --config"
    return "correct the kind or its apiVersion, or leave the object out"


def group_of(api_version: str) -> str:
    group, slash, _ = api_version.partition("/")
    return group if slash else ""
