"""Plans that evict pods, which their controllers create again on other nodes: draining and defragmenting.

Draining removes nodes: where the evicted pods go, which budgets block the drain, and a safe order. All nodes are
cordoned first, as `kubectl drain` does, so that no pod moves to a node that is removed next.

1. A node is safe to drain if all its pods find another node and no disruption budget blocks an eviction. An evicted
   pod counts against its budgets until its replacement has a node.
2. Safe nodes come first: a node that is not safe is tried again after each safe one, and drained last.
3. Pods are evicted in the order of their priority, and each is placed before the next is evicted.
4. A pod whose budget blocks its eviction stays, and is reported; the plan continues as if it had been deleted.

Defragmenting lists moves that empty nodes, or make room for a pod, in the order in which they can be carried out.

5. Without a pod: nodes are emptied, those with the lowest requested share first, as long as the others can take their
   pods. They and the empty nodes are cordoned first: otherwise the scheduler, which prefers free nodes, would fill them
   again. `Defragmented.cordoned` lists them. So no pod moves twice.
6. For a pod: the node where the fewest moves make room. Pods are moved in the order of their size, largest first, until
   the pod fits; then those that need not move are put back.
7. A move never violates a disruption budget, and only pods with a controller move. No move makes another pod pending.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from mooring.scheduler.cache.disruption_budgets import BudgetCount
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cache.resources import CPU, MEMORY
from mooring.scheduler.cycle.explain import explain
from mooring.scheduler.plan.new_objects import RemovalOutcome, removal_outcome, replacement_of
from mooring.scheduler.plan.place import Placed, eviction_budgets, in_queue_order, place_pod
from mooring.scheduler.plan.request import DrainedNode, Move, Placement, Usage
from mooring.scheduler.plan.slices import Slices
from mooring.scheduler.plan.what_if import WhatIf

NODES_TRIED_MAX = 50
"""For a pod: how many of the nearest nodes are tried."""
FAILURES_MAX = 20
"""Without a pod: after so many nodes in a row that cannot be emptied, no other is tried."""


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
    by_outcome: dict[RemovalOutcome, list[PodInfo]] = {removal: [] for removal in RemovalOutcome}
    blocked: list[str] = []
    without_replacement: list[PodInfo] = []
    for pod in in_queue_order(sorted(what_if.pods_on(name), key=lambda pod: pod.key)):
        yield
        removal = removal_outcome(pod)
        by_outcome[removal].append(pod)
        if removal is not RemovalOutcome.ENDS:
            blocked += [f"PodDisruptionBudget {budget} blocks {pod.key}" for budget in budgets.take(pod)]
            without_replacement.append(pod)
        what_if.evict(pod)
        if removal is RemovalOutcome.MOVES:
            outcome = yield from place_pod(what_if, replacement_of(what_if.engine, pod, what_if.claims_of(pod)), name)
            if isinstance(outcome, Placement):
                placed.placements.append(outcome)
                budgets.give_back(without_replacement.pop())
            else:
                placed.pending.append(outcome)
    yield
    what_if.remove_node(name)
    lost = _keys(by_outcome[RemovalOutcome.IS_LOST])
    node = DrainedNode(
        name,
        is_safe=not (blocked or placed.pending or lost),
        pods=len(by_outcome[RemovalOutcome.MOVES]),
        ends=_keys(by_outcome[RemovalOutcome.ENDS]),
        lost=lost,
        blocked=tuple(blocked),
    )
    return DrainOutcome(node, placed, without_replacement)


def _keys(pods: Sequence[PodInfo]) -> tuple[str, ...]:
    return tuple(pod.key for pod in pods)


@dataclass(slots=True)
class Defragmented:
    moves: list[Move] = field(default_factory=list)
    cordoned: list[str] = field(default_factory=list)
    """The nodes that must be cordoned before the moves."""


def empty_nodes(what_if: WhatIf, moves_max: int) -> Slices[Defragmented]:
    """Moves that empty nodes, at most `moves_max`."""
    engine = what_if.engine
    used = yield from _used_nodes(what_if)
    empty = sorted(engine.columns.row_of.keys() - used)
    emptied: list[str] = []
    best = Defragmented()
    failures = 0
    for name in empty:
        yield
        cordon(what_if, name)
    mark = what_if.mark()
    for name in _by_use(what_if, used):
        yield
        outcomes = [removal_outcome(pod) for pod in what_if.pods_on(name)]
        if RemovalOutcome.IS_LOST in outcomes or len(best.moves) + outcomes.count(RemovalOutcome.MOVES) > moves_max:
            continue
        moves = yield from _empty(what_if, [*emptied, name])
        yield from what_if.undo_in_slices(mark)
        if moves is not None:
            emptied.append(name)
            best = Defragmented(moves, [*empty, *emptied])
            failures = 0
            continue
        failures += 1
        if failures == FAILURES_MAX:
            break
    # Once more for the caller, who looks at the cluster after the moves.
    yield from _empty(what_if, emptied)
    return best


def _empty(what_if: WhatIf, names: Sequence[str]) -> Slices[list[Move] | None]:
    """Cordon nodes, and move all their pods; None if a pod cannot move."""
    budgets = eviction_budgets(what_if)
    for name in names:
        yield
        cordon(what_if, name)
    moves: list[Move] = []
    for name in names:
        for pod in _pods_on(what_if, name):
            if removal_outcome(pod) is not RemovalOutcome.MOVES:
                continue
            if budgets.blocking(pod):
                return None
            what_if.evict(pod)
            move = yield from _place_replacement(what_if, pod, name)
            if move is None:
                return None
            moves.append(move)
    return moves


def move_pods_for(what_if: WhatIf, pod: PodInfo, moves_max: int) -> Slices[tuple[list[Move], str] | None]:
    """The fewest moves after which the pod fits, and the node it gets. None if no node can make room."""
    yield
    engine = what_if.engine
    decision = what_if.decide(pod)
    if decision.node_name is not None:
        return [], decision.node_name
    profile = engine.cycle_for(pod).profile
    best: tuple[list[Move], str] | None = None
    for name in explain(profile, engine.columns, pod, nearest_max=NODES_TRIED_MAX).nearest:
        limit = min(moves_max, len(best[0]) - 1) if best is not None else moves_max
        if limit < 1:
            break
        mark = what_if.mark()
        found = yield from _move_pods_from(what_if, pod, name, limit)
        yield from what_if.undo_in_slices(mark)
        if found is not None:
            best = found, name
    if best is None:
        return None
    # Apply the best moves again, so that the caller sees the cluster after them.
    yield from _move_pods_from(what_if, pod, best[1], len(best[0]))
    return best


def usage(what_if: WhatIf, pending: int = 0) -> Slices[Usage]:
    used = yield from _used_nodes(what_if)
    node_count = what_if.engine.columns.node_count
    return Usage(node_count, node_count - len(used), pending)


def _move_pods_from(what_if: WhatIf, pod: PodInfo, name: str, limit: int) -> Slices[list[Move] | None]:
    """Move the fewest pods away from a node until the pod fits there."""
    budgets = eviction_budgets(what_if)
    movable = [
        candidate
        for candidate in _pods_on(what_if, name)
        if removal_outcome(candidate) is RemovalOutcome.MOVES and not budgets.blocking(candidate)
    ]
    movable.sort(key=lambda candidate: (-_share(what_if, candidate, name), candidate.key))
    evicted: list[PodInfo] = []
    mark = what_if.mark()
    for candidate in movable:
        if (yield from _fits(what_if, pod, name)):
            break
        if len(evicted) == limit:
            return None
        what_if.evict(candidate)
        evicted.append(candidate)
    if not (yield from _fits(what_if, pod, name)):
        return None
    needed = yield from _needed_evictions(what_if, pod, name, evicted, mark)
    placed = what_if.decide(pod)
    if placed.node_name is None or what_if.place(placed) is not None:
        return None
    moves: list[Move] = []
    for victim in needed:
        move = yield from _place_replacement(what_if, victim, name)
        if move is None:
            return None
        moves.append(move)
    return moves


def _needed_evictions(
    what_if: WhatIf, pod: PodInfo, name: str, evicted: list[PodInfo], mark: int
) -> Slices[list[PodInfo]]:
    """The evicted pods without which the pod does not fit: the others are put back, smallest first."""
    needed = list(evicted)
    for victim in reversed(evicted):
        fewer = [other for other in needed if other is not victim]
        yield from what_if.undo_in_slices(mark)
        for other in fewer:
            yield
            what_if.evict(other)
        if (yield from _fits(what_if, pod, name)):
            needed = fewer
    yield from what_if.undo_in_slices(mark)
    for victim in needed:
        yield
        what_if.evict(victim)
    return needed


def _fits(what_if: WhatIf, pod: PodInfo, name: str) -> Slices[bool]:
    yield
    return what_if.decide(pod).node_name == name


def _place_replacement(what_if: WhatIf, pod: PodInfo, from_node: str) -> Slices[Move | None]:
    """Place the replacement of an evicted pod; None if it gets no node."""
    yield
    decision = what_if.decide(replacement_of(what_if.engine, pod, what_if.claims_of(pod)))
    if decision.node_name is None or what_if.place(decision) is not None:
        return None
    return Move(pod.key, from_node, decision.node_name)


def _pods_on(what_if: WhatIf, name: str) -> list[PodInfo]:
    return sorted(what_if.pods_on(name), key=lambda pod: (-pod.priority, pod.key))


def _used_nodes(what_if: WhatIf) -> Slices[set[str]]:
    """The nodes with pods that do not end with their node."""
    used: set[str] = set()
    for name in list(what_if.engine.columns.row_of):
        yield
        if any(removal_outcome(pod) is not RemovalOutcome.ENDS for pod in what_if.pods_on(name)):
            used.add(name)
    return used


def _by_use(what_if: WhatIf, names: Iterable[str]) -> list[str]:
    """Nodes with the lowest requested share first."""

    def share(name: str) -> float:
        offered, used = what_if.engine.columns.resources.at(what_if.row_of(name))
        return max(used[index] / max(offered[index], 1) for index in (CPU, MEMORY))

    return sorted(names, key=lambda name: (share(name), name))


def _share(what_if: WhatIf, pod: PodInfo, node_name: str) -> float:
    offered, _ = what_if.engine.columns.resources.at(what_if.row_of(node_name))
    vector = pod.signature.request_vector
    return max(int(vector[index]) / max(offered[index], 1) for index in (CPU, MEMORY))
