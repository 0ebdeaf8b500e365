"""Where pods would go, and how many more fit: decides for one pod after the other, each with the pods before it placed.

1. Pods are decided in queue order: by priority, then in the order in which they are given. As in the scheduler, a pod
   that was rejected by a plugin which waits for other pods, such as required affinity, is tried again after others got
   a node.
2. A pod that preempts gets its node after its victims are gone, as in a cluster. The victims are reported; what their
   controllers create in their place is not placed.
3. The capacity for pods is found with copies of them, placed in the given ratio until one gets no node. Pods are never
   preempted for a copy.
4. Functions that decide or change something are generators (`slices`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from mooring.api.views.pod import Pod
from mooring.scheduler.cache.disruption_budgets import BudgetCount, BudgetRule
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.decision import Decision, PreemptionPlan
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.events import ActionType, EventResource
from mooring.scheduler.plan.request import CAPACITY_MAX, CapacityAnswer, PendingPod, Placement, PlannedVictim
from mooring.scheduler.plan.slices import Slices
from mooring.scheduler.plan.what_if import WhatIf

ROUNDS_MAX = 20
"""How often a pod is tried that waits for other pods."""
_POD_RESOURCES = (EventResource.ASSIGNED_POD, EventResource.WILDCARD)


@dataclass(slots=True)
class Placed:
    """The outcome of placing pods."""

    placements: list[Placement] = field(default_factory=list)
    pending: list[PendingPod] = field(default_factory=list)


def in_queue_order(pods: Iterable[PodInfo]) -> list[PodInfo]:
    """By priority. Sorting keeps the order of equal ones."""
    return sorted(pods, key=lambda pod: -pod.priority)


def place_pods(what_if: WhatIf, pods: Sequence[PodInfo]) -> Slices[Placed]:
    """Decide for pods, in queue order."""
    placed = Placed()
    outcomes: dict[int, PendingPod] = {}
    tried = list(enumerate(in_queue_order(pods)))
    for _ in range(ROUNDS_MAX):
        count_before = len(placed.placements)
        again: list[tuple[int, PodInfo]] = []
        for number, pod in tried:
            outcome, decision = yield from _decide_and_place(what_if, pod)
            if isinstance(outcome, Placement):
                placed.placements.append(outcome)
                outcomes.pop(number, None)
                continue
            outcomes[number] = outcome
            if decision is not None and _waits_for_pods(what_if.engine, decision):
                again.append((number, pod))
        if not again or len(placed.placements) == count_before:
            break
        tried = again
    placed.pending += outcomes.values()
    return placed


def _waits_for_pods(engine: Engine, decision: Decision) -> bool:
    """Whether a plugin that rejected the pod may accept it after another pod got a node."""
    plugins = engine.cycle_for(decision.pod).profile.plugins
    return any(
        event.resource in _POD_RESOURCES and event.action_type & ActionType.ADD
        for name in decision.rejecting_plugins
        if name in plugins
        for event in plugins[name].events_to_register()
    )


def place_pod(what_if: WhatIf, pod: PodInfo, moved_from: str = "") -> Slices[Placement | PendingPod]:
    """Decide for one pod, and assume the decision."""
    outcome, _ = yield from _decide_and_place(what_if, pod, moved_from)
    return outcome


def _decide_and_place(
    what_if: WhatIf, pod: PodInfo, moved_from: str = ""
) -> Slices[tuple[Placement | PendingPod, Decision | None]]:
    yield
    if not what_if.engine.is_responsible_for(pod):
        text = f"waits for scheduler {pod.signature.scheduler_name}"
        return PendingPod(pod.key, text, moved_from=moved_from), None
    decision = what_if.decide(pod)
    victims: tuple[PlannedVictim, ...] = ()
    if decision.preemption is not None:
        victims = victims_of(what_if, decision.preemption)
        for victim in decision.preemption.victims:
            yield
            what_if.evict(victim)
        yield
        what_if.nominate(pod, decision.preemption.node_name)
        decision = what_if.decide(pod)
    if decision.node_name is None:
        return pending_pod(decision, moved_from), decision
    status = what_if.place(decision)
    if status is not None:
        return PendingPod(pod.key, f"{status.plugin}: {status.message}", moved_from=moved_from), decision
    score = decision.best_nodes[0].total if decision.best_nodes else None
    return Placement(pod.key, decision.node_name, score, moved_from, victims), decision


def without_preemption(engine: Engine, view: Pod) -> PodInfo:
    """A pending pod for which nothing is preempted."""
    return engine.record(replace(view, spec=replace(view.spec, preemption_policy="Never")))


def pending_pod(decision: Decision, moved_from: str = "") -> PendingPod:
    message = decision.message
    if message is None:
        message = decision.status.message if decision.status is not None else "no reason is known"
    return PendingPod(decision.pod.key, message, reasons_of(decision), moved_from)


def reasons_of(decision: Decision) -> dict[str, int]:
    """How many nodes gave each reason, most frequent first."""
    counts: Counter[str] = Counter()
    for rejection in decision.rejections:
        counts[rejection.reason] += rejection.nodes
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


def eviction_budgets(what_if: WhatIf) -> BudgetCount:
    """The evictions that the API server would allow."""
    return what_if.budgets.count(BudgetRule.EVICTION)


def victims_of(what_if: WhatIf, plan: PreemptionPlan) -> tuple[PlannedVictim, ...]:
    budgets = what_if.budgets.count(BudgetRule.PREEMPTION)
    return tuple(PlannedVictim(pod.key, pod.priority, budgets.take(pod)) for pod in plan.victims)


def capacity_for(what_if: WhatIf, pods: Sequence[Pod], ratio: Sequence[int]) -> Slices[CapacityAnswer]:
    """Place groups of pods until one does not fit. A group that does not fit as a whole does not count."""
    group = [view for view, count in zip(pods, ratio, strict=True) for _ in range(count)]
    keys = [view.key for view in group]
    per_group = Counter(keys)
    groups = 0
    while (groups + 1) * len(group) <= CAPACITY_MAX and not what_if.is_full:
        failed: Decision | None = None
        for index, view in enumerate(group):
            yield
            decision = what_if.decide(_copy(what_if, view, groups * len(group) + index))
            status = what_if.place(decision) if decision.node_name is not None else decision.status
            if decision.node_name is None or status is not None:
                failed = decision
                break
        if failed is not None:
            return _capacity(groups, per_group, failed)
        groups += 1
    return CapacityAnswer(groups, _counted(groups, per_group), is_limit_reached=True)


def _copy(what_if: WhatIf, view: Pod, number: int) -> PodInfo:
    name = f"{view.metadata.name}-{number}"
    copy = replace(view, metadata=replace(view.metadata, name=name, uid=""))
    return without_preemption(what_if.engine, copy)


def _capacity(groups: int, per_group: Counter[str], failed: Decision) -> CapacityAnswer:
    reasons = reasons_of(failed)
    return CapacityAnswer(groups, _counted(groups, per_group), limited_by=next(iter(reasons), ""), reasons=reasons)


def _counted(groups: int, per_group: Counter[str]) -> dict[str, int]:
    return {key: groups * count for key, count in per_group.items()}
