"""What is wrong with a daemon set.

Comes in   a daemon set's spec or status, and what it was
Goes out   faults

 1. The generation of the template is counted by the strategy, so its rules can only be broken by a creator.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.kinds.workloads import (
    above_100_percent_faults,
    decremented_faults,
    immutable_selector_faults,
    int_or_percent,
    int_or_percent_faults,
    is_empty_selector,
    mismatch_faults,
    nonnegative_faults,
    nonnegative_fields_faults,
    restart_faults,
    selector_matcher,
)
from mooring.apiserver.validation.deployment import rolling_value
from mooring.apiserver.validation.fields import Fault, invalid, not_supported, required
from mooring.apiserver.validation.pod_template import pod_template_faults
from mooring.apiserver.validation.selectors import label_selector_faults

_COUNTS = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
)


def daemon_set_faults(spec: Document, old: Document | None, path: str) -> list[Fault]:
    selector, template = spec.get("selector"), spec["template"]
    inside = f"{path}.template"
    # Values that the selector already had are tolerated, because it cannot be changed any more.
    tolerates_values = old is not None and bool(label_selector_faults(old.get("selector"), ""))
    faults = label_selector_faults(selector, f"{path}.selector", tolerates_values=tolerates_values)
    matcher = selector_matcher(selector)
    if matcher is not None:
        faults += mismatch_faults(matcher, template, inside)
    if selector is not None and is_empty_selector(selector):
        faults.append(invalid(f"{path}.selector", {}, "empty selector is invalid for daemonset"))
    faults += pod_template_faults(template, inside, old["template"] if old is not None else None)
    faults += restart_faults(template, "DaemonSet", inside)
    faults += nonnegative_faults(spec.get("minReadySeconds"), f"{path}.minReadySeconds")
    faults += _strategy_faults(spec.get("updateStrategy") or {}, f"{path}.updateStrategy")
    faults += nonnegative_faults(spec.get("revisionHistoryLimit"), f"{path}.revisionHistoryLimit")
    return faults


def daemon_set_update_faults(spec: Document, old: Document, path: str) -> list[Fault]:
    faults = immutable_selector_faults(spec.get("selector"), old.get("selector"), f"{path}.selector")
    faults += daemon_set_faults(spec, old, path)
    return faults


def daemon_set_status_faults(status: Document, old: Document, path: str) -> list[Fault]:
    faults = nonnegative_fields_faults({name: status.get(name) for name in _COUNTS}, path)
    faults += decremented_faults(status, old, path)
    return faults


def _strategy_faults(strategy: Document, path: str) -> list[Fault]:
    rolling = strategy.get("rollingUpdate")
    match strategy.get("type", ""):
        case "OnDelete":
            return []
        case "RollingUpdate":
            if rolling is None:
                return [required(f"{path}.rollingUpdate")]
            return _rolling_update_faults(rolling, f"{path}.rollingUpdate")
        case other:
            shown = {"Type": other, "RollingUpdate": rolling_value(rolling)}
            return [not_supported(path, shown, ("RollingUpdate", "OnDelete"))]


def _rolling_update_faults(rolling: Document, path: str) -> list[Fault]:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    faults = int_or_percent_faults(unavailable, f"{path}.maxUnavailable")
    faults += int_or_percent_faults(surge, f"{path}.maxSurge")
    faults += above_100_percent_faults(unavailable, f"{path}.maxUnavailable")
    faults += above_100_percent_faults(surge, f"{path}.maxSurge")
    takes_away, adds = int_or_percent(unavailable) != 0, int_or_percent(surge) != 0
    if takes_away and adds:
        faults.append(invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"))
    elif not takes_away and not adds:
        faults.append(required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return faults
