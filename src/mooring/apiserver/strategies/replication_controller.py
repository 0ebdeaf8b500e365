"""ReplicationControllers: what is special about them.

Comes in   controllers, whole or through `status`
Goes out   the same, prepared; faults; warnings

 1. A controller that is deleted leaves its pods behind, as it did before there was a garbage collector.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.apiserver.call import Call
from mooring.apiserver.defaults.replication_controller import default_replication_controller
from mooring.apiserver.strategies.pod_disabled import drop_disabled_template_fields
from mooring.apiserver.strategies.pod_warnings import name_warnings, pod_template_warnings
from mooring.apiserver.strategy import Dependents, StatusStrategy, Strategy, keep
from mooring.apiserver.validation.fields import Fault
from mooring.apiserver.validation.replication_controller import (
    non_convertible_faults,
    replication_controller_faults,
    replication_controller_status_faults,
)
from mooring.apiserver.validation.values import means_the_same


class ReplicationControllerStrategy(Strategy):
    """How replication controllers are created, changed and selected."""

    dependents: ClassVar[Dependents] = Dependents.ORPHAN

    def __init__(self, kind: Kind) -> None:
        super().__init__(kind)
        self._subresources = {"status": ReplicationControllerStatusStrategy(kind, self)}

    @property
    def subresources(self) -> Mapping[str, Strategy]:
        return self._subresources

    def default(self, obj: Document) -> None:
        default_replication_controller(obj)

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        obj["metadata"]["generation"] = 1
        obj["status"] = {"replicas": 0}
        drop_disabled_template_fields(obj["spec"].get("template"), None)

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return replication_controller_faults(obj["spec"], None)

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        use = "this is used in Pod names and hostnames, which can result in surprising behavior"
        warnings = name_warnings(obj["metadata"].get("name", ""), use)
        return warnings + pod_template_warnings(obj["spec"].get("template"), "spec.template")

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj, old, "status")
        drop_disabled_template_fields(obj["spec"].get("template"), old["spec"].get("template"))
        self.count_generation(obj, old)

    def count_generation(self, obj: Document, old: Document) -> None:
        if not means_the_same(obj["spec"], old["spec"], "core", "ReplicationControllerSpec"):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return replication_controller_faults(obj["spec"], old["spec"]) + non_convertible_faults(obj, old)

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        """Kubernetes warns about the old template here, not about the new one."""
        if obj["metadata"].get("generation") == old["metadata"].get("generation"):
            return []
        return pod_template_warnings(old["spec"].get("template"), "spec.template")

    def selectable_fields(self, obj: Document) -> dict[str, str]:
        return {"status.replicas": str((obj.get("status") or {}).get("replicas", 0))}


class ReplicationControllerStatusStrategy(StatusStrategy):
    """How the controller manager writes the status."""

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return replication_controller_status_faults(obj.get("status") or {})
