"""Decision records: what the scheduler decided about a pod in one attempt, and why.

Input: the decision of each attempt. Output: the latest records, for `/debug/decisions`.

1. A record owns its values: it holds no pod, no node and no array of the scheduler, and can be sent to another process.
2. Every part of a record has a limit, and all records together take at most `RECORDS_BYTES_MAX`; the oldest are
   dropped first. Sizes are estimated from the lengths of texts and lists.
3. A record is made for every attempt. It copies what the decision has, and the nearest misses (`nearest_misses`):
   nothing else is computed for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice

import msgspec

from mooring.kit.clock import Clock, format_rfc3339_micro
from mooring.scheduler.cycle.decision import Decision, NodeScores
from mooring.scheduler.cycle.schedule_pod import NO_STEPS, Steps
from mooring.scheduler.framework.status import Code, RejectionCount
from mooring.scheduler.reporting.nearest_misses import NearestMiss

RECORDS_BYTES_MAX = 64 << 20
BEST_NODES_MAX = 3
"""Nodes of a record whose scores it has."""
REJECTIONS_MAX = 40
"""Reasons of a record; those of the most nodes are kept."""
VICTIMS_MAX = 50
MESSAGE_LENGTH_MAX = 4_096
SHOWN_MAX = 1_000
"""Default number of records on a page."""

_RECORD_BYTES = 1200
_NODE_BYTES = 400
_SCORE_BYTES = 64
_REJECTION_BYTES = 160
_VICTIM_BYTES = 100

BOUND = "bound"


class DecisionRecord(msgspec.Struct, gc=False):
    """The decision of one attempt. Only `binding` changes after it is made."""

    wall_s: float
    took_s: float
    filter_s: float
    """Time of PreFilter and Filter."""
    select_s: float
    """Time of PreScore and Score, or of PostFilter."""
    pod: str
    """NAMESPACE/NAME."""
    uid: str
    revision: str
    """The resourceVersion of the pod as it was tried."""
    scheduler: str
    attempt: int
    """The number of this attempt for the pod, from 1."""
    requeued_by: str
    """The event after which the pod was tried again; empty for the first attempt."""
    seed: int
    """The seed of the scheduler, which breaks ties."""
    configuration: str
    """A hash of the scheduler's configuration."""
    node: str | None
    feasible_nodes: int
    best_nodes: tuple[NodeScores, ...]
    rejections: tuple[RejectionCount, ...]
    binding: str = ""
    """`bound`, or why the pod was not bound; empty while that is open."""

    # Of an attempt that found no node:
    result: str = Code.SUCCESS.value
    """The code of the decision."""
    message: str = ""
    error: str = ""
    rejected_by: tuple[str, ...] = ()
    """The plugins whose events may help the pod, or the plugin that failed."""
    preemption_node: str = ""
    victims: tuple[str, ...] = ()
    nearest: tuple[NearestMiss, ...] = ()
    """The nearest nodes, and what was missing there. Empty if many pods were rejected at once."""

    @property
    def bytes_estimated(self) -> int:
        nodes = self.best_nodes
        size = _RECORD_BYTES + len(self.pod) + _REJECTION_BYTES * len(self.rejections)
        if nodes:
            size += len(nodes) * (_NODE_BYTES + _SCORE_BYTES * len(nodes[0].values))
        if self.node is None:
            size += len(self.message) + _VICTIM_BYTES * len(self.victims)
            size += sum([miss.bytes_estimated for miss in self.nearest])
        return size

    def document(self) -> dict[str, object]:
        """The record as JSON. Empty parts are left out."""
        document: dict[str, object] = {
            "time": format_rfc3339_micro(self.wall_s),
            "pod": self.pod,
            "uid": self.uid,
            "attempt": self.attempt,
            "result": self.result,
            "node": self.node,
            "feasibleNodes": self.feasible_nodes,
            "tookMicroseconds": round(self.took_s * 1e6),
            "steps": {
                "filterMicroseconds": round(self.filter_s * 1e6),
                "scoreMicroseconds" if self.node is not None else "postFilterMicroseconds": round(self.select_s * 1e6),
            },
            "revision": self.revision,
            "seed": str(self.seed),
            "configuration": self.configuration,
        }
        if self.requeued_by:
            document["requeuedBy"] = self.requeued_by
        if self.binding:
            document["binding"] = self.binding
        if self.message:
            document["message"] = self.message
        if self.error:
            document["error"] = self.error
        if self.best_nodes:
            document["bestNodes"] = [
                {"node": best_node.node_name, "total": best_node.total, "scores": best_node.scores}
                for best_node in self.best_nodes
            ]
        if self.rejected_by:
            document["rejectedBy"] = list(self.rejected_by)
        if self.rejections:
            document["rejections"] = [_rejection_document(rejection) for rejection in self.rejections]
        if self.nearest:
            document["nearestNodes"] = [
                {
                    "node": miss.node,
                    "obstacles": [{"plugin": obstacle.plugin, "text": obstacle.text} for obstacle in miss.obstacles],
                }
                for miss in self.nearest
            ]
        if self.preemption_node:
            document["preemption"] = {"node": self.preemption_node, "victims": list(self.victims)}
        return document


def record_of(
    decision: Decision,
    attempt: int,
    wall_s: float,
    took_s: float,
    requeued_by: str = "",
    steps: Steps = NO_STEPS,
    nearest: tuple[NearestMiss, ...] = (),
    seed: int = 0,
    configuration: str = "",
) -> DecisionRecord:
    pod, node_name = decision.pod, decision.node_name
    started_s, filtered_s, ended_s = steps
    rejections = decision.rejections
    if len(rejections) > REJECTIONS_MAX:
        rejections = tuple(sorted(rejections, key=lambda rejection: -rejection.nodes)[:REJECTIONS_MAX])
    record = DecisionRecord(
        wall_s,
        took_s,
        filtered_s - started_s,
        ended_s - filtered_s,
        pod.key,
        pod.uid,
        pod.view.metadata.resource_version if pod.view is not None else "",
        pod.signature.scheduler_name,
        attempt,
        requeued_by,
        seed,
        configuration,
        node_name,
        decision.feasible_count,
        decision.best_nodes,
        rejections,
    )
    if node_name is None:
        record.result = decision.code.value
        record.message = (decision.message or "")[:MESSAGE_LENGTH_MAX]
        record.error = decision.error or ""
        record.rejected_by = tuple(decision.rejecting_plugins)
        record.nearest = nearest
        if decision.preemption is not None:
            record.preemption_node = decision.preemption.node_name
            record.victims = tuple([victim.key for victim in islice(decision.preemption.victims, VICTIMS_MAX)])
    return record


Listener = Callable[[DecisionRecord], None]


class DecisionRecords:
    """The latest records. Reports add them; pages read them."""

    def __init__(
        self, clock: Clock, bytes_max: int = RECORDS_BYTES_MAX, *, seed: int = 0, configuration: str = ""
    ) -> None:
        self._clock = clock
        self._seed = seed
        self._configuration = configuration
        self._bytes_max = bytes_max
        self._records: deque[DecisionRecord] = deque()
        self._bytes = 0
        self._unbound: dict[str, DecisionRecord] = {}
        """By uid: the records of pods that have a node and are not bound yet."""
        self._listeners: list[tuple[Listener, Listener]] = []

    def __len__(self) -> int:
        return len(self._records)

    @property
    def bytes_estimated(self) -> int:
        return self._bytes

    @property
    def oldest(self) -> DecisionRecord | None:
        return self._records[0] if self._records else None

    def listen(self, added: Listener, bound: Listener) -> None:
        """Calls `added` with each new record, and `bound` when the outcome of its binding is known."""
        self._listeners.append((added, bound))

    def add(
        self,
        decision: Decision,
        attempt: int,
        took_s: float,
        requeued_by: str = "",
        steps: Steps = NO_STEPS,
        nearest: tuple[NearestMiss, ...] = (),
    ) -> None:
        record = record_of(
            decision,
            attempt,
            self._clock.wall_s(),
            took_s,
            requeued_by,
            steps,
            nearest,
            self._seed,
            self._configuration,
        )
        self._records.append(record)
        if record.node is not None:
            self._unbound[record.uid] = record
        self._bytes += record.bytes_estimated
        for added, _ in self._listeners:
            added(record)
        while self._bytes > self._bytes_max and len(self._records) > 1:
            dropped = self._records.popleft()
            self._bytes -= dropped.bytes_estimated
            self._unbound.pop(dropped.uid, None)

    def bound(self, uid: str, outcome: str) -> None:
        """The binding of the pod has ended."""
        record = self._unbound.pop(uid, None)
        if record is not None:
            record.binding = outcome[:MESSAGE_LENGTH_MAX]
            for _, bound in self._listeners:
                bound(record)

    def recent(self, *, pod: str = "", limit: int = SHOWN_MAX) -> Iterator[DecisionRecord]:
        """The latest records, newest first; only those about `pod` (NAMESPACE/NAME), if it is given."""
        return islice((record for record in reversed(self._records) if not pod or record.pod == pod), limit)


def _rejection_document(rejection: RejectionCount) -> dict[str, object]:
    document: dict[str, object] = {"plugin": rejection.plugin, "nodes": rejection.nodes}
    if rejection.reason:
        document["reason"] = rejection.reason
    return document
