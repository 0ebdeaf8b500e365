"""The default cluster roles of Kubernetes' controllers.

Output: the rules of each, by the name of the controller's service account in kube-system.

1. The cluster role is called `system:controller:NAME`, and so is its binding to that service account.
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.apiserver.access.default_cluster_roles import READ, READ_AND_UPDATE, WRITE_EVENTS, Rules, may

CONTROLLER_ROLES: Mapping[str, Rules] = {
    "attachdetach-controller": (
        may("list watch", "core", "persistentvolumeclaims persistentvolumes"),
        may(READ, "core", "nodes"),
        may("patch update", "core", "nodes/status"),
        may("list watch", "core", "pods"),
        WRITE_EVENTS,
        may("create delete get list watch", "storage.k8s.io", "volumeattachments"),
        may(READ, "storage.k8s.io", "csidrivers"),
        may(READ, "storage.k8s.io", "csinodes"),
    ),
    "certificate-controller": (
        may("delete get list watch", "certificates.k8s.io", "certificatesigningrequests"),
        may("update", "certificates.k8s.io", "certificatesigningrequests/approval certificatesigningrequests/status"),
        may("approve", "certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client-kubelet"),
        may(
            "sign",
            "certificates.k8s.io",
            "signers",
            "kubernetes.io/kube-apiserver-client kubernetes.io/kube-apiserver-client-kubelet "
            "kubernetes.io/kubelet-serving kubernetes.io/legacy-unknown",
        ),
        may("create", "authorization.k8s.io", "subjectaccessreviews"),
        WRITE_EVENTS,
    ),
    "clusterrole-aggregation-controller": (
        may("escalate get list patch update watch", "rbac.authorization.k8s.io", "clusterroles"),
    ),
    "cronjob-controller": (
        may("get list update watch", "batch", "cronjobs"),
        may("create delete get list patch update watch", "batch", "jobs"),
        may("update", "batch", "cronjobs/status"),
        may("update", "batch", "cronjobs/finalizers"),
        may("delete list watch", "core", "pods"),
        WRITE_EVENTS,
    ),
    "daemon-set-controller": (
        may(READ, "apps extensions", "daemonsets"),
        may("update", "apps extensions", "daemonsets/status"),
        may("update", "apps extensions", "daemonsets/finalizers"),
        may("list watch", "core", "nodes"),
        may("create delete list patch watch", "core", "pods"),
        may("create", "core", "pods/binding"),
        may("create delete get list patch update watch", "apps", "controllerrevisions"),
        WRITE_EVENTS,
    ),
    "deployment-controller": (
        may("get list update watch", "apps extensions", "deployments"),
        may("update", "apps extensions", "deployments/status"),
        may("update", "apps extensions", "deployments/finalizers"),
        may("create delete get list patch update watch", "apps extensions", "replicasets"),
        may("get list update watch", "core", "pods"),
        WRITE_EVENTS,
    ),
    "device-taint-eviction-controller": (
        may("delete get list watch", "core", "pods"),
        may("patch update", "core", "pods/status"),
        may(READ, "resource.k8s.io", "resourceclaims"),
        may(READ, "resource.k8s.io", "resourceslices"),
        may(READ, "resource.k8s.io", "deviceclasses"),
        WRITE_EVENTS,
    ),
    "disruption-controller": (
        may(READ, "apps extensions", "deployments"),
        may(READ, "apps extensions", "replicasets"),
        may(READ, "core", "replicationcontrollers"),
        may(READ, "policy", "poddisruptionbudgets"),
        may(READ, "apps", "statefulsets"),
        may("update", "policy", "poddisruptionbudgets/status"),
        may("patch update", "core", "pods/status"),
        may("get", "*", "*/scale"),
        WRITE_EVENTS,
    ),
    "endpoint-controller": (
        may(READ, "core", "pods services"),
        may("create delete get list update watch", "core", "endpoints"),
        may("create", "core", "endpoints/restricted"),
        WRITE_EVENTS,
    ),
    "endpointslice-controller": (
        may(READ, "core", "nodes pods services"),
        may("update", "core", "services/finalizers"),
        may("create delete get list update watch", "discovery.k8s.io", "endpointslices"),
        WRITE_EVENTS,
    ),
    "endpointslicemirroring-controller": (
        may(READ, "core", "endpoints services"),
        may("update", "core", "services/finalizers"),
        may("update", "core", "endpoints/finalizers"),
        may("create delete get list update watch", "discovery.k8s.io", "endpointslices"),
        WRITE_EVENTS,
    ),
    "ephemeral-volume-controller": (
        may(READ, "core", "pods"),
        may("update", "core", "pods/finalizers"),
        may("create get list watch", "core", "persistentvolumeclaims"),
        WRITE_EVENTS,
    ),
    "expand-controller": (
        may(READ_AND_UPDATE, "core", "persistentvolumes"),
        may("patch update", "core", "persistentvolumeclaims/status"),
        may(READ, "core", "persistentvolumeclaims"),
        WRITE_EVENTS,
    ),
    "generic-garbage-collector": (
        may("delete get list patch update watch", "*", "*"),
        WRITE_EVENTS,
    ),
    "horizontal-pod-autoscaler": (
        may(READ, "autoscaling", "horizontalpodautoscalers"),
        may("update", "autoscaling", "horizontalpodautoscalers/status"),
        may("get update", "*", "*/scale"),
        may("list watch", "core", "pods"),
        may("list watch", "metrics.k8s.io", "pods"),
        may(READ, "custom.metrics.k8s.io", "*"),
        may(READ, "external.metrics.k8s.io", "*"),
        WRITE_EVENTS,
    ),
    "job-controller": (
        may(READ_AND_UPDATE, "batch", "jobs"),
        may("update", "batch", "jobs/status"),
        may("update", "batch", "jobs/finalizers"),
        may("create delete list patch watch", "core", "pods"),
        WRITE_EVENTS,
    ),
    "legacy-service-account-token-cleaner": (
        may("get", "core", "configmaps", "kube-apiserver-legacy-service-account-token-tracking"),
        may("delete patch", "core", "secrets"),
    ),
    "namespace-controller": (
        may("delete get list watch", "core", "namespaces"),
        may("update", "core", "namespaces/finalize namespaces/status"),
        may("delete deletecollection get list watch", "*", "*"),
    ),
    "node-controller": (
        may("delete get list patch update watch", "core", "nodes"),
        may("patch update", "core", "nodes/status"),
        may("patch update", "core", "pods/status"),
        may("delete get list watch", "core", "pods"),
        WRITE_EVENTS,
    ),
    "persistent-volume-binder": (
        may("create delete get list update watch", "core", "persistentvolumes"),
        may("update", "core", "persistentvolumes/status"),
        may("get list update watch", "core", "persistentvolumeclaims"),
        may("update", "core", "persistentvolumeclaims/status"),
        may("create delete get list watch", "core", "pods"),
        may(READ, "storage.k8s.io", "storageclasses"),
        may("list watch", "core", "nodes"),
        WRITE_EVENTS,
        may("watch", "core", "events"),
    ),
    "pod-garbage-collector": (
        may("delete list watch", "core", "pods"),
        may(READ, "core", "nodes"),
        may("patch", "core", "pods/status"),
    ),
    "pv-protection-controller": (
        may("get list update watch", "core", "persistentvolumes"),
        WRITE_EVENTS,
    ),
    "pvc-protection-controller": (
        may("get list update watch", "core", "persistentvolumeclaims"),
        may("update", "core", "persistentvolumeclaims/status"),
        may(READ, "core", "pods"),
        WRITE_EVENTS,
    ),
    "replicaset-controller": (
        may("get list update watch", "apps extensions", "replicasets"),
        may("update", "apps extensions", "replicasets/status"),
        may("update", "apps extensions", "replicasets/finalizers"),
        may("create delete list patch watch", "core", "pods"),
        WRITE_EVENTS,
    ),
    "replication-controller": (
        may("get list update watch", "core", "replicationcontrollers"),
        may("update", "core", "replicationcontrollers/status"),
        may("update", "core", "replicationcontrollers/finalizers"),
        may("create delete list patch watch", "core", "pods"),
        WRITE_EVENTS,
    ),
    "resource-claim-controller": (
        may(READ, "core", "pods"),
        may("update", "core", "pods/finalizers"),
        may("create delete get list watch", "resource.k8s.io", "resourceclaims"),
        may("patch update", "resource.k8s.io", "resourceclaims resourceclaims/status"),
        may("patch update", "core", "pods/status"),
        WRITE_EVENTS,
        may("patch update", "resource.k8s.io", "resourceclaims/binding"),
    ),
    "resourcequota-controller": (
        may("list watch", "*", "*"),
        may("update", "core", "resourcequotas/status"),
        WRITE_EVENTS,
    ),
    "root-ca-cert-publisher": (
        may("create update", "core", "configmaps"),
        WRITE_EVENTS,
    ),
    "route-controller": (
        may("list watch", "core", "nodes"),
        may("patch", "core", "nodes/status"),
        WRITE_EVENTS,
    ),
    "selinux-warning-controller": (
        WRITE_EVENTS,
        may(READ, "core", "persistentvolumes"),
        may(READ, "core", "persistentvolumeclaims"),
        may(READ, "core", "pods"),
        may(READ, "storage.k8s.io", "csidrivers"),
    ),
    "service-account-controller": (
        may("create", "core", "serviceaccounts"),
        WRITE_EVENTS,
    ),
    "service-cidrs-controller": (
        may(READ_AND_UPDATE, "networking.k8s.io", "servicecidrs"),
        may("patch update", "networking.k8s.io", "servicecidrs/finalizers"),
        may("patch update", "networking.k8s.io", "servicecidrs/status"),
        may(READ, "networking.k8s.io", "ipaddresses"),
        WRITE_EVENTS,
    ),
    "service-controller": (
        may(READ, "core", "services"),
        may("patch update", "core", "services/status"),
        may("list watch", "core", "nodes"),
        WRITE_EVENTS,
    ),
    "statefulset-controller": (
        may("list watch", "core", "pods"),
        may(READ, "apps", "statefulsets"),
        may("update", "apps", "statefulsets/status"),
        may("update", "apps", "statefulsets/finalizers"),
        may("create delete get patch update", "core", "pods"),
        may("create delete get list patch update watch", "apps", "controllerrevisions"),
        may("create get list watch", "core", "persistentvolumeclaims"),
        may("delete update", "core", "persistentvolumeclaims"),
        may("update", "core", "pods/finalizers"),
        WRITE_EVENTS,
    ),
    "ttl-after-finished-controller": (
        may("delete get list watch", "batch", "jobs"),
        WRITE_EVENTS,
    ),
    "ttl-controller": (
        may("list patch update watch", "core", "nodes"),
        WRITE_EVENTS,
    ),
    "validatingadmissionpolicy-status-controller": (
        may(READ, "admissionregistration.k8s.io", "validatingadmissionpolicies"),
        may("get patch update", "admissionregistration.k8s.io", "validatingadmissionpolicies/status"),
        WRITE_EVENTS,
    ),
    "volumeattributesclass-protection-controller": (
        may(READ, "core", "persistentvolumeclaims"),
        may(READ, "core", "persistentvolumes"),
        may("get list update watch", "storage.k8s.io", "volumeattributesclasses"),
        WRITE_EVENTS,
    ),
}
