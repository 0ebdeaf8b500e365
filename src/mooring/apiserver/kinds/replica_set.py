"""ReplicaSet (apps/v1).

1. The error for an empty selector names a deployment, because kube-apiserver shares the text.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.pod.defaults import default_pod_template
from mooring.apiserver.kinds.pod_template import validate_pod_template
from mooring.apiserver.kinds.workloads import (
    REPLICA_COLUMNS,
    WorkloadStrategy,
    name_spec_status,
    pod_name_warnings,
    replica_counts,
    selector_matcher,
    selector_value,
    validate_at_most,
    validate_immutable_selector,
    validate_restart_policy_always,
    validate_selector_matches,
    validate_workload_selector,
)
from mooring.apiserver.tables import Cell, KindTable, age, containers_and_images, selector_text, template_spec
from mooring.apiserver.validation.fields import FieldError, invalid
from mooring.apiserver.validation.schema_rules import struct_rules

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


def validate_replica_set(spec: Document, old: Document | None, path: str) -> list[FieldError]:
    return struct_rules("apps", "ReplicaSetSpec").validate(spec, path) + validate_selected_template(spec, old, path)


def validate_replica_set_update(spec: Document, old: Document, path: str) -> list[FieldError]:
    errors = validate_replica_set(spec, old, path)
    errors += validate_immutable_selector(spec.get("selector"), old.get("selector"), f"{path}.selector")
    return errors


def validate_selected_template(spec: Document, old: Document | None, path: str) -> list[FieldError]:
    """The selector, the template, and whether they fit: the same for replica sets and deployments."""
    selector, template = spec.get("selector"), spec["template"]
    here = f"{path}.selector"
    errors = validate_workload_selector(selector, here, "deployment")
    matcher = selector_matcher(selector)
    if matcher is None:
        return [*errors, invalid(here, selector_value(selector), "invalid label selector")]
    template_path = f"{path}.template"
    if not matcher.matches_everything:
        errors += validate_selector_matches(matcher, template, template_path)
    errors += validate_pod_template(template, template_path, old["template"] if old is not None else None)
    errors += validate_restart_policy_always(template, "ReplicaSet", template_path)
    return errors


def validate_replica_set_status(status: Document, path: str) -> list[FieldError]:
    errors = struct_rules("apps", "ReplicaSetStatus").validate(status, path, *_COUNTS)
    return errors + validate_ready_counts(status, path)


def validate_ready_counts(status: Document, path: str) -> list[FieldError]:
    """Whether a status counts more ready or available pods than pods."""
    parts = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    errors = validate_at_most(status, parts, "replicas", ABOVE_REPLICAS, path)
    errors += validate_at_most(status, ("availableReplicas",), "readyReplicas", ABOVE_READY, path)
    return errors


def _replica_set_cells(obj: Document, now_s: float) -> list[Cell]:
    name, spec, _ = name_spec_status(obj)
    return [
        name,
        *replica_counts(obj),
        age(obj, now_s),
        *containers_and_images(template_spec(spec.get("template"))),
        selector_text(spec.get("selector")),
    ]


class ReplicaSetStrategy(WorkloadStrategy):
    counts_changes_of_meaning = True
    table = KindTable(REPLICA_COLUMNS, _replica_set_cells)
    shares_parts = True

    def empty_status(self) -> Document:
        return {"replicas": 0}

    def default(self, obj: Document) -> None:
        spec = obj["spec"]
        spec.setdefault("replicas", 1)
        default_pod_template(spec["template"])

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_replica_set(obj["spec"], None, "spec")

    def validate_body_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        spec, old_spec = obj["spec"], old["spec"]
        return validate_replica_set_update(spec, old_spec, "spec") if spec is not old_spec else []

    def validate_status(self, obj: Document, old: Document) -> list[FieldError]:
        return validate_replica_set_status(obj.get("status") or {}, "status")

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return pod_name_warnings(obj["metadata"]["name"]) + super().warnings_on_create(obj, call)


STRATEGY = ReplicaSetStrategy
