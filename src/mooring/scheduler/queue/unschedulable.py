"""Unschedulable and gated pods, indexed by the events that can help them.

Inputs   pods that become unschedulable or gated; cluster events
Outputs  the pods that an event may help; the pods whose timeout is over

A cluster may have thousands of unschedulable pods and thousands of events per second, nearly all of which help none of
these pods. Pods that were rejected by the same plugins therefore form a group. Whether the plugins of a group have
registered an event is computed once. Within a group, a hint that reads only the signature is called once per signature.

 1. An event that no group registered costs one lookup, whatever the number of pods.
 2. A gated pod is moved only by events that its gating plugin registered, and by wildcard events.
 3. `first_leftover` returns a pod that has been unschedulable for `unschedulable_s_max` since its last attempt or its
    last timeout. The timeout limits the effect of a missing hint. kube-scheduler checks every 30 seconds; this queue
    has an exact timer.
 4. The cost of an event grows with the number of signatures (of pods, for hints that read the pod) in the groups that
    registered it: about a microsecond plus the hint itself for each. Pods with a label of their own, such as those of a
    StatefulSet, each have their own signature: with ten thousand of them, rejected by a plugin that registers assigned
    pods, such events are expensive. These events repeat, however. If an event of a pod with some signature moved no
    pod, and the hints read only the two signatures, the next one moves no pod either, until an unschedulable pod with
    a new signature is added.
 5. The order of the results is fixed: groups, signatures and pods in insertion order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from mooring.kit.heap import KeyedHeap
from mooring.scheduler.cache.pods import PodInfo, PodSignature
from mooring.scheduler.framework.events import ClusterEvent, has_node_or_nomination
from mooring.scheduler.queue.queued_pod import GroupKey, QueuedPod, RejectionGroup
from mooring.scheduler.queue.queueing_hints import EventHints, QueueingHintMap, QueueingStrategy, run_hints

GROUPS_MAX: Final = 1_000
"""Beyond this number, empty groups are removed. They are created again when needed."""
SKIPPED_EVENTS_MAX: Final = 1_000


class UnschedulablePods:
    """All unschedulable and gated pods."""

    def __init__(self, hint_map: QueueingHintMap, unschedulable_s_max: float) -> None:
        self._hint_map = hint_map
        self._unschedulable_s_max = unschedulable_s_max
        self._groups: dict[GroupKey, RejectionGroup] = {}
        self._groups_by_event: dict[ClusterEvent, tuple[tuple[RejectionGroup, EventHints], ...]] = {}
        self._by_timeout: KeyedHeap[str, QueuedPod] = KeyedHeap(self.timeout_s)
        self._gated_count = 0
        self._skipped_events: set[tuple[ClusterEvent, PodSignature]] = set()
        """Events of pods with a signature that moved none of the current pods."""

    def __len__(self) -> int:
        return len(self._by_timeout)

    @property
    def gated_count(self) -> int:
        return self._gated_count

    def __contains__(self, uid: object) -> bool:
        return uid in self._by_timeout

    def add(self, entry: QueuedPod) -> None:
        assert entry.group is None, f"{entry} is among the unschedulable pods already"
        group = self.group(entry, entry.gating_plugin)
        siblings = group.by_signature.get(entry.pod.signature)
        if siblings is None:
            siblings = group.by_signature[entry.pod.signature] = {}
            self._skipped_events.clear()  # an event that moved no other pod may move this one
        siblings[entry.pod.uid] = entry
        entry.group = group
        self._by_timeout.push(entry.pod.uid, entry)
        self._gated_count += entry.gating_plugin is not None

    def remove(self, entry: QueuedPod) -> None:
        group, signature = entry.group, entry.pod.signature
        assert group is not None, f"{entry} is not among the unschedulable pods"
        siblings = group.by_signature[signature]
        del siblings[entry.pod.uid]
        if not siblings:
            del group.by_signature[signature]
        entry.group = None
        self._by_timeout.delete(entry.pod.uid)
        self._gated_count -= group.key[3] is not None

    def group(self, entry: QueuedPod, gating_plugin: str | None) -> RejectionGroup:
        """The group for the pod's rejecting plugins and the given gating plugin."""
        key = (entry.scheduler_name, entry.unschedulable_plugins, entry.pending_plugins, gating_plugin)
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= GROUPS_MAX:
                self._groups = {key: group for key, group in self._groups.items() if group.by_signature}
            group = self._groups[key] = RejectionGroup(key, self._hint_map)
            self._groups_by_event.clear()
        return group

    def pods_to_move(
        self, event: ClusterEvent, old: Any, new: Any, pre_check: Callable[[PodInfo], bool] | None
    ) -> list[tuple[QueuedPod, QueueingStrategy]]:
        """The pods that an event may help, each with its strategy."""
        found: list[tuple[QueuedPod, QueueingStrategy]] = []
        registered = self._registered_groups(event)
        if not registered:
            return found
        repeated = (event, new.signature) if isinstance(new, PodInfo) and has_node_or_nomination(new) else None
        if repeated in self._skipped_events:
            return found
        for group, hints in registered:
            per_pod = hints.per_pod
            for siblings in group.by_signature.values():
                first = next(iter(siblings.values()))
                for_signature = run_hints(hints.per_signature, hints.without_hint, first.pod, old, new)
                if for_signature is QueueingStrategy.SKIP and not per_pod:
                    continue
                for entry in siblings.values():
                    if pre_check is not None and not pre_check(entry.pod):
                        continue
                    strategy = run_hints(per_pod, for_signature, entry.pod, old, new) if per_pod else for_signature
                    if strategy is not QueueingStrategy.SKIP:
                        found.append((entry, strategy))
        if (
            repeated is not None
            and not found
            and pre_check is None
            and all(hints.is_per_signature_pair for _, hints in registered)
        ):
            if len(self._skipped_events) >= SKIPPED_EVENTS_MAX:
                self._skipped_events.clear()
            self._skipped_events.add(repeated)
        return found

    def _registered_groups(self, event: ClusterEvent) -> tuple[tuple[RejectionGroup, EventHints], ...]:
        registered = self._groups_by_event.get(event)
        if registered is None:
            registered = self._groups_by_event[event] = tuple(
                (group, hints) for group in self._groups.values() if (hints := group.hints(event)) is not None
            )
        return registered

    def first_leftover(self, now_s: float) -> QueuedPod | None:
        """The pod with the earliest timeout, if that is over. The pod is not removed."""
        first = self._by_timeout.peek()
        return first[1] if first is not None and self.timeout_s(first[1]) <= now_s else None

    def next_timeout_s(self) -> float:
        first = self._by_timeout.peek()
        return float("inf") if first is None else self.timeout_s(first[1])

    def timeout_s(self, entry: QueuedPod) -> float:
        """When the pod is retried at the latest."""
        return max(entry.queued_s, entry.flushed_s) + self._unschedulable_s_max

    def entries(self) -> Iterator[QueuedPod]:
        """All pods, by group and signature."""
        for group in self._groups.values():
            for siblings in group.by_signature.values():
                yield from siblings.values()
