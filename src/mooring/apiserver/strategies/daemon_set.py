"""Daemon sets.

1. The generation of the template is the server's: an update cannot set it, and it grows when the template changes.
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.defaults.workloads import TEMPLATE_GENERATION, default_daemon_set
from mooring.apiserver.kinds.workloads import WorkloadStrategy
from mooring.apiserver.strategies.pod_warnings import pod_template_warnings
from mooring.apiserver.strategy import StatusStrategy, Strategy
from mooring.apiserver.validation.daemon_set import (
    daemon_set_faults,
    daemon_set_status_faults,
    daemon_set_update_faults,
)
from mooring.apiserver.validation.fields import Fault
from mooring.apiserver.validation.values import means_the_same


class DaemonSetStrategy(WorkloadStrategy):
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
