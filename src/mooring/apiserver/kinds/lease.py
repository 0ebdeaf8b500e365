"""Lease (coordination.k8s.io/v1).

1. Coordinated leader election is behind a feature gate: its fields are dropped, unless the stored lease has them.
2. The path of a strategy error has `strategy` twice, as in kube-apiserver.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables import AGE, NAME, Cell, KindTable, age, column
from mooring.apiserver.validation.fields import FieldError, forbidden, invalid
from mooring.apiserver.validation.names import qualified_name_errors
from mooring.apiserver.validation.schema_rules import struct_rules, validate_enum

_SPEC = struct_rules("coordination", "LeaseSpec")
_STRATEGIES = ("OldestEmulationVersion",)

_GATED = ("strategy", "preferredHolder")


def validate_lease(spec: Document, path: str) -> list[FieldError]:
    errors = _SPEC.validate(spec, path)
    strategy = spec.get("strategy")
    if strategy is not None:
        errors += _validate_lease_strategy(strategy, f"{path}.strategy.strategy")
    if spec.get("preferredHolder") and not strategy:
        errors.append(forbidden(f"{path}.preferredHolder", "may only be specified if `strategy` is defined"))
    return errors


def _validate_lease_strategy(strategy: str, path: str) -> list[FieldError]:
    if "/" in strategy:
        return [invalid(path, strategy, text) for text in qualified_name_errors(strategy)]
    return validate_enum(strategy, _STRATEGIES, path)


def _lease_cells(lease: Document, now_s: float) -> list[Cell]:
    return [lease["metadata"]["name"], (lease.get("spec") or {}).get("holderIdentity") or "", age(lease, now_s)]


class LeaseStrategy(Strategy):
    table = KindTable((NAME, column("Holder", "Who has it."), AGE), _lease_cells)
    allows_create_on_update = True
    allows_unconditional_update = False
    validates_finalizer_names = False
    shares_parts = True

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        _drop_gated(obj, {})

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        _drop_gated(obj, old.get("spec") or {})

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_lease(obj.get("spec") or {}, "spec")

    def validate_body_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        return validate_lease(obj.get("spec") or {}, "spec")


def _drop_gated(obj: Document, old_spec: Document) -> None:
    spec = obj.get("spec") or {}
    for field in _GATED:
        if field in spec and field not in old_spec:
            del spec[field]


STRATEGY = LeaseStrategy
