"""How many pods a Deployment may have, and the size of each ReplicaSet. No I/O.

Inputs: a Deployment, its new ReplicaSet and its old ones. Outputs: numbers, and `Resize`.

1. There are at most replicas + maxSurge pods, and at least replicas - maxUnavailable available ones. maxSurge is
   rounded up, maxUnavailable down. If both are 0, one pod may be unavailable, or no rollout could proceed.
2. Unavailable pods of old ReplicaSets are removed first.
3. Scaling during a rollout distributes the difference in proportion to the sizes. The remainder of rounding goes to
   the largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mooring.api.views.workloads import Deployment, ReplicaSet
from mooring.api.well_known import DEPLOYMENT_DESIRED_REPLICAS, DEPLOYMENT_MAX_REPLICAS
from mooring.controllers.pods import replicas_of, scaled_value

ROLLING_UPDATE = "RollingUpdate"
RECREATE = "Recreate"

_INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Resize:
    """A new size for a ReplicaSet. Its annotations record the Deployment's size."""

    target: ReplicaSet
    replicas: int


# --- limits --------------------------------------------------------------------------------------------------


def sum_of_sizes(sets: Sequence[ReplicaSet]) -> int:
    return sum(replicas_of(replica_set) for replica_set in sets)


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


# --- rolling -------------------------------------------------------------------------------------------------


def new_set_size(deployment: Deployment, sets: Sequence[ReplicaSet], current: int) -> int:
    """The size of the new ReplicaSet, at present `current`: as large as maxSurge allows. `sets` include it."""
    replicas = replicas_of(deployment)
    if not is_rolling(deployment):
        return replicas
    rolling = deployment.spec.strategy.rolling_update
    surge = scaled_value(rolling.max_surge, replicas, is_rounded_up=True) if rolling is not None else 0
    allowed = replicas + surge - sum_of_sizes(sets)
    return current + min(allowed, replicas - current) if allowed > 0 else current


def rolling_up(deployment: Deployment, new: ReplicaSet, sets: Sequence[ReplicaSet]) -> list[Resize]:
    """Scale the new ReplicaSet up as far as allowed."""
    replicas, current = replicas_of(deployment), replicas_of(new)
    size = replicas if current >= replicas else new_set_size(deployment, sets, current)
    return [Resize(new, size)] if size != current else []


def rolling_down(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> list[Resize]:
    """Scale the old ReplicaSets down as far as allowed, first by their unavailable pods."""
    active = by_age([replica_set for replica_set in old if replicas_of(replica_set) > 0])
    available_min = replicas_of(deployment) - max_unavailable(deployment)
    new_unavailable = replicas_of(new) - new.status.available_replicas
    spare = sum_of_sizes(active) + replicas_of(new) - available_min - new_unavailable
    if not active or spare <= 0:
        return []
    steps: list[Resize] = []
    sizes = [replicas_of(replica_set) for replica_set in active]
    for index, replica_set in enumerate(active):
        unhealthy = sizes[index] - replica_set.status.available_replicas
        if spare <= 0:
            break
        if unhealthy < 0:
            # More pods are available than desired: the last resize is not finished. Going on with these numbers
            # would remove too many.
            return steps
        if unhealthy > 0:
            _shrink(steps, sizes, index, replica_set, min(spare, unhealthy))
            spare -= min(spare, unhealthy)
    surplus = (
        new.status.available_replicas
        + sum(replica_set.status.available_replicas for replica_set in active)
        - available_min
    )
    for index, replica_set in enumerate(active):
        if surplus > 0 and sizes[index] > 0:
            dropped = min(sizes[index], surplus)
            _shrink(steps, sizes, index, replica_set, dropped)
            surplus -= dropped
    return steps


def _shrink(steps: list[Resize], sizes: list[int], index: int, target: ReplicaSet, count: int) -> None:
    sizes[index] -= count
    steps.append(Resize(target, sizes[index]))


# --- scaling -------------------------------------------------------------------------------------------------


def is_scaling(deployment: Deployment, sets: Sequence[ReplicaSet]) -> bool:
    """Whether the Deployment was scaled since its ReplicaSets got their sizes."""
    replicas = replicas_of(deployment)
    desired = [
        annotated_count(replica_set, DEPLOYMENT_DESIRED_REPLICAS)
        for replica_set in sets
        if replicas_of(replica_set) > 0
    ]
    return any(count is not None and count != replicas for count in desired)


def plan_scaling(deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> list[Resize]:
    """Sizes after the Deployment was scaled, or while it is paused. Unchanged sizes may get new annotations."""
    only = _active_or_latest(new, old)
    if only is not None:
        replicas = replicas_of(deployment)
        # Also if only the annotation differs: otherwise the Deployment would count as being scaled forever, and no
        # rollout would continue. (kube-controller-manager has this bug.)
        return [Resize(only, replicas)] if replicas_of(only) != replicas or is_scaling(deployment, [only]) else []
    if _is_saturated(deployment, new):
        return [Resize(replica_set, 0) for replica_set in old if replicas_of(replica_set) > 0]
    return _proportional(deployment, new, old) if is_rolling(deployment) else []


def _active_or_latest(new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> ReplicaSet | None:
    """The only ReplicaSet with pods. If none has pods, the new one or the youngest. None if several have pods."""
    sets = [*old, new] if new is not None else [*old]
    active = [replica_set for replica_set in sets if replicas_of(replica_set) > 0]
    if len(active) > 1 or not sets:
        return None
    return active[0] if active else new if new is not None else by_age(old)[-1]


def _is_saturated(deployment: Deployment, new: ReplicaSet | None) -> bool:
    replicas = replicas_of(deployment)
    return (
        new is not None
        and annotated_count(new, DEPLOYMENT_DESIRED_REPLICAS) == replicas
        and replicas_of(new) == replicas
        and new.status.available_replicas == replicas
    )


def _proportional(deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> list[Resize]:
    sets = [replica_set for replica_set in ([*old, new] if new is not None else old) if replicas_of(replica_set) > 0]
    allowed = max_replicas(deployment) if replicas_of(deployment) > 0 else 0
    to_add = allowed - sum_of_sizes(sets)
    sets = by_age(sets)
    if to_add > 0:
        sets.reverse()  # of equal sizes, the youngest grows and the oldest shrinks
    sets.sort(key=replicas_of, reverse=True)  # stable: equal sizes keep their order
    sizes, added = [], 0
    for replica_set in sets:
        share = _share(deployment, replica_set, to_add, added)
        sizes.append(replicas_of(replica_set) + share)
        added += share
    if sizes and to_add:
        sizes[0] = max(0, sizes[0] + to_add - added)
    return [Resize(replica_set, size) for replica_set, size in zip(sets, sizes)]


def _share(deployment: Deployment, replica_set: ReplicaSet, to_add: int, added: int) -> int:
    if to_add in (0, added):
        return 0
    fraction, allowed = _fraction(deployment, replica_set), to_add - added
    return min(fraction, allowed) if to_add > 0 else max(fraction, allowed)


def _fraction(deployment: Deployment, replica_set: ReplicaSet) -> int:
    size = replicas_of(replica_set)
    if replicas_of(deployment) == 0:
        return -size
    before = annotated_count(replica_set, DEPLOYMENT_MAX_REPLICAS) or deployment.status.replicas
    if before == 0:
        return 0
    return int(size * max_replicas(deployment) / before + 0.5) - size


# --- annotations and order -----------------------------------------------------------------------------------


def size_annotations(deployment: Deployment) -> dict[str, str]:
    """Annotations that record the Deployment's size in a ReplicaSet."""
    return {
        DEPLOYMENT_DESIRED_REPLICAS: str(replicas_of(deployment)),
        DEPLOYMENT_MAX_REPLICAS: str(max_replicas(deployment)),
    }


def annotated_count(replica_set: ReplicaSet, annotation: str) -> int | None:
    """A count in an annotation. None if it is missing or invalid."""
    text = replica_set.metadata.annotations.get(annotation, "")
    if not text.isascii() or not text.isdecimal():
        return None
    count = int(text)
    return count if count <= _INT32_MAX else None


def by_age(sets: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    """Oldest first, then by name."""
    return sorted(
        sets, key=lambda replica_set: (replica_set.metadata.creation_timestamp or "", replica_set.metadata.name)
    )
