"""PodDisruptionBudgets: which ones protect a pod, and how many disruptions they still allow.

Kubernetes has two rules, and both are needed:

                    selector {}     pod without labels    pod in status.disruptedPods
    PREEMPTION      no pod          not protected         does not count again            kube-scheduler
    EVICTION        every pod       as the selector says  counts                          kube-apiserver

1. A budget without a selector, or with an invalid one, protects no pod.
2. Budgets are compiled once for each version of the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from mooring.api.errors import LabelSelectorError
from mooring.api.labels import LabelMatcher, compile_selector
from mooring.api.views.workloads import PodDisruptionBudget
from mooring.scheduler.cache.objects import ObjectStore
from mooring.scheduler.cache.pods import PodInfo


class BudgetRule(Enum):
    """Whose rule decides which pods a budget protects."""

    PREEMPTION = "kube-scheduler"
    EVICTION = "kube-apiserver"


class CompiledBudget(NamedTuple):
    """A budget with a valid selector."""

    key: str
    matcher: LabelMatcher
    allowed: int
    disrupted: frozenset[str]

    def protects(self, pod: PodInfo, rule: BudgetRule) -> bool:
        labels = pod.signature.labels
        if rule is BudgetRule.EVICTION:
            return self.matcher.matches(labels)
        if not labels or self.matcher.matches_everything or pod.name in self.disrupted:
            return False
        return self.matcher.matches(labels)


def compile_budget(budget: PodDisruptionBudget) -> CompiledBudget | None:
    """None if the budget protects no pod."""
    if budget.spec.selector is None:
        return None
    try:
        matcher = compile_selector(budget.spec.selector)
    except LabelSelectorError:
        return None
    return CompiledBudget(
        budget.key, matcher, budget.status.disruptions_allowed, frozenset(budget.status.disrupted_pods)
    )


class DisruptionBudgets:
    """All budgets of a cluster."""

    def __init__(self, store: ObjectStore[PodDisruptionBudget]) -> None:
        self._store = store
        self._version = -1
        self._by_namespace: dict[str, list[CompiledBudget]] = {}

    @property
    def version(self) -> int:
        return self._store.version

    def protecting(self, pod: PodInfo, rule: BudgetRule) -> Iterator[CompiledBudget]:
        """The budgets that protect a pod."""
        if self._version != self._store.version:
            self._compile()
        for budget in self._by_namespace.get(pod.namespace, ()):
            if budget.protects(pod, rule):
                yield budget

    def count(self, rule: BudgetRule) -> BudgetCount:
        """A new count of disruptions, none of which has happened yet."""
        return BudgetCount(self, rule)

    def split(self, pods: Sequence[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """The pods whose preemption violates a budget, if all before them are preempted too, and the others."""
        count = self.count(BudgetRule.PREEMPTION)
        violating: list[PodInfo] = []
        others: list[PodInfo] = []
        for pod in pods:
            (violating if count.take(pod) else others).append(pod)
        return violating, others

    def _compile(self) -> None:
        self._version = self._store.version
        self._by_namespace = {}
        for budget in self._store:
            compiled = compile_budget(budget)
            if compiled is not None:
                self._by_namespace.setdefault(budget.metadata.namespace, []).append(compiled)


class BudgetCount:
    """The disruptions that budgets still allow, counted down."""

    def __init__(self, budgets: DisruptionBudgets, rule: BudgetRule) -> None:
        self._budgets = budgets
        self._rule = rule
        self._taken: dict[str, int] = {}

    def blocking(self, pod: PodInfo) -> tuple[str, ...]:
        """The budgets that do not allow the disruption of the pod now."""
        return tuple(
            budget.key
            for budget in self._budgets.protecting(pod, self._rule)
            if budget.allowed - self._taken.get(budget.key, 0) <= 0
        )

    def take(self, pod: PodInfo) -> tuple[str, ...]:
        """Count a disruption. Returns the budgets that it violates."""
        violated = self.blocking(pod)
        self._add(pod, 1)
        return violated

    def give_back(self, pod: PodInfo) -> None:
        """The pod runs again on another node."""
        self._add(pod, -1)

    def _add(self, pod: PodInfo, number: int) -> None:
        for budget in self._budgets.protecting(pod, self._rule):
            self._taken[budget.key] = self._taken.get(budget.key, 0) + number
