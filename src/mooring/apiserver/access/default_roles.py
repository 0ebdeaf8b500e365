"""The default roles and bindings of RBAC, and their reconciliation at every start.

Output: roles and bindings as kube-apiserver v1.36 creates them with its default features, by kind. `reconciled` returns
the object to store, or None.

1. All of them have the label and the annotation by which reconciliation recognizes them.
2. `admin`, `edit` and `view` aggregate cluster roles by label, so that a new kind can add its rules.
3. `system:node` is bound to no user: `node_authorizer` authorizes nodes.
4. Reconciliation adds missing rules and subjects and keeps additional ones. An object annotated with
   `autoupdate: "false"` is not changed.
5. The role of a binding is immutable. A binding to another role is replaced by the default, which has no uid: the
   caller deletes the stored binding and creates the default.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mooring.api.document import Document
from mooring.apiserver.access.authorization import Rule, document_of, rules_of, uncovered
from mooring.apiserver.access.default_cluster_roles import (
    CLUSTER_ROLES,
    READ,
    WRITE_EVENTS,
    Rules,
    binding_object,
    may,
    role_object,
    subject,
)
from mooring.apiserver.access.default_controller_roles import CONTROLLER_ROLES

_AGGREGATE_TO = "rbac.authorization.k8s.io/aggregate-to-"
_AGGREGATED = {"admin": "", "edit": "admin", "view": "edit"}
"""Each gathers what is labelled for it, and is itself gathered by the next."""

_GROUP_BINDINGS = {
    "cluster-admin": ("system:masters",),
    "system:monitoring": ("system:monitoring",),
    "system:discovery": ("system:authenticated",),
    "system:basic-user": ("system:authenticated",),
    "system:public-info-viewer": ("system:authenticated", "system:unauthenticated"),
    "system:service-account-issuer-discovery": ("system:serviceaccounts",),
    "system:node": (),
}
_USER_BINDINGS = {
    "system:node-proxier": "system:kube-proxy",
    "system:kube-controller-manager": "system:kube-controller-manager",
    "system:kube-scheduler": "system:kube-scheduler",
    "system:volume-scheduler": "system:kube-scheduler",
}

_LEADER_VERBS = "create get list update watch"
_LEADER_RULES = (
    may(_LEADER_VERBS, "coordination.k8s.io", "leases"),
    may(_LEADER_VERBS, "coordination.k8s.io", "leasecandidates"),
)

_NAMESPACED_ROLES: dict[tuple[str, str], Rules] = {
    ("kube-public", "system:controller:bootstrap-signer"): (
        may(READ, "core", "configmaps"),
        may("update", "core", "configmaps", "cluster-info"),
        WRITE_EVENTS,
    ),
    ("kube-system", "extension-apiserver-authentication-reader"): (
        may(READ, "core", "configmaps", "extension-apiserver-authentication"),
    ),
    ("kube-system", "system::leader-locking-kube-controller-manager"): _LEADER_RULES,
    ("kube-system", "system::leader-locking-kube-scheduler"): _LEADER_RULES,
    ("kube-system", "system:controller:bootstrap-signer"): (may(READ, "core", "secrets"),),
    ("kube-system", "system:controller:cloud-provider"): (may("create get list watch", "core", "configmaps"),),
    ("kube-system", "system:controller:token-cleaner"): (
        may("delete get list watch", "core", "secrets"),
        WRITE_EVENTS,
    ),
}

_NAMESPACED_BINDINGS: dict[tuple[str, str], tuple[str, tuple[tuple[str, str], ...]]] = {
    ("kube-public", "system:controller:bootstrap-signer"): (
        "system:controller:bootstrap-signer",
        (("ServiceAccount", "bootstrap-signer"),),
    ),
    ("kube-system", "system::extension-apiserver-authentication-reader"): (
        "extension-apiserver-authentication-reader",
        (("User", "system:kube-controller-manager"), ("User", "system:kube-scheduler")),
    ),
    ("kube-system", "system::leader-locking-kube-controller-manager"): (
        "system::leader-locking-kube-controller-manager",
        (
            ("User", "system:kube-controller-manager"),
            ("ServiceAccount", "kube-controller-manager"),
            ("ServiceAccount", "leader-election-controller"),
        ),
    ),
    ("kube-system", "system::leader-locking-kube-scheduler"): (
        "system::leader-locking-kube-scheduler",
        (("User", "system:kube-scheduler"), ("ServiceAccount", "kube-scheduler")),
    ),
    ("kube-system", "system:controller:bootstrap-signer"): (
        "system:controller:bootstrap-signer",
        (("ServiceAccount", "bootstrap-signer"),),
    ),
    ("kube-system", "system:controller:cloud-provider"): (
        "system:controller:cloud-provider",
        (("ServiceAccount", "cloud-provider"),),
    ),
    ("kube-system", "system:controller:token-cleaner"): (
        "system:controller:token-cleaner",
        (("ServiceAccount", "token-cleaner"),),
    ),
}


class DefaultObject(NamedTuple):
    """An object that a new cluster has, and where. `resource` is the plural; `namespace` may be empty."""

    resource: str
    namespace: str
    document: Document


def default_objects() -> Iterator[DefaultObject]:
    """All of them, roles before bindings. The documents are the caller's to keep."""
    for role in cluster_roles():
        yield DefaultObject("clusterroles", "", role)
    for binding in cluster_role_bindings():
        yield DefaultObject("clusterrolebindings", "", binding)
    for (namespace, name), rules in _NAMESPACED_ROLES.items():
        yield DefaultObject("roles", namespace, role_object("Role", name, rules, namespace))
    for (namespace, name), (role_name, named) in _NAMESPACED_BINDINGS.items():
        subjects = [subject(*each) for each in named]
        binding = binding_object(name, ("Role", role_name), subjects, namespace)
        yield DefaultObject("rolebindings", namespace, binding)


def cluster_roles() -> Iterator[Document]:
    for name, gathered_by in _AGGREGATED.items():
        role = role_object("ClusterRole", name, ())
        role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {f"{_AGGREGATE_TO}{name}": "true"}}]}
        if gathered_by:
            role["metadata"]["labels"][f"{_AGGREGATE_TO}{gathered_by}"] = "true"
        yield role
    for name, rules in CLUSTER_ROLES.items():
        role = role_object("ClusterRole", name, rules)
        aggregate = name.removeprefix("system:aggregate-to-")
        if aggregate in _AGGREGATED:
            role["metadata"]["labels"][f"{_AGGREGATE_TO}{aggregate}"] = "true"
        yield role
    for controller, rules in CONTROLLER_ROLES.items():
        yield role_object("ClusterRole", f"system:controller:{controller}", rules)


def cluster_role_bindings() -> Iterator[Document]:
    for name, groups in _GROUP_BINDINGS.items():
        yield _cluster_binding(name, [subject("Group", group) for group in groups])
    for name, user in _USER_BINDINGS.items():
        yield _cluster_binding(name, [subject("User", user)])
    yield _cluster_binding("system:kube-dns", [subject("ServiceAccount", "kube-dns")])
    for controller in CONTROLLER_ROLES:
        yield _cluster_binding(f"system:controller:{controller}", [subject("ServiceAccount", controller)])


def node_rules() -> tuple[Rule, ...]:
    """What every node may do with objects that are not its own."""
    return rules_of({"rules": list(CLUSTER_ROLES["system:node"])})


def _cluster_binding(name: str, subjects: list[Document]) -> Document:
    return binding_object(name, ("ClusterRole", name), subjects)


AUTOUPDATE_ANNOTATION = "rbac.authorization.kubernetes.io/autoupdate"


def reconciled(stored: Document, wanted: Document) -> Document | None:
    """The stored object with what it lacks of the default; None when it lacks nothing or is not to be touched."""
    metadata = stored.get("metadata") or {}
    if (metadata.get("annotations") or {}).get(AUTOUPDATE_ANNOTATION) == "false":
        return None
    if stored.get("roleRef") != wanted.get("roleRef"):
        return wanted
    changed = dict(stored, metadata=dict(metadata))
    for table in ("labels", "annotations"):
        changed["metadata"][table] = {**wanted["metadata"][table], **(metadata.get(table) or {})}
    if "roleRef" in wanted:
        _add_subjects(changed, wanted)
    else:
        _add_rules(changed, wanted)
        _set_right_aggregation(changed, wanted)
    return None if changed == stored else changed


def _add_subjects(changed: Document, wanted: Document) -> None:
    present = changed.get("subjects") or []
    missing = [subject for subject in wanted.get("subjects") or () if subject not in present]
    if missing:
        changed["subjects"] = [*present, *missing]


def _add_rules(changed: Document, wanted: Document) -> None:
    missing = uncovered(rules_of(changed), rules_of(wanted))
    if missing:
        changed["rules"] = [*(changed.get("rules") or ()), *(document_of(rule) for rule in missing)]


def _set_right_aggregation(changed: Document, wanted: Document) -> None:
    if "aggregationRule" not in wanted:
        changed.pop("aggregationRule", None)
        return
    present = (changed.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
    missing = [selector for selector in wanted["aggregationRule"]["clusterRoleSelectors"] if selector not in present]
    if missing:
        changed["aggregationRule"] = {"clusterRoleSelectors": [*present, *missing]}
