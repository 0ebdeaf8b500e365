"""Deployments."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.defaults.workloads import check_rollback_revision, default_deployment
from mooring.apiserver.kinds.workloads import WorkloadStrategy, pod_name_warnings
from mooring.apiserver.strategy import StatusStrategy, Strategy, keep
from mooring.apiserver.validation.deployment import (
    deployment_faults,
    deployment_status_faults,
    deployment_update_faults,
)
from mooring.apiserver.validation.fields import Fault
from mooring.apiserver.validation.values import means_the_same


class DeploymentStrategy(WorkloadStrategy):
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
