"""PostFilter: what a plugin sees of an attempt that found no node, and what it returns. Preemption in two steps.

kube-scheduler's plugins get the statuses of the nodes, and RunFilterPluginsWithNominatedPods for nodes whose pods were
changed, from the `Handle`. Here the cycle implements `FailedAttempt`.

Preemption has two steps, so that extenders may change the candidates in between:

1. `find_candidates` finds nodes on which evicting pods would make the pod fit, with the victims on each.
2. `select_candidate` selects the one whose eviction does the least harm.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from mooring.scheduler.cache.arrays import Bools, Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.status import Code, Status


class RowCache(Protocol):
    """Results of a plugin for rows, stored with the pod's signature."""

    def forget(self, rows: Int64s | None) -> None:
        """Drop the results of these rows, which have changed; None: of all rows."""


Cache = TypeVar("Cache", bound=RowCache)


class DryRunOfFilters(Protocol):
    """Some rows whose pods are changed as if each row alone had changed. Leaving the dry run undoes all changes.

    `at` are indexes into the rows of the dry run.
    """

    def add(self, index: int, pod: PodInfo) -> None: ...

    def remove(self, index: int, pod: PodInfo) -> None: ...

    def is_rejected(self, at: Int64s) -> Bools:
        """Whether the filters reject the pod on each row, with or without the row's nominated pods."""

    def statuses(self, at: Int64s) -> Mapping[int, Status]:
        """By index: the status of each row that is rejected."""


class FailedAttempt(Protocol):
    """An attempt that found no node."""

    @property
    def pod(self) -> PodInfo: ...

    @property
    def columns(self) -> Columns: ...

    @property
    def pre_filter_status(self) -> Status | None:
        """Set if a PreFilter plugin ended the attempt."""

    @property
    def states(self) -> Mapping[str, Any]:
        """The filter state of each plugin that applies to the pod, by name."""

    def was_pre_filtered(self, plugin: str) -> bool:
        """Whether the plugin's PreFilter ran before another one ended the attempt."""

    def status_at(self, row: int) -> Status | None:
        """Why a row was rejected; None if it was not."""

    def code_at(self, row: int) -> Code: ...

    def is_rejected_with(self, code: Code) -> Bools:
        """Per row: whether a filter or an extender rejected it with this code."""

    def dry_run(self, rows: Int64s) -> AbstractContextManager[DryRunOfFilters]:
        """A dry run of the filters of the profile on these rows."""

    def row_cache(self, kind: type[Cache]) -> Cache:
        """The plugin's cache for the pod's signature; an empty one if the results of this attempt are not cached."""


FollowUp: TypeAlias = Callable[[], Awaitable[None]]
"""A write to the API server that a decision needs. Raises `ClientError`."""


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """The result of PostFilter: a node that fits once the victims are gone, or the status if there is none."""

    nominated_node: str | None = None
    """None keeps the nomination of the pod. Empty clears it."""
    victims: tuple[PodInfo, ...] = ()
    status: Status | None = None
    follow_up: FollowUp | None = None
    """Writes that the result needs."""


class Victims(NamedTuple):
    """The pods to evict from a node, most important first, and how many of them violate a disruption budget."""

    pods: tuple[PodInfo, ...]
    violations: int


Candidates: TypeAlias = Mapping[str, Victims]
"""By node name."""


@runtime_checkable
class FindsCandidates(Protocol):
    """A PostFilter plugin that preempts, and whose candidates extenders may change."""

    def find_candidates(self, attempt: FailedAttempt) -> Candidates | PostFilterResult:
        """The candidates; a result with a status if there are none."""

    def select_candidate(self, candidates: Candidates) -> PostFilterResult: ...


def preemption_failed(code: Code, message: str, nominated_node: str | None = None) -> PostFilterResult:
    """The result of a preemption without a node."""
    return PostFilterResult(nominated_node, status=Status(code, (f"preemption: {message}",)))
