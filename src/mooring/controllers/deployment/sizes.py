"""How many pods a Deployment may have, and how many each of its ReplicaSets gets. Plain arithmetic.

Comes in   a Deployment, and its ReplicaSets: the new one, whose template is the wanted one, and the old ones
Goes out   numbers, and `Resize`: which ReplicaSet gets which size

 1. Never more than replicas + maxSurge pods are asked for, and never fewer than replicas - maxUnavailable are left
    available. Percentages of the surge are rounded up, of the unavailable down; if both come to nothing, one may be
    unavailable, or nothing would ever move.
 2. Of old ReplicaSets the pods that are not available go first: they serve nobody.
 3. A Deployment that is scaled in the middle of a rollout shares the difference out in proportion to the sizes. What
    rounding leaves goes to the largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mooring.api.views.workloads import Deployment, ReplicaSet
from mooring.controllers.replicas import replicas_of, scaled_value

ROLLING_UPDATE = "RollingUpdate"
RECREATE = "Recreate"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"

_INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Resize:
    """A ReplicaSet gets another size; its annotations say for which size of the Deployment."""

    target: ReplicaSet
    replicas: int


# --- what a Deployment allows -----------------------------------------------------------------------------------


def sum_of_sizes(sets: Sequence[ReplicaSet]) -> int:
    return sum(replicas_of(each) for each in sets)


def is_rolling(deployment: Deployment) -> bool:
    return deployment.spec.strategy.type == ROLLING_UPDATE


def max_surge(deployment: Deployment) -> int:
    return _surge_and_unavailable(deployment)[0] if is_rolling(deployment) else 0


def max_unavailable(deployment: Deployment) -> int:
    replicas = replicas_of(deployment)
    if not is_rolling(deployment) or replicas == 0:
        return 0
    return min(_surge_and_unavailable(deployment)[1], replicas)


def max_replicas(deployment: Deployment) -> int:
    return replicas_of(deployment) + max_surge(deployment)


def _surge_and_unavailable(deployment: Deployment) -> tuple[int, int]:
    rolling = deployment.spec.strategy.rolling_update
    if rolling is None:
        return 0, 1
    replicas = replicas_of(deployment)
    surge = scaled_value(rolling.max_surge, replicas, is_rounded_up=True)
    unavailable = scaled_value(rolling.max_unavailable, replicas, is_rounded_up=False)
    return (0, 1) if surge == 0 and unavailable == 0 else (surge, unavailable)


# --- rolling ----------------------------------------------------------------------------------------------------


def new_set_size(deployment: Deployment, sets: Sequence[ReplicaSet], current: int) -> int:
    """The size of the new ReplicaSet, which is `current` and among the sets: as much larger as there is allowed for."""
    wanted = replicas_of(deployment)
    if not is_rolling(deployment):
        return wanted
    rolling = deployment.spec.strategy.rolling_update
    surge = scaled_value(rolling.max_surge, wanted, is_rounded_up=True) if rolling is not None else 0
    allowed = wanted + surge - sum_of_sizes(sets)
    return current + min(allowed, wanted - current) if allowed > 0 else current


def rolling_up(deployment: Deployment, new: ReplicaSet, sets: Sequence[ReplicaSet]) -> list[Resize]:
    """The new ReplicaSet, as large as it may be now."""
    wanted, current = replicas_of(deployment), replicas_of(new)
    size = wanted if current >= wanted else new_set_size(deployment, sets, current)
    return [Resize(new, size)] if size != current else []


def rolling_down(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> list[Resize]:
    """The old ReplicaSets, as small as they may be now, step by step: first without their unavailable pods."""
    active = by_age([each for each in old if replicas_of(each) > 0])
    available_min = replicas_of(deployment) - max_unavailable(deployment)
    new_unavailable = replicas_of(new) - new.status.available_replicas
    spare = sum_of_sizes(active) + replicas_of(new) - available_min - new_unavailable
    if not active or spare <= 0:
        return []
    steps: list[Resize] = []
    sizes = [replicas_of(each) for each in active]
    for index, each in enumerate(active):
        unhealthy = sizes[index] - each.status.available_replicas
        if spare <= 0:
            break
        if unhealthy < 0:
            # More are available than it is asked to have: it has not got over its last resizing. Counting on with those
            # would take too many away.
            return steps
        if unhealthy > 0:
            _shrink(steps, sizes, index, each, min(spare, unhealthy))
            spare -= min(spare, unhealthy)
    surplus = new.status.available_replicas + sum(each.status.available_replicas for each in active) - available_min
    for index, each in enumerate(active):
        if surplus > 0 and sizes[index] > 0:
            dropped = min(sizes[index], surplus)
            _shrink(steps, sizes, index, each, dropped)
            surplus -= dropped
    return steps


def _shrink(steps: list[Resize], sizes: list[int], index: int, target: ReplicaSet, count: int) -> None:
    sizes[index] -= count
    steps.append(Resize(target, sizes[index]))


# --- scaling ----------------------------------------------------------------------------------------------------


def is_scaling(deployment: Deployment, sets: Sequence[ReplicaSet]) -> bool:
    """Whether somebody changed the Deployment's size since its ReplicaSets got target_annotations."""
    wanted = replicas_of(deployment)
    desired = [annotated_count(each, DESIRED_REPLICAS) for each in sets if replicas_of(each) > 0]
    return any(count is not None and count != wanted for count in desired)


def plan_scaling(deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> list[Resize]:
    """Sizes after the Deployment was scaled, or while it is paused. Those that stay get new annotations at most."""
    only = _active_or_latest(new, old)
    if only is not None:
        wanted = replicas_of(deployment)
        # Also if it has that size by chance, and only its annotation says otherwise: it would count as being scaled for
        # ever, and no rollout would go on. (In the original it does.)
        return [Resize(only, wanted)] if replicas_of(only) != wanted or is_scaling(deployment, [only]) else []
    if _is_saturated(deployment, new):
        return [Resize(each, 0) for each in old if replicas_of(each) > 0]
    return _proportional(deployment, new, old) if is_rolling(deployment) else []


def _active_or_latest(new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> ReplicaSet | None:
    """The only ReplicaSet with pods; without pods the new one or the youngest; None if several have some."""
    sets = [*old, new] if new is not None else [*old]
    active = [each for each in sets if replicas_of(each) > 0]
    if len(active) > 1 or not sets:
        return None
    return active[0] if active else new if new is not None else by_age(old)[-1]


def _is_saturated(deployment: Deployment, new: ReplicaSet | None) -> bool:
    wanted = replicas_of(deployment)
    return (
        new is not None
        and annotated_count(new, DESIRED_REPLICAS) == wanted
        and replicas_of(new) == wanted
        and new.status.available_replicas == wanted
    )


def _proportional(deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> list[Resize]:
    sets = [each for each in ([*old, new] if new is not None else old) if replicas_of(each) > 0]
    allowed = max_replicas(deployment) if replicas_of(deployment) > 0 else 0
    to_add = allowed - sum_of_sizes(sets)
    sets = by_age(sets)
    if to_add > 0:
        sets.reverse()  # of equal sizes the youngest grows, and the oldest shrinks
    sets.sort(key=replicas_of, reverse=True)  # which keeps the order of equals
    sizes, added = [], 0
    for each in sets:
        share = _share(deployment, each, to_add, added)
        sizes.append(replicas_of(each) + share)
        added += share
    if sizes and to_add:
        sizes[0] = max(0, sizes[0] + to_add - added)
    return [Resize(each, size) for each, size in zip(sets, sizes)]


def _share(deployment: Deployment, replica_set: ReplicaSet, to_add: int, added: int) -> int:
    if to_add in (0, added):
        return 0
    fraction, allowed = _fraction(deployment, replica_set), to_add - added
    return min(fraction, allowed) if to_add > 0 else max(fraction, allowed)


def _fraction(deployment: Deployment, replica_set: ReplicaSet) -> int:
    size = replicas_of(replica_set)
    if replicas_of(deployment) == 0:
        return -size
    before = annotated_count(replica_set, MAX_REPLICAS) or deployment.status.replicas
    if before == 0:
        return 0
    return int(size * max_replicas(deployment) / before + 0.5) - size


# --- annotations and order --------------------------------------------------------------------------------------


def size_annotations(deployment: Deployment) -> dict[str, str]:
    """What a ReplicaSet remembers of the Deployment's size when it got its own."""
    return {DESIRED_REPLICAS: str(replicas_of(deployment)), MAX_REPLICAS: str(max_replicas(deployment))}


def annotated_count(replica_set: ReplicaSet, annotation: str) -> int | None:
    """A count that was noted; None if there is none, or it is none."""
    text = replica_set.metadata.annotations.get(annotation, "")
    if not text.isascii() or not text.isdecimal():
        return None
    count = int(text)
    return count if count <= _INT32_MAX else None


def by_age(sets: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    """The oldest first; of the same second by name."""
    return sorted(sets, key=lambda each: (each.metadata.creation_timestamp or "", each.metadata.name))
