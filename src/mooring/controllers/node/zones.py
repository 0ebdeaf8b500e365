"""Disruption states of zones, and the queue that taints the nodes of a zone at its rate.

Inputs: nodes, ready or not, in each pass. Outputs: the state of each zone and its tainting rate; names of nodes to
taint.

    normal               fewer than three nodes are not ready, or less than `unhealthy_zone_threshold`
    partial disruption   more: the secondary rate in a large zone, otherwise no evictions
    full disruption      no node is ready: the normal rate, because other zones are healthy

1. If all zones are fully disrupted, nothing is evicted: the control plane is more likely broken than all nodes. All
   NoExecute taints are removed, and added again only after some node is ready and every node had another grace
   period.
2. Nodes with the label `node.kubernetes.io/exclude-disruption` do not count.
3. Counts are updated as nodes change, so that a pass does not read all nodes.
4. A queue handles a name once, until it is removed. At rate 0 names wait. A new rate starts with an empty bucket if
   the old one was empty.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from mooring.api.views.node import Node
from mooring.api.well_known import EXCLUDE_DISRUPTION_LABEL, REGION, REGION_BETA, ZONE, ZONE_BETA
from mooring.client.ratelimit import TokenBucket
from mooring.kit.clock import Clock
from mooring.kit.heap import KeyedHeap

NOT_READY_MIN = 3
"""Fewer nodes that are not ready are never a disruption, however small the zone is."""
BURST = 1


class ZoneState(Enum):
    """How much of a zone is not ready."""

    INITIAL = "Initial"
    NORMAL = "Normal"
    PARTIAL_DISRUPTION = "PartialDisruption"
    FULL_DISRUPTION = "FullDisruption"


class ClusterTransition(Enum):
    """The effect of a pass on the whole cluster."""

    NOTHING = "nothing"
    ALL_DOWN = "every zone is fully disrupted now"
    SOME_READY_AGAIN = "every zone was fully disrupted, and some node is back"


@dataclass(frozen=True, slots=True)
class EvictionRates:
    """Rates and thresholds, from flags."""

    normal_per_s: float
    secondary_per_s: float
    large_zone: int
    """Number of nodes above which the secondary rate applies."""
    unhealthy_share: float


@dataclass(slots=True)
class ZoneCounts:
    """Nodes of a zone."""

    ready: int = 0
    not_ready: int = 0

    @property
    def size(self) -> int:
        return self.ready + self.not_ready


@dataclass(frozen=True, slots=True)
class ZoneUpdate:
    """The result of a pass: new rates for some zones."""

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
        """Count a node that was checked."""
        self.forget(node.metadata.name)
        if EXCLUDE_DISRUPTION_LABEL in node.metadata.labels:
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
        """Compute the states after all changed nodes were counted."""
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
        """Nodes of a zone that may be tainted per second."""
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
    """Region and zone as one key. Empty without labels."""
    labels = node.metadata.labels
    zone = labels.get(ZONE_BETA, labels.get(ZONE, ""))
    region = labels.get(REGION_BETA, labels.get(REGION, ""))
    return f"{region}:\0:{zone}" if region or zone else ""


def _all_down(states: Iterable[ZoneState]) -> bool:
    """True without zones, as in kube-controller-manager: an empty cluster starts in this state."""
    return all(state is ZoneState.FULL_DISRUPTION for state in states)


class TimedQueue:
    """The queue of one zone."""

    def __init__(self, clock: Clock, rate_per_s: float) -> None:
        self._clock = clock
        self._waiting: KeyedHeap[str, float] = KeyedHeap(float)
        self._taken: dict[str, None] = {}
        self._rate_per_s = rate_per_s
        self._bucket = self._new_bucket(rate_per_s)

    def __len__(self) -> int:
        """Number of waiting names."""
        return len(self._waiting)

    def add(self, name: str) -> bool:
        """Add a name. Returns False if it waits or was handled already."""
        if name in self._taken:
            return False
        self._taken[name] = None
        self._waiting.push(name, self._clock.now_s())
        return True

    def remove(self, name: str) -> bool:
        """Remove a name, so that it may be added again. Returns whether it was there."""
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
        """Call `attempt` for due names. It returns None if done, or the seconds until the next attempt."""
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
