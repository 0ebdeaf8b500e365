"""The tally of pods: how many pods each owner has, in which state, without looking at them one by one.

Comes in   from the informer of pods: added, updated, deleted
Goes out   for each controller's uid: its pods counted by their labels and their state

An owner of ten thousand pods hears of forty thousand changes while they start. Counting them all at each would be the
square of that; here a change moves one pod from one count to another.

 1. The tally says what a walk over the pods of the informer would say. Tests hold it.
 2. Labels are kept apart because selectors are about them: the pods of a template share theirs, so there are few.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from mooring.api.ownership import controller_of
from mooring.api.views.pod import Pod
from mooring.client.cache.informer import Informer
from mooring.controllers.pods import FINISHED_PHASES, is_ready

LabelsKey: TypeAlias = tuple[tuple[str, str], ...]


class StateCounts:
    """How many pods of one owner with the same labels are in which state."""

    __slots__ = ("active", "all", "ready", "terminating")

    def __init__(self) -> None:
        self.all = 0
        self.active = 0
        self.ready = 0
        """Of those that are active."""
        self.terminating = 0


class PodTally:
    """Listens to an informer; asked by owner."""

    def __init__(self, informer: Informer[Pod]) -> None:
        self._by_owner: dict[str, dict[LabelsKey, StateCounts]] = {}
        # Registered before any controller's handler, so that a handler sees the counts after the change.
        informer.add_handler("pod tally", on_add=self._on_add, on_update=self._on_update, on_delete=self._on_delete)

    def of(self, owner_uid: str) -> Mapping[LabelsKey, StateCounts]:
        """The counts of an owner's pods, by labels. To be read at once: they change with the next event."""
        return self._by_owner.get(owner_uid, {})

    def _on_add(self, pod: Pod, is_initial: bool) -> None:
        self._count(pod, 1)

    def _on_update(self, old: Pod, new: Pod) -> None:
        if (
            is_ready(old) == is_ready(new)
            and (old.status.phase in FINISHED_PHASES) == (new.status.phase in FINISHED_PHASES)
            and old.metadata.labels == new.metadata.labels
            and old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
            and old.metadata.owner_references == new.metadata.owner_references
        ):
            return  # such as one that has been given a node
        self._count(old, -1)
        self._count(new, 1)

    def _on_delete(self, pod: Pod) -> None:
        self._count(pod, -1)

    def _count(self, pod: Pod, step: int) -> None:
        metadata = pod.metadata
        owner = controller_of(metadata)
        if owner is None:
            return
        by_labels = self._by_owner.get(owner.uid)
        if by_labels is None:
            by_labels = self._by_owner[owner.uid] = {}
        labels = tuple(metadata.labels.items())
        counts = by_labels.get(labels)
        if counts is None:
            counts = by_labels[labels] = StateCounts()
        counts.all += step
        if pod.status.phase not in FINISHED_PHASES:
            if metadata.deletion_timestamp is not None:
                counts.terminating += step
            else:
                counts.active += step
                if is_ready(pod):
                    counts.ready += step
        if not counts.all:
            del by_labels[labels]
            if not by_labels:
                del self._by_owner[owner.uid]
