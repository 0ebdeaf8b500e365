"""The decision about one pod: its node, or why it has none and whether preemption helps.

Events, `explain`, metrics and the queue all read this value.

1. Exactly one of these holds: the pod has a node; it is unschedulable (`message` says why); PreEnqueue rejected it
   (`status`, no message); the cycle failed (`error`).
2. Only a decision in full has details by node.
3. A `Struct`, because one is made for every pod: a frozen dataclass of this size takes ten times as long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
from msgspec import field

from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.post_filter import FollowUp
from mooring.scheduler.framework.status import Code, RejectionCount, Status


@dataclass(frozen=True, slots=True)
class PreemptionPlan:
    """The node of a preemption and its victims."""

    node_name: str
    victims: tuple[PodInfo, ...]


class NodeScores(msgspec.Struct, frozen=True, gc=False):
    """What one node scored."""

    node_name: str
    plugins: tuple[str, ...]
    """The same tuple for all nodes of a signature, which takes less memory than a dictionary for each node."""
    values: tuple[int, ...]
    """The score of each plugin, with its weight."""

    @property
    def total(self) -> int:
        return sum(self.values)

    @property
    def scores(self) -> dict[str, int]:
        """The scores by plugin."""
        return dict(zip(self.plugins, self.values, strict=True))


class Decision(msgspec.Struct, frozen=True):
    """The decision about one pod."""

    pod: PodInfo
    node_name: str | None = None
    feasible_count: int = 0
    status: Status | None = None
    """The status of the plugin that ended the attempt: at PreEnqueue or PreFilter, or with an error."""
    node_names: frozenset[str] | None = None
    """The only nodes that PreFilter plugins left; None: all."""
    message: str | None = None
    """The text of the FailedScheduling event."""
    preemption: PreemptionPlan | None = None
    error: str | None = None
    """Why the cycle ended early: nonodes, skip, or the step that failed (prefilter, filter, …)."""
    node_to_status: Mapping[str, Status | None] = field(default_factory=dict)
    """In full: the status of each node; None if the pod fits."""
    scores: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """In full: for each feasible node the score of each plugin, and the `total`."""
    best_nodes: tuple[NodeScores, ...] = ()
    """The scores of the best nodes, the selected one first; empty without `best_nodes_max` or scores."""
    rejections: tuple[RejectionCount, ...] = ()
    """How many nodes each plugin rejected. Of a pod with a node only with `best_nodes_max`."""
    clears_nomination: bool = False
    """The pod's nomination, if it has one, is cleared."""
    unschedulable_plugins: frozenset[str] = frozenset()
    """The plugins that rejected the pod: their events may help it. Empty if it has a node or the cycle failed."""
    pending_plugins: frozenset[str] = frozenset()
    """The plugins among them that wait for something: their pods skip the backoff."""
    follow_ups: tuple[FollowUp, ...] = ()
    """The writes that PostFilter plugins want to be sent to the API server."""

    @property
    def is_placed(self) -> bool:
        return self.node_name is not None

    @property
    def code(self) -> Code:
        """SUCCESS; SKIP if the pod is being deleted; UNSCHEDULABLE or UNRESOLVABLE; ERROR."""
        if self.node_name is not None:
            return Code.SUCCESS
        if self.error is not None:
            return _CODES.get(self.error, Code.ERROR)
        if self.message is None and self.status is not None:
            return self.status.code
        return Code.UNSCHEDULABLE

    @property
    def rejecting_plugins(self) -> list[str]:
        """The plugins that rejected the pod, or the one that ended the attempt, by name."""
        plugins = self.unschedulable_plugins | self.pending_plugins
        if self.status is not None and self.status.plugin:
            plugins |= {self.status.plugin}
        return sorted(plugins)

    @property
    def is_unschedulable(self) -> bool:
        """No node fits, and there was no error: the condition's reason is Unschedulable, not SchedulerError."""
        return self.code in (Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING)


_CODES = {"skip": Code.SKIP, "nonodes": Code.UNRESOLVABLE}
"""Values of `error` that are no errors."""
