"""TaintNodesByCondition: a new node gets the taint not-ready, which the node lifecycle controller removes."""

from __future__ import annotations

from mooring.api.kinds import NODE, Kind
from mooring.apiserver.admission.interface import Admission, Attempt, Lookup, own_part
from mooring.apiserver.call import Operation

_KEY = "node.kubernetes.io/not-ready"
_EFFECT = "NoSchedule"


class TaintNodesByCondition(Admission):
    """Taints new nodes."""

    name = "TaintNodesByCondition"

    def handles(self, kind: Kind, subresource: str, operation: Operation) -> bool:
        return kind is NODE and not subresource and operation is Operation.CREATE

    async def admit(self, attempt: Attempt, lookup: Lookup) -> None:
        assert attempt.obj is not None
        spec = own_part(attempt.obj, "spec")
        taints = spec.get("taints") or []
        if any(taint.get("key") == _KEY and taint.get("effect") == _EFFECT for taint in taints):
            return
        spec["taints"] = [*taints, {"key": _KEY, "effect": _EFFECT}]
