"""RoleBinding and ClusterRoleBinding (rbac.authorization.k8s.io/v1).

1. The role of a binding is immutable.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.kinds.role import GROUP, RbacStrategy
from mooring.apiserver.tables import AGE, NAME, Cell, KindTable, age, column, wide
from mooring.apiserver.validation.fields import FieldError, invalid, not_supported, required
from mooring.apiserver.validation.metadata import name_is_dns_subdomain
from mooring.apiserver.validation.names import path_segment_errors
from mooring.apiserver.validation.schema_rules import struct_rules, validate_enum

_ACCOUNT = "ServiceAccount"


def validate_role_binding(binding: Document, is_namespaced: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    role, kinds = binding.get("roleRef") or {}, ("Role", "ClusterRole") if is_namespaced else ("ClusterRole",)
    group, kind, name = role.get("apiGroup", ""), role.get("kind", ""), role.get("name", "")
    if group != GROUP:
        errors.append(not_supported("roleRef.apiGroup", group, (GROUP,)))
    errors += validate_enum(kind, kinds, "roleRef.kind")
    errors += struct_rules("rbac", "RoleRef").validate(role, "roleRef")
    errors += [invalid("roleRef.name", name, text) for text in path_segment_errors(name)]
    for index, subject in enumerate(binding.get("subjects") or ()):
        errors += _validate_subject(subject, is_namespaced, f"subjects[{index}]")
    return errors


def validate_role_change(binding: Document, old: Document) -> list[FieldError]:
    """Field errors of a changed `roleRef`, which is immutable."""
    role = binding.get("roleRef") or {}
    if role == old.get("roleRef"):
        return []
    shown = {"APIGroup": role.get("apiGroup", ""), "Kind": role.get("kind", ""), "Name": role.get("name", "")}
    return [invalid("roleRef", shown, "cannot change roleRef")]


def _validate_subject(subject: Document, is_namespaced: bool, path: str) -> list[FieldError]:
    errors = struct_rules("rbac", "Subject").validate(subject, path)
    kind, name, group = subject.get("kind", ""), subject.get("name", ""), subject.get("apiGroup", "")
    match kind:
        case "ServiceAccount":
            if name:
                errors += [invalid(f"{path}.name", name, text) for text in name_is_dns_subdomain(name, False)]
            if group:
                errors.append(not_supported(f"{path}.apiGroup", group, ("",)))
            if not is_namespaced and not subject.get("namespace"):
                errors.append(required(f"{path}.namespace"))
        case "User" | "Group":
            if group != GROUP:
                errors.append(not_supported(f"{path}.apiGroup", group, (GROUP,)))
        case _:
            errors.append(not_supported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group")))
    return errors


def _role_binding_cells(obj: Document, now_s: float) -> list[Cell]:
    role = obj.get("roleRef") or {}
    subjects = obj.get("subjects") or ()
    return [
        obj["metadata"]["name"],
        f"{role.get('kind', '')}/{role.get('name', '')}",
        age(obj, now_s),
        ", ".join(subject["name"] for subject in subjects if subject["kind"] == "User"),
        ", ".join(subject["name"] for subject in subjects if subject["kind"] == "Group"),
        ", ".join(
            f"{subject.get('namespace', '')}/{subject['name']}" for subject in subjects if subject["kind"] == _ACCOUNT
        ),
    ]


class RoleBindingStrategy(RbacStrategy):
    table = KindTable(
        (
            NAME,
            column("Role", "What it allows."),
            AGE,
            wide("Users", "Users who may do that."),
            wide("Groups", "Groups whose members may."),
            wide("ServiceAccounts", "Service accounts that may."),
        ),
        _role_binding_cells,
    )

    def default(self, obj: Document) -> None:
        role = obj.setdefault("roleRef", {"apiGroup": "", "kind": "", "name": ""})
        if not role.get("apiGroup"):
            role["apiGroup"] = GROUP
        for subject in obj.get("subjects") or ():
            if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
                subject["apiGroup"] = GROUP

    def validate_own(self, obj: Document, old: Document | None) -> list[FieldError]:
        return validate_role_binding(obj, self.kind.is_namespaced)

    def validate_change(self, obj: Document, old: Document) -> list[FieldError]:
        return validate_role_change(obj, old)


STRATEGY = RoleBindingStrategy
