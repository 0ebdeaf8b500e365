"""PriorityClass (scheduling.k8s.io/v1).

1. The generation is always 1: value and preemption policy are immutable.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables import AGE, NAME, Cell, KindTable, age, boolean, column, integer
from mooring.apiserver.validation.fields import FieldError, forbidden, invalid
from mooring.apiserver.validation.metadata import IMMUTABLE
from mooring.apiserver.validation.schema_rules import enum_values, validate_required_enum

SYSTEM_PREFIX = "system-"
USER_VALUE_MAX = 1_000_000_000
SYSTEM_VALUES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}

_POLICIES = enum_values("core", "PreemptionPolicy")


def validate_priority_class(obj: Document) -> list[FieldError]:
    errors: list[FieldError] = []
    name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
    if name.startswith(SYSTEM_PREFIX):
        reason = _not_system(name, value, bool(obj.get("globalDefault")))
        if reason:
            detail = (
                f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {reason}"
            )
            errors.append(forbidden("metadata.name", detail))
    elif value > USER_VALUE_MAX:
        errors.append(forbidden("value", f"maximum allowed value of a user defined priority is {USER_VALUE_MAX}"))
    policy = obj.get("preemptionPolicy")
    if policy is not None:
        errors += validate_required_enum(policy, _POLICIES, "preemptionPolicy")
    return errors


def validate_priority_class_update(obj: Document, old: Document) -> list[FieldError]:
    errors: list[FieldError] = []
    if obj.get("value", 0) != old.get("value", 0):
        errors.append(forbidden("value", "may not be changed in an update."))
    if obj.get("preemptionPolicy") != old.get("preemptionPolicy"):
        errors.append(invalid("preemptionPolicy", obj.get("preemptionPolicy"), IMMUTABLE))
    return errors


def _not_system(name: str, value: int, is_default: bool) -> str:
    """Why this is not one of the two classes of the system itself."""
    expected = SYSTEM_VALUES.get(name)
    if expected is None:
        return f"{name} is not a known system priority class"
    if value != expected:
        return f"value of {name} PriorityClass must be {expected}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""


def _priority_class_cells(obj: Document, now_s: float) -> list[Cell]:
    return [
        obj["metadata"]["name"],
        obj.get("value", 0),
        bool(obj.get("globalDefault")),
        age(obj, now_s),
        obj.get("preemptionPolicy") or "",
    ]


class PriorityClassStrategy(Strategy):
    table = KindTable(
        (
            NAME,
            integer("Value", "The priority of its pods."),
            boolean("Global-Default", "Whether pods get it that name none."),
            AGE,
            column("PreemptionPolicy", "Whether its pods push others away."),
        ),
        _priority_class_cells,
    )

    def default(self, obj: Document) -> None:
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def count_generation(self, obj: Document, old: Document) -> None:
        pass

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_priority_class(obj)

    def validate_body_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        return validate_priority_class_update(obj, old)


STRATEGY = PriorityClassStrategy
