"""RackPowerColumns: the plugin of `rack_power.py`, written for all nodes at once.

It pays off in a large cluster: it takes less time for 5,000 nodes than the other one for a hundred. Its scope is the
node (`Scope.NODE`), so that its results are cached for all pods of a kind.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from mooring.scheduler.cache.arrays import Int64s, Rows, grown
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.plugin import SKIP, Filter, Proceed, Scope, Score, Skip, scaled_to_best
from mooring.scheduler.framework.status import Code, Reason

DRAWS = "power.example.com/watts"
SPARE = "power.example.com/spare-watts"


class Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    reserve_watts: int = 0


class RackPowerColumns(Filter[int], Score[int]):
    """The state that `pre_filter` passes to `filter` is the number of watts that the pod draws."""

    name = "RackPowerColumns"
    filter_scope = Scope.NODE
    score_scope = Scope.NODE
    filter_reasons = (Reason("node(s) lacked power on their rack", Code.UNRESOLVABLE),)
    normalizes = True

    def __init__(self, columns: Columns, arguments: Mapping[str, object]) -> None:
        self._columns = columns
        self._reserve_watts = msgspec.convert(arguments, Arguments).reserve_watts
        self._spare_watts: Int64s = np.zeros(0, dtype=np.int64)
        self._read_until = 0

    def pre_filter(self, pod: PodInfo) -> Proceed[int] | Skip:
        watts = _watts(pod)
        return SKIP if watts is None else Proceed(watts)

    def pre_score(self, pod: PodInfo, feasible: Rows) -> int | Skip:
        watts = _watts(pod)
        return SKIP if watts is None else watts

    def filter(self, state: int, rows: Rows) -> Int64s:
        lacks_power = self._spare()[rows] < state
        return lacks_power.astype(np.int64)  # the first bit, for the only reason

    def score(self, state: int, rows: Rows) -> Int64s:
        return self._spare()[rows]

    def normalize(self, state: int, scores: Int64s, rows: Rows) -> Int64s:
        return scaled_to_best(scores, reverse=False)

    def _spare(self) -> Int64s:
        """Per node: the watts that its rack can spare. An own column, in which only changed nodes are updated."""
        columns, log = self._columns, self._columns.fact_changes
        if log.position != self._read_until:
            self._spare_watts = grown(self._spare_watts, columns.height)
            changed = log.since(self._read_until)
            for row in range(columns.height) if changed is None else changed.tolist():
                node = columns.nodes[row]
                watts = node.metadata.annotations.get(SPARE, "0") if node is not None else "0"
                self._spare_watts[row] = int(watts) - self._reserve_watts
            self._read_until = log.position
        return self._spare_watts


def _watts(pod: PodInfo) -> int | None:
    # From the signature, not from the pod: results are cached for all pods of the signature.
    watts = pod.signature.labels.get(DRAWS)
    return None if watts is None else int(watts)
