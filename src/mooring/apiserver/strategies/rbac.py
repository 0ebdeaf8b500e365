"""Roles and role bindings, of a namespace and of the cluster.

1. Any name will do that can stand in an address, because user names become names of roles.
2. Whether the caller may hand out these rights is not asked here but in `access`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.defaults.small_kinds import default_role_binding
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.fields import Fault
from mooring.apiserver.validation.names import path_segment_faults
from mooring.apiserver.validation.rbac import (
    aggregation_faults,
    role_binding_faults,
    role_change_faults,
    rules_faults,
)


class _RbacStrategy(Strategy):
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


class RoleStrategy(_RbacStrategy):
    """Roles and cluster roles. Only those of the cluster collect the rules of others."""

    def own_faults(self, obj: Document, old: Document | None) -> list[Fault]:
        faults = rules_faults(obj.get("rules") or (), self.kind.is_namespaced)
        faults += aggregation_faults(obj.get("aggregationRule"), old.get("aggregationRule") if old else None)
        return faults


class RoleBindingStrategy(_RbacStrategy):
    def default(self, obj: Document) -> None:
        default_role_binding(obj)

    def own_faults(self, obj: Document, old: Document | None) -> list[Fault]:
        return role_binding_faults(obj, self.kind.is_namespaced)

    def change_faults(self, obj: Document, old: Document) -> list[Fault]:
        return role_change_faults(obj, old)
