"""The default roles and bindings of RBAC, and their reconciliation at every start.

Input: `default.roles`, the rules of all roles as text. Output: roles and bindings as kube-apiserver v1.36 creates them
with its default features, by kind. `reconciled` returns the object to store, or None.

1. All of them have the label and the annotation by which reconciliation recognizes them.
2. `admin`, `edit` and `view` aggregate cluster roles by label, so that a new kind can add its rules.
3. `system:node` is bound to no user: `node_authorizer` authorizes nodes.
4. Reconciliation adds missing rules and subjects and keeps additional ones. An object annotated with
   `autoupdate: "false"` is not changed.
5. The role of a binding is immutable. A binding to another role is replaced by the default, which has no uid: the
   caller deletes the stored binding and creates the default.
6. A rule may name resources that this server does not serve, so that roles equal those of other clusters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import NamedTuple, TypeAlias

from mooring.api.document import Document
from mooring.apiserver.access.authorization import Rule, document_of, rules_of, uncovered

RBAC_VERSION = "rbac.authorization.k8s.io/v1"

Rules: TypeAlias = tuple[Document, ...]

_AGGREGATE_TO = "rbac.authorization.k8s.io/aggregate-to-"
_AGGREGATED = {"admin": "", "edit": "admin", "view": "edit"}
"""Aggregated cluster roles, and the role that aggregates each of them in turn."""

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

_CONTROLLER = "system:controller:"


def rule(text: str) -> Document:
    """A rule of `default.roles`."""
    verbs, *columns = (column.split() for column in text.split(" | "))
    if len(columns) == 1:
        return {"verbs": verbs, "nonResourceURLs": columns[0]}
    groups, resources, *names = columns
    made: Document = {
        "verbs": verbs,
        "apiGroups": ["" if group == "core" else group for group in groups],
        "resources": resources,
    }
    if names:
        made["resourceNames"] = names[0]
    return made


def _read_roles() -> dict[str, Rules]:
    roles: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in files(__package__).joinpath("default.roles").read_text(encoding="utf-8").splitlines():
        if line.startswith(8 * " "):
            lines[-1] += f" {line.strip()}"
        elif line.startswith(" "):
            lines.append(line.strip())
        elif line and not line.startswith("#"):
            lines = roles[line] = []
    return {name: tuple(map(rule, rules)) for name, rules in roles.items()}


_ROLES: Mapping[str, Rules] = _read_roles()
_NAMESPACED_ROLES = {tuple(name.split("/")): rules for name, rules in _ROLES.items() if "/" in name}
CONTROLLER_ROLES = {
    name.removeprefix(_CONTROLLER): rules for name, rules in _ROLES.items() if name.startswith(_CONTROLLER)
}
"""The rules of each controller, by the name of its service account in kube-system."""
CLUSTER_ROLES = {name: rules for name, rules in _ROLES.items() if "/" not in name and not name.startswith(_CONTROLLER)}

_NAMESPACED_BINDINGS: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {
    ("kube-public", "system:controller:bootstrap-signer"): (("ServiceAccount", "bootstrap-signer"),),
    ("kube-system", "system::extension-apiserver-authentication-reader"): (
        ("User", "system:kube-controller-manager"),
        ("User", "system:kube-scheduler"),
    ),
    ("kube-system", "system::leader-locking-kube-controller-manager"): (
        ("User", "system:kube-controller-manager"),
        ("ServiceAccount", "kube-controller-manager"),
        ("ServiceAccount", "leader-election-controller"),
    ),
    ("kube-system", "system::leader-locking-kube-scheduler"): (
        ("User", "system:kube-scheduler"),
        ("ServiceAccount", "kube-scheduler"),
    ),
    ("kube-system", "system:controller:bootstrap-signer"): (("ServiceAccount", "bootstrap-signer"),),
    ("kube-system", "system:controller:cloud-provider"): (("ServiceAccount", "cloud-provider"),),
    ("kube-system", "system:controller:token-cleaner"): (("ServiceAccount", "token-cleaner"),),
}
"""The subjects of bindings in namespaces. A binding has the name of its role, apart from `_OTHER_ROLES`."""
_OTHER_ROLES = {"system::extension-apiserver-authentication-reader": "extension-apiserver-authentication-reader"}


class BootstrapObject(NamedTuple):
    """An object of a new cluster. `resource` is the plural; `namespace` may be empty."""

    resource: str
    namespace: str
    document: Document


def default_objects() -> Iterator[BootstrapObject]:
    """All default objects, roles before bindings. The caller owns the documents."""
    for role in cluster_roles():
        yield BootstrapObject("clusterroles", "", role)
    for binding in cluster_role_bindings():
        yield BootstrapObject("clusterrolebindings", "", binding)
    for (namespace, name), rules in _NAMESPACED_ROLES.items():
        yield BootstrapObject("roles", namespace, role_object("Role", name, rules, namespace))
    for (namespace, name), named in _NAMESPACED_BINDINGS.items():
        subjects = [subject(*kind_and_name) for kind_and_name in named]
        binding = binding_object(name, ("Role", _OTHER_ROLES.get(name, name)), subjects, namespace)
        yield BootstrapObject("rolebindings", namespace, binding)


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


def cluster_roles() -> Iterator[Document]:
    for name, aggregated_by in _AGGREGATED.items():
        role = role_object("ClusterRole", name, ())
        role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {f"{_AGGREGATE_TO}{name}": "true"}}]}
        if aggregated_by:
            role["metadata"]["labels"][f"{_AGGREGATE_TO}{aggregated_by}"] = "true"
        yield role
    for name, rules in CLUSTER_ROLES.items():
        role = role_object("ClusterRole", name, rules)
        aggregate = name.removeprefix("system:aggregate-to-")
        if aggregate in _AGGREGATED:
            role["metadata"]["labels"][f"{_AGGREGATE_TO}{aggregate}"] = "true"
        yield role
    for controller, rules in CONTROLLER_ROLES.items():
        yield role_object("ClusterRole", f"{_CONTROLLER}{controller}", rules)


def cluster_role_bindings() -> Iterator[Document]:
    for name, groups in _GROUP_BINDINGS.items():
        yield _cluster_binding(name, [subject("Group", group) for group in groups])
    for name, user in _USER_BINDINGS.items():
        yield _cluster_binding(name, [subject("User", user)])
    yield _cluster_binding("system:kube-dns", [subject("ServiceAccount", "kube-dns")])
    for controller in CONTROLLER_ROLES:
        yield _cluster_binding(f"{_CONTROLLER}{controller}", [subject("ServiceAccount", controller)])


def node_rules() -> tuple[Rule, ...]:
    """The rules of every node for objects that are not its own."""
    return rules_of({"rules": list(CLUSTER_ROLES["system:node"])})


def _cluster_binding(name: str, subjects: list[Document]) -> Document:
    return binding_object(name, ("ClusterRole", name), subjects)


AUTOUPDATE_ANNOTATION = "rbac.authorization.kubernetes.io/autoupdate"


def reconciled(stored: Document, default: Document) -> Document | None:
    """The stored object with the missing parts of the default; None if nothing is missing or it must not be changed."""
    metadata = stored.get("metadata") or {}
    if (metadata.get("annotations") or {}).get(AUTOUPDATE_ANNOTATION) == "false":
        return None
    if stored.get("roleRef") != default.get("roleRef"):
        return default
    changed = dict(stored, metadata=dict(metadata))
    for table in ("labels", "annotations"):
        changed["metadata"][table] = {**default["metadata"][table], **(metadata.get(table) or {})}
    if "roleRef" in default:
        _add_subjects(changed, default)
    else:
        _add_rules(changed, default)
        _set_right_aggregation(changed, default)
    return None if changed == stored else changed


def _add_subjects(changed: Document, default: Document) -> None:
    present = changed.get("subjects") or []
    missing = [subject for subject in default.get("subjects") or () if subject not in present]
    if missing:
        changed["subjects"] = [*present, *missing]


def _add_rules(changed: Document, default: Document) -> None:
    missing = uncovered(rules_of(changed), rules_of(default))
    if missing:
        changed["rules"] = [*(changed.get("rules") or ()), *(document_of(rule) for rule in missing)]


def _set_right_aggregation(changed: Document, default: Document) -> None:
    if "aggregationRule" not in default:
        changed.pop("aggregationRule", None)
        return
    present = (changed.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
    missing = [selector for selector in default["aggregationRule"]["clusterRoleSelectors"] if selector not in present]
    if missing:
        changed["aggregationRule"] = {"clusterRoleSelectors": [*present, *missing]}
