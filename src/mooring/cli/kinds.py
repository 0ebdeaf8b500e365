"""Kinds that a dump of a cluster may hold and that scheduling does not read.

Comes in   an object's apiVersion and kind
Goes out   whether to skip it, and what to say of one that must not be skipped

 1. A kind of Kubernetes' own groups must be one that Kubernetes has: a typing error in `kind` is an error, because
    skipping the object would quietly change the answer.
 2. Groups of others (custom resources) are theirs to name: everything in them is skipped.
 3. The other kinds of `mooring.api.decode.KINDS` are read, in the version that it knows.
"""

from __future__ import annotations

from collections.abc import Mapping

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
"""By group; the version plays no part, since nothing of them is read."""

CONFIGURATION_GROUP = "kubescheduler.config.k8s.io"

WORKLOADS = frozenset(
    ("CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet")
)
"""Kinds that make pods. None is expanded: a pod is decided about when it is there."""


def is_skipped(api_version: str, kind: str) -> bool:
    """Whether an object of a kind that scheduling does not read may be passed over."""
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
