"""Role and ClusterRole (rbac.authorization.k8s.io/v1).

1. Any name that can be a path segment is valid, because user names become names of roles.
2. Package `access` checks whether the caller may grant these permissions.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.workloads import selector_matcher
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.fields import Fault, invalid, required
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


class RbacStrategy(Strategy):
    allows_create_on_update = True

    def name_faults(self, name: str, is_prefix: bool) -> Sequence[str]:
        return path_segment_faults(name)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        """As a new object, then as a change."""
        faults = self.meta_faults(obj)
        faults += self.own_faults(obj, old)
        faults += self.meta_update_faults(obj, old)
        faults += self.change_faults(obj, old)
        return faults

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return self.own_faults(obj, None)

    def own_faults(self, obj: Document, old: Document | None) -> list[Fault]:
        """What is wrong with the object in itself; `old` is what it was, None for a new one."""
        raise AssertionError(f"{type(self).__name__} does not say what is wrong with its objects")

    def change_faults(self, obj: Document, old: Document) -> list[Fault]:
        return []


class RoleStrategy(RbacStrategy):
    """Roles and cluster roles. Only those of the cluster collect the rules of others."""

    def own_faults(self, obj: Document, old: Document | None) -> list[Fault]:
        faults = rules_faults(obj.get("rules") or (), self.kind.is_namespaced)
        faults += aggregation_faults(obj.get("aggregationRule"), old.get("aggregationRule") if old else None)
        return faults


STRATEGY = RoleStrategy
