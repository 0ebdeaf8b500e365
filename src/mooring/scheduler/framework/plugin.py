"""The extension points of the scheduling framework, in the order in which a pod meets them.

A plugin inherits the extension points that it implements. The result of `pre_filter` is passed to `filter`, that of
`pre_score` to `score`: typed values, not a dictionary of strings. A plugin names the services that it needs as
parameters of its constructor (`columns`, `arguments`, …; see `registry`).

`filter` and `score` return results for many rows at once. A plugin declares the scope of its results, and the cycle
caches them accordingly:

  NODE        the node of the row                    until the node changes
  NODE_PODS   the node and the pods on it            until either changes
  TOPOLOGY    the node and the pods of its domains   as NODE_PODS for a pod whose domains are single nodes, else not
  CLUSTER     anything                               not at all: called for every pod

1. A cached result depends on the pod through its signature only, never through its name, volumes or
   annotations: it holds for all pods of the signature.
2. Nothing here awaits, except binding. A cycle is a function of columns, pod and seed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

import numpy as np

from mooring.api.views.meta import ApiObject
from mooring.scheduler.cache.arrays import Int64s, ReasonBits, Rows
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import ANY_EVENT, ClusterEventWithHint
from mooring.scheduler.framework.obstacle import HARDNESS, Distances, ExplainContext, Obstacle, ObstacleKind
from mooring.scheduler.framework.post_filter import FailedAttempt, PostFilterResult
from mooring.scheduler.framework.status import Reason, Status, status_of

SCORE_MAX = 100
"""The highest score after normalizing. The lowest is 0."""

State = TypeVar("State")
ScoreState = TypeVar("ScoreState")


class Scope(IntEnum):
    """What the result for one row depends on.

    A subclass that overrides a rule and declares no scope of its own has CLUSTER.
    """

    NODE = 0
    NODE_PODS = 1
    TOPOLOGY = 2
    CLUSTER = 3


class Skip(Enum):
    """The plugin does not apply to the pod: the cycle leaves out its filter (or its score)."""

    SKIP = "Skip"


SKIP: Literal[Skip.SKIP] = Skip.SKIP


@dataclass(frozen=True, slots=True)
class Proceed(Generic[State]):
    """The result of a PreFilter that lets the pod pass."""

    state: State
    """What `filter` is called with."""
    node_names: frozenset[str] | None = None
    """The only nodes that the pod may run on; None: any."""
    is_node_local: bool = False
    """For plugins of scope TOPOLOGY: each domain that counts for this pod is a single node, so that the filter's result
    for a row depends on the node, its pods and `state` alone. `state` must compare equal while that holds."""


class Plugin:
    """The base of all plugins. `name` is what configurations call it."""

    name: str
    is_built_in: ClassVar[bool] = False
    """The class comes with the scheduler, which trusts its results. Set by the catalogue, and not inherited."""
    obstacle_kind: ClassVar[ObstacleKind] = ObstacleKind.OTHER
    """What kind of obstacle a rejection by this plugin is, for `mooring explain`."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.is_built_in = False

    def epoch(self) -> object:
        """Cached results are dropped when this changes: for what the result of a row reads beyond the row."""
        return None

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """The events that can help a pod which this plugin rejected. By default every event queues the pod."""
        return (ANY_EVENT,)


class PreEnqueue(Plugin, ABC):
    """The extension point PreEnqueue: may the pod enter the queue?"""

    @abstractmethod
    def pre_enqueue(self, pod: PodInfo) -> Status | None: ...


class QueueSort(Plugin, ABC):
    """The extension point QueueSort: the order of activeQ."""

    @abstractmethod
    def queue_key(self, pod: PodInfo, queued_s: float) -> tuple[float, ...]:
        """Pods with smaller keys come first."""


class PreFilter(Plugin, ABC, Generic[State]):
    """The extension point PreFilter: reject a pod before nodes are filtered, or name the only nodes that it may use.

    It also prepares the state of the plugin's filter.
    """

    only_for_volumes: ClassVar[bool] = False
    """Whether `pre_filter` skips every pod without volumes. The cycle then does not call it for such a pod."""

    @abstractmethod
    def pre_filter(self, pod: PodInfo) -> Proceed[State] | Skip | Status: ...

    def explain_rejection(self, pod: PodInfo, status: Status) -> Sequence[Obstacle]:
        """The obstacles behind a status of `pre_filter`, on whatever node: by default its message."""
        return [Obstacle(self.name, self.obstacle_kind, status.message)]


class Filter(Plugin, ABC, Generic[State]):
    """The extension point Filter: which nodes can take the pod?"""

    filter_scope: ClassVar[Scope] = Scope.CLUSTER
    filter_reasons: ClassVar[tuple[Reason, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # A subclass behaves as its overrides say: inherited variants of an overridden method have the old rule.
        own = cls.__dict__
        if "filter" in own and "filter_row" not in own:
            cls.filter_row = Filter.filter_row  # type: ignore[method-assign]
        if ("filter" in own or "pre_filter" in own) and "filter_scope" not in own:
            cls.filter_scope = Scope.CLUSTER

    @abstractmethod
    def pre_filter(self, pod: PodInfo) -> Proceed[State] | Skip | Status:
        """Prepare the state that `filter` is called with, or skip the pod.

        Only a plugin that also inherits from `PreFilter` may reject the pod or name nodes here.
        """

    @abstractmethod
    def filter(self, state: State, rows: Rows) -> ReasonBits:
        """For each row a bit set: 0 if the pod fits, else a bit for each of `reasons`."""

    def filter_row(self, state: State, row: int) -> int:
        """The same for a single row. An override pays where rows change one at a time: numpy is slow on one number."""
        return int(self.filter(state, np.array([row], dtype=np.int64))[0])

    def reasons(self, state: State) -> Sequence[Reason]:
        """What the bits mean, in the order in which a message lists them."""
        return self.filter_reasons

    def explain(self, state: State, row: int, bits: int, context: ExplainContext) -> Sequence[Obstacle]:
        """The obstacles of a row that the filter rejected with these bits: by default the messages of the reasons.

        `filter` may stop at the first problem; an override lists them all. It may return nothing if another filter of
        the profile explains the same problem.
        """
        status = status_of(self.name, bits, self.reasons(state))
        return [Obstacle(self.name, self.obstacle_kind, text.removeprefix("node(s) ")) for text in status.reasons]

    def distances(self, state: State, rows: Int64s, bits: Int64s, context: ExplainContext) -> Distances:
        """Per row: how many obstacles `explain` finds and how large they are. By default one of the kind's hardness.

        All nodes are ranked by this, and only the nearest are explained, so an override computes with arrays.
        """
        is_rejected = bits != 0
        return Distances(is_rejected.astype(np.int64), is_rejected * HARDNESS[self.obstacle_kind])


class Adjustable(Filter[State], Generic[State]):
    """A filter that counts pods beyond the row, and can add what one pod more or less on a row would change.

    Preemption and nominated pods need this: does the pod fit on a node with these pods added or removed? The filter
    defines a few measures of each row, the amount that one pod adds to each of them, and filters with such differences.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        is_inherited = "filter_adjusted" not in cls.__dict__ and cls.filter_adjusted is not Adjustable.filter_adjusted
        if "filter" in cls.__dict__ and is_inherited:
            cls.filter_adjusted = Adjustable._filter_unadjusted  # type: ignore[method-assign]

    def _filter_unadjusted(self, state: State, rows: Int64s, difference: Int64s) -> Int64s:
        return self.filter(state, rows).astype(np.int64)

    def snapshot(self, state: State) -> State:
        """The state with its counts as they are now, for `filter_adjusted`. By default states hold their counts."""
        return state

    @abstractmethod
    def measures(self, state: State) -> int:
        """The number of measures of a row."""

    @abstractmethod
    def contribution(self, state: State, pod: PodInfo, row: int) -> Sequence[int]:
        """The amount that one pod on this row adds to each measure."""

    @abstractmethod
    def filter_adjusted(self, state: State, rows: Int64s, difference: Int64s) -> Int64s:
        """As `filter` with a snapshot, where `difference[measure, i]` was added on `rows[i]`, and for that row only."""


RecordEvent: TypeAlias = Callable[[PodInfo, Literal["Normal", "Warning"], str, str, str], None]
"""An event about a pod: (pod, type, reason, action, note). The service `record_event`."""
RecordWrite: TypeAlias = Callable[[PodInfo, str, ApiObject], None]
"""PreBind has written an object: (pod, plugin, object as the API server returned it). The service `record_write`."""


class PostFilter(Plugin, ABC):
    """The extension point PostFilter: find a node for a pod that fits on none, for example by preemption."""

    @abstractmethod
    def post_filter(self, attempt: FailedAttempt) -> PostFilterResult: ...


class PreScore(Plugin, ABC, Generic[ScoreState]):
    """The extension point PreScore: prepare the state of the plugin's score, given the feasible nodes."""

    @abstractmethod
    def pre_score(self, pod: PodInfo, feasible: Rows) -> ScoreState | Skip | Status: ...


class Score(Plugin, ABC, Generic[ScoreState]):
    """The extension point Score: how good is each feasible node?"""

    score_scope: ClassVar[Scope] = Scope.CLUSTER
    normalizes: bool = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__  # as for `Filter`
        if "score" in own and "score_row" not in own:
            cls.score_row = Score.score_row  # type: ignore[method-assign]
        if "score" in own or "pre_score" in own:
            if "score_scope" not in own:
                cls.score_scope = Scope.CLUSTER
            if "has_score" not in own:
                cls.has_score = Score.has_score  # type: ignore[method-assign]

    def has_score(self, pod: PodInfo) -> bool:
        """Whether there is anything to score for this pod. If not, `pre_score` is not called.

        Listing the feasible nodes for `pre_score` takes time that grows with the cluster.
        """
        return True

    @abstractmethod
    def pre_score(self, pod: PodInfo, feasible: Rows) -> ScoreState | Skip | Status:
        """Prepare the state that `score` is called with, or skip the pod.

        Only a plugin that also inherits from `PreScore` may reject the pod here or read `feasible`. As in
        kube-scheduler, the score of a plugin without PreScore is reported even if it is 0 on all nodes.
        """

    @abstractmethod
    def score(self, state: ScoreState, rows: Rows) -> Int64s:
        """A number for each row, 0 to SCORE_MAX; any number if the plugin `normalizes`."""

    def score_row(self, state: ScoreState, row: int) -> int:
        """The same for a single row."""
        return int(self.score(state, np.array([row], dtype=np.int64))[0])

    def normalize(self, state: ScoreState, scores: Int64s, rows: Rows) -> Int64s:
        """The scores of all feasible rows together, brought to 0 to SCORE_MAX. Equal scores stay equal."""
        return scores


class Reserve(Plugin, ABC):
    """The extension point Reserve: record what an assumed pod takes of its node, or undo it."""

    @abstractmethod
    def reserve(self, pod: PodInfo, row: int) -> Status | None: ...

    @abstractmethod
    def unreserve(self, pod: PodInfo, node_name: str) -> None: ...

    async def released(self, pod: PodInfo, node_name: str) -> None:
        """Undo, after `unreserve`, what PreBind wrote to the API server."""


@dataclass(frozen=True, slots=True)
class Wait:
    """The pod waits until the plugin allows it, for at most this time."""

    timeout_s: float


class Permit(Plugin, ABC):
    """The extension point Permit: bind the pod now, later, or not at all."""

    @abstractmethod
    def permit(self, pod: PodInfo, node_name: str) -> Wait | Status | None: ...


class PreBind(Plugin, ABC):
    """The extension point PreBind: work before the pod is bound, such as binding volumes."""

    def has_work(self, pod: PodInfo, node_name: str) -> bool:
        """Whether there is anything to do for this pod. If not, `pre_bind` is not called, and binding is quicker."""
        return True

    @abstractmethod
    async def pre_bind(self, pod: PodInfo, node_name: str) -> Status | None: ...


class AssumesWrites(PreBind, ABC):
    """A PreBind plugin that uses the objects which `pre_bind` writes before the watch delivers them.

    `pre_bind` passes each written object to the service `record_write`, and to `assume_written`. The replay of a
    recording does not run `pre_bind`: it calls `assume_written` with the recorded objects.
    """

    @abstractmethod
    def assume_written(self, pod: PodInfo, written: ApiObject) -> str:
        """Uses an object as it was written. Returns a text if Reserve chose otherwise for the pod: what it chose."""


class Bind(Plugin, ABC):
    """The extension point Bind. The first plugin that does not skip binds the pod. May raise what its client raises."""

    @abstractmethod
    async def bind(self, pod: PodInfo, node_name: str) -> Skip | Status | None: ...


class PostBind(Plugin, ABC):
    """The extension point PostBind: the pod is bound, and can no longer be rejected."""

    @abstractmethod
    def post_bind(self, pod: PodInfo, node_name: str) -> None: ...


def scaled_to_best(scores: Int64s, *, reverse: bool) -> Int64s:
    """Per node: score * 100 // best; reversed, 100 minus that. All zero: 0, reversed 100."""
    best = int(scores.max(initial=0))
    if best == 0:
        return np.full(len(scores), SCORE_MAX, dtype=np.int64) if reverse else scores

    def share(values: Int64s) -> Int64s:
        part: Int64s = values * SCORE_MAX // best
        return SCORE_MAX - part if reverse else part

    return by_table(scores, share, 0, best)


def by_table(scores: Int64s, formula: Callable[[Int64s], Int64s], lowest: int, highest: int) -> Int64s:
    """`formula` of each score. Computed once for every value from lowest to highest, if there are fewer of them.

    Dividing integers is the most expensive part of normalizing, and scores have few different values.
    """
    if highest - lowest >= len(scores):
        return formula(scores)
    return formula(np.arange(lowest, highest + 1)).take(scores - lowest if lowest else scores)
