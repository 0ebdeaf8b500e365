"""Nodes: the one kind whose status a creator may bring along.

Comes in   a node, written as a whole or through `status`
Goes out   the same, prepared and judged

 1. A kubelet registers a node together with its status; afterwards the status has its own door.
 2. `podCIDR` and the first of `podCIDRs` are one thing under two names: whichever is missing is filled in.
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.defaults.node import default_node
from mooring.apiserver.strategy import StatusStrategy, Strategy, keep
from mooring.apiserver.validation.addresses import range_warnings
from mooring.apiserver.validation.fields import Fault
from mooring.apiserver.validation.node import node_faults, node_update_faults


class NodeStrategy(Strategy):
    """Writing a node."""

    shares_parts = True

    @property
    def subresources(self) -> Mapping[str, Strategy]:
        return {"status": NodeStatusStrategy(self.kind, self)}

    def default(self, obj: Document) -> None:
        default_node(obj)

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        obj["spec"].pop("configSource", None)
        obj["status"].pop("config", None)

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return node_faults(obj)

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj, old, "status")
        if "configSource" not in old["spec"]:
            obj["spec"].pop("configSource", None)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        faults = self.meta_faults(obj, old)
        faults += node_faults(obj)
        faults += self.meta_update_faults(obj, old)
        return faults + node_update_faults(obj, old)

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        spec = obj["spec"]
        warnings = []
        if "configSource" in spec:
            warnings.append("spec.configSource: the feature is removed")
        if spec.get("externalID"):
            warnings.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
        for index, value in enumerate(spec.get("podCIDRs") or ()):
            warnings += range_warnings(value, f"spec.podCIDRs[{index}]")
        return warnings

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        return self.warnings_on_create(obj, call)

    def selectable_fields(self, obj: Document) -> dict[str, str]:
        return {"spec.unschedulable": "true" if obj["spec"].get("unschedulable") else "false"}


class NodeStatusStrategy(StatusStrategy):
    """Writing the status."""

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj, old, "spec")
        if "config" not in old["status"]:
            obj["status"].pop("config", None)

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return node_update_faults(obj, old)
