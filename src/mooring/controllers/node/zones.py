"""Zones: where so much is broken that it is more likely us than the nodes, evictions slow down or stop.

Comes in   nodes, as ready or not; from pass to pass
Goes out   for each zone its state, and at which rate its nodes may be tainted

    normal               at most two nodes are not ready, or less than `unhealthy_zone_threshold` of them
    partial disruption   more: the secondary rate if the zone is large, otherwise nothing is evicted
    full disruption      no node is ready: the normal rate, because other zones are well

 1. If every zone is fully disrupted, nobody is evicted: the fault is on our side. All NoExecute taints are taken off,
    and put on again only after some node is back and everybody had another grace period.
 2. Nodes labelled `node.kubernetes.io/exclude-disruption` do not count.

Decides only; counts are kept as nodes change, so that a pass does not look at all of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from mooring.api.views.node import Node
from mooring.client.ratelimit import TokenBucket
from mooring.kit.clock import Clock
from mooring.kit.heap import KeyedHeap

EXCLUDE_LABEL = "node.kubernetes.io/exclude-disruption"
NOT_READY_MIN = 3
"""Fewer nodes that are not ready are never a disruption, be the zone ever so small."""
BURST = 1


class ZoneState(Enum):
    INITIAL = "Initial"
    NORMAL = "Normal"
    PARTIAL_DISRUPTION = "PartialDisruption"
    FULL_DISRUPTION = "FullDisruption"


class ClusterTransition(Enum):
    """What a pass means for the cluster as a whole."""

    NOTHING = "nothing"
    ALL_DOWN = "every zone is fully disrupted now"
    SOME_READY_AGAIN = "every zone was fully disrupted, and some node is back"


@dataclass(frozen=True, slots=True)
class EvictionRates:
    normal_per_s: float
    secondary_per_s: float
    large_zone: int
    """From how many nodes on the secondary rate is used."""
    unhealthy_share: float


@dataclass(slots=True)
class ZoneCounts:
    ready: int = 0
    not_ready: int = 0

    @property
    def size(self) -> int:
        return self.ready + self.not_ready


@dataclass(frozen=True, slots=True)
class ZoneUpdate:
    """What a pass came to: new rates for some zones."""

    transition: ClusterTransition = ClusterTransition.NOTHING
    rates_per_s: dict[str, float] = field(default_factory=dict)


class Zones:
    """The states of all zones."""

    def __init__(self, rates: EvictionRates) -> None:
        self._rates = rates
        self._states: dict[str, ZoneState] = {}
        self._counts: dict[str, ZoneCounts] = {}
        self._counted_nodes: dict[str, tuple[str, bool]] = {}

    def is_known(self, zone: str) -> bool:
        return zone in self._states

    def add(self, zone: str) -> None:
        self._states.setdefault(zone, ZoneState.INITIAL)

    def states(self) -> Iterator[tuple[str, ZoneState]]:
        return iter(self._states.items())

    def count(self, node: Node, is_ready: bool) -> None:
        """A node was looked at."""
        self.forget(node.metadata.name)
        if EXCLUDE_LABEL in node.metadata.labels:
            return
        zone = zone_of(node)
        self._counted_nodes[node.metadata.name] = zone, is_ready
        counts = self._counts.setdefault(zone, ZoneCounts())
        if is_ready:
            counts.ready += 1
        else:
            counts.not_ready += 1

    def forget(self, name: str) -> None:
        place = self._counted_nodes.pop(name, None)
        if place is None:
            return
        zone, was_ready = place
        counts = self._counts[zone]
        if was_ready:
            counts.ready -= 1
        else:
            counts.not_ready -= 1
        if not counts.size:
            del self._counts[zone]

    def update_states(self) -> ZoneUpdate:
        """After all nodes that changed were counted: what changes for the zones."""
        new = {zone: zone_state(counts, self._rates.unhealthy_share) for zone, counts in self._counts.items()}
        for zone in new:
            self._states.setdefault(zone, ZoneState.INITIAL)
        for zone in [zone for zone in self._states if zone not in new]:
            del self._states[zone]
        are_all_down = _all_down(new.values())
        were_all_down = _all_down(self._states.values())
        if are_all_down and were_all_down:
            return ZoneUpdate()
        if are_all_down:
            self._states = dict.fromkeys(self._states, ZoneState.FULL_DISRUPTION)
            return ZoneUpdate(ClusterTransition.ALL_DOWN, dict.fromkeys(self._states, 0.0))
        changed = [zone for zone, state in self._states.items() if were_all_down or state is not new[zone]]
        for zone in changed:
            self._states[zone] = new[zone]
        rates = {zone: self.rate_per_s(self._counts[zone].size, new[zone]) for zone in changed}
        return ZoneUpdate(ClusterTransition.SOME_READY_AGAIN if were_all_down else ClusterTransition.NOTHING, rates)

    def rate_per_s(self, size: int, state: ZoneState) -> float:
        """How many nodes of a zone may be tainted in a second; 0 for none."""
        if state is ZoneState.PARTIAL_DISRUPTION:
            return self._rates.secondary_per_s if size > self._rates.large_zone else 0.0
        return self._rates.normal_per_s


def zone_state(counts: ZoneCounts, unhealthy_share: float) -> ZoneState:
    if not counts.ready and counts.not_ready:
        return ZoneState.FULL_DISRUPTION
    if counts.not_ready >= NOT_READY_MIN and counts.not_ready / counts.size >= unhealthy_share:
        return ZoneState.PARTIAL_DISRUPTION
    return ZoneState.NORMAL


def zone_of(node: Node) -> str:
    """Region and zone as one name; empty for a node that says neither."""
    labels = node.metadata.labels
    zone = labels.get("failure-domain.beta.kubernetes.io/zone", labels.get("topology.kubernetes.io/zone", ""))
    region = labels.get("failure-domain.beta.kubernetes.io/region", labels.get("topology.kubernetes.io/region", ""))
    return f"{region}:\0:{zone}" if region or zone else ""


def _all_down(states: Iterable[ZoneState]) -> bool:
    """Of no zones at all it is true, as in kube-controller-manager: an empty cluster starts from there."""
    return all(state is ZoneState.FULL_DISRUPTION for state in states)


class TimedQueue:
    """Of one zone."""

    def __init__(self, clock: Clock, rate_per_s: float) -> None:
        self._clock = clock
        self._waiting: KeyedHeap[str, float] = KeyedHeap.ordered_by(_due)
        self._taken: dict[str, None] = {}
        self._rate_per_s = rate_per_s
        self._bucket = self._new_bucket(rate_per_s)

    def __len__(self) -> int:
        """How many names wait."""
        return len(self._waiting)

    def add(self, name: str) -> bool:
        """Whether it is new: neither waiting nor handled."""
        if name in self._taken:
            return False
        self._taken[name] = None
        self._waiting.push(name, self._clock.now_s())
        return True

    def remove(self, name: str) -> bool:
        """Whether it was there. It may be added again."""
        if name not in self._taken:
            return False
        del self._taken[name]
        self._waiting.delete(name)
        return True

    def set_rate(self, rate_per_s: float) -> None:
        if rate_per_s == self._rate_per_s:
            return
        bucket = self._new_bucket(rate_per_s)
        if bucket is not None and not self._try_take():
            bucket.try_take()
        self._rate_per_s, self._bucket = rate_per_s, bucket

    async def handle(self, attempt: Callable[[str], Awaitable[float | None]]) -> None:
        """`attempt` answers None if it is done with a name, or after how many seconds it is to be tried again."""
        while (head := self._waiting.peek()) is not None and self._try_take():
            name, due_s = head
            now_s = self._clock.now_s()
            if now_s < due_s:
                return
            retry_s = await attempt(name)
            if retry_s is None:
                self._waiting.delete(name)
            elif name in self._waiting:
                self._waiting.update(name, now_s + retry_s)

    def _try_take(self) -> bool:
        return self._bucket is not None and self._bucket.try_take()

    def _new_bucket(self, rate_per_s: float) -> TokenBucket | None:
        return TokenBucket(self._clock, rate_per_s=rate_per_s, burst=BURST) if rate_per_s > 0 else None


def _due(due_s: float) -> float:
    return due_s
