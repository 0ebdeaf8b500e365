"""Sampling: not to look at all nodes, once enough of them can take the pod (`percentageOfNodesToScore`).

Comes in   the rows that can take a pod, the order of nodes, the percentage that a configuration asks for
Goes out   the rows that a search in that order would have found, and how far it would have looked

kube-scheduler samples because looking at a node costs it time. Here all rows are answered at once, and the sample is
taken from the answers: the same nodes are found, in the same order.

 1. A search ends before the first node that would be one too many; nodes after it were not looked at, and nothing is
    said about them. It also ends at a node whose filter failed.
 2. The next search starts where this one ended. (The threads of kube-scheduler may look a little further. With
    `parallelism: 1` it ends there, too.)
 3. Where nothing is scored, neither by plugins nor by extenders, and no extender filters, the first node will do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mooring.scheduler.cache.arrays import Bools, Int64s
from mooring.scheduler.cache.node_order import NodeOrder
from mooring.scheduler.framework.profile import Profile

FEASIBLE_MIN = 100
"""So many nodes are always looked for, if there are so many."""
PERCENTAGE_MIN = 5
"""The least that the size of a cluster leads to."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How one profile looks for nodes."""

    order: NodeOrder
    percentage: int | None
    """None: all nodes."""
    first_will_do: bool = False

    def wanted(self, node_count: int) -> int:
        """How many of so many nodes are enough."""
        if self.percentage is None:
            return node_count
        return 1 if self.first_will_do else feasible_wanted(self.percentage, node_count)


def sampling_for(
    profile: Profile, order: NodeOrder, *, extenders_filter: bool = False, extenders_score: bool = False
) -> Sampling | None:
    """How a profile samples; None if it looks at all nodes, and nobody asks in which order."""
    first_will_do = not profile.scores and not extenders_filter and not extenders_score
    percentage = profile.percentage_of_nodes_to_score
    if percentage is not None and percentage >= 100 and not first_will_do:
        percentage = None
    if percentage is None and not extenders_filter and not extenders_score:
        return None
    return Sampling(order, percentage, first_will_do)


class Sample(NamedTuple):
    found: Int64s
    """Rows that can take the pod, in the order in which they were found."""
    unseen: Int64s
    """Rows that were not looked at."""
    looked_at: int


def feasible_wanted(percentage: int, node_count: int) -> int:
    """How many nodes are enough; 0 percent: let the size of the cluster decide."""
    if node_count < FEASIBLE_MIN:
        return node_count
    if percentage == 0:
        percentage = max(50 - node_count // 125, PERCENTAGE_MIN)
    return max(node_count * percentage // 100, FEASIBLE_MIN)


def sample(in_turn: Int64s, fits: Bools, failed: Bools | None, wanted: int) -> Sample:
    """Goes through rows in turn until enough of them fit; `failed` rows end the search."""
    places = fits[in_turn].nonzero()[0]
    looked_at = int(places[wanted]) if len(places) > wanted else len(in_turn)
    if failed is not None:
        failures = np.flatnonzero(failed[in_turn[:looked_at]])
        if len(failures):
            failure = int(failures[0])
            return Sample(in_turn[places[places < failure]], in_turn[failure + 1 :], failure)
    return Sample(in_turn[places[:wanted]], in_turn[looked_at:], looked_at)
