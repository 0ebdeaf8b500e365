"""What is wrong with constraints that spread pods over a topology.

Comes in   `topologySpreadConstraints`
Goes out   faults
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.apiserver.validation.affinity import match_label_keys_faults
from mooring.apiserver.validation.fields import Fault, duplicate, forbidden, invalid, not_supported, required
from mooring.apiserver.validation.pod_options import PodOptions
from mooring.apiserver.validation.resources import positive_faults
from mooring.apiserver.validation.selectors import label_name_faults, label_selector_faults

_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES = ("Honor", "Ignore")


def spread_constraints_faults(constraints: Sequence[Document], path: str, options: PodOptions) -> list[Fault]:
    faults: list[Fault] = []
    for index, constraint in enumerate(constraints):
        here = f"{path}[{index}]"
        key, action = constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")
        faults += positive_faults(constraint.get("maxSkew", 0), f"{here}.maxSkew")
        if not key:
            faults.append(required(f"{here}.topologyKey", "can not be empty"))
        if action not in _ACTIONS:
            faults.append(not_supported(f"{here}.whenUnsatisfiable", action, _ACTIONS))
        if any(_is_same(constraint, other) for other in constraints[index + 1 :]):
            faults.append(duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
        faults += _domains_faults(constraint.get("minDomains"), action, f"{here}.minDomains")
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            policy = constraint.get(field)
            if policy is not None and policy not in _POLICIES:
                faults.append(not_supported(f"{here}.{field}", policy, _POLICIES))
        if options.tolerates_spread_label_keys:
            faults += _older_label_keys_faults(constraint, f"{here}.matchLabelKeys")
        else:
            faults += match_label_keys_faults({**constraint, "mismatchLabelKeys": None}, here)
        if not options.tolerates_spread_selectors:
            faults += label_selector_faults(constraint.get("labelSelector"), f"{here}.labelSelector")
    return faults


def _is_same(one: Document, other: Document) -> bool:
    return all(one.get(field, "") == other.get(field, "") for field in ("topologyKey", "whenUnsatisfiable"))


def _domains_faults(count: int | None, action: str, path: str) -> list[Fault]:
    if count is None:
        return []
    faults = positive_faults(count, path)
    if action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        faults.append(invalid(path, count, detail))
    return faults


def _older_label_keys_faults(constraint: Document, path: str) -> list[Fault]:
    """The rule before v1.34, when the server did not merge the keys into the selector."""
    keys, selector = constraint.get("matchLabelKeys") or (), constraint.get("labelSelector")
    faults: list[Fault] = []
    if keys and selector is None:
        faults.append(forbidden(path, "must not be specified when labelSelector is not set"))
    selector = selector or {}
    known = {*(selector.get("matchLabels") or ()), *(e.get("key") for e in selector.get("matchExpressions") or ())}
    for index, key in enumerate(keys):
        faults += label_name_faults(key, f"{path}[{index}]")
        if key in known:
            detail = "exists in both matchLabelKeys and labelSelector"
            faults.append(invalid(f"{path}[{index}]", key, detail))
    return faults
