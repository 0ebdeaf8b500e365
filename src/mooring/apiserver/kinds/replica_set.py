"""ReplicaSet (apps/v1).

1. The error for an empty selector names a deployment, because kube-apiserver shares the text.
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.pod.defaults import default_pod_template
from mooring.apiserver.kinds.pod_template import pod_template_faults
from mooring.apiserver.kinds.workloads import (
    REPLICA_COLUMNS,
    WorkloadStrategy,
    above_faults,
    immutable_selector_faults,
    is_empty_selector,
    mismatch_faults,
    name_spec_status,
    nonnegative_faults,
    nonnegative_fields_faults,
    pod_name_warnings,
    replica_counts,
    restart_faults,
    selector_matcher,
    selector_value,
)
from mooring.apiserver.strategy import StatusStrategy, Strategy
from mooring.apiserver.tables.cells import age, containers_and_images, selector_text, template_spec
from mooring.apiserver.tables.columns import Cell, KindTable
from mooring.apiserver.validation.fields import Fault, invalid, required
from mooring.apiserver.validation.selectors import label_selector_faults
from mooring.apiserver.validation.values import means_the_same

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


def default_replica_set(obj: Document) -> None:
    spec = obj["spec"]
    spec.setdefault("replicas", 1)
    default_pod_template(spec["template"])


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


def _replica_set_cells(obj: Document, now_s: float) -> list[Cell]:
    name, spec, _ = name_spec_status(obj)
    return [
        name,
        *replica_counts(obj),
        age(obj, now_s),
        *containers_and_images(template_spec(spec.get("template"))),
        selector_text(spec.get("selector")),
    ]


REPLICA_SET_TABLE = KindTable(REPLICA_COLUMNS, _replica_set_cells)


class ReplicaSetStrategy(WorkloadStrategy):
    table = REPLICA_SET_TABLE
    shares_parts = True

    @property
    def subresources(self) -> Mapping[str, Strategy]:
        return {"status": ReplicaSetStatusStrategy(self.kind, self)}

    def empty_status(self) -> Document:
        return {"replicas": 0}

    def default(self, obj: Document) -> None:
        default_replica_set(obj)

    def count_generation(self, obj: Document, old: Document) -> None:
        if not means_the_same(obj["spec"], old["spec"], "apps", "ReplicaSetSpec"):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return replica_set_faults(obj["spec"], None, "spec")

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        spec, old_spec = obj["spec"], old["spec"]
        return replica_set_update_faults(spec, old_spec, "spec") if spec is not old_spec else []

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return pod_name_warnings(obj["metadata"]["name"]) + super().warnings_on_create(obj, call)


class ReplicaSetStatusStrategy(StatusStrategy):
    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return replica_set_status_faults(obj.get("status") or {}, "status")


STRATEGY = ReplicaSetStrategy
