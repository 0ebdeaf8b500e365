"""A profile that is ready to run: its plugin instances at each extension point, in order.

1. A plugin is constructed once for a profile and serves all its extension points.
2. The number of a filter is its place in the profile's order. If several filters reject a node, the one with the
   smallest number is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mooring.scheduler.framework.plugin import (
    Bind,
    Filter,
    Permit,
    Plugin,
    PostBind,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    PreScore,
    QueueSort,
    Reserve,
    Scope,
    Score,
)
from mooring.scheduler.framework.status import Code


@dataclass(frozen=True, slots=True, eq=False)
class FilterUse:
    """A filter in a profile."""

    plugin: Filter[Any]
    number: int
    is_row_local: bool
    """Whether the results are cached for every pod."""
    can_fail: bool
    """Whether a reason of the filter may be an error."""


@dataclass(frozen=True, slots=True, eq=False)
class ScoreUse:
    """A score in a profile, with its weight."""

    plugin: Score[Any]
    weight: int
    has_pre_score: bool
    is_row_local: bool


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """One scheduler name and the plugins that serve it."""

    scheduler_name: str
    plugins: Mapping[str, Plugin]
    pre_enqueue: tuple[PreEnqueue, ...]
    queue_sort: QueueSort
    pre_filters: tuple[PreFilter[Any], ...]
    filters: tuple[FilterUse, ...]
    post_filters: tuple[PostFilter, ...]
    scores: tuple[ScoreUse, ...]
    reserves: tuple[Reserve, ...]
    permits: tuple[Permit, ...]
    pre_binds: tuple[PreBind, ...]
    binds: tuple[Bind, ...]
    post_binds: tuple[PostBind, ...]
    percentage_of_nodes_to_score: int | None = None

    cluster_filters: tuple[FilterUse, ...] = ()
    """The filters that are not row-local."""
    topology_filters: tuple[FilterUse, ...] = ()
    """Those of scope TOPOLOGY among them whose PreFilter is enabled."""
    filters_without_pre_filter: tuple[FilterUse, ...] = ()
    """The cluster filters that are not at PreFilter, by class or by configuration."""
    cluster_pre_filters: tuple[PreFilter[Any], ...] = ()
    """The PreFilters whose result is not cached with the signature."""
    cluster_pre_filters_without_volumes: tuple[PreFilter[Any], ...] = ()
    """Those of them that may apply to a pod without volumes."""


def filter_use(plugin: Filter[Any], number: int) -> FilterUse:
    is_row_local = plugin.filter_scope <= Scope.NODE_PODS
    can_fail = type(plugin).reasons is not Filter.reasons or any(r.code is Code.ERROR for r in plugin.filter_reasons)
    return FilterUse(plugin, number, is_row_local, can_fail)


def score_use(plugin: Score[Any], weight: int) -> ScoreUse:
    # A score that reads pods and is normalized changes on all rows with each pod: it is not cached.
    scope = plugin.score_scope
    is_row_local = scope is Scope.NODE or (scope is Scope.NODE_PODS and not plugin.normalizes)
    return ScoreUse(plugin, weight, isinstance(plugin, PreScore), is_row_local)
