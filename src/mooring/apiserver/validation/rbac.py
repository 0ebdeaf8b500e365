"""What is wrong with roles and their bindings.

Comes in   roles and bindings, of a namespace or of the cluster
Goes out   faults
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.apiserver.kinds.workloads import selector_matcher
from mooring.apiserver.validation.fields import Fault, invalid, not_supported, required
from mooring.apiserver.validation.metadata import name_is_dns_subdomain
from mooring.apiserver.validation.names import path_segment_faults
from mooring.apiserver.validation.selectors import label_selector_faults

GROUP = "rbac.authorization.k8s.io"


def rules_faults(rules: Sequence[Document], is_namespaced: bool) -> list[Fault]:
    faults: list[Fault] = []
    for index, rule in enumerate(rules):
        faults += _rule_faults(rule, is_namespaced, f"rules[{index}]")
    return faults


def aggregation_faults(rule: Document | None, old: Document | None) -> list[Fault]:
    """The selectors by which a cluster role collects the rules of others."""
    if rule is None:
        return []
    selectors, path = rule.get("clusterRoleSelectors") or (), "aggregationRule.clusterRoleSelectors"
    faults: list[Fault] = []
    if not selectors:
        faults.append(required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
    tolerates = old is not None and any(
        label_selector_faults(selector, "") for selector in old.get("clusterRoleSelectors") or ()
    )
    for index, selector in enumerate(selectors):
        here = f"{path}[{index}]"
        faults += label_selector_faults(selector, here, tolerates_values=tolerates)
        if selector_matcher(selector) is None:
            # Go prints the selector that it could not make.
            faults.append(invalid(here, None, "invalid label selector."))
    return faults


def role_binding_faults(binding: Document, is_namespaced: bool) -> list[Fault]:
    faults: list[Fault] = []
    role, kinds = binding.get("roleRef") or {}, ("Role", "ClusterRole") if is_namespaced else ("ClusterRole",)
    group, kind, name = role.get("apiGroup", ""), role.get("kind", ""), role.get("name", "")
    if group != GROUP:
        faults.append(not_supported("roleRef.apiGroup", group, (GROUP,)))
    if kind not in kinds:
        faults.append(not_supported("roleRef.kind", kind, kinds))
    if not name:
        faults.append(required("roleRef.name"))
    faults += [invalid("roleRef.name", name, text) for text in path_segment_faults(name)]
    for index, subject in enumerate(binding.get("subjects") or ()):
        faults += _subject_faults(subject, is_namespaced, f"subjects[{index}]")
    return faults


def role_change_faults(binding: Document, old: Document) -> list[Fault]:
    """A binding is for one role, for ever."""
    role = binding.get("roleRef") or {}
    if role == old.get("roleRef"):
        return []
    shown = {"APIGroup": role.get("apiGroup", ""), "Kind": role.get("kind", ""), "Name": role.get("name", "")}
    return [invalid("roleRef", shown, "cannot change roleRef")]


def _rule_faults(rule: Document, is_namespaced: bool, path: str) -> list[Fault]:
    faults: list[Fault] = []
    if not rule.get("verbs"):
        faults.append(required(f"{path}.verbs", "verbs must contain at least one value"))
    urls, here = rule.get("nonResourceURLs"), f"{path}.nonResourceURLs"
    if urls:
        if is_namespaced:
            faults.append(invalid(here, urls, "namespaced rules cannot apply to non-resource URLs"))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            faults.append(invalid(here, urls, "rules cannot apply to both regular resources and non-resource URLs"))
        return faults
    if not rule.get("apiGroups"):
        faults.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        faults.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
    return faults


def _subject_faults(subject: Document, is_namespaced: bool, path: str) -> list[Fault]:
    faults: list[Fault] = []
    kind, name, group = subject.get("kind", ""), subject.get("name", ""), subject.get("apiGroup", "")
    if not name:
        faults.append(required(f"{path}.name"))
    match kind:
        case "ServiceAccount":
            if name:
                faults += [invalid(f"{path}.name", name, text) for text in name_is_dns_subdomain(name, False)]
            if group:
                faults.append(not_supported(f"{path}.apiGroup", group, ("",)))
            if not is_namespaced and not subject.get("namespace"):
                faults.append(required(f"{path}.namespace"))
        case "User" | "Group":
            if group != GROUP:
                faults.append(not_supported(f"{path}.apiGroup", group, (GROUP,)))
        case _:
            faults.append(not_supported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group")))
    return faults
