"""Leases.

1. Coordinated leader election waits behind a feature gate: its fields are dropped, unless the lease already has them.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.fields import Fault
from mooring.apiserver.validation.lease import lease_faults

_GATED = ("strategy", "preferredHolder")


class LeaseStrategy(Strategy):
    allows_create_on_update = True
    allows_unconditional_update = False
    refuses_odd_finalizers = False
    shares_parts = True

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        _drop_gated(obj, {})

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        _drop_gated(obj, old.get("spec") or {})

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return lease_faults(obj.get("spec") or {}, "spec")

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return lease_faults(obj.get("spec") or {}, "spec")


def _drop_gated(obj: Document, old_spec: Document) -> None:
    spec = obj.get("spec") or {}
    for field in _GATED:
        if field in spec and field not in old_spec:
            del spec[field]
