"""Resource quotas: amounts by name, scopes, and the kinds of which only the number counts.

Input: kinds, names of a quota (`count/deployments.apps`, `configmaps`), quotas. Output: the kind that a name counts;
the scopes of a quota, and whether they match an object.

The API server charges quotas before it stores an object, and the quota controller recounts what is stored. Both use the
rules of this package.

 1. Every kind can be counted as `count/<plural>.<group>`; a few also have an older name.
 2. Pods, services and claims use more than a number; each has a module in this package.
 3. A quota with scopes does not apply to kinds without scopes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from mooring.api.kinds import Kind, all_kinds
from mooring.api.quantity import NANO, Quantity
from mooring.api.views.quotas import ResourceQuotaSpec, ScopeRequirement

Amounts: TypeAlias = Mapping[str, Quantity]

COUNT_PREFIX = "count/"

_OLD_NAMES = frozenset({"configmaps", "resourcequotas", "replicationcontrollers", "secrets"})


def whole(number: int) -> Quantity:
    return Quantity(number * NANO)


ONE = whole(1)


def count_name(kind: Kind) -> str:
    return f"{COUNT_PREFIX}{kind.resource}"


def names_of(kind: Kind) -> frozenset[str]:
    """All names under which objects of a kind are counted."""
    return frozenset({count_name(kind), *({kind.resource} & _OLD_NAMES)})


def kind_counted_as(name: str) -> Kind | None:
    if name not in _OLD_NAMES and not name.startswith(COUNT_PREFIX):
        return None
    resource = name.removeprefix(COUNT_PREFIX)
    return next((kind for kind in all_kinds() if kind.is_namespaced and kind.resource == resource), None)


def scopes_of(spec: ResourceQuotaSpec) -> list[ScopeRequirement]:
    """What must all be true of an object that a quota means."""
    scopes = [ScopeRequirement(scope_name=name, operator="Exists") for name in spec.scopes]
    if spec.scope_selector is not None:
        scopes += spec.scope_selector.match_expressions
    return scopes


def matches_value(scope: ScopeRequirement, value: str) -> bool:
    """Whether a scope with an operator means an object that names this class; an empty name is none."""
    match scope.operator:
        case "In":
            return bool(value) and value in scope.values
        case "NotIn":
            return not value or value not in scope.values
        case "Exists":
            return bool(value)
        case "DoesNotExist":
            return not value
        case _:
            return False
