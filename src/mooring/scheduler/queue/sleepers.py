"""The sleepers: pods that were refused or gated, found by what can wake them.

Comes in   pods that go to sleep; events
Goes out   the pods that an event may help; those that have slept too long

Thousands may sleep while thousands of events come in every second, nearly all of which help none of them. So pods
that were refused by the same plugins sleep together, as one audience; whether an audience hears a kind of event is
found out once. Within it, pods of one signature are asked about together where the hint reads nothing but the
signature.

 1. An event that no audience hears costs one look-up, however many sleep.
 2. Gated pods hear only what the plugin that gated them hears, and what is for everybody.
 3. Whoever has slept for `asleep_s_max`, since its last attempt or since it was last woken for that, is handed out by
    `first_overslept`: hints are written by people, and a missing one would strand a pod. kube-scheduler looks every 30
    seconds; here the alarm is exact.
 4. What an event costs grows with the signatures (with the pods, for hints that read the pod) of the audiences that
    hear it: about a microsecond and the hint itself for each. Pods that differ in a label, as those of a StatefulSet
    do, have each their own signature: ten thousand of them, refused by a plugin that hears assigned pods, make every
    such event dear. What helps is that such events repeat: one about a pod of a signature that woke nobody wakes
    nobody the next time either, if the hints read the signatures of both pods and nothing else, until somebody of a
    new signature sleeps.
 5. Everything is handed out in a fixed order: audiences, signatures and pods in the order in which they came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from mooring.kit.heap import KeyedHeap
from mooring.scheduler.cache.pods import PodInfo, PodSignature
from mooring.scheduler.framework.events import ClusterEvent
from mooring.scheduler.framework.hints import takes_up_room
from mooring.scheduler.queue.entry import QueuedPod
from mooring.scheduler.queue.hearing import Ears, Hearing, Verdict, ask, is_for_everybody

AUDIENCES_MAX: Final = 1_000
"""Beyond so many, those in which nobody sleeps are forgotten. They cost nothing but memory to find again."""

SLEPT_ON_MAX: Final = 1_000

AudienceKey = tuple[str, frozenset[str], frozenset[str], str | None]


class Audience:
    """Those who were refused by the same plugins, and hear the same events."""

    __slots__ = ("_ears", "_hearings", "by_signature", "key")

    def __init__(self, key: AudienceKey, ears: Ears) -> None:
        self.key = key
        self.by_signature: dict[PodSignature, dict[str, QueuedPod]] = {}
        self._ears = ears
        self._hearings: dict[ClusterEvent, Hearing | None] = {}

    def hearing(self, event: ClusterEvent) -> Hearing | None:
        """How this audience hears an event; None if it does not."""
        try:
            return self._hearings[event]
        except KeyError:
            scheduler_name, rejectors, pending, gated_by = self.key
            heard = self._ears.hearing(scheduler_name, rejectors, pending, event)
            if gated_by is not None and not is_for_everybody(event):
                heard = heard if self._ears.hears(scheduler_name, gated_by, event) else None
            self._hearings[event] = heard
            return heard

    def verdict(self, pod: PodInfo, event: ClusterEvent, old: Any, new: Any) -> Verdict:
        """Whether an event makes one pod of this audience worth another try."""
        heard = self.hearing(event)
        return Verdict.SLEEP if heard is None else heard.verdict(pod, old, new)


class Sleepers:
    """All who sleep."""

    __slots__ = ("_asleep_s_max", "_audiences", "_by_end", "_ears", "_gated", "_listening", "_slept_on")

    def __init__(self, ears: Ears, asleep_s_max: float) -> None:
        self._ears = ears
        self._asleep_s_max = asleep_s_max
        self._audiences: dict[AudienceKey, Audience] = {}
        self._listening: dict[ClusterEvent, tuple[tuple[Audience, Hearing], ...]] = {}
        self._by_end: KeyedHeap[str, QueuedPod] = KeyedHeap.ordered_by(self.end_s)
        self._gated = 0
        self._slept_on: set[tuple[ClusterEvent, PodSignature]] = set()
        """Events about pods of a signature that woke nobody of those who sleep."""

    def __len__(self) -> int:
        return len(self._by_end)

    @property
    def gated(self) -> int:
        """How many of them are gated."""
        return self._gated

    def __contains__(self, uid: object) -> bool:
        return uid in self._by_end

    def add(self, entry: QueuedPod) -> None:
        assert entry.audience is None, f"{entry} sleeps already"
        audience = self.audience(entry, entry.gated_by)
        siblings = audience.by_signature.get(entry.pod.signature)
        if siblings is None:
            siblings = audience.by_signature[entry.pod.signature] = {}
            self._slept_on.clear()  # somebody new may be woken by what left the others asleep
        siblings[entry.pod.uid] = entry
        entry.audience = audience
        self._by_end.push(entry.pod.uid, entry)
        self._gated += entry.gated_by is not None

    def remove(self, entry: QueuedPod) -> None:
        audience, signature = entry.audience, entry.pod.signature
        assert audience is not None, f"{entry} does not sleep"
        siblings = audience.by_signature[signature]
        del siblings[entry.pod.uid]
        if not siblings:
            del audience.by_signature[signature]
        entry.audience = None
        self._by_end.delete(entry.pod.uid)
        self._gated -= audience.key[3] is not None

    def audience(self, entry: QueuedPod, gated_by: str | None) -> Audience:
        """Those who hear what this pod hears, if it is gated as said."""
        key = (entry.scheduler_name, entry.rejectors, entry.pending, gated_by)
        audience = self._audiences.get(key)
        if audience is None:
            if len(self._audiences) >= AUDIENCES_MAX:
                self._audiences = {key: kept for key, kept in self._audiences.items() if kept.by_signature}
            audience = self._audiences[key] = Audience(key, self._ears)
            self._listening.clear()
        return audience

    def woken_by(
        self, event: ClusterEvent, old: Any, new: Any, only: Callable[[PodInfo], bool] | None
    ) -> list[tuple[QueuedPod, Verdict]]:
        """Whom an event may help, with how soon to try."""
        found: list[tuple[QueuedPod, Verdict]] = []
        listeners = self._listeners(event)
        if not listeners:
            return found
        about = (event, new.signature) if isinstance(new, PodInfo) and takes_up_room(new) else None
        if about in self._slept_on:
            return found
        for audience, hearing in listeners:
            by_pod = hearing.by_pod
            for siblings in audience.by_signature.values():
                anybody = next(iter(siblings.values()))
                for_all = ask(hearing.by_signature, hearing.certain, anybody.pod, old, new)
                if for_all is Verdict.SLEEP and not by_pod:
                    continue
                for entry in siblings.values():
                    if only is not None and not only(entry.pod):
                        continue
                    verdict = ask(by_pod, for_all, entry.pod, old, new) if by_pod else for_all
                    if verdict is not Verdict.SLEEP:
                        found.append((entry, verdict))
        if (
            about is not None
            and not found
            and only is None
            and all(heard.is_by_both_signatures for _, heard in listeners)
        ):
            if len(self._slept_on) >= SLEPT_ON_MAX:
                self._slept_on.clear()
            self._slept_on.add(about)
        return found

    def _listeners(self, event: ClusterEvent) -> tuple[tuple[Audience, Hearing], ...]:
        listeners = self._listening.get(event)
        if listeners is None:
            listeners = self._listening[event] = tuple(
                (audience, hearing)
                for audience in self._audiences.values()
                if (hearing := audience.hearing(event)) is not None
            )
        return listeners

    def first_overslept(self, now_s: float) -> QueuedPod | None:
        """The next who has slept too long, still asleep."""
        first = self._by_end.peek()
        return first[1] if first is not None and self.end_s(first[1]) <= now_s else None

    def next_end_s(self) -> float:
        first = self._by_end.peek()
        return float("inf") if first is None else self.end_s(first[1])

    def end_s(self, entry: QueuedPod) -> float:
        """When a pod that sleeps is woken at the latest."""
        return max(entry.queued_s, entry.flushed_s) + self._asleep_s_max

    def entries(self) -> Iterator[QueuedPod]:
        """Everybody, by audience and signature."""
        for audience in self._audiences.values():
            for siblings in audience.by_signature.values():
                yield from siblings.values()
