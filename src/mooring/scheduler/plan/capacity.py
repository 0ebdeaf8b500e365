"""How many more of the given pods fit, and what runs out first.

Copies of the pods are placed one after the other, in the given ratio, until one of a group gets no node. Pods are
never preempted for a copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from mooring.api.views.pod import Pod
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.plan.place import reasons_of, without_preemption
from mooring.scheduler.plan.request import CAPACITY_MAX, CapacityAnswer
from mooring.scheduler.plan.slices import Slices
from mooring.scheduler.plan.what_if import WhatIf


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
