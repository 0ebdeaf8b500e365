"""Replica sets."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.defaults.workloads import default_replica_set
from mooring.apiserver.kinds.workloads import WorkloadStrategy, pod_name_warnings
from mooring.apiserver.strategy import StatusStrategy, Strategy
from mooring.apiserver.validation.fields import Fault
from mooring.apiserver.validation.replica_set import (
    replica_set_faults,
    replica_set_status_faults,
    replica_set_update_faults,
)
from mooring.apiserver.validation.values import means_the_same


class ReplicaSetStrategy(WorkloadStrategy):
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
