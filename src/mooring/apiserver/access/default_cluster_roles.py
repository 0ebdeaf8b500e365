"""The default cluster roles of Kubernetes 1.36, for users and components.

Output: the rules of each, by name. `may("get list", "core apps", "pods deployments")` writes a rule as text.

1. `admin`, `edit` and `view` are not here: they have no rules of their own, and aggregate `system:aggregate-to-…` (see
   `default_roles`).
2. A rule may name resources that this server does not serve, so that roles equal those of other clusters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from mooring.api.document import Document

RBAC_VERSION = "rbac.authorization.k8s.io/v1"

READ = "get list watch"
WRITE = "create delete deletecollection patch update"
READ_AND_UPDATE = "get list patch update watch"
READ_AND_WRITE = "create delete deletecollection get list patch update watch"

Rules: TypeAlias = tuple[Document, ...]


def may(verbs: str, groups: str, resources: str, names: str = "") -> Document:
    """A rule about resources."""
    rule: Document = {
        "verbs": verbs.split(),
        "apiGroups": ["" if group == "core" else group for group in groups.split()],
        "resources": resources.split(),
    }
    if names:
        rule["resourceNames"] = names.split()
    return rule


def may_get(paths: str) -> Document:
    """A rule about paths that are no resources."""
    return {"verbs": ["get"], "nonResourceURLs": paths.split()}


WRITE_EVENTS = may("create patch update", "core events.k8s.io", "events")


def role_object(kind: str, name: str, rules: Rules, namespace: str = "") -> Document:
    return {
        "kind": kind,
        "apiVersion": RBAC_VERSION,
        "metadata": _metadata(name, namespace),
        # Copied, because callers change documents, and the tables are shared.
        "rules": [{field: list(values) for field, values in rule.items()} for rule in rules] or None,
    }


def binding_object(name: str, reference: tuple[str, str], subjects: list[Document], namespace: str = "") -> Document:
    kind, role = reference
    binding: Document = {
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "apiVersion": RBAC_VERSION,
        "metadata": _metadata(name, namespace),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
    }
    if subjects:
        binding["subjects"] = subjects
    return binding


def subject(kind: str, name: str) -> Document:
    """A user or a group; or a service account of kube-system."""
    if kind == "ServiceAccount":
        return {"kind": kind, "name": name, "namespace": "kube-system"}
    return {"kind": kind, "apiGroup": "rbac.authorization.k8s.io", "name": name}


def _metadata(name: str, namespace: str) -> Document:
    metadata: Document = {
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    }
    if namespace:
        metadata["namespace"] = namespace
    return metadata


CLUSTER_ROLES: Mapping[str, Rules] = {
    "cluster-admin": (
        may("*", "*", "*"),
        {"verbs": ["*"], "nonResourceURLs": ["*"]},
    ),
    "system:aggregate-to-admin": (
        may("create", "authorization.k8s.io", "localsubjectaccessreviews"),
        may(READ_AND_WRITE, "rbac.authorization.k8s.io", "rolebindings roles"),
    ),
    "system:aggregate-to-edit": (
        may(READ, "core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
        may("impersonate", "core", "serviceaccounts"),
        may(WRITE, "core", "pods pods/attach pods/exec pods/portforward pods/proxy"),
        may("create", "core", "pods/eviction"),
        may(
            WRITE,
            "core",
            "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets "
            "serviceaccounts services services/proxy",
        ),
        may("create", "core", "serviceaccounts/token"),
        may(WRITE, "core events.k8s.io", "events"),
        may(
            WRITE,
            "apps",
            "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale "
            "statefulsets statefulsets/scale",
        ),
        may(WRITE, "autoscaling", "horizontalpodautoscalers"),
        may(WRITE, "batch", "cronjobs jobs"),
        may(
            WRITE,
            "extensions",
            "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets "
            "replicasets/scale replicationcontrollers/scale",
        ),
        may(WRITE, "policy", "poddisruptionbudgets"),
        may(WRITE, "networking.k8s.io", "ingresses networkpolicies"),
        may(READ_AND_WRITE, "coordination.k8s.io", "leases"),
        may(WRITE, "resource.k8s.io", "resourceclaims resourceclaimtemplates"),
    ),
    "system:aggregate-to-view": (
        may(
            READ,
            "core",
            "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods "
            "replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status",
        ),
        may(
            READ,
            "core",
            "bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status "
            "resourcequotas resourcequotas/status",
        ),
        may(READ, "core", "namespaces"),
        may(READ, "core events.k8s.io", "events"),
        may(READ, "discovery.k8s.io", "endpointslices"),
        may(
            READ,
            "apps",
            "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status "
            "replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status",
        ),
        may(READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
        may(READ, "batch", "cronjobs cronjobs/status jobs jobs/status"),
        may(
            READ,
            "extensions",
            "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses "
            "ingresses/status networkpolicies replicasets replicasets/scale replicasets/status "
            "replicationcontrollers/scale",
        ),
        may(READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
        may(READ, "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
        may(READ, "resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates"),
    ),
    "system:auth-delegator": (
        may("create", "authentication.k8s.io", "tokenreviews"),
        may("create", "authorization.k8s.io", "subjectaccessreviews"),
    ),
    "system:basic-user": (
        may("create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"),
        may("create", "authentication.k8s.io", "selfsubjectreviews"),
    ),
    "system:certificates.k8s.io:certificatesigningrequests:nodeclient": (
        may("create", "certificates.k8s.io", "certificatesigningrequests/nodeclient"),
    ),
    "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient": (
        may("create", "certificates.k8s.io", "certificatesigningrequests/selfnodeclient"),
    ),
    "system:certificates.k8s.io:kube-apiserver-client-approver": (
        may("approve", "certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client"),
    ),
    "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver": (
        may("approve", "certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client-kubelet"),
    ),
    "system:certificates.k8s.io:kubelet-serving-approver": (
        may("approve", "certificates.k8s.io", "signers", "kubernetes.io/kubelet-serving"),
    ),
    "system:certificates.k8s.io:legacy-unknown-approver": (
        may("approve", "certificates.k8s.io", "signers", "kubernetes.io/legacy-unknown"),
    ),
    "system:discovery": (
        may_get("/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/"),
    ),
    "system:heapster": (
        may(READ, "core", "events namespaces nodes pods"),
        may(READ, "extensions", "deployments"),
    ),
    "system:kube-aggregator": (may(READ, "core", "endpoints services"),),
    "system:kube-controller-manager": (
        WRITE_EVENTS,
        may("create", "coordination.k8s.io", "leases"),
        may("get update", "coordination.k8s.io", "leases", "kube-controller-manager"),
        may("create", "core", "secrets serviceaccounts"),
        may("delete", "core", "secrets"),
        may("get", "core", "configmaps namespaces secrets serviceaccounts"),
        may("update", "core", "secrets serviceaccounts"),
        may("create", "authentication.k8s.io", "tokenreviews"),
        may("create", "authorization.k8s.io", "subjectaccessreviews"),
        may("list watch", "*", "*"),
        may("create", "core", "serviceaccounts/token"),
    ),
    "system:kube-dns": (may("list watch", "core", "endpoints services"),),
    "system:kube-scheduler": (
        WRITE_EVENTS,
        may("create", "coordination.k8s.io", "leases"),
        may("get list update watch", "coordination.k8s.io", "leases", "kube-scheduler"),
        may(READ_AND_WRITE, "coordination.k8s.io", "leasecandidates"),
        may(READ, "core", "nodes"),
        may("delete get list watch", "core", "pods"),
        may("create", "core", "bindings pods/binding"),
        may("patch update", "core", "pods/status"),
        may(READ, "core", "replicationcontrollers services"),
        may(READ, "apps extensions", "replicasets"),
        may(READ, "apps", "statefulsets"),
        may(READ, "policy", "poddisruptionbudgets"),
        may(READ, "core", "persistentvolumeclaims persistentvolumes"),
        may("create", "authentication.k8s.io", "tokenreviews"),
        may("create", "authorization.k8s.io", "subjectaccessreviews"),
        may(READ, "storage.k8s.io", "csinodes"),
        may(READ, "storage.k8s.io", "volumeattachments"),
        may(READ, "core", "namespaces"),
        may(READ, "storage.k8s.io", "csidrivers"),
        may(READ, "storage.k8s.io", "csistoragecapacities"),
        may(READ, "resource.k8s.io", "deviceclasses"),
        may(READ_AND_UPDATE, "resource.k8s.io", "resourceclaims"),
        may(READ_AND_UPDATE, "resource.k8s.io", "resourceclaims/status"),
        may("update", "core", "pods/finalizers"),
        may(READ, "resource.k8s.io", "resourceslices"),
        may("create delete", "resource.k8s.io", "resourceclaims"),
        may("patch update", "resource.k8s.io", "resourceclaims/binding"),
    ),
    "system:kubelet-api-admin": (
        may(READ, "core", "nodes"),
        may("proxy", "core", "nodes"),
        may("*", "core", "nodes/log nodes/metrics nodes/proxy nodes/stats"),
        may("*", "core", "nodes/configz nodes/healthz nodes/pods"),
    ),
    "system:monitoring": (
        may_get("/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/* /statusz"),
        may("get", "core", "nodes/metrics"),
    ),
    "system:node": (
        may("create", "authentication.k8s.io", "tokenreviews"),
        may("create", "authorization.k8s.io", "localsubjectaccessreviews subjectaccessreviews"),
        may(READ, "core", "services"),
        may("create get list watch", "core", "nodes"),
        may("patch update", "core", "nodes/status"),
        may("patch update", "core", "nodes"),
        WRITE_EVENTS,
        may(READ, "core", "pods"),
        may("create delete", "core", "pods"),
        may("patch update", "core", "pods/status"),
        may("create", "core", "pods/eviction"),
        may(READ, "core", "configmaps secrets"),
        may("get", "core", "persistentvolumeclaims persistentvolumes"),
        may("get", "core", "endpoints"),
        may("create get list watch", "certificates.k8s.io", "certificatesigningrequests"),
        may("create delete get patch update", "coordination.k8s.io", "leases"),
        may("get", "storage.k8s.io", "volumeattachments"),
        may("create", "core", "serviceaccounts/token"),
        may("get patch update", "core", "persistentvolumeclaims/status"),
        may(READ, "storage.k8s.io", "csidrivers"),
        may("create delete get patch update", "storage.k8s.io", "csinodes"),
        may(READ, "node.k8s.io", "runtimeclasses"),
        may("get", "resource.k8s.io", "resourceclaims"),
        may("deletecollection", "resource.k8s.io", "resourceslices"),
        may("get", "core", "serviceaccounts"),
    ),
    "system:node-bootstrapper": (may("create get list watch", "certificates.k8s.io", "certificatesigningrequests"),),
    "system:node-problem-detector": (
        may("get", "core", "nodes"),
        may("patch", "core", "nodes/status"),
        WRITE_EVENTS,
    ),
    "system:node-proxier": (
        may("list watch", "core", "endpoints services"),
        may(READ, "core", "nodes"),
        WRITE_EVENTS,
        may("list watch", "networking.k8s.io", "servicecidrs"),
        may("list watch", "discovery.k8s.io", "endpointslices"),
    ),
    "system:persistent-volume-provisioner": (
        may("create delete get list watch", "core", "persistentvolumes"),
        may("get list update watch", "core", "persistentvolumeclaims"),
        may(READ, "storage.k8s.io", "storageclasses"),
        may("watch", "core", "events"),
        WRITE_EVENTS,
    ),
    "system:public-info-viewer": (may_get("/healthz /livez /readyz /version /version/"),),
    "system:service-account-issuer-discovery": (
        may_get(
            "/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/"
        ),
    ),
    "system:volume-scheduler": (
        may(READ_AND_UPDATE, "core", "persistentvolumes"),
        may(READ, "storage.k8s.io", "storageclasses"),
        may(READ_AND_UPDATE, "core", "persistentvolumeclaims"),
    ),
}
