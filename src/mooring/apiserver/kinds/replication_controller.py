"""ReplicationController (v1).

1. Deleting a controller orphans its pods by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.pod.defaults import default_pod_template
from mooring.apiserver.kinds.pod.prepare import drop_disabled_template_fields
from mooring.apiserver.kinds.pod.warnings import pod_template_warnings
from mooring.apiserver.kinds.pod_template import validate_pod_template
from mooring.apiserver.kinds.replica_set import validate_ready_counts
from mooring.apiserver.kinds.workloads import (
    MISMATCH,
    REPLICA_COLUMNS,
    labels_value,
    name_spec_status,
    pod_name_warnings,
    replica_counts,
    template_labels,
    validate_restart_policy_always,
)
from mooring.apiserver.strategy import DefaultPropagation, Strategy, keep
from mooring.apiserver.tables import Cell, KindTable, age, containers_and_images, labels_text, template_spec
from mooring.apiserver.validation.fields import FieldError, FieldErrorType, invalid, required
from mooring.apiserver.validation.names import long_name_errors
from mooring.apiserver.validation.schema_rules import struct_rules
from mooring.apiserver.validation.selectors import plain_selector_matches

NON_CONVERTIBLE_PREFIX = "non-convertible.kubernetes.io"

_SPEC = struct_rules("core", "ReplicationControllerSpec")
_COUNTS = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration")


# --- validation --------------------------------------------------------------------------------------------------


def validate_replication_controller(spec: Document, old: Document | None) -> list[FieldError]:
    """Field errors of a spec."""
    selector, template = spec.get("selector") or {}, spec.get("template")
    errors = _SPEC.validate(spec, "spec", "minReadySeconds")
    if not selector:
        errors.append(required("spec.selector"))
    errors += _SPEC.validate(spec, "spec", "replicas")
    if template is None:
        return [*errors, required("spec.template")]
    labels = template_labels(template)
    if selector and not plain_selector_matches(selector, labels or {}):
        errors.append(invalid("spec.template.metadata.labels", labels_value(labels), MISMATCH))
    errors += validate_pod_template(template, "spec.template", (old or {}).get("template"))
    return errors + validate_restart_policy_always(template, "ReplicationController", "spec.template")


def validate_replication_controller_status(status: Document) -> list[FieldError]:
    """Field errors of a status."""
    errors = struct_rules("core", "ReplicationControllerStatus").validate(status, "status", *_COUNTS)
    return errors + validate_ready_counts(status, "status")


def validate_non_convertible(controller: Document, old: Document) -> list[FieldError]:
    """Annotations of an object that was converted from a kind with a richer selector."""
    errors: list[FieldError] = []
    for key, value in (old["metadata"].get("annotations") or {}).items():
        parts = key.split("/")
        if not key.startswith(NON_CONVERTIBLE_PREFIX) or len(parts) != 2:
            continue
        if "selector" not in parts[1]:
            errors.append(FieldError(FieldErrorType.NOT_FOUND, parts[1], "unknown non-convertible field", value))
        elif controller["spec"].get("selector") != old["spec"].get("selector"):
            selector = controller["spec"].get("selector")
            errors.append(invalid("spec.selector", selector, "cannot update non-convertible selector"))
    return errors


# --- table -------------------------------------------------------------------------------------------------------


def _replication_controller_cells(obj: Document, now_s: float) -> list[Cell]:
    name, spec, _ = name_spec_status(obj)
    return [
        name,
        *replica_counts(obj),
        age(obj, now_s),
        *containers_and_images(template_spec(spec.get("template"))),
        labels_text(spec.get("selector")),
    ]


# --- strategy ----------------------------------------------------------------------------------------------------


class ReplicationControllerStrategy(Strategy):
    """How replication controllers are created, changed and selected."""

    counts_changes_of_meaning = True
    table = KindTable(REPLICA_COLUMNS, _replication_controller_cells)

    dependents: ClassVar[DefaultPropagation] = DefaultPropagation.ORPHAN

    def name_errors(self, name: str, is_prefix: bool) -> Sequence[str]:
        return long_name_errors(name, is_prefix)

    def default(self, obj: Document) -> None:
        spec: Document = obj["spec"]
        template = spec.get("template")
        if template is not None:
            labels = (template.get("metadata") or {}).get("labels")
            if labels:
                if not spec.get("selector"):
                    spec["selector"] = dict(labels)
                if not obj["metadata"].get("labels"):
                    obj["metadata"]["labels"] = dict(labels)
            default_pod_template(template)
        spec.setdefault("replicas", 1)

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        obj["metadata"]["generation"] = 1
        obj["status"] = {"replicas": 0}
        drop_disabled_template_fields(obj["spec"].get("template"), None)

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_replication_controller(obj["spec"], None)

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        warnings = pod_name_warnings(obj["metadata"].get("name", ""))
        return warnings + pod_template_warnings(obj["spec"].get("template"), "spec.template")

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj, old, "status")
        drop_disabled_template_fields(obj["spec"].get("template"), old["spec"].get("template"))
        self.count_generation(obj, old)

    def validate_body_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        return validate_replication_controller(obj["spec"], old["spec"]) + validate_non_convertible(obj, old)

    def validate_status(self, obj: Document, old: Document) -> list[FieldError]:
        return validate_replication_controller_status(obj.get("status") or {})

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        """Kubernetes warns about the old template here, not about the new one."""
        if obj["metadata"].get("generation") == old["metadata"].get("generation"):
            return []
        return pod_template_warnings(old["spec"].get("template"), "spec.template")

    def selectable_fields(self, obj: Document) -> dict[str, str]:
        return {"status.replicas": str((obj.get("status") or {}).get("replicas", 0))}


STRATEGY = ReplicationControllerStrategy
