"""The extension points of the scheduling framework, in the order in which a pod meets them.

A plugin inherits the extension points that it implements. The result of `pre_filter` is passed to `filter`, that of
`pre_score` to `score`: typed values, not a dictionary of strings. A plugin names the services that it needs as
parameters of its constructor (`columns`, `arguments`, …; see `registry`).

`filter` and `score` answer for many rows at once. A plugin declares the scope of its answers, and the cycle caches
them accordingly:

  NODE        the node of the row               until the node changes
  NODE_PODS   the node and the pods on it       until either changes
  CLUSTER     anything                          not at all: asked for every pod

1. An answer with scope NODE or NODE_PODS depends on the pod through its signature only, never through its name,
   volumes or annotations: it is cached for all pods of the signature.
2. Nothing here awaits, except binding. A cycle is a function of columns, pod and seed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

import numpy as np

from mooring.scheduler.cache.arrays import Int64s, ReasonBits, Rows
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import ANYTHING, Wake
from mooring.scheduler.framework.failed_attempt import FailedAttempt
from mooring.scheduler.framework.obstacle import HARDNESS, Distances, ExplainContext, Obstacle, ObstacleKind
from mooring.scheduler.framework.status import Reason, Status, status_of

SCORE_MAX = 100
"""The best score that a plugin may give after normalising; the worst is 0."""

State = TypeVar("State")
ScoreState = TypeVar("ScoreState")


class Scope(IntEnum):
    """How far an answer for one row looks."""

    NODE = 0
    NODE_PODS = 1
    CLUSTER = 2


class Skip(Enum):
    """This pod is none of the plugin's business: its filter (or score) is left out of the cycle."""

    SKIP = "Skip"


SKIP: Literal[Skip.SKIP] = Skip.SKIP


class Even(Enum):
    """All nodes are the same to this score: each has 0, which is told, and decides nothing."""

    EVEN = "Even"


EVEN: Literal[Even.EVEN] = Even.EVEN


@dataclass(frozen=True, slots=True)
class Proceed(Generic[State]):
    """Go on, with this state for the filter; if `node_names` is given, only those nodes come into question."""

    state: State
    node_names: frozenset[str] | None = None


class Plugin:
    """The base of all plugins. `name` is what configurations call it."""

    name: str
    is_built_in: ClassVar[bool] = False
    """The class comes with the scheduler, which trusts its answers. Set by the catalogue, and not inherited."""
    obstacle_kind: ClassVar[ObstacleKind] = ObstacleKind.OTHER
    """What kind of obstacle a rejection by this plugin is, for `mooring explain`."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.is_built_in = False

    def epoch(self) -> object:
        """Answers that were kept are dropped when this changes: for what a row's answer reads beyond its row."""
        return None

    def wakes(self) -> Sequence[Wake]:
        """What can help a pod that this plugin refused. A plugin that does not say has its pods woken by anything."""
        return (ANYTHING,)


class PreEnqueue(Plugin, ABC):
    """May the pod enter the queue at all?"""

    @abstractmethod
    def pre_enqueue(self, pod: PodInfo) -> Status | None: ...


class QueueSort(Plugin, ABC):
    """In which order are pods tried?"""

    @abstractmethod
    def queue_key(self, pod: PodInfo, queued_s: float) -> tuple[float, ...]:
        """Pods with smaller keys come first."""


class PreFilter(Plugin, ABC, Generic[State]):
    """What does the filter need to know of this pod, and is the pod its business?"""

    only_for_volumes: ClassVar[bool] = False
    """It skips every pod without volumes, and so need not be asked about one."""

    @abstractmethod
    def pre_filter(self, pod: PodInfo) -> Proceed[State] | Skip | Status: ...


class Filter(Plugin, ABC, Generic[State]):
    """Which nodes can take the pod? The state comes from the plugin's `pre_filter`, or else from `prepare`."""

    filter_scope: ClassVar[Scope] = Scope.CLUSTER
    filter_reasons: ClassVar[tuple[Reason, ...]] = ()
    wants_few_rows: ClassVar[bool] = False
    """Each row is dear to this filter: it is asked only about those that row-local and earlier filters let through."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "filter" in cls.__dict__ and "filter_row" not in cls.__dict__:
            cls.filter_row = Filter.filter_row  # type: ignore[method-assign]  # an inherited one ignores the override

    def prepare(self, pod: PodInfo) -> State | Skip:
        """What `filter` needs to know of the pod, for a plugin that does not serve PreFilter."""
        return SKIP

    @abstractmethod
    def filter(self, state: State, rows: Rows) -> ReasonBits:
        """For each row a bit set: 0 if the pod fits, else a bit for each of `reasons`."""

    def filter_row(self, state: State, row: int) -> int:
        """The same for a single row. Worth defining where usage changes often: numpy is slow on one number."""
        return int(self.filter(state, np.array([row], dtype=np.int64))[0])

    def reasons(self, state: State) -> Sequence[Reason]:
        """What the bits mean, in the order in which it is told."""
        return self.filter_reasons

    def explain(self, state: State, row: int, bits: int, context: ExplainContext) -> Sequence[Obstacle]:
        """Everything this filter has against a row that it rejected with these bits: by default the reasons' messages.

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
    """A filter that counts pods beyond the row, and can say what one pod more or less on a row would change.

    Preemption and nominations ask: what if this pod were on this node, or were not? The filter names a few measures
    of each row, says how much one pod adds to them, and filters with such differences added.
    """

    @abstractmethod
    def measures(self, state: State) -> int:
        """How many numbers describe what pods on a row contribute."""

    @abstractmethod
    def contribution(self, state: State, pod: PodInfo, row: int) -> Sequence[int]:
        """What one pod on this row adds to each measure."""

    @abstractmethod
    def filter_adjusted(self, state: State, rows: Int64s, difference: Int64s) -> Int64s:
        """As `filter`, where `difference[measure, i]` pods were added on `rows[i]`, and on that row only."""


RecordEvent: TypeAlias = Callable[[PodInfo, Literal["Normal", "Warning"], str, str, str], None]
"""An event about a pod: (pod, type, reason, action, note). The service `record_event`."""

FollowUp: TypeAlias = Callable[[], Awaitable[None]]
"""Something that a decision entails and that has to wait for the API server. Raises `ClientError`."""


class PostFilter(Plugin, ABC):
    """No node can take the pod. Can anything be done about it?"""

    @abstractmethod
    def post_filter(self, attempt: FailedAttempt) -> PostFilterResult: ...


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """What a PostFilter plugin could do: a node that will have room once the victims are gone, or why not."""

    nominated_node: str | None = None
    """None: leave the pod's nomination as it is. Empty: withdraw it."""
    victims: tuple[PodInfo, ...] = ()
    status: Status | None = None
    follow_up: FollowUp | None = None
    """What the API server is to be told for it."""


class PreScore(Plugin, ABC, Generic[ScoreState]):
    """What does the score need to know, given the nodes that can take the pod?"""

    @abstractmethod
    def pre_score(self, pod: PodInfo, feasible: Rows) -> ScoreState | Skip | Status: ...


class Score(Plugin, ABC, Generic[ScoreState]):
    """How good is each node? The state comes from the plugin's `pre_score`, or else from `prepare_score`."""

    score_scope: ClassVar[Scope] = Scope.CLUSTER
    normalizes: bool = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "score" in cls.__dict__ and "score_row" not in cls.__dict__:
            cls.score_row = Score.score_row  # type: ignore[method-assign]  # as for `Filter`

    def prepare_score(self, pod: PodInfo) -> ScoreState | Skip | Even:
        """What `score` needs to know of the pod, for a plugin that does not serve PreScore."""
        return SKIP

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
    """The pod is about to be believed on a node: remember what that takes, or take it back."""

    @abstractmethod
    def reserve(self, pod: PodInfo, row: int) -> Status | None: ...

    @abstractmethod
    def unreserve(self, pod: PodInfo, node_name: str) -> None: ...

    async def released(self, pod: PodInfo, node_name: str) -> None:
        """Tells the API server, after `unreserve`, what it had been told in PreBind and is not so any more."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Not yet: ask again when allowed, and give up after so many seconds."""

    timeout_s: float


class Permit(Plugin, ABC):
    """Now, later, or not at all?"""

    @abstractmethod
    def permit(self, pod: PodInfo, node_name: str) -> Wait | Status | None: ...


class PreBind(Plugin, ABC):
    """Work that must be done before the pod is bound: volumes, devices."""

    def has_work(self, pod: PodInfo, node_name: str) -> bool:
        """Whether there is anything to do for this pod. If not, `pre_bind` is not called, and binding is quicker."""
        return True

    @abstractmethod
    async def pre_bind(self, pod: PodInfo, node_name: str) -> Status | None: ...


class Bind(Plugin, ABC):
    """Tell the API server. The first plugin that does not skip has bound the pod. May raise what its client raises."""

    @abstractmethod
    async def bind(self, pod: PodInfo, node_name: str) -> Skip | Status | None: ...


class PostBind(Plugin, ABC):
    """The pod is bound. Nothing can be refused any more."""

    @abstractmethod
    def post_bind(self, pod: PodInfo, node_name: str) -> None: ...
