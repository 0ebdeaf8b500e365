"""Pod disruption budgets.

1. Their own rules do not look at the metadata: any name will do that can stand in an address.
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.strategy import StatusStrategy, Strategy
from mooring.apiserver.validation.disruption_budget import (
    disruption_budget_faults,
    disruption_budget_status_faults,
)
from mooring.apiserver.validation.fields import Fault


class DisruptionBudgetStrategy(Strategy):
    allows_unconditional_update = False
    validates_metadata = False

    @property
    def subresources(self) -> Mapping[str, Strategy]:
        return {"status": DisruptionBudgetStatusStrategy(self.kind, self)}

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        super().prepare_for_create(obj, call)
        obj["status"] = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}

    def validate(self, obj: Document, call: Call) -> list[Fault]:
        return disruption_budget_faults(obj["spec"], None, "spec")

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return disruption_budget_faults(obj["spec"], old["spec"], "spec")


class DisruptionBudgetStatusStrategy(StatusStrategy):
    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return disruption_budget_status_faults(obj.get("status") or {}, "status")
