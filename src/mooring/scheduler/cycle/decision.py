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

from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.plugin import FollowUp
from mooring.scheduler.framework.status import Code, Status


@dataclass(frozen=True, slots=True)
class PreemptionPlan:
    """Who has to go, so that the pod can run where."""

    node_name: str
    victims: tuple[PodInfo, ...]


class Decision(msgspec.Struct, frozen=True):
    """What the scheduler decided about one pod."""

    pod: PodInfo
    node_name: str | None = None
    feasible_count: int = 0
    status: Status | None = None
    """Set if PreEnqueue or PreFilter ended it."""
    node_names: frozenset[str] | None = None
    """The only nodes that came into question; None: all."""
    message: str | None = None
    """The text of the FailedScheduling event."""
    preemption: PreemptionPlan | None = None
    error: str | None = None
    """A word for why the cycle ended otherwise: nonodes, skip, or the step that failed (prefilter, filter, …)."""
    node_to_status: Mapping[str, Status | None] = field(default_factory=dict)
    """In full: for each node that came into question why it refuses, None if it fits."""
    scores: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """In full: for each feasible node what each plugin gave it, and the `total`."""
    clears_nomination: bool = False
    """The pod's nomination, if it has one, is void."""
    unschedulable_plugins: frozenset[str] = frozenset()
    """The plugins that refused: what helps one of them can help the pod. Empty if it was placed or the cycle failed."""
    pending_plugins: frozenset[str] = frozenset()
    """Those of them that only wait for something: their pods skip the backoff."""
    follow_ups: tuple[FollowUp, ...] = ()
    """What PostFilter plugins want the API server to be told."""

    @property
    def is_placed(self) -> bool:
        return self.node_name is not None

    @property
    def code(self) -> Code:
        """How it ended: SUCCESS; SKIP if the pod is not worth trying; UNSCHEDULABLE or UNRESOLVABLE; ERROR."""
        if self.node_name is not None:
            return Code.SUCCESS
        if self.error is not None:
            return _CODES.get(self.error, Code.ERROR)
        if self.message is None and self.status is not None:
            return self.status.code
        return Code.UNSCHEDULABLE

    @property
    def is_unschedulable(self) -> bool:
        """The pod goes nowhere, and that is an answer: the condition's reason is Unschedulable, not SchedulerError."""
        return self.code in (Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING)


_CODES = {"skip": Code.SKIP, "nonodes": Code.UNRESOLVABLE}
"""Words for an end of the cycle that is no error."""
