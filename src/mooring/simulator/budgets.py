"""PodDisruptionBudgets of a simulation, and their status at the engine level.

The cluster level has the disruption controller and the Eviction API. The engine level has neither, so `EngineBudgets`
computes the status with the plan of the disruption controller, and puts it into the columns, where preemption and
drains read it.

1. A pod of a budget is expected while it is pending or placed, and healthy while it is placed.
2. The status in the columns is that of the last `flush`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from mooring.api.decode import convert_as
from mooring.api.document import Document
from mooring.api.errors import LabelSelectorError
from mooring.api.labels import compile_selector
from mooring.api.views.workloads import PodDisruptionBudget
from mooring.controllers.disruption.plan import Scale, expected_pods, plan_status
from mooring.controllers.pod_indexes import PodGroup
from mooring.kit.clock import VirtualClock, format_rfc3339
from mooring.scheduler.cache.disruption_budgets import BudgetCount, BudgetRule, DisruptionBudgets
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.engine import Engine
from mooring.simulator.scenario.fields import APP, PodTemplatePart

NAMESPACE = "default"
"""Of the pods and budgets of a scenario."""


def budget_documents(groups: Iterable[PodTemplatePart]) -> list[Document]:
    """The budgets of the groups that have one."""
    found: list[Document] = []
    for group in groups:
        limits = {"minAvailable": group.min_available, "maxUnavailable": group.max_unavailable}
        given = {name: value for name, value in limits.items() if value is not None}
        if given:
            metadata = {"name": group.name, "namespace": NAMESPACE}
            spec = {**given, "selector": {"matchLabels": {APP: group.name}}}
            kind = {"apiVersion": PodDisruptionBudget.api_version, "kind": PodDisruptionBudget.kind}
            found.append({**kind, "metadata": metadata, "spec": spec})
    return found


@dataclass(slots=True)
class _TrackedBudget:
    view: PodDisruptionBudget
    matches: Callable[[Mapping[str, str]], bool]
    pods: PodGroup = field(default_factory=lambda: PodGroup({}, None))
    is_stale: bool = True


class EngineBudgets:
    """The budgets of an engine. False if there are none."""

    def __init__(self, engine: Engine, clock: VirtualClock, groups: Iterable[PodTemplatePart]) -> None:
        """Puts the budgets of the groups into the engine; it may have others, of a dump."""
        self._engine = engine
        self._clock = clock
        self._budgets: list[_TrackedBudget] = []
        self._of_signature: dict[bytes, list[_TrackedBudget]] = {}
        for document in budget_documents(groups):
            engine.put(convert_as(PodDisruptionBudget, document))
        for view in engine.columns.objects.of(PodDisruptionBudget):
            try:
                self._budgets.append(_TrackedBudget(view, compile_selector(view.spec.selector).matches))
            except LabelSelectorError:
                continue  # the disruption controller ignores it as well

    def __bool__(self) -> bool:
        return bool(self._budgets)

    def track(self, pod: PodInfo, *, is_healthy: bool) -> None:
        """The pod is pending, or it is placed."""
        for budget in self._of(pod):
            was_healthy = budget.pods.names.get(pod.key, False)
            budget.pods.names[pod.key] = is_healthy
            budget.pods.healthy += is_healthy - was_healthy
            budget.is_stale = True

    def untrack(self, pod: PodInfo) -> None:
        """The pod is gone."""
        for budget in self._of(pod):
            budget.pods.healthy -= budget.pods.names.pop(pod.key, False)
            budget.is_stale = True

    def flush(self) -> None:
        """Write the status of the budgets whose pods changed into the columns."""
        now = format_rfc3339(self._clock.wall_s())
        for budget in self._budgets:
            if budget.is_stale:
                budget.is_stale = False
                expected = expected_pods(budget.view, [budget.pods], {"": Scale("", len(budget.pods.names))})
                status = plan_status(budget.view, expected, budget.pods.healthy, {}, now)
                if status is not None:
                    budget.view = replace(budget.view, status=status)
                    self._engine.put(budget.view)

    def count_evictions(self) -> BudgetCount:
        """What the budgets allow now."""
        self.flush()
        return DisruptionBudgets(self._engine.columns.objects.of(PodDisruptionBudget)).count(BudgetRule.EVICTION)

    def _of(self, pod: PodInfo) -> list[_TrackedBudget]:
        key = pod.signature.key
        found = self._of_signature.get(key)
        if found is None:
            labels = pod.signature.labels
            found = self._of_signature[key] = [
                budget
                for budget in self._budgets
                if budget.view.metadata.namespace == pod.namespace and budget.matches(labels)
            ]
        return found
