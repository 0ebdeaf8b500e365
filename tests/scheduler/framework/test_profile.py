"""Which answers of a plugin can be kept with the shape: it depends on what the plugin says that it reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mooring.scheduler.cache.arrays import Int64s, Rows, length_of
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.plugin import Filter, PreFilter, PreScore, Proceed, Scope, Score, Skip
from mooring.scheduler.framework.profile import filter_use, score_use
from tests.scheduler.harness import engine_of


class Plain(Filter[None], Score[None]):
    name = "Plain"

    def pre_filter(self, pod: PodInfo) -> Proceed[None]:
        return Proceed(None)

    def pre_score(self, pod: PodInfo, feasible: Rows) -> Skip | None:
        return None

    def filter(self, state: None, rows: Rows) -> Int64s:
        return np.zeros(length_of(rows), dtype=np.int64)

    def score(self, state: None, rows: Rows) -> Int64s:
        return np.zeros(length_of(rows), dtype=np.int64)


class Prepared(Plain, PreFilter[None], PreScore[None]):
    """The same, at the extension points PreFilter and PreScore."""


@pytest.mark.parametrize(
    ("reads", "is_cached"),
    [(Scope.NODE, True), (Scope.NODE_PODS, True), (Scope.TOPOLOGY, False), (Scope.CLUSTER, False)],
)
def test_rejections_are_kept_unless_they_read_the_cluster(
    reads: Scope, is_cached: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Plain, "filter_scope", reads)
    assert filter_use(Plain(), 3).is_row_local is is_cached


@pytest.mark.parametrize(
    ("reads", "normalizes", "is_cached"),
    [
        (Scope.NODE, False, True),
        (Scope.NODE, True, True),
        (Scope.NODE_PODS, False, True),
        pytest.param(Scope.NODE_PODS, True, False, id="normalised anew whenever a row's pods change"),
        (Scope.CLUSTER, False, False),
        (Scope.CLUSTER, True, False),
    ],
)
def test_scores_are_cached_if_they_depend_on_the_row_alone(
    reads: Scope, normalizes: bool, is_cached: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Plain, "score_scope", reads)
    monkeypatch.setattr(Plain, "normalizes", normalizes)
    assert score_use(Plain(), 1).is_row_local is is_cached


@pytest.mark.parametrize(("plugin", "prepares"), [(Plain(), False), (Prepared(), True)], ids=["without", "with"])
def test_a_score_knows_whether_its_plugin_has_pre_score(plugin: Any, prepares: bool) -> None:
    assert score_use(plugin, 1).has_pre_score is prepares


def test_the_lists_that_the_cycle_walks_agree_with_the_profile() -> None:
    profile = engine_of().cycles["default-scheduler"].profile
    assert [use.number for use in profile.filters] == list(range(len(profile.filters)))
    assert profile.cluster_filters == tuple(use for use in profile.filters if not use.is_row_local)
    assert [use.plugin.name for use in profile.filters_without_pre_filter] == ["NodeName"]
    assert [use.plugin.name for use in profile.topology_filters] == ["InterPodAffinity"]
    kept = {use.plugin.name for use in profile.filters if use.is_row_local}
    assert {plugin.name for plugin in profile.cluster_pre_filters} == {p.name for p in profile.pre_filters} - kept
