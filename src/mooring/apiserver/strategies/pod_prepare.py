"""What the server adds to a pod when it is created.

Comes in   a pod with defaults
Goes out   the same, ready to be looked at by validation; warnings

 1. `matchLabelKeys` become expressions of the selectors beside them, with the values that the pod has now.
 2. AppArmor profiles in annotations become fields, so that readers need to know only the fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.strategies.pod_conditions import with_condition
from mooring.apiserver.validation.containers_walk import every_container
from mooring.apiserver.validation.pod_annotations import APPARMOR_PREFIX
from mooring.apiserver.validation.security_profiles import apparmor_faults, apparmor_of_annotation

_GATED: Document = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def note_gates(pod: Document, now: str) -> None:
    """Say in a condition that a gated pod is not scheduled yet."""
    if pod["spec"].get("schedulingGates"):
        pod["status"]["conditions"] = with_condition((), _GATED, now)


def merge_label_keys(pod: Document) -> None:
    """Turn keys into expressions."""
    spec, labels = pod["spec"], pod["metadata"].get("labels") or {}
    for holder in _label_key_holders(spec):
        selector = holder.get("labelSelector")
        if selector is None:
            continue
        made = _expressions(holder.get("matchLabelKeys") or (), "In", labels)
        made += _expressions(holder.get("mismatchLabelKeys") or (), "NotIn", labels)
        if made:
            selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *made]


def split_label_keys(pod: Document) -> None:
    """Undo `merge_label_keys`: a stored pod becomes one that can be created again."""
    spec, labels = pod["spec"], pod["metadata"].get("labels") or {}
    for holder in _label_key_holders(spec):
        selector = holder.get("labelSelector")
        if selector is None or not selector.get("matchExpressions"):
            continue
        made = _expressions(holder.get("matchLabelKeys") or (), "In", labels)
        made += _expressions(holder.get("mismatchLabelKeys") or (), "NotIn", labels)
        if made:
            selector["matchExpressions"] = [each for each in selector["matchExpressions"] if each not in made]


def move_apparmor_annotations(pod: Document, call: Call) -> None:
    """Turn AppArmor annotations into fields, and warn those who still write them."""
    annotations, spec = pod["metadata"].get("annotations") or {}, pod["spec"]
    if (spec.get("os") or {}).get("name") == "windows" or not any(
        key.startswith(APPARMOR_PREFIX) for key in annotations
    ):
        return
    of_pod = (spec.get("securityContext") or {}).get("appArmorProfile")
    for container, _ in every_container(spec, ""):
        key = f"{APPARMOR_PREFIX}{container.get('name', '')}"
        has_field = (container.get("securityContext") or {}).get("appArmorProfile") is not None
        if key not in annotations or has_field:
            continue
        profile = apparmor_of_annotation(annotations[key])
        if profile is not None and apparmor_faults(profile, ""):
            profile = None
        if profile is not None and profile == of_pod:
            continue
        if profile is not None:
            container["securityContext"] = {**(container.get("securityContext") or {}), "appArmorProfile": profile}
        advice = 'deprecated since v1.30; use the "appArmorProfile" field instead'
        call.warn(f"metadata.annotations[{key}]: {advice}")


def _label_key_holders(spec: Document) -> Iterator[Document]:
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        for weighted in terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted.get("podAffinityTerm") or {}
        yield from terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    for constraint in spec.get("topologySpreadConstraints") or ():
        yield {**constraint, "mismatchLabelKeys": None}


def _expressions(keys: Sequence[str], operator: str, labels: Mapping[str, str]) -> list[Document]:
    return [{"key": key, "operator": operator, "values": [labels[key]]} for key in keys if key in labels]
