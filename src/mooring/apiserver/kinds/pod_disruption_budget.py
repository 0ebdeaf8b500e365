"""PodDisruptionBudget (policy/v1).

1. Metadata is not validated: any name that can be a path segment is valid.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.workloads import name_spec_status, validate_at_most_100_percent, validate_int_or_percent
from mooring.apiserver.strategy import StatusStrategy, Strategy
from mooring.apiserver.tables import AGE, NAME, Cell, KindTable, age, column, integer
from mooring.apiserver.validation.fields import FieldError, invalid
from mooring.apiserver.validation.schema_rules import struct_rules
from mooring.apiserver.validation.selectors import validate_conditions, validate_label_selector

_SPEC = struct_rules("policy", "PodDisruptionBudgetSpec")


def validate_disruption_budget(spec: Document, old: Document | None, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        errors.append(invalid(path, _budget_shown(spec), "minAvailable and maxUnavailable cannot be both set"))
    for field in ("minAvailable", "maxUnavailable"):
        if (value := spec.get(field)) is not None:
            errors += validate_int_or_percent(value, f"{path}.{field}")
            errors += validate_at_most_100_percent(value, f"{path}.{field}")
    tolerates = old is not None and bool(validate_label_selector(old.get("selector"), ""))
    errors += validate_label_selector(spec.get("selector"), f"{path}.selector", tolerates_values=tolerates)
    return errors + _SPEC.validate(spec, path)


def validate_disruption_budget_status(status: Document, path: str) -> list[FieldError]:
    errors = validate_conditions(status.get("conditions") or (), f"{path}.conditions")
    return errors + struct_rules("policy", "PodDisruptionBudgetStatus").validate(status, path)


def _budget_shown(spec: Document) -> Document:
    return {
        "MinAvailable": spec.get("minAvailable"),
        "Selector": spec.get("selector"),
        "MaxUnavailable": spec.get("maxUnavailable"),
        "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
    }


def _pod_disruption_budget_cells(obj: Document, now_s: float) -> list[Cell]:
    name, spec, status = name_spec_status(obj)
    bounds = (spec.get("minAvailable"), spec.get("maxUnavailable"))
    return [
        name,
        *("N/A" if bound is None else str(bound) for bound in bounds),
        status.get("disruptionsAllowed", 0),
        age(obj, now_s),
    ]


class DisruptionBudgetStatusStrategy(StatusStrategy):
    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        return validate_disruption_budget_status(obj.get("status") or {}, "status")


class PodDisruptionBudgetStrategy(Strategy):
    table = KindTable(
        (
            NAME,
            column("Min Available", "How many pods must be available."),
            column("Max Unavailable", "How many may be unavailable."),
            integer("Allowed Disruptions", "How many may be disrupted now."),
            AGE,
        ),
        _pod_disruption_budget_cells,
    )
    allows_unconditional_update = False
    validates_metadata = False

    status_strategy = DisruptionBudgetStatusStrategy

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        super().prepare_for_create(obj, call)
        obj["status"] = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}

    def validate(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_disruption_budget(obj["spec"], None, "spec")

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        return validate_disruption_budget(obj["spec"], old["spec"], "spec")


STRATEGY = PodDisruptionBudgetStrategy
