"""What an object uses of a quota: the promise, and the kinds that are only counted.

Comes in   an object
Goes out   amounts by the names that quotas limit (`count/deployments.apps`, `configmaps`, `requests.cpu`)

 1. Every kind can be counted as `count/<plural>.<group>`; a few have an older name for the same besides.
 2. Pods, services and claims use more than a number: they have measures of their own.
 3. A quota with a scope is not asked about kinds that know no scopes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mooring.api import kinds
from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.api.quantity import NANO, Quantity
from mooring.apiserver.admission.pod_amounts import Amounts
from mooring.apiserver.admission.promise import Attempt, Lookup
from mooring.apiserver.call import Operation

_OLD_NAMES: Mapping[Kind, tuple[str, ...]] = {
    kinds.CONFIG_MAP: ("configmaps",),
    kinds.RESOURCE_QUOTA: ("resourcequotas",),
    kinds.REPLICATION_CONTROLLER: ("replicationcontrollers",),
    kinds.SECRET: ("secrets",),
}


def whole(number: int) -> Quantity:
    return Quantity(number * NANO)


def count_name(kind: Kind) -> str:
    return f"count/{kind.resource}"


class Measure:
    """Counts the objects of a kind. Others inherit from it and measure more."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self._names = frozenset({count_name(kind), *_OLD_NAMES.get(kind, ())})

    def handles(self, subresource: str, operation: Operation) -> bool:
        """Whether such writes can change what is used."""
        return not subresource and operation is Operation.CREATE

    def concerns(self, attempt: Attempt) -> bool:
        """Whether this one can."""
        return True

    async def counted(self, names: Iterable[str], lookup: Lookup) -> list[str]:
        """Those of the names that objects of this kind use."""
        return [name for name in names if name in self._names]

    def is_in_scope(self, scope: Document, obj: Document) -> bool:
        return False

    def unspecified(self, names: Iterable[str], obj: Document) -> str:
        """What the object must say because these names are limited, and does not."""
        return ""

    async def usage(self, obj: Document, attempt: Attempt, lookup: Lookup) -> Amounts:
        return {name: whole(1) for name in self._names}


class ServiceMeasure(Measure):
    """Services, the ports that they take on every node, and the load balancers that somebody pays for."""

    _counted = frozenset({count_name(kinds.SERVICE), "services", "services.nodeports", "services.loadbalancers"})

    def handles(self, subresource: str, operation: Operation) -> bool:
        return not subresource and operation in (Operation.CREATE, Operation.UPDATE)

    async def counted(self, names: Iterable[str], lookup: Lookup) -> list[str]:
        return [name for name in names if name in self._counted]

    async def usage(self, obj: Document, attempt: Attempt, lookup: Lookup) -> Amounts:
        spec = obj.get("spec") or {}
        ports, type_ = spec.get("ports") or [], spec.get("type")
        node_ports = len(ports) if type_ in ("NodePort", "LoadBalancer") else 0
        if type_ == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
            node_ports = sum(1 for port in ports if port.get("nodePort"))
        return {
            count_name(kinds.SERVICE): whole(1),
            "services": whole(1),
            "services.nodeports": whole(node_ports),
            "services.loadbalancers": whole(int(type_ == "LoadBalancer")),
        }


def matches_value(scope: Document, value: str) -> bool:
    """Whether a scope with an operator means an object that names this class; an empty name is none."""
    match scope.get("operator"):
        case "In":
            return bool(value) and value in (scope.get("values") or [])
        case "NotIn":
            return not value or value not in (scope.get("values") or [])
        case "Exists":
            return bool(value)
        case "DoesNotExist":
            return not value
        case _:
            return False
