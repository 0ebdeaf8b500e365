"""Sampling: stop the search when enough nodes fit (`percentageOfNodesToScore`).

kube-scheduler samples because filtering a node takes time. Here all rows are filtered at once, and the sample is
taken from the results: the same nodes in the same order.

1. A search ends before the first node that would be one too many. Nodes after it count as not searched: they have no
   status. It also ends at a node whose filter failed.
2. The next search starts where this one ended. (The threads of kube-scheduler may search a little further. With
   `parallelism: 1` it ends at the same node.)
3. If no plugin and no extender scores, and no extender filters, the first node that fits is enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mooring.scheduler.cache.arrays import Bools, Int64s
from mooring.scheduler.cache.node_order import NodeOrder
from mooring.scheduler.framework.profile import Profile

FEASIBLE_MIN = 100
"""The minimum number of feasible nodes that a search looks for."""
PERCENTAGE_MIN = 5
"""The lowest percentage that is derived from the size of the cluster."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How one profile searches nodes."""

    order: NodeOrder
    percentage: int | None
    """None: all nodes."""
    first_will_do: bool = False

    def wanted(self, node_count: int) -> int:
        """The number of feasible nodes that are enough."""
        if self.percentage is None:
            return node_count
        return 1 if self.first_will_do else feasible_wanted(self.percentage, node_count)


def sampling_for(
    profile: Profile, order: NodeOrder, *, extenders_filter: bool = False, extenders_score: bool = False
) -> Sampling | None:
    """How a profile samples; None if it searches all nodes and their order does not matter."""
    first_will_do = not profile.scores and not extenders_filter and not extenders_score
    percentage = profile.percentage_of_nodes_to_score
    if percentage is not None and percentage >= 100 and not first_will_do:
        percentage = None
    if percentage is None and not extenders_filter and not extenders_score:
        return None
    return Sampling(order, percentage, first_will_do)


class Sample(NamedTuple):
    found: Int64s
    """Feasible rows in the order in which they were found."""
    unseen: Int64s
    """Rows that were not searched."""
    looked_at: int


def feasible_wanted(percentage: int, node_count: int) -> int:
    """The number of feasible nodes that are enough; 0 percent: depends on the size of the cluster."""
    if node_count < FEASIBLE_MIN:
        return node_count
    if percentage == 0:
        percentage = max(50 - node_count // 125, PERCENTAGE_MIN)
    return max(node_count * percentage // 100, FEASIBLE_MIN)


def sample(in_turn: Int64s, fits: Bools, failed: Bools | None, wanted: int) -> Sample:
    """Search rows in this order until enough of them fit. A `failed` row ends the search."""
    places = fits[in_turn].nonzero()[0]
    looked_at = int(places[wanted]) if len(places) > wanted else len(in_turn)
    if failed is not None:
        failures = np.flatnonzero(failed[in_turn[:looked_at]])
        if len(failures):
            failure = int(failures[0])
            return Sample(in_turn[places[places < failure]], in_turn[failure + 1 :], failure)
    return Sample(in_turn[places[:wanted]], in_turn[looked_at:], looked_at)
