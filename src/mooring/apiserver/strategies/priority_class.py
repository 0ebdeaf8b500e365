"""Priority classes.

1. The generation is 1 and stays 1: nothing that matters can be changed.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.defaults.small_kinds import default_priority_class
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.fields import Fault
from mooring.apiserver.validation.priority_class import priority_class_faults, priority_class_update_faults


class PriorityClassStrategy(Strategy):
    def default(self, obj: Document) -> None:
        default_priority_class(obj)

    def count_generation(self, obj: Document, old: Document) -> None:
        pass

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return priority_class_faults(obj)

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return priority_class_update_faults(obj, old)
