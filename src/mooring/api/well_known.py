"""Constants of Kubernetes: label and annotation keys, namespaces, groups, pod phases."""

from __future__ import annotations

HOSTNAME = "kubernetes.io/hostname"
OS_LABEL = "kubernetes.io/os"
ARCH_LABEL = "kubernetes.io/arch"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"

NODE_LEASE_NAMESPACE = "kube-node-lease"
MASTERS_GROUP = "system:masters"

PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
TERMINAL_PHASES = (SUCCEEDED, FAILED)
"""Phases of a pod that never runs again."""

MIRROR_POD_ANNOTATION = "kubernetes.io/config.mirror"

KUBELET_LABELS = frozenset(
    (
        HOSTNAME,
        ZONE,
        REGION,
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
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
