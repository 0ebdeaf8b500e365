"""What is wrong with a ReplicationController.

Comes in   its spec and the one before, or its status
Goes out   faults
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.kinds.workloads import MISMATCH, template_labels
from mooring.apiserver.validation.fields import Fault, FaultKind, forbidden, invalid, not_supported, required
from mooring.apiserver.validation.pod_template import pod_template_faults
from mooring.apiserver.validation.resources import non_negative_faults
from mooring.apiserver.validation.selectors import plain_selector_matches

NON_CONVERTIBLE_PREFIX = "non-convertible.kubernetes.io"

_COUNTS = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration")


def replication_controller_faults(spec: Document, old: Document | None) -> list[Fault]:
    """What is wrong with a spec."""
    selector, template = spec.get("selector") or {}, spec.get("template")
    faults = non_negative_faults(spec.get("minReadySeconds", 0), "spec.minReadySeconds")
    if not selector:
        faults.append(required("spec.selector"))
    faults += non_negative_faults(spec.get("replicas", 0), "spec.replicas")
    if template is None:
        return [*faults, required("spec.template")]
    labels = template_labels(template)
    if selector and not plain_selector_matches(selector, labels or {}):
        faults.append(invalid("spec.template.metadata.labels", labels, MISMATCH))
    faults += pod_template_faults(template, "spec.template", (old or {}).get("template"))
    policy = template["spec"].get("restartPolicy", "")
    if policy != "Always":
        faults.append(not_supported("spec.template.spec.restartPolicy", policy, ("Always",)))
    if template["spec"].get("activeDeadlineSeconds") is not None:
        detail = "activeDeadlineSeconds in ReplicationController is not Supported"
        faults.append(forbidden("spec.template.spec.activeDeadlineSeconds", detail))
    return faults


def replication_controller_status_faults(status: Document) -> list[Fault]:
    """What is wrong with a status."""
    faults: list[Fault] = []
    for field in _COUNTS:
        faults += non_negative_faults(status.get(field, 0), f"status.{field}")
    total, ready, available = (status.get(field, 0) for field in ("replicas", "readyReplicas", "availableReplicas"))
    for field in ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"):
        if status.get(field, 0) > total:
            faults.append(invalid(f"status.{field}", status.get(field, 0), "cannot be greater than status.replicas"))
    if available > ready:
        faults.append(invalid("status.availableReplicas", available, "cannot be greater than readyReplicas"))
    return faults


def non_convertible_faults(controller: Document, old: Document) -> list[Fault]:
    """Annotations that say that the object was once another kind, whose selector a controller cannot have."""
    faults: list[Fault] = []
    for key, value in (old["metadata"].get("annotations") or {}).items():
        parts = key.split("/")
        if not key.startswith(NON_CONVERTIBLE_PREFIX) or len(parts) != 2:
            continue
        if "selector" not in parts[1]:
            faults.append(Fault(FaultKind.NOT_FOUND, parts[1], "unknown non-convertible field", value))
        elif controller["spec"].get("selector") != old["spec"].get("selector"):
            selector = controller["spec"].get("selector")
            faults.append(invalid("spec.selector", selector, "cannot update non-convertible selector"))
    return faults
