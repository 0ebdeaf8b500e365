"""What may change in a pod, and what may not.

Comes in   a pod as it shall become and as it is
Goes out   faults

 1. Images, the deadline (shorter), tolerations (more) and scheduling gates (fewer) may change; nothing else.
 2. While a pod is gated nobody has placed it yet: its node selector and node affinity may be tightened.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.apiserver.validation.fields import Fault, forbidden, invalid, required
from mooring.apiserver.validation.names import range_faults
from mooring.apiserver.validation.pod import pod_faults
from mooring.apiserver.validation.pod_annotations import pod_annotations_faults, pod_annotations_update_faults
from mooring.apiserver.validation.pod_options import PodOptions
from mooring.apiserver.validation.pod_ratchet import options_after
from mooring.apiserver.validation.pod_spec import DEADLINE_S_MAX, MIRROR_ANNOTATION
from mooring.apiserver.validation.pod_tolerations import added_tolerations_faults
from mooring.apiserver.validation.values import internal_diff, internal_value, internal_values, means_the_same

_CHANGEABLE = ",".join(
    (
        "`spec.containers[*].image`",
        "`spec.initContainers[*].image`",
        "`spec.activeDeadlineSeconds`",
        "`spec.tolerations` (only additions to existing tolerations)",
        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
    )
)
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TERMS_PATH = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"


def pod_update_faults(pod: Document, old: Document, options: PodOptions) -> list[Fault]:
    """What is wrong with a change of a pod, apart from its metadata."""
    faults = pod_faults(pod, options)
    faults += pod_annotations_update_faults(pod, old, "metadata.annotations", options)
    spec, old_spec = pod["spec"], old["spec"]
    for kind in ("containers", "initContainers"):
        new_list, old_list = spec.get(kind) or (), old_spec.get(kind) or ()
        if len(new_list) != len(old_list):
            return [*faults, forbidden(f"spec.{kind}", "pod updates may not add or remove containers")]
        faults += _images_faults(new_list, f"spec.{kind}")
    deadline = _deadline_faults(spec.get("activeDeadlineSeconds"), old_spec.get("activeDeadlineSeconds"))
    faults += deadline
    if deadline and spec.get("activeDeadlineSeconds") is not None:
        return faults
    new_tolerations, old_tolerations = spec.get("tolerations") or [], old_spec.get("tolerations") or []
    faults += added_tolerations_faults(new_tolerations, old_tolerations, "spec.tolerations", options)
    faults += _gates_faults(spec.get("schedulingGates") or (), old_spec.get("schedulingGates") or ())
    if means_the_same(spec, old_spec, "core", "PodSpec"):
        return faults
    return faults + _other_changes_faults(spec, old_spec)


def leaves_spec(pod: Document, old: Document) -> bool:
    """Whether the spec is the very one that is stored, and nothing else has a say in what a spec may hold."""
    return pod["spec"] is old["spec"] and MIRROR_ANNOTATION not in (pod["metadata"].get("annotations") or ())


def annotations_only_faults(pod: Document, old: Document) -> list[Fault]:
    """The same for a pod whose spec is left as it was, with which nothing is wrong: only annotations are looked at."""
    annotations = pod["metadata"].get("annotations") or {}
    if not annotations and not old["metadata"].get("annotations"):
        return []
    options, path = options_after(old, is_pod=True), "metadata.annotations"
    faults = pod_annotations_faults(annotations, pod["spec"], path, options)
    return faults + pod_annotations_update_faults(pod, old, path, options)


# --- what may change --------------------------------------------------------------------------------------------


def _images_faults(containers: Sequence[Document], path: str) -> list[Fault]:
    faults: list[Fault] = []
    for index, container in enumerate(containers):
        image = container.get("image", "")
        if not image:
            faults.append(required(f"{path}[{index}].image"))
        if image != image.strip():
            detail = "must not have leading or trailing whitespace"
            faults.append(invalid(f"{path}[{index}].image", image, detail))
    return faults


def _deadline_faults(new_s: int | None, old_s: int | None) -> list[Fault]:
    path = "spec.activeDeadlineSeconds"
    if new_s is None:
        detail = "must not update from a positive integer to nil value"
        return [invalid(path, None, detail)] if old_s is not None else []
    texts = range_faults(new_s, 0, DEADLINE_S_MAX)
    if texts:
        return [invalid(path, new_s, text) for text in texts]
    if old_s is not None and old_s < new_s:
        return [invalid(path, new_s, "must be less than or equal to previous value")]
    return []


def _gates_faults(gates: Sequence[Document], old: Sequence[Document]) -> list[Fault]:
    known = {gate.get("name", "") for gate in old}
    added = {gate.get("name", ""): index for index, gate in enumerate(gates) if gate.get("name", "") not in known}
    detail = "only deletion is allowed, but found new scheduling gate"
    return [forbidden(f"spec.schedulingGates[{index}].name", f"{detail} '{name}'") for name, index in added.items()]


# --- everything else --------------------------------------------------------------------------------------------


def _other_changes_faults(spec: Document, old: Document) -> list[Fault]:
    """Take back what may change and see whether anything is left."""
    rest = dict(spec)
    for kind in ("containers", "initContainers"):
        if rest.get(kind):
            pairs = zip(rest[kind], old[kind], strict=True)
            rest[kind] = [{**container, "image": was.get("image", "")} for container, was in pairs]
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        _take_back(rest, old, field)
    if old.get("terminationGracePeriodSeconds", 0) < 0 and rest.get("terminationGracePeriodSeconds") == 1:
        _take_back(rest, old, "terminationGracePeriodSeconds")
    faults: list[Fault] = []
    if old.get("schedulingGates"):
        faults += _node_selector_faults(rest, old)
        faults += _node_affinity_faults(rest, old)
    if not means_the_same(rest, old, "core", "PodSpec"):
        difference = internal_diff(old, rest, "PodSpec")
        faults.append(forbidden("spec", f"pod updates may not change fields other than {_CHANGEABLE}\n{difference}"))
    return faults


def _node_selector_faults(rest: Document, old: Document) -> list[Fault]:
    new_selector, old_selector = rest.get("nodeSelector") or {}, old.get("nodeSelector") or {}
    _take_back(rest, old, "nodeSelector")
    if all(new_selector.get(key) == value for key, value in old_selector.items()):
        return []
    detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
    return [invalid("spec.nodeSelector", new_selector or None, detail)]


def _node_affinity_faults(rest: Document, old: Document) -> list[Fault]:
    new_affinity, old_affinity = rest.get("affinity"), old.get("affinity")
    new_nodes, old_nodes = (new_affinity or {}).get("nodeAffinity"), (old_affinity or {}).get("nodeAffinity")
    if new_nodes == old_nodes:
        return []
    faults = _tightened_faults(new_nodes or {}, old_nodes or {})
    kept = {key: value for key, value in (new_affinity or {}).items() if key != "nodeAffinity"}
    if old_nodes is not None:
        rest["affinity"] = {**kept, "nodeAffinity": old_nodes}
    elif old_affinity is None and not kept:
        rest.pop("affinity", None)
    else:
        rest["affinity"] = kept
    return faults


def _tightened_faults(new: Document, old: Document) -> list[Fault]:
    """Terms stay as many as they are, and each may only ask for more."""
    old_terms = (old.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    new_terms = (new.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    if not old_terms:
        return []
    if len(old_terms) != len(new_terms):
        value = internal_values(new_terms or None, "NodeSelectorTerm")
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [invalid(_TERMS_PATH, value, detail)]
    detail = "only additions are allowed (no mutations or deletions)"
    return [
        invalid(f"{_TERMS_PATH}[{index}]", internal_value(new_term, "NodeSelectorTerm"), detail)
        for index, (new_term, old_term) in enumerate(zip(new_terms, old_terms, strict=True))
        if not _has_only_additions(new_term, old_term)
    ]


def _has_only_additions(new: Document, old: Document) -> bool:
    fields = ("matchExpressions", "matchFields")
    if not any(old.get(field) for field in fields):
        # An empty term matches no node; anything in it would match more.
        return not any(new.get(field) for field in fields)
    return all((new.get(field) or [])[: len(old[field])] == old[field] for field in fields if old.get(field))


def _take_back(rest: Document, old: Document, field: str) -> None:
    if field in old:
        rest[field] = old[field]
    else:
        rest.pop(field, None)
