"""What PostFilter plugins see of an attempt that found no node. The cycle implements these protocols.

kube-scheduler's plugins get this from the `Handle`: the statuses of the nodes, and RunFilterPluginsWithNominatedPods
for nodes whose pods were changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from mooring.scheduler.cache.arrays import Bools, Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.status import Code, Status


class RowCache(Protocol):
    """Results of a plugin for rows, kept with the pod's signature."""

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
