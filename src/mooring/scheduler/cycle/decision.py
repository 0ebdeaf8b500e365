"""The decision, as data: where a pod goes and why, or why it goes nowhere and what could be done.

Comes in   what the cycle found
Goes out   `Decision`, which events, `explain`, metrics and the queue print and read: all the same value

 1. Exactly one of these is so: the pod was given a node; it was refused (`message` says why); it was rejected before
    the queue (`rejection`, no message); the cycle failed (`error`).
 2. Details by node are there only when the decision was asked for in full.
 3. One is made for every pod, so it is a Struct: a frozen dataclass of this size takes ten times as long to make.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
from msgspec import field

from mooring.scheduler.cache.pods import PodRecord
from mooring.scheduler.framework.status import Refusal, Rejection


@dataclass(frozen=True, slots=True)
class PreemptionPlan:
    """Who has to go, so that the pod can run where."""

    node_name: str
    victims: tuple[PodRecord, ...]


class Decision(msgspec.Struct, frozen=True):
    """What the scheduler decided about one pod."""

    pod: PodRecord
    node_name: str | None = None
    feasible_count: int = 0
    rejection: Rejection | None = None
    """Set if PreEnqueue or PreFilter ended it."""
    node_names: frozenset[str] | None = None
    """The only nodes that came into question; None: all."""
    message: str | None = None
    """The text of the FailedScheduling event."""
    preemption: PreemptionPlan | None = None
    error: str | None = None
    """A word for why the cycle ended otherwise: nonodes, skip, prefilter, filter, score, reserve."""
    refusals: Mapping[str, Refusal | None] = field(default_factory=dict)
    """In full: for each node that came into question why it refuses, None if it fits."""
    scores: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """In full: for each feasible node what each plugin gave it, and the `total`."""
    clears_nomination: bool = False
    """The pod's nomination, if it has one, is void."""

    @property
    def is_placed(self) -> bool:
        return self.node_name is not None
