"""Binding a pod to a node.

Comes in   a pod, a `Binding`, the time
Goes out   why it cannot be; the pod as it is on its node

 1. A pod is bound once. The words are those of the conflict that the second binder gets.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.apiserver.strategies.pod_conditions import with_condition


def binding_refusal(pod: Document) -> str:
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
