"""Deployment (apps/v1).

1. The deprecated rollback annotation is a number inside kube-apiserver: a text that is no number is a bad request.
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.pod.defaults import default_pod_template
from mooring.apiserver.kinds.replica_set import ABOVE_READY, ABOVE_REPLICAS, selected_template_faults
from mooring.apiserver.kinds.workloads import (
    CONTAINERS_COLUMN,
    HISTORY_MAX,
    IMAGES_COLUMN,
    READY_COLUMN,
    SELECTOR_COLUMN,
    WorkloadStrategy,
    above_100_percent_faults,
    above_faults,
    decremented_faults,
    immutable_selector_faults,
    int64_fault,
    int_or_percent,
    int_or_percent_faults,
    name_spec_status,
    nonnegative_faults,
    nonnegative_fields_faults,
    pod_name_warnings,
)
from mooring.apiserver.strategy import StatusStrategy, Strategy, keep
from mooring.apiserver.tables.cells import age, bare_selector_text, containers_and_images, template_spec
from mooring.apiserver.tables.columns import AGE, NAME, Cell, KindTable, column
from mooring.apiserver.validation.fields import Fault, forbidden, invalid, not_supported, required
from mooring.apiserver.validation.values import means_the_same
from mooring.client.errors import BadRequestError

ROLLBACK_REVISION = "deprecated.deployment.rollback.revision"
PROGRESS_DEADLINE_S = 600

_COUNTS = (
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
    "collisionCount",
)


def default_deployment(obj: Document) -> None:
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


def check_rollback_revision(metadata: Document) -> None:
    """An annotation that kube-apiserver makes a number of on the way in."""
    revision = (metadata.get("annotations") or {}).get(ROLLBACK_REVISION)
    if revision and (fault := int64_fault(revision)):
        raise BadRequestError(
            'Deployment in version "v1" cannot be handled as a Deployment: '
            f"failed to parse annotation[{ROLLBACK_REVISION}]={revision} as int64: {fault}"
        )


def deployment_faults(spec: Document, old: Document | None, path: str) -> list[Fault]:
    faults = nonnegative_faults(spec.get("replicas"), f"{path}.replicas")
    faults += selected_template_faults(spec, old, path)
    faults += _deployment_strategy_faults(spec.get("strategy") or {}, f"{path}.strategy")
    faults += nonnegative_faults(spec.get("minReadySeconds"), f"{path}.minReadySeconds")
    faults += nonnegative_faults(spec.get("revisionHistoryLimit"), f"{path}.revisionHistoryLimit")
    deadline_s, here = spec.get("progressDeadlineSeconds"), f"{path}.progressDeadlineSeconds"
    if deadline_s is not None:
        faults += nonnegative_faults(deadline_s, here)
        if deadline_s <= spec.get("minReadySeconds", 0):
            faults.append(invalid(here, deadline_s, "must be greater than minReadySeconds"))
    return faults


def deployment_update_faults(spec: Document, old: Document, path: str) -> list[Fault]:
    faults = deployment_faults(spec, old, path)
    faults += immutable_selector_faults(spec.get("selector"), old.get("selector"), f"{path}.selector")
    return faults


def deployment_status_faults(status: Document, old: Document, path: str) -> list[Fault]:
    faults = nonnegative_fields_faults({name: status.get(name) for name in _COUNTS}, path)
    parts = ("updatedReplicas", "readyReplicas", "availableReplicas")
    faults += above_faults(status, parts, "replicas", ABOVE_REPLICAS, path)
    faults += above_faults(status, ("availableReplicas",), "readyReplicas", ABOVE_READY, path)
    faults += decremented_faults(status, old, path)
    return faults


def _deployment_strategy_faults(strategy: Document, path: str) -> list[Fault]:
    rolling = strategy.get("rollingUpdate")
    match strategy.get("type", ""):
        case "Recreate":
            if rolling is None:
                return []
            return [forbidden(f"{path}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")]
        case "RollingUpdate":
            if rolling is None:
                return [required(f"{path}.rollingUpdate", "this should be defaulted and never be nil")]
            return _deployment_rolling_update_faults(rolling, f"{path}.rollingUpdate")
        case other:
            shown = {"Type": other, "RollingUpdate": rolling_value(rolling)}
            return [not_supported(path, shown, ("Recreate", "RollingUpdate"))]


def _deployment_rolling_update_faults(rolling: Document, path: str) -> list[Fault]:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    here = f"{path}.maxUnavailable"
    faults = int_or_percent_faults(unavailable, here)
    faults += int_or_percent_faults(surge, f"{path}.maxSurge")
    if int_or_percent(unavailable) == 0 and int_or_percent(surge) == 0:
        faults.append(invalid(here, unavailable, "may not be 0 when `maxSurge` is 0"))
    faults += above_100_percent_faults(unavailable, here)
    return faults


def rolling_value(rolling: Document | None) -> Document | None:
    """How Go prints the settings of a rolling update."""
    if rolling is None:
        return None
    return {"MaxUnavailable": rolling.get("maxUnavailable", 0), "MaxSurge": rolling.get("maxSurge", 0)}


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


DEPLOYMENT_TABLE = KindTable(
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


class DeploymentStrategy(WorkloadStrategy):
    table = DEPLOYMENT_TABLE
    shares_parts = True

    @property
    def subresources(self) -> Mapping[str, Strategy]:
        return {"status": DeploymentStatusStrategy(self.kind, self)}

    def default(self, obj: Document) -> None:
        default_deployment(obj)

    def default_metadata(self, metadata: Document) -> None:
        check_rollback_revision(metadata)

    def count_generation(self, obj: Document, old: Document) -> None:
        """Annotations count too: they are copied to the replica sets."""
        metadata, old_metadata = obj["metadata"], old["metadata"]
        if (metadata.get("annotations") or {}) != (old_metadata.get("annotations") or {}) or not means_the_same(
            obj["spec"], old["spec"], "apps", "DeploymentSpec"
        ):
            metadata["generation"] = old_metadata.get("generation", 0) + 1

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return deployment_faults(obj["spec"], None, "spec")

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        spec, old_spec = obj["spec"], old["spec"]
        return deployment_update_faults(spec, old_spec, "spec") if spec is not old_spec else []

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return pod_name_warnings(obj["metadata"]["name"]) + super().warnings_on_create(obj, call)


class DeploymentStatusStrategy(StatusStrategy):
    reset_fields = (("spec",), ("metadata", "labels"))

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        super().prepare_for_update(obj, old, call)
        keep(obj["metadata"], old["metadata"], "labels")

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return deployment_status_faults(obj.get("status") or {}, old.get("status") or {}, "status")


STRATEGY = DeploymentStrategy
