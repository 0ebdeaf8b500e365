"""The pods of the engine level, and the queue of those without a node.

1. Pods are tried by priority, then in the order in which they were added.
2. Pods of one signature are rejected together: the rest of them is not tried until `retry_all`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from mooring.api.views.pod import Pod
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cache.resources import CPU


@dataclass(slots=True, eq=False)
class SimulatedPod:
    """A pod that waits or runs."""

    view: Pod
    lifetime_s: float
    owner: str
    queued_s: float
    info: PodInfo | None = None
    was_placed: bool = False
    is_assumed: bool = False
    """False for a pod that had its node before the simulation."""
    run: int = 0
    """Increases when the pod is evicted: its end is no longer valid."""


@dataclass(slots=True)
class _PendingGroup:
    """Pending pods of one signature."""

    pods: deque[tuple[int, SimulatedPod]] = field(default_factory=deque)
    """With the number of their place in the queue."""
    is_rejected: bool = False


class PendingPods:
    """The queue.

    A round tries the pods that may fit: `begin_round`, then `take_next` or `reject_next` for each `next`.
    """

    def __init__(self) -> None:
        self._added = 0
        self._groups: dict[bytes, _PendingGroup] = {}
        self._heads: list[tuple[int, int, bytes]] = []
        """A heap of the first pods of the groups that this round still tries: priority, place in the queue, group."""

    def __len__(self) -> int:
        return sum(len(group.pods) for group in self._groups.values())

    def __iter__(self) -> Iterator[SimulatedPod]:
        return (pod for group in self._groups.values() for _, pod in group.pods)

    def requested_cpu_milli(self) -> int:
        """The cpu that the pods request."""
        firsts = ((group.pods[0][1].info, len(group.pods)) for group in self._groups.values() if group.pods)
        return sum(count * int(info.signature.request_vector[CPU]) for info, count in firsts if info is not None)

    def add(self, pod: SimulatedPod, info: PodInfo) -> None:
        self._added += 1
        pod.info = info
        self._groups.setdefault(info.signature.key, _PendingGroup()).pods.append((self._added, pod))

    def discard(self, pod: SimulatedPod) -> bool:
        """Remove a pod. Returns whether it was pending."""
        for group in self._groups.values():
            for entry in group.pods:
                if entry[1] is pod:
                    group.pods.remove(entry)
                    return True
        return False

    def retry_all(self) -> None:
        """Something changed that may help a rejected pod."""
        for group in self._groups.values():
            group.is_rejected = False

    def begin_round(self) -> None:
        self._groups = {key: group for key, group in self._groups.items() if group.pods}
        self._heads = [_head(key, group) for key, group in self._groups.items() if not group.is_rejected]
        heapify(self._heads)

    def next(self) -> SimulatedPod | None:
        """The pod to try; None at the end of the round."""
        return self._groups[self._heads[0][2]].pods[0][1] if self._heads else None

    def take_next(self) -> None:
        """The pod is no longer pending."""
        _, _, key = heappop(self._heads)
        group = self._groups[key]
        group.pods.popleft()
        if group.pods:
            heappush(self._heads, _head(key, group))

    def reject_next(self) -> None:
        """The pod stays, and with it all pods of its signature."""
        _, _, key = heappop(self._heads)
        self._groups[key].is_rejected = True


def _head(key: bytes, group: _PendingGroup) -> tuple[int, int, bytes]:
    number, pod = group.pods[0]
    return -(pod.view.spec.priority or 0), number, key
