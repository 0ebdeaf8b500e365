"""What is wrong with a replica set.

Comes in   a replica set's spec or status, and what it was
Goes out   faults

 1. The sentence about an empty selector speaks of a deployment: Kubernetes took it over with the rule.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.kinds.workloads import (
    above_faults,
    immutable_selector_faults,
    is_empty_selector,
    mismatch_faults,
    nonnegative_faults,
    nonnegative_fields_faults,
    restart_faults,
    selector_matcher,
    selector_value,
)
from mooring.apiserver.validation.fields import Fault, invalid, required
from mooring.apiserver.validation.pod_template import pod_template_faults
from mooring.apiserver.validation.selectors import label_selector_faults

ABOVE_REPLICAS = "cannot be greater than status.replicas"
ABOVE_READY = "cannot be greater than readyReplicas"
_COUNTS = (
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "observedGeneration",
    "terminatingReplicas",
)


def replica_set_faults(spec: Document, old: Document | None, path: str) -> list[Fault]:
    faults = nonnegative_faults(spec.get("replicas"), f"{path}.replicas")
    faults += nonnegative_faults(spec.get("minReadySeconds"), f"{path}.minReadySeconds")
    faults += selected_template_faults(spec, old, path)
    return faults


def replica_set_update_faults(spec: Document, old: Document, path: str) -> list[Fault]:
    faults = replica_set_faults(spec, old, path)
    faults += immutable_selector_faults(spec.get("selector"), old.get("selector"), f"{path}.selector")
    return faults


def selected_template_faults(spec: Document, old: Document | None, path: str) -> list[Fault]:
    """The selector, the template, and whether they fit: the same for replica sets and deployments."""
    selector, template = spec.get("selector"), spec["template"]
    here = f"{path}.selector"
    faults: list[Fault] = []
    if selector is None:
        faults.append(required(here))
    else:
        faults += label_selector_faults(selector, here)
        if is_empty_selector(selector):
            faults.append(invalid(here, {}, "empty selector is invalid for deployment"))
    matcher = selector_matcher(selector)
    if matcher is None:
        return [*faults, invalid(here, selector_value(selector), "invalid label selector")]
    inside = f"{path}.template"
    if not matcher.matches_everything:
        faults += mismatch_faults(matcher, template, inside)
    faults += pod_template_faults(template, inside, old["template"] if old is not None else None)
    faults += restart_faults(template, "ReplicaSet", inside)
    return faults


def replica_set_status_faults(status: Document, path: str) -> list[Fault]:
    faults = nonnegative_fields_faults({name: status.get(name) for name in _COUNTS}, path)
    parts = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    faults += above_faults(status, parts, "replicas", ABOVE_REPLICAS, path)
    faults += above_faults(status, ("availableReplicas",), "readyReplicas", ABOVE_READY, path)
    return faults
