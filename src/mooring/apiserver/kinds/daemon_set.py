"""DaemonSet (apps/v1).

1. The template generation is stored as an annotation. Inside kube-apiserver it is a number: a text that is no number is
   a bad request.
2. The server counts the template generation: an update cannot set it.
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.deployment import rolling_value
from mooring.apiserver.kinds.pod.defaults import default_pod_template
from mooring.apiserver.kinds.pod.warnings import pod_template_warnings
from mooring.apiserver.kinds.pod_template import pod_template_faults
from mooring.apiserver.kinds.workloads import (
    CONTAINERS_COLUMN,
    HISTORY_MAX,
    IMAGES_COLUMN,
    SELECTOR_COLUMN,
    WorkloadStrategy,
    above_100_percent_faults,
    decremented_faults,
    immutable_selector_faults,
    int64_fault,
    int_or_percent,
    int_or_percent_faults,
    is_empty_selector,
    mismatch_faults,
    name_spec_status,
    nonnegative_faults,
    nonnegative_fields_faults,
    restart_faults,
    selector_matcher,
)
from mooring.apiserver.strategy import StatusStrategy, Strategy
from mooring.apiserver.tables.cells import age, containers_and_images, labels_text, selector_text, template_spec
from mooring.apiserver.tables.columns import AGE, NAME, Cell, KindTable, column, integer
from mooring.apiserver.validation.fields import Fault, invalid, not_supported, required
from mooring.apiserver.validation.selectors import label_selector_faults
from mooring.apiserver.validation.values import means_the_same
from mooring.client.errors import BadRequestError

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"

_COUNTS = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
)

_DAEMON_COUNTS = (
    "desiredNumberScheduled",
    "currentNumberScheduled",
    "numberReady",
    "updatedNumberScheduled",
    "numberAvailable",
)


def default_daemon_set(obj: Document) -> None:
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
    if fault := int64_fault(annotations.setdefault(TEMPLATE_GENERATION, "0")):
        raise BadRequestError(f'DaemonSet in version "v1" cannot be handled as a DaemonSet: {fault}')
    default_pod_template(spec["template"])


def daemon_set_faults(spec: Document, old: Document | None, path: str) -> list[Fault]:
    selector, template = spec.get("selector"), spec["template"]
    inside = f"{path}.template"
    # Values that the selector already had are tolerated, because it cannot be changed any more.
    tolerates_values = old is not None and bool(label_selector_faults(old.get("selector"), ""))
    faults = label_selector_faults(selector, f"{path}.selector", tolerates_values=tolerates_values)
    matcher = selector_matcher(selector)
    if matcher is not None:
        faults += mismatch_faults(matcher, template, inside)
    if selector is not None and is_empty_selector(selector):
        faults.append(invalid(f"{path}.selector", {}, "empty selector is invalid for daemonset"))
    faults += pod_template_faults(template, inside, old["template"] if old is not None else None)
    faults += restart_faults(template, "DaemonSet", inside)
    faults += nonnegative_faults(spec.get("minReadySeconds"), f"{path}.minReadySeconds")
    faults += _daemon_set_strategy_faults(spec.get("updateStrategy") or {}, f"{path}.updateStrategy")
    faults += nonnegative_faults(spec.get("revisionHistoryLimit"), f"{path}.revisionHistoryLimit")
    return faults


def daemon_set_update_faults(spec: Document, old: Document, path: str) -> list[Fault]:
    faults = immutable_selector_faults(spec.get("selector"), old.get("selector"), f"{path}.selector")
    faults += daemon_set_faults(spec, old, path)
    return faults


def daemon_set_status_faults(status: Document, old: Document, path: str) -> list[Fault]:
    faults = nonnegative_fields_faults({name: status.get(name) for name in _COUNTS}, path)
    faults += decremented_faults(status, old, path)
    return faults


def _daemon_set_strategy_faults(strategy: Document, path: str) -> list[Fault]:
    rolling = strategy.get("rollingUpdate")
    match strategy.get("type", ""):
        case "OnDelete":
            return []
        case "RollingUpdate":
            if rolling is None:
                return [required(f"{path}.rollingUpdate")]
            return _daemon_set_rolling_update_faults(rolling, f"{path}.rollingUpdate")
        case other:
            shown = {"Type": other, "RollingUpdate": rolling_value(rolling)}
            return [not_supported(path, shown, ("RollingUpdate", "OnDelete"))]


def _daemon_set_rolling_update_faults(rolling: Document, path: str) -> list[Fault]:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    faults = int_or_percent_faults(unavailable, f"{path}.maxUnavailable")
    faults += int_or_percent_faults(surge, f"{path}.maxSurge")
    faults += above_100_percent_faults(unavailable, f"{path}.maxUnavailable")
    faults += above_100_percent_faults(surge, f"{path}.maxSurge")
    takes_away, adds = int_or_percent(unavailable) != 0, int_or_percent(surge) != 0
    if takes_away and adds:
        faults.append(invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"))
    elif not takes_away and not adds:
        faults.append(required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return faults


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


DAEMON_SET_TABLE = KindTable(
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


class DaemonSetStrategy(WorkloadStrategy):
    table = DAEMON_SET_TABLE

    @property
    def subresources(self) -> Mapping[str, Strategy]:
        return {"status": DaemonSetStatusStrategy(self.kind, self)}

    def empty_status(self) -> Document:
        return {
            "currentNumberScheduled": 0,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 0,
            "numberReady": 0,
        }

    def default(self, obj: Document) -> None:
        default_daemon_set(obj)

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

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return daemon_set_faults(obj["spec"], None, "spec")

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return daemon_set_update_faults(obj["spec"], old["spec"], "spec")

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        if _template_generation(obj) == _template_generation(old):
            return []
        return pod_template_warnings(self.template(obj), "spec.template")


class DaemonSetStatusStrategy(StatusStrategy):
    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        super().prepare_for_update(obj, old, call)
        _set_template_generation(obj, _template_generation(old))

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return daemon_set_status_faults(obj.get("status") or {}, old.get("status") or {}, "status")


def _template_generation(obj: Document) -> int:
    return int((obj["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION, 0))


def _set_template_generation(obj: Document, generation: int) -> None:
    metadata = obj["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), TEMPLATE_GENERATION: str(generation)}


STRATEGY = DaemonSetStrategy
