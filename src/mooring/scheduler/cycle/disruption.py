"""Disruption budgets as preemption sees them: which victims would break a promise.

Comes in   PodDisruptionBudgets
Goes out   for a list of victims, most important first, those whose eviction would violate a budget

A budget with an empty selector, or one that nobody can read, protects nobody. A pod that the API server is disrupting
already is not counted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mooring.api.errors import LabelSelectorError
from mooring.api.labels import LabelMatcher, compile_selector
from mooring.api.views.workloads import PodDisruptionBudget
from mooring.scheduler.cache.objects import ObjectStore
from mooring.scheduler.cache.pods import PodInfo


class _Budget(NamedTuple):
    namespace: str
    matcher: LabelMatcher
    allowed: int
    disrupted: frozenset[str]


class Budgets:
    """All budgets, compiled once for each state of the cluster."""

    def __init__(self, store: ObjectStore[PodDisruptionBudget]) -> None:
        self._store = store
        self._version = -1
        self._by_namespace: dict[str, list[_Budget]] = {}

    @property
    def version(self) -> int:
        return self._store.version

    def split(self, pods: Sequence[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """The pods whose eviction violates a budget, if all before them are evicted too, and the others."""
        self._compile()
        left: dict[int, int] = {}
        violating: list[PodInfo] = []
        others: list[PodInfo] = []
        for pod in pods:
            violates = False
            for budget in self._by_namespace.get(pod.namespace, ()) if pod.signature.labels else ():
                if pod.name in budget.disrupted or not budget.matcher.matches(pod.signature.labels):
                    continue
                left[id(budget)] = left.get(id(budget), budget.allowed) - 1
                violates = violates or left[id(budget)] < 0
            (violating if violates else others).append(pod)
        return violating, others

    def _compile(self) -> None:
        if self._version == self._store.version:
            return
        self._version = self._store.version
        self._by_namespace = {}
        for budget in self._store:
            try:
                matcher = compile_selector(budget.spec.selector)
            except LabelSelectorError:
                continue
            if not matcher.matches_everything:
                compiled = _Budget(
                    budget.metadata.namespace,
                    matcher,
                    budget.status.disruptions_allowed,
                    frozenset(budget.status.disrupted_pods),
                )
                self._by_namespace.setdefault(compiled.namespace, []).append(compiled)
