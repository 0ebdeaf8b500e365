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
from mooring.apiserver.validation.fields import FieldError, invalid, required
from mooring.apiserver.validation.names import path_segment_errors
from mooring.apiserver.validation.selectors import validate_label_selector

GROUP = "rbac.authorization.k8s.io"


def validate_rules(rules: Sequence[Document], is_namespaced: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, rule in enumerate(rules):
        errors += _validate_rule(rule, is_namespaced, f"rules[{index}]")
    return errors


def validate_aggregation(rule: Document | None, old: Document | None) -> list[FieldError]:
    """The selectors by which a cluster role collects the rules of others."""
    if rule is None:
        return []
    selectors, path = rule.get("clusterRoleSelectors") or (), "aggregationRule.clusterRoleSelectors"
    errors: list[FieldError] = []
    if not selectors:
        errors.append(required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
    tolerates = old is not None and any(
        validate_label_selector(selector, "") for selector in old.get("clusterRoleSelectors") or ()
    )
    for index, selector in enumerate(selectors):
        here = f"{path}[{index}]"
        errors += validate_label_selector(selector, here, tolerates_values=tolerates)
        if selector_matcher(selector) is None:
            # Go prints the selector that it could not make.
            errors.append(invalid(here, None, "invalid label selector."))
    return errors


def _validate_rule(rule: Document, is_namespaced: bool, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not rule.get("verbs"):
        errors.append(required(f"{path}.verbs", "verbs must contain at least one value"))
    urls, here = rule.get("nonResourceURLs"), f"{path}.nonResourceURLs"
    if urls:
        if is_namespaced:
            errors.append(invalid(here, urls, "namespaced rules cannot apply to non-resource URLs"))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            errors.append(invalid(here, urls, "rules cannot apply to both regular resources and non-resource URLs"))
        return errors
    if not rule.get("apiGroups"):
        errors.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        errors.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
    return errors


class RbacStrategy(Strategy):
    allows_create_on_update = True

    def name_errors(self, name: str, is_prefix: bool) -> Sequence[str]:
        return path_segment_errors(name)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        """As a new object, then as a change."""
        errors = self.validate_meta(obj)
        errors += self.validate_own(obj, old)
        errors += self.validate_meta_update(obj, old)
        errors += self.validate_change(obj, old)
        return errors

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return self.validate_own(obj, None)

    def validate_own(self, obj: Document, old: Document | None) -> list[FieldError]:
        """Field errors of the object; `old` is the stored object, or None for a new one."""
        raise AssertionError(f"{type(self).__name__} does not override `validate_own`")

    def validate_change(self, obj: Document, old: Document) -> list[FieldError]:
        return []


class RoleStrategy(RbacStrategy):
    """Roles and ClusterRoles. Only ClusterRoles aggregate rules."""

    def validate_own(self, obj: Document, old: Document | None) -> list[FieldError]:
        errors = validate_rules(obj.get("rules") or (), self.kind.is_namespaced)
        errors += validate_aggregation(obj.get("aggregationRule"), old.get("aggregationRule") if old else None)
        return errors


STRATEGY = RoleStrategy
