"""Constants of Kubernetes: labels, annotations, taints, finalizers, names, pod phases."""

from __future__ import annotations

HOSTNAME = "kubernetes.io/hostname"
OS_LABEL = "kubernetes.io/os"
ARCH_LABEL = "kubernetes.io/arch"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
ZONE_BETA = "failure-domain.beta.kubernetes.io/zone"
REGION_BETA = "failure-domain.beta.kubernetes.io/region"

PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
TERMINAL_PHASES = (SUCCEEDED, FAILED)
"""Phases of a pod that never runs again."""

NODE_BOUND_OWNERS = ("DaemonSet", "Node")
"""Kinds of controllers that create no replacement on another node: pods of a DaemonSet, and static pods."""

DEFAULT_SCHEDULER_NAME = "default-scheduler"
NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"
"""On each Namespace: its name."""

TRUE_TEXTS = ("1", "t", "T", "TRUE", "true", "True")
FALSE_TEXTS = ("0", "f", "F", "FALSE", "false", "False")
"""The booleans of flags and queries, as Go parses them."""

MIRROR_POD_ANNOTATION = "kubernetes.io/config.mirror"

KUBELET_LABELS = frozenset(
    (
        HOSTNAME,
        ZONE,
        REGION,
        ZONE_BETA,
        REGION_BETA,
        "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/instance-type",
        OS_LABEL,
        ARCH_LABEL,
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    )
)
"""The labels of Kubernetes that a kubelet sets on its node."""
KUBELET_LABEL_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
"""The domains whose labels a kubelet sets on its node."""

# Nodes
TAINT_NOT_READY = "node.kubernetes.io/not-ready"
TAINT_UNREACHABLE = "node.kubernetes.io/unreachable"
TAINT_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
NODE_LEASE_NAMESPACE = "kube-node-lease"
EXCLUDE_DISRUPTION_LABEL = "node.kubernetes.io/exclude-disruption"
TAINT_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
TAINT_MEMORY_PRESSURE = "node.kubernetes.io/memory-pressure"
TAINT_DISK_PRESSURE = "node.kubernetes.io/disk-pressure"
TAINT_PID_PRESSURE = "node.kubernetes.io/pid-pressure"
TAINT_NETWORK_UNAVAILABLE = "node.kubernetes.io/network-unavailable"

# Workloads
CONTROLLER_REVISION_HASH_LABEL = "controller-revision-hash"
TEMPLATE_GENERATION_LABEL = "pod-template-generation"
TEMPLATE_GENERATION_ANNOTATION = "deprecated.daemonset.template.generation"
STATEFUL_SET_POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"
CONTROLLER_HASH_LABEL = "controller.kubernetes.io/hash"
DEPLOYMENT_REVISION = "deployment.kubernetes.io/revision"
DEPLOYMENT_REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
DEPLOYMENT_ROLLBACK_TO = "deprecated.deployment.rollback.to"
POD_TEMPLATE_HASH = "pod-template-hash"
JOB_LABELS = ("batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name")
"""The labels that a Job gives its pods."""
DEPLOYMENT_DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
DEPLOYMENT_MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"

# Finalizers of metadata
ORPHAN_FINALIZER = "orphan"
FOREGROUND_FINALIZER = "foregroundDeletion"

# Jobs
JOB_COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
JOB_INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"
JOB_INDEX_IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
JOB_TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"
JOB_CONTROLLER_NAME = "kubernetes.io/job-controller"
CRON_JOB_SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"

# Resource claims
POD_CLAIM_NAME_ANNOTATION = "resource.kubernetes.io/pod-claim-name"
RESOURCE_CLAIM_FINALIZER = "resource.kubernetes.io/delete-protection"

# Pods
POD_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

# Namespaces
NAMESPACE_FINALIZER = "kubernetes"
ROOT_CA_CONFIG_MAP = "kube-root-ca.crt"
DESCRIPTION_ANNOTATION = "kubernetes.io/description"

# Services
ENDPOINT_SLICE_MANAGED_BY_LABEL = "endpointslice.kubernetes.io/managed-by"
SERVICE_NAME_LABEL = "kubernetes.io/service-name"
ENDPOINTS_OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
ENDPOINTS_MANAGED_BY_LABEL = "endpoints.kubernetes.io/managed-by"
SKIP_MIRROR_LABEL = "endpointslice.kubernetes.io/skip-mirror"
LEADER_ANNOTATION = "control-plane.alpha.kubernetes.io/leader"
HEADLESS_SERVICE_LABEL = "service.kubernetes.io/headless"
ENDPOINTS_TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"

# Volumes
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
MIGRATED_TO = "pv.kubernetes.io/migrated-to"
STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
STORAGE_PROVISIONER_BETA = "volume.beta.kubernetes.io/storage-provisioner"
PRE_RESIZE_CAPACITY = "volume.alpha.kubernetes.io/pre-resize-capacity"
PV_CONTROLLER_FINALIZER = "kubernetes.io/pv-controller"
EXTERNAL_PROVISIONER_FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"
PVC_PROTECTION_FINALIZER = "kubernetes.io/pvc-protection"
PV_PROTECTION_FINALIZER = "kubernetes.io/pv-protection"
VAC_PROTECTION_FINALIZER = "kubernetes.io/vac-protection"
LOCAL_PROVISIONER = "mooring.dev/local"
"""The provisioner of the StorageClass of `mooring up`: directories of a node."""
