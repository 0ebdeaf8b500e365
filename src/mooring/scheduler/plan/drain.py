"""What the removal of nodes does: where the evicted pods go, which budgets block the drain, and a safe order.

All nodes are cordoned first, as `kubectl drain` does, so that no pod moves to a node that is removed next.

1. A node is safe to drain if all its pods find another node and no disruption budget blocks an eviction. An evicted
   pod counts against its budgets until its replacement has a node.
2. Safe nodes come first: a node that is not safe is tried again after each safe one, and drained last.
3. Pods are evicted in the order of their priority, and each is placed before the next is evicted.
4. A pod whose budget blocks its eviction stays, and is reported; the plan goes on as if it had been deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from mooring.scheduler.cache.disruption_budgets import BudgetCount
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.plan.place import Placed, eviction_budgets, in_queue_order, place_pod
from mooring.scheduler.plan.replacement import RemovalOutcome, fate_of, replacement_of
from mooring.scheduler.plan.request import DrainedNode, Placement
from mooring.scheduler.plan.slices import Slices
from mooring.scheduler.plan.what_if import WhatIf


@dataclass(slots=True)
class Drained:
    """The outcome of draining nodes, in order."""

    nodes: list[DrainedNode] = field(default_factory=list)
    placed: Placed = field(default_factory=Placed)


def remove_nodes(what_if: WhatIf, names: Sequence[str]) -> Slices[Drained]:
    """Drain and remove nodes, the safe ones first."""
    drained, budgets = Drained(), eviction_budgets(what_if)
    for name in names:
        yield
        cordon(what_if, name)
    waiting, is_last_round = list(names), False
    while waiting:
        unsafe: list[str] = []
        for name in waiting:
            mark = what_if.mark()
            outcome = yield from drain_node(what_if, name, budgets)
            if outcome.node.is_safe or is_last_round:
                drained.nodes.append(outcome.node)
                drained.placed.placements += outcome.placed.placements
                drained.placed.pending += outcome.placed.pending
            else:
                yield from outcome.undo(what_if, mark, budgets)
                unsafe.append(name)
        is_last_round = len(unsafe) == len(waiting)
        waiting = unsafe
    return drained


def cordon(what_if: WhatIf, name: str) -> None:
    node = what_if.node(name)
    what_if.put_node(replace(node, spec=replace(node.spec, unschedulable=True)))


@dataclass(slots=True)
class DrainOutcome:
    """The outcome of draining one node."""

    node: DrainedNode
    placed: Placed
    without_replacement: list[PodInfo]
    """The evicted pods that count against their budgets, because nothing replaces them yet."""

    def undo(self, what_if: WhatIf, mark: int, budgets: BudgetCount) -> Slices[None]:
        yield from what_if.undo_in_slices(mark)
        for pod in self.without_replacement:
            budgets.give_back(pod)


def drain_node(what_if: WhatIf, name: str, budgets: BudgetCount) -> Slices[DrainOutcome]:
    """Evict the pods of a cordoned node, place their replacements, and remove the node."""
    yield
    placed = Placed()
    by_fate: dict[RemovalOutcome, list[PodInfo]] = {fate: [] for fate in RemovalOutcome}
    blocked: list[str] = []
    without_replacement: list[PodInfo] = []
    for pod in in_queue_order(sorted(what_if.pods_on(name), key=lambda pod: pod.key)):
        yield
        fate = fate_of(pod)
        by_fate[fate].append(pod)
        if fate is not RemovalOutcome.ENDS:
            blocked += [f"PodDisruptionBudget {budget} blocks {pod.key}" for budget in budgets.take(pod)]
            without_replacement.append(pod)
        what_if.evict(pod)
        if fate is RemovalOutcome.MOVES:
            outcome = yield from place_pod(what_if, replacement_of(what_if.engine, pod, what_if.claims_of(pod)), name)
            if isinstance(outcome, Placement):
                placed.placements.append(outcome)
                budgets.give_back(without_replacement.pop())
            else:
                placed.pending.append(outcome)
    yield
    what_if.remove_node(name)
    lost = _keys(by_fate[RemovalOutcome.IS_LOST])
    node = DrainedNode(
        name,
        is_safe=not (blocked or placed.pending or lost),
        pods=len(by_fate[RemovalOutcome.MOVES]),
        ends=_keys(by_fate[RemovalOutcome.ENDS]),
        lost=lost,
        blocked=tuple(blocked),
    )
    return DrainOutcome(node, placed, without_replacement)


def _keys(pods: Sequence[PodInfo]) -> tuple[str, ...]:
    return tuple(pod.key for pod in pods)
