"""How the tables of default roles are written: one line for each rule.

Comes in   names with spaces between them: `may("get list", "core apps", "pods deployments")`
Goes out   rules and objects as they stand in the store

 1. `core` is the API group without a name.
 2. Verbs, resources and names stand in the order of the alphabet, as the original writes them; rules and groups do not.
"""

from __future__ import annotations

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
        # Copied, because a document belongs to whoever gets it, and the tables belong to everybody.
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
