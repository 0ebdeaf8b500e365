"""Server-set fields of a pod: on create, in conditions, and when it is bound; fields of disabled features.

1. `matchLabelKeys` become expressions of the selectors beside them, with the label values of the pod.
2. AppArmor profiles in annotations are copied to fields.
3. The transition time of a condition is when its status changed.
4. A pod is bound once. A second binding is a conflict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.pod.options import every_container
from mooring.apiserver.kinds.pod.security import apparmor_of_annotation, validate_apparmor
from mooring.apiserver.kinds.pod.spec import APPARMOR_PREFIX
from mooring.apiserver.validation.fields import FieldError, not_supported, required

_PROJECTIONS = ("clusterTrustBundle", "podCertificate")
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")

FIELDS_READ_BY_BINDING = {
    "metadata": ("uid", "deletionTimestamp", "labels", "annotations"),
    "spec": ("nodeName", "schedulingGates"),
    "status": ("conditions",),
}
"""The fields that a binding reads, by section, besides the name and the namespace. A binding decodes no other field."""

_GATED: Document = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def with_condition(conditions: Sequence[Document], condition: Document, now: str) -> list[Document]:
    """The conditions with one of them set, in its place or at the end."""
    made: Document = {"lastProbeTime": None, "lastTransitionTime": now, **condition}
    for index, existing in enumerate(conditions):
        if existing.get("type") == condition["type"]:
            if existing.get("status") == condition["status"]:
                made["lastTransitionTime"] = existing.get("lastTransitionTime")
            return [*conditions[:index], made, *conditions[index + 1 :]]
    return [*conditions, made]


def drop_disabled_template_fields(template: Document | None, old: Document | None) -> None:
    """Drop fields of disabled features from a template."""
    if template is not None:
        drop_disabled_spec_fields(template.get("spec") or {}, (old or {}).get("spec"))


def drop_disabled_spec_fields(spec: Document, old: Document | None) -> None:
    """Drop fields of disabled features from a spec."""
    known = old or {}
    for field in _PROJECTIONS:
        used = [source for source in _projections(spec) if source.get(field) is not None]
        if used and not any(source.get(field) is not None for source in _projections(known)):
            for source in used:
                del source[field]
    if spec.get("schedulingGroup") is not None and known.get("schedulingGroup") is None:
        del spec["schedulingGroup"]
    signalled = _with_stop_signal(spec)
    if signalled and not _with_stop_signal(known):
        for container in signalled:
            del container["lifecycle"]["stopSignal"]
            if not container["lifecycle"]:
                del container["lifecycle"]


def drop_disabled_status_fields(status: Document, old: Document | None) -> None:
    """Drop fields of disabled features from a status."""
    before = old or {}
    if status.get("nodeAllocatableResourceClaimStatuses") and not before.get("nodeAllocatableResourceClaimStatuses"):
        del status["nodeAllocatableResourceClaimStatuses"]
    digested = [mount for mount in _mount_statuses(status) if mount.get("volumeStatus") is not None]
    if digested and not any(mount.get("volumeStatus") is not None for mount in _mount_statuses(before)):
        for mount in digested:
            del mount["volumeStatus"]


def _projections(spec: Document) -> Iterator[Document]:
    for volume in spec.get("volumes") or ():
        if volume.get("projected"):
            yield from volume["projected"].get("sources") or ()


def _with_stop_signal(spec: Document) -> list[Document]:
    return [
        container for container, _ in every_container(spec, "") if (container.get("lifecycle") or {}).get("stopSignal")
    ]


def _mount_statuses(status: Document) -> Iterator[Document]:
    for field in _STATUSES:
        for container_status in status.get(field) or ():
            yield from container_status.get("volumeMounts") or ()


def note_gates(pod: Document, now: str) -> None:
    """Set the condition PodScheduled of a pod with scheduling gates."""
    if pod["spec"].get("schedulingGates"):
        pod["status"]["conditions"] = with_condition((), _GATED, now)


def merge_label_keys(pod: Document) -> None:
    """Add `matchLabelKeys` to the selectors as expressions."""
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
            selector["matchExpressions"] = [
                match_expression for match_expression in selector["matchExpressions"] if match_expression not in made
            ]


def move_apparmor_annotations(pod: Document, call: Call) -> None:
    """Copy AppArmor annotations to fields, and return warnings about the annotations."""
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
        if profile is not None and validate_apparmor(profile, ""):
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


def validate_binding(binding: Document) -> list[FieldError]:
    target = binding.get("target") or {}
    kind = target.get("kind", "")
    errors = [not_supported("target.kind", kind, ("Node", "<empty>"))] if kind not in ("", "Node") else []
    return errors if target.get("name") else [*errors, required("target.name")]


def binding_error(pod: Document) -> str:
    """Why a pod cannot be bound; empty if it can."""
    name, spec = pod["metadata"]["name"], pod["spec"]
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f"pod {name} is already assigned to node {quoted(spec['nodeName'])}"
    if spec.get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def bound_pod(pod: Document, binding: Document, now: str) -> Document:
    """The pod on its node, with the labels and annotations that the binding brings. The pod given is not changed."""
    brought = binding.get("metadata") or {}
    metadata = dict(pod["metadata"])
    for field in ("annotations", "labels"):
        if brought.get(field):
            metadata[field] = {**(metadata.get(field) or {}), **brought[field]}
    status = {key: value for key, value in (pod.get("status") or {}).items() if key != "nominatedNodeName"}
    status["conditions"] = with_condition(
        status.get("conditions") or (), {"type": "PodScheduled", "status": "True"}, now
    )
    spec = {**pod["spec"], "nodeName": binding["target"]["name"]}
    return {**pod, "metadata": metadata, "spec": spec, "status": status}
