"""Controller revisions: written once, by the controllers of stateful sets and daemon sets."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.controller_revision import (
    controller_revision_faults,
    revision_data_faults,
    revision_number_faults,
)
from mooring.apiserver.validation.fields import Fault


class ControllerRevisionStrategy(Strategy):
    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return controller_revision_faults(obj)

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        faults = self.meta_faults(obj)
        faults += revision_number_faults(obj)
        faults += revision_data_faults(obj, old)
        return faults
