"""What is wrong with a deployment.

Comes in   a deployment's spec or status, and what it was
Goes out   faults
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.kinds.workloads import (
    above_100_percent_faults,
    above_faults,
    decremented_faults,
    immutable_selector_faults,
    int_or_percent,
    int_or_percent_faults,
    nonnegative_faults,
    nonnegative_fields_faults,
)
from mooring.apiserver.validation.fields import Fault, forbidden, invalid, not_supported, required
from mooring.apiserver.validation.replica_set import ABOVE_READY, ABOVE_REPLICAS, selected_template_faults

_COUNTS = (
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
    "collisionCount",
)


def deployment_faults(spec: Document, old: Document | None, path: str) -> list[Fault]:
    faults = nonnegative_faults(spec.get("replicas"), f"{path}.replicas")
    faults += selected_template_faults(spec, old, path)
    faults += _strategy_faults(spec.get("strategy") or {}, f"{path}.strategy")
    faults += nonnegative_faults(spec.get("minReadySeconds"), f"{path}.minReadySeconds")
    faults += nonnegative_faults(spec.get("revisionHistoryLimit"), f"{path}.revisionHistoryLimit")
    deadline_s, here = spec.get("progressDeadlineSeconds"), f"{path}.progressDeadlineSeconds"
    if deadline_s is not None:
        faults += nonnegative_faults(deadline_s, here)
        if deadline_s <= spec.get("minReadySeconds", 0):
            faults.append(invalid(here, deadline_s, "must be greater than minReadySeconds"))
    return faults


def deployment_update_faults(spec: Document, old: Document, path: str) -> list[Fault]:
    faults = deployment_faults(spec, old, path)
    faults += immutable_selector_faults(spec.get("selector"), old.get("selector"), f"{path}.selector")
    return faults


def deployment_status_faults(status: Document, old: Document, path: str) -> list[Fault]:
    faults = nonnegative_fields_faults({name: status.get(name) for name in _COUNTS}, path)
    parts = ("updatedReplicas", "readyReplicas", "availableReplicas")
    faults += above_faults(status, parts, "replicas", ABOVE_REPLICAS, path)
    faults += above_faults(status, ("availableReplicas",), "readyReplicas", ABOVE_READY, path)
    faults += decremented_faults(status, old, path)
    return faults


def _strategy_faults(strategy: Document, path: str) -> list[Fault]:
    rolling = strategy.get("rollingUpdate")
    match strategy.get("type", ""):
        case "Recreate":
            if rolling is None:
                return []
            return [forbidden(f"{path}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")]
        case "RollingUpdate":
            if rolling is None:
                return [required(f"{path}.rollingUpdate", "this should be defaulted and never be nil")]
            return _rolling_update_faults(rolling, f"{path}.rollingUpdate")
        case other:
            shown = {"Type": other, "RollingUpdate": rolling_value(rolling)}
            return [not_supported(path, shown, ("Recreate", "RollingUpdate"))]


def _rolling_update_faults(rolling: Document, path: str) -> list[Fault]:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    here = f"{path}.maxUnavailable"
    faults = int_or_percent_faults(unavailable, here)
    faults += int_or_percent_faults(surge, f"{path}.maxSurge")
    if int_or_percent(unavailable) == 0 and int_or_percent(surge) == 0:
        faults.append(invalid(here, unavailable, "may not be 0 when `maxSurge` is 0"))
    faults += above_100_percent_faults(unavailable, here)
    return faults


def rolling_value(rolling: Document | None) -> Document | None:
    """How Go prints the settings of a rolling update."""
    if rolling is None:
        return None
    return {"MaxUnavailable": rolling.get("maxUnavailable", 0), "MaxSurge": rolling.get("maxSurge", 0)}
