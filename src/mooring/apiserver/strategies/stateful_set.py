"""Stateful sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.defaults.workloads import default_stateful_set
from mooring.apiserver.kinds.persistent_volume_claim import claim_spec_warnings
from mooring.apiserver.kinds.workloads import WorkloadStrategy
from mooring.apiserver.strategy import StatusStrategy, Strategy
from mooring.apiserver.validation.fields import Fault
from mooring.apiserver.validation.metadata import name_is_dns_label
from mooring.apiserver.validation.stateful_set import (
    stateful_set_collision_faults,
    stateful_set_faults,
    stateful_set_status_faults,
    stateful_set_update_faults,
)
from mooring.apiserver.validation.values import means_the_same

_KEEPS_ALL = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"


class StatefulSetStrategy(WorkloadStrategy):
    @property
    def subresources(self) -> Mapping[str, Strategy]:
        return {"status": StatefulSetStatusStrategy(self.kind, self)}

    def name_faults(self, name: str, is_prefix: bool) -> Sequence[str]:
        return name_is_dns_label(name, is_prefix)

    def empty_status(self) -> Document:
        return {"replicas": 0, "availableReplicas": 0}

    def default(self, obj: Document) -> None:
        default_stateful_set(obj)

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        super().prepare_for_create(obj, call)
        _drop_disabled_fields(obj, None)

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        _drop_disabled_fields(obj, old)
        super().prepare_for_update(obj, old, call)

    def count_generation(self, obj: Document, old: Document) -> None:
        if not means_the_same(obj["spec"], old["spec"], "apps", "StatefulSetSpec"):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return stateful_set_faults(obj["spec"], "spec")

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return stateful_set_update_faults(obj["spec"], old["spec"], "spec")

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return super().warnings_on_create(obj, call) + _own_warnings(obj["spec"], "")

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        # kube-apiserver spells the path of a claim's spec with a capital here.
        return super().warnings_on_update(obj, old, call) + _own_warnings(obj["spec"], ".Spec")


class StatefulSetStatusStrategy(StatusStrategy):
    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        status, old_status = obj.get("status") or {}, old.get("status") or {}
        faults = stateful_set_status_faults(status, "status")
        faults += self.meta_update_faults(obj, old)
        faults += stateful_set_collision_faults(status, old_status, "status")
        return faults


def _drop_disabled_fields(obj: Document, old: Document | None) -> None:
    """`maxUnavailable` waits behind a feature gate, unless the object already has it."""
    rolling = obj["spec"]["updateStrategy"].get("rollingUpdate")
    if rolling is None or "maxUnavailable" not in rolling:
        return
    had = (old["spec"]["updateStrategy"].get("rollingUpdate") or {}) if old is not None else {}
    if "maxUnavailable" not in had:
        del rolling["maxUnavailable"]


def _own_warnings(spec: Document, suffix: str) -> list[str]:
    warnings: list[str] = []
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        warnings += claim_spec_warnings(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}]{suffix}")
    if (spec.get("revisionHistoryLimit") or 0) < 0:
        warnings.append(_KEEPS_ALL)
    return warnings
