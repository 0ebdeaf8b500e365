"""DaemonSet (apps/v1).

1. The template generation is stored as an annotation. Inside kube-apiserver it is a number: a text that is no number is
   a bad request.
2. The server counts the template generation: an update cannot set it.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.deployment import rolling_value
from mooring.apiserver.kinds.pod.defaults import default_pod_template
from mooring.apiserver.kinds.pod.warnings import pod_template_warnings
from mooring.apiserver.kinds.pod_template import validate_pod_template
from mooring.apiserver.kinds.workloads import (
    CONTAINERS_COLUMN,
    HISTORY_MAX,
    IMAGES_COLUMN,
    SELECTOR_COLUMN,
    WorkloadStrategy,
    int64_error,
    int_or_percent,
    is_empty_selector,
    name_spec_status,
    selector_matcher,
    validate_at_most_100_percent,
    validate_immutable_selector,
    validate_int_or_percent,
    validate_not_decremented,
    validate_restart_policy_always,
    validate_selector_matches,
)
from mooring.apiserver.strategy import StatusStrategy
from mooring.apiserver.tables import (
    AGE,
    NAME,
    Cell,
    KindTable,
    age,
    column,
    containers_and_images,
    integer,
    labels_text,
    selector_text,
    template_spec,
)
from mooring.apiserver.validation.fields import FieldError, invalid, not_supported, required
from mooring.apiserver.validation.schema_rules import enum_values, struct_rules
from mooring.apiserver.validation.selectors import validate_label_selector
from mooring.apiserver.validation.values import means_the_same
from mooring.client.errors import BadRequestError

_SPEC = struct_rules("apps", "DaemonSetSpec")
_STATUS = struct_rules("apps", "DaemonSetStatus")
_UPDATE_STRATEGIES = enum_values("apps", "DaemonSetUpdateStrategyType")

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"

_DAEMON_COUNTS = (
    "desiredNumberScheduled",
    "currentNumberScheduled",
    "numberReady",
    "updatedNumberScheduled",
    "numberAvailable",
)


# --- validation --------------------------------------------------------------------------------------------------


def validate_daemon_set(spec: Document, old: Document | None, path: str) -> list[FieldError]:
    selector, template = spec.get("selector"), spec["template"]
    template_path = f"{path}.template"
    # Values that the selector already had are tolerated, because it cannot be changed any more.
    tolerates_values = old is not None and bool(validate_label_selector(old.get("selector"), ""))
    field_errors = validate_label_selector(selector, f"{path}.selector", tolerates_values=tolerates_values)
    matcher = selector_matcher(selector)
    if matcher is not None:
        field_errors += validate_selector_matches(matcher, template, template_path)
    if selector is not None and is_empty_selector(selector):
        field_errors.append(invalid(f"{path}.selector", {}, "empty selector is invalid for daemonset"))
    field_errors += validate_pod_template(template, template_path, old["template"] if old is not None else None)
    field_errors += validate_restart_policy_always(template, "DaemonSet", template_path)
    field_errors += _SPEC.validate(spec, path, "minReadySeconds")
    field_errors += _validate_daemon_set_strategy(spec.get("updateStrategy") or {}, f"{path}.updateStrategy")
    field_errors += _SPEC.validate(spec, path, "revisionHistoryLimit")
    return field_errors


def validate_daemon_set_update(spec: Document, old: Document, path: str) -> list[FieldError]:
    field_errors = validate_immutable_selector(spec.get("selector"), old.get("selector"), f"{path}.selector")
    field_errors += validate_daemon_set(spec, old, path)
    return field_errors


def validate_daemon_set_status(status: Document, old: Document, path: str) -> list[FieldError]:
    return _STATUS.validate(status, path) + validate_not_decremented(status, old, path)


def _validate_daemon_set_strategy(strategy: Document, path: str) -> list[FieldError]:
    rolling = strategy.get("rollingUpdate")
    match strategy.get("type", ""):
        case "OnDelete":
            return []
        case "RollingUpdate":
            if rolling is None:
                return [required(f"{path}.rollingUpdate")]
            return _validate_daemon_set_rolling_update(rolling, f"{path}.rollingUpdate")
        case other:
            shown = {"Type": other, "RollingUpdate": rolling_value(rolling)}
            return [not_supported(path, shown, _UPDATE_STRATEGIES)]


def _validate_daemon_set_rolling_update(rolling: Document, path: str) -> list[FieldError]:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    field_errors = validate_int_or_percent(unavailable, f"{path}.maxUnavailable")
    field_errors += validate_int_or_percent(surge, f"{path}.maxSurge")
    field_errors += validate_at_most_100_percent(unavailable, f"{path}.maxUnavailable")
    field_errors += validate_at_most_100_percent(surge, f"{path}.maxSurge")
    takes_away, adds = int_or_percent(unavailable) != 0, int_or_percent(surge) != 0
    if takes_away and adds:
        field_errors.append(invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"))
    elif not takes_away and not adds:
        field_errors.append(required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return field_errors


# --- table -------------------------------------------------------------------------------------------------------


def _daemon_set_cells(obj: Document, now_s: float) -> list[Cell]:
    name, spec, status = name_spec_status(obj)
    pod_spec = template_spec(spec.get("template")) or {}
    return [
        name,
        *(status.get(count, 0) for count in _DAEMON_COUNTS),
        labels_text(pod_spec.get("nodeSelector")),
        age(obj, now_s),
        *containers_and_images(pod_spec),
        selector_text(spec.get("selector")),
    ]


# --- strategy ----------------------------------------------------------------------------------------------------


class DaemonSetStatusStrategy(StatusStrategy):
    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        super().prepare_for_update(obj, old, call)
        _set_template_generation(obj, _template_generation(old))


class DaemonSetStrategy(WorkloadStrategy):
    table = KindTable(
        (
            NAME,
            integer("Desired", "On how many nodes it should run."),
            integer("Current", "On how many of them it does."),
            integer("Ready", "On how many it is ready."),
            integer("Up-to-date", "On how many it runs from the newest template."),
            integer("Available", "On how many it has been ready for long enough."),
            column("Node Selector", "Which nodes it is for."),
            AGE,
            CONTAINERS_COLUMN,
            IMAGES_COLUMN,
            SELECTOR_COLUMN,
        ),
        _daemon_set_cells,
    )

    status_strategy = DaemonSetStatusStrategy

    def empty_status(self) -> Document:
        return {
            "currentNumberScheduled": 0,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 0,
            "numberReady": 0,
        }

    def default(self, obj: Document) -> None:
        spec = obj["spec"]
        strategy = spec.setdefault("updateStrategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", 1)
            rolling.setdefault("maxSurge", 0)
        elif (rolling := strategy.get("rollingUpdate")) is not None:
            # Inside kube-apiserver these two cannot be absent.
            rolling.setdefault("maxUnavailable", 0)
            rolling.setdefault("maxSurge", 0)
        spec.setdefault("revisionHistoryLimit", HISTORY_MAX)
        annotations = obj["metadata"].setdefault("annotations", {})
        if error := int64_error(annotations.setdefault(TEMPLATE_GENERATION, "0")):
            raise BadRequestError(f'DaemonSet in version "v1" cannot be handled as a DaemonSet: {error}')
        default_pod_template(spec["template"])

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        super().prepare_for_create(obj, call)
        _set_template_generation(obj, max(_template_generation(obj), 1))

    def count_generation(self, obj: Document, old: Document) -> None:
        metadata, old_metadata = obj["metadata"], old["metadata"]
        generation = _template_generation(old)
        if not means_the_same(obj["spec"]["template"], old["spec"]["template"], "core", "PodTemplateSpec"):
            generation += 1
        _set_template_generation(obj, generation)
        if not means_the_same(obj["spec"], old["spec"], "apps", "DaemonSetSpec"):
            metadata["generation"] = old_metadata.get("generation", 0) + 1

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_daemon_set(obj["spec"], None, "spec")

    def validate_body_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        return validate_daemon_set_update(obj["spec"], old["spec"], "spec")

    def validate_status(self, obj: Document, old: Document) -> list[FieldError]:
        return validate_daemon_set_status(obj.get("status") or {}, old.get("status") or {}, "status")

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        if _template_generation(obj) == _template_generation(old):
            return []
        return pod_template_warnings(self.template(obj), "spec.template")


def _template_generation(obj: Document) -> int:
    return int((obj["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION, 0))


def _set_template_generation(obj: Document, generation: int) -> None:
    metadata = obj["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), TEMPLATE_GENERATION: str(generation)}


STRATEGY = DaemonSetStrategy
