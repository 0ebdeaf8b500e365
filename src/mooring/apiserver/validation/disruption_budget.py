"""What is wrong with a pod disruption budget.

Comes in   a budget's spec, and what it was; its status
Goes out   faults
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.kinds.workloads import above_100_percent_faults, int_or_percent_faults, nonnegative_fields_faults
from mooring.apiserver.validation.fields import Fault, invalid, not_supported
from mooring.apiserver.validation.selectors import conditions_faults, label_selector_faults

_EVICTION_POLICIES = ("AlwaysAllow", "IfHealthyBudget")
_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


def disruption_budget_faults(spec: Document, old: Document | None, path: str) -> list[Fault]:
    faults: list[Fault] = []
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        faults.append(invalid(path, _shown(spec), "minAvailable and maxUnavailable cannot be both set"))
    for field in ("minAvailable", "maxUnavailable"):
        if (value := spec.get(field)) is not None:
            faults += int_or_percent_faults(value, f"{path}.{field}")
            faults += above_100_percent_faults(value, f"{path}.{field}")
    tolerates = old is not None and bool(label_selector_faults(old.get("selector"), ""))
    faults += label_selector_faults(spec.get("selector"), f"{path}.selector", tolerates_values=tolerates)
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _EVICTION_POLICIES:
        faults.append(not_supported(f"{path}.unhealthyPodEvictionPolicy", policy, _EVICTION_POLICIES))
    return faults


def disruption_budget_status_faults(status: Document, path: str) -> list[Fault]:
    faults = conditions_faults(status.get("conditions") or (), f"{path}.conditions")
    faults += nonnegative_fields_faults({name: status.get(name) for name in _COUNTS}, path)
    return faults


def _shown(spec: Document) -> Document:
    return {
        "MinAvailable": spec.get("minAvailable"),
        "Selector": spec.get("selector"),
        "MaxUnavailable": spec.get("maxUnavailable"),
        "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
    }
