"""Nearest misses: what was missing on the nodes that were nearest to taking a rejected pod, for its decision record.

1. An explanation runs every filter on every node, which costs far more than a decision from cached results. All of them
   together may take `SHARE_MAX` of the time, of which up to `SAVED_S_MAX` is saved for a burst of rejections. Beyond
   that, attempts have no nearest misses, unless (2) applies.
2. Pods that were rejected with the same cached diagnosis share them: no row has changed in between.
3. Finding them changes no decision, and never raises: a failure is logged.
"""

from __future__ import annotations

import logging

import msgspec

from mooring.kit.clock import Clock
from mooring.kit.logs import fields
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.cycle.explain import explain
from mooring.scheduler.framework.obstacle import Obstacle
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.status import RejectionCount

SHARE_MAX = 0.05
"""Of the time that the scheduling loop may spend on explanations."""
SAVED_S_MAX = 0.1
"""Time for explanations that is saved while none are needed."""
NODES_MAX = 3
OBSTACLES_MAX = 3
"""For each node."""
TEXT_LENGTH_MAX = 160
_SHARED_MAX = 64

logger = logging.getLogger(__name__)


class RecordedObstacle(msgspec.Struct, frozen=True, gc=False):
    """One obstacle of a node."""

    plugin: str
    text: str


class NearestMiss(msgspec.Struct, frozen=True, gc=False):
    """A node, and what kept the pod from it."""

    node: str
    obstacles: tuple[RecordedObstacle, ...]

    @property
    def bytes_estimated(self) -> int:
        return 160 + sum(160 + len(obstacle.text) for obstacle in self.obstacles)


class NearestMisses:
    """Finds the nearest misses of the attempts of one scheduler."""

    def __init__(self, columns: Columns, clock: Clock) -> None:
        self._columns = columns
        self._clock = clock
        self._saved_s = SAVED_S_MAX
        self._saved_at_s = clock.now_s()
        self._shared: dict[int, tuple[tuple[RejectionCount, ...], tuple[NearestMiss, ...]]] = {}
        """By the identity of a cached diagnosis' rejections. Holding them keeps the identity from being reused."""

    def of(self, profile: Profile, decision: Decision) -> tuple[NearestMiss, ...]:
        """The nearest misses of an attempt that found no node; empty if they would cost too much now."""
        rejections = decision.rejections
        if not rejections:
            return ()
        shared = self._shared.get(id(rejections))
        if shared is not None:
            return shared[1]
        started_s = self._clock.now_s()
        self._saved_s = min(self._saved_s + SHARE_MAX * (started_s - self._saved_at_s), SAVED_S_MAX)
        self._saved_at_s = started_s
        if self._saved_s <= 0:
            return ()
        misses = self._find(profile, decision)
        self._saved_s -= self._clock.now_s() - started_s
        if len(self._shared) >= _SHARED_MAX:
            self._shared.clear()
        self._shared[id(rejections)] = rejections, misses
        return misses

    def _find(self, profile: Profile, decision: Decision) -> tuple[NearestMiss, ...]:
        try:
            found = explain(profile, self._columns, decision.pod, nearest_max=NODES_MAX)
            return tuple(
                NearestMiss(name, tuple(map(_recorded, found.at(name)[:OBSTACLES_MAX]))) for name in found.nearest
            )
        except Exception as error:
            key = decision.pod.key
            logger.error("explaining the rejection of pod %s failed", key, exc_info=error, extra=fields(pod=key))
            return ()


def _recorded(obstacle: Obstacle) -> RecordedObstacle:
    return RecordedObstacle(obstacle.plugin, obstacle.text[:TEXT_LENGTH_MAX])
