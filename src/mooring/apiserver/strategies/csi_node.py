"""CSINodes: which drivers run on a node."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.csi_node import csi_node_faults, csi_node_update_faults
from mooring.apiserver.validation.fields import Fault


class CSINodeStrategy(Strategy):
    allows_unconditional_update = False

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return csi_node_faults(obj["spec"], "spec")

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        """As a new object, then as a change."""
        faults = self.meta_faults(obj)
        faults += csi_node_faults(obj["spec"], "spec")
        return faults + csi_node_update_faults(obj["spec"], old["spec"], "spec")
