"""Deployment (apps/v1).

1. The deprecated rollback annotation is a number inside kube-apiserver: a text that is no number is a bad request.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.pod.defaults import default_pod_template
from mooring.apiserver.kinds.replica_set import ABOVE_READY, ABOVE_REPLICAS, validate_selected_template
from mooring.apiserver.kinds.workloads import (
    CONTAINERS_COLUMN,
    HISTORY_MAX,
    IMAGES_COLUMN,
    READY_COLUMN,
    SELECTOR_COLUMN,
    WorkloadStrategy,
    int64_error,
    int_or_percent,
    name_spec_status,
    pod_name_warnings,
    validate_at_most,
    validate_at_most_100_percent,
    validate_immutable_selector,
    validate_int_or_percent,
    validate_not_decremented,
)
from mooring.apiserver.strategy import StatusStrategy, keep
from mooring.apiserver.tables import (
    AGE,
    NAME,
    Cell,
    KindTable,
    age,
    bare_selector_text,
    column,
    containers_and_images,
    template_spec,
)
from mooring.apiserver.validation.fields import FieldError, forbidden, invalid, not_supported, required
from mooring.apiserver.validation.schema_rules import sorted_enum_values, struct_rules
from mooring.apiserver.validation.values import means_the_same
from mooring.client.errors import BadRequestError

_SPEC = struct_rules("apps", "DeploymentSpec")
_STATUS = struct_rules("apps", "DeploymentStatus")
_STRATEGIES = sorted_enum_values("apps", "DeploymentStrategyType")

ROLLBACK_REVISION = "deprecated.deployment.rollback.revision"
PROGRESS_DEADLINE_S = 600


# --- defaults ----------------------------------------------------------------------------------------------------


def check_rollback_revision(metadata: Document) -> None:
    """Reject an annotation that kube-apiserver converts to a number, if it is not one."""
    revision = (metadata.get("annotations") or {}).get(ROLLBACK_REVISION)
    if revision and (error := int64_error(revision)):
        raise BadRequestError(
            'Deployment in version "v1" cannot be handled as a Deployment: '
            f"failed to parse annotation[{ROLLBACK_REVISION}]={revision} as int64: {error}"
        )


# --- validation --------------------------------------------------------------------------------------------------


def validate_deployment(spec: Document, old: Document | None, path: str) -> list[FieldError]:
    field_errors = _SPEC.validate(spec, path, "replicas")
    field_errors += validate_selected_template(spec, old, path)
    field_errors += _validate_deployment_strategy(spec.get("strategy") or {}, f"{path}.strategy")
    field_errors += _SPEC.validate(spec, path, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline_s = spec.get("progressDeadlineSeconds")
    if deadline_s is not None and deadline_s <= spec.get("minReadySeconds", 0):
        detail = "must be greater than minReadySeconds"
        field_errors.append(invalid(f"{path}.progressDeadlineSeconds", deadline_s, detail))
    return field_errors


def validate_deployment_update(spec: Document, old: Document, path: str) -> list[FieldError]:
    field_errors = validate_deployment(spec, old, path)
    field_errors += validate_immutable_selector(spec.get("selector"), old.get("selector"), f"{path}.selector")
    return field_errors


def validate_deployment_status(status: Document, old: Document, path: str) -> list[FieldError]:
    field_errors = _STATUS.validate(status, path)
    parts = ("updatedReplicas", "readyReplicas", "availableReplicas")
    field_errors += validate_at_most(status, parts, "replicas", ABOVE_REPLICAS, path)
    field_errors += validate_at_most(status, ("availableReplicas",), "readyReplicas", ABOVE_READY, path)
    field_errors += validate_not_decremented(status, old, path)
    return field_errors


def _validate_deployment_strategy(strategy: Document, path: str) -> list[FieldError]:
    rolling = strategy.get("rollingUpdate")
    match strategy.get("type", ""):
        case "Recreate":
            if rolling is None:
                return []
            return [forbidden(f"{path}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")]
        case "RollingUpdate":
            if rolling is None:
                return [required(f"{path}.rollingUpdate", "this should be defaulted and never be nil")]
            return _validate_deployment_rolling_update(rolling, f"{path}.rollingUpdate")
        case other:
            shown = {"Type": other, "RollingUpdate": rolling_value(rolling)}
            return [not_supported(path, shown, _STRATEGIES)]


def _validate_deployment_rolling_update(rolling: Document, path: str) -> list[FieldError]:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    here = f"{path}.maxUnavailable"
    field_errors = validate_int_or_percent(unavailable, here)
    field_errors += validate_int_or_percent(surge, f"{path}.maxSurge")
    if int_or_percent(unavailable) == 0 and int_or_percent(surge) == 0:
        field_errors.append(invalid(here, unavailable, "may not be 0 when `maxSurge` is 0"))
    field_errors += validate_at_most_100_percent(unavailable, here)
    return field_errors


def rolling_value(rolling: Document | None) -> Document | None:
    """How Go prints the settings of a rolling update."""
    if rolling is None:
        return None
    return {"MaxUnavailable": rolling.get("maxUnavailable", 0), "MaxSurge": rolling.get("maxSurge", 0)}


# --- table -------------------------------------------------------------------------------------------------------


def _deployment_cells(obj: Document, now_s: float) -> list[Cell]:
    name, spec, status = name_spec_status(obj)
    return [
        name,
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas') or 0}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(obj, now_s),
        *containers_and_images(template_spec(spec.get("template"))),
        bare_selector_text(spec.get("selector")),
    ]


# --- strategy ----------------------------------------------------------------------------------------------------


class DeploymentStatusStrategy(StatusStrategy):
    reset_fields = (("spec",), ("metadata", "labels"))

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        super().prepare_for_update(obj, old, call)
        keep(obj["metadata"], old["metadata"], "labels")


class DeploymentKindStrategy(WorkloadStrategy):
    table = KindTable(
        (
            NAME,
            READY_COLUMN,
            column("Up-to-date", "How many pods are made from the newest template."),
            column("Available", "How many have been ready for long enough."),
            AGE,
            CONTAINERS_COLUMN,
            IMAGES_COLUMN,
            SELECTOR_COLUMN,
        ),
        _deployment_cells,
    )
    shares_parts = True

    status_strategy = DeploymentStatusStrategy

    def default(self, obj: Document) -> None:
        spec = obj["spec"]
        check_rollback_revision(obj["metadata"])
        spec.setdefault("replicas", 1)
        strategy = spec.setdefault("strategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", "25%")
            rolling.setdefault("maxSurge", "25%")
        spec.setdefault("revisionHistoryLimit", HISTORY_MAX)
        spec.setdefault("progressDeadlineSeconds", PROGRESS_DEADLINE_S)
        default_pod_template(spec["template"])

    def default_metadata(self, metadata: Document) -> None:
        check_rollback_revision(metadata)

    def count_generation(self, obj: Document, old: Document) -> None:
        """Annotations count too: they are copied to the replica sets."""
        metadata, old_metadata = obj["metadata"], old["metadata"]
        if (metadata.get("annotations") or {}) != (old_metadata.get("annotations") or {}) or not means_the_same(
            obj["spec"], old["spec"], "apps", "DeploymentSpec"
        ):
            metadata["generation"] = old_metadata.get("generation", 0) + 1

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_deployment(obj["spec"], None, "spec")

    def validate_body_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        spec, old_spec = obj["spec"], old["spec"]
        return validate_deployment_update(spec, old_spec, "spec") if spec is not old_spec else []

    def validate_status(self, obj: Document, old: Document) -> list[FieldError]:
        return validate_deployment_status(obj.get("status") or {}, old.get("status") or {}, "status")

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return pod_name_warnings(obj["metadata"]["name"]) + super().warnings_on_create(obj, call)


STRATEGY = DeploymentKindStrategy
