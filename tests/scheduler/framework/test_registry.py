"""The registry: invalid plugins are rejected, valid ones are created once. Profiles: whose results are cached."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

from mooring.scheduler.cache.arrays import Int64s, Rows, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.catalogue import BUILT_IN, default_registry
from mooring.scheduler.config import expand_profiles, load_configuration
from mooring.scheduler.config.types import ExtensionPoint
from mooring.scheduler.framework.plugin import (
    SKIP,
    Adjustable,
    Filter,
    Plugin,
    PreFilter,
    PreScore,
    Proceed,
    QueueSort,
    Scope,
    Score,
    Skip,
)
from mooring.scheduler.framework.profile import Profile, filter_use, score_use
from mooring.scheduler.framework.registry import POINTS, BadPluginError, Registry
from mooring.scheduler.framework.status import Reason
from mooring.scheduler.plugins.default_binder import DefaultBinder
from mooring.scheduler.plugins.priority_sort import PrioritySort
from tests.scheduler.config.builders import Written, configuration, plugins
from tests.scheduler.harness import engine_of

HERE = "(tests.scheduler.framework.test_registry)"
NO = Reason("node(s) were rejected")


class Likes(Score[None]):
    """A good plugin, and the start of some bad ones."""

    name = "Likes"

    def pre_score(self, pod: PodInfo, feasible: Rows) -> None:
        return None

    def score(self, state: None, rows: Rows) -> Int64s:
        return np.zeros(length_of(rows), dtype=np.int64)


class Rejects(Filter[None]):
    name = "Rejects"
    filter_reasons: ClassVar[tuple[Reason, ...]] = (NO,)

    def pre_filter(self, pod: PodInfo) -> Proceed[None]:
        return Proceed(None)

    def filter(self, state: None, rows: Rows) -> Int64s:
        return np.zeros(length_of(rows), dtype=np.int64)


class Nameless(Rejects):
    name = ""


class Numbered(Rejects):
    name = 7  # type: ignore[assignment]


class Idle(Plugin):
    name = "Idle"


class HalfWritten(PreFilter[None], Score[None]):
    name = "HalfWritten"


class Greedy(Rejects):
    name = "Greedy"

    def __init__(self, columns: Columns, database: object, cache: object) -> None: ...


class Wordless(Rejects):
    name = "Wordless"
    filter_reasons = ()


class Mistaken(Rejects):
    name = "Mistaken"
    filter_reasons = ("node(s) were rejected",)  # type: ignore[assignment]


class Talkative(Rejects):
    name = "Talkative"
    filter_reasons = (NO,) * 63


class Forgetful(Adjustable[None]):
    name = "Forgetful"
    filter_scope = Scope.NODE_PODS
    filter_reasons = (NO,)

    def pre_filter(self, pod: PodInfo) -> Skip:
        return SKIP

    def filter(self, state: None, rows: Rows) -> Int64s:
        raise NotImplementedError

    def measures(self, state: None) -> int:
        raise NotImplementedError

    def contribution(self, state: None, pod: PodInfo, row: int) -> list[int]:
        raise NotImplementedError

    def filter_adjusted(self, state: None, rows: Int64s, difference: Int64s) -> Int64s:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (Nameless, f'plugin Nameless {HERE} has no name: set `name = "…"`, which is what configurations call it'),
        (Numbered, f'plugin Numbered {HERE} has no name: set `name = "…"`, which is what configurations call it'),
        (
            Idle,
            f"plugin Idle {HERE} serves no extension point: inherit from FilterPlugin, ScorePlugin, …",
        ),
        (
            HalfWritten,
            f"plugin HalfWritten {HERE} does not define pre_filter, pre_score, score, "
            "which its extension points demand",
        ),
        (
            Greedy,
            f"plugin Greedy {HERE} wants database, cache in its constructor; a plugin is given only columns, "
            "arguments, entropy, clock, client, waiting_pods, activate, evictions, record_event, record_write, "
            "workload",
        ),
        (
            Wordless,
            f"plugin Wordless {HERE} can reject nodes but has no reasons: set filter_reasons, or define reasons(state)",
        ),
        (Mistaken, f"plugin Mistaken {HERE}: filter_reasons must be Reason values, found ('node(s) were rejected',)"),
        (Talkative, f"plugin Talkative {HERE} has 63 reasons; a filter can have 62"),
        (
            Forgetful,
            f"plugin Forgetful {HERE} counts pods beyond its row (Adjustable): filter_scope must be Scope.TOPOLOGY or "
            "Scope.CLUSTER",
        ),
        ("Likes", "'Likes' is no plugin class: inherit from FilterPlugin, ScorePlugin, …"),
        (int, "<class 'int'> is no plugin class: inherit from FilterPlugin, ScorePlugin, …"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_bad_plugin_is_rejected_with_a_message(bad: type[Plugin], complaint: str) -> None:
    with pytest.raises(BadPluginError) as rejected:
        Registry([bad])
    assert str(rejected.value) == complaint


def test_two_plugins_of_one_name_are_rejected() -> None:
    class Impostor(Likes):
        name = "Rejects"

    registry = Registry([Rejects])
    with pytest.raises(BadPluginError) as rejected:
        registry.register(Impostor)
    assert str(rejected.value).endswith(
        f"a plugin called 'Rejects' is registered already (plugin Rejects {HERE}); give one of them another name"
    )


def test_the_same_plugin_may_be_registered_twice() -> None:
    registry = Registry([Likes, Likes])
    assert registry.implements("Likes", ExtensionPoint.SCORE)


def test_all_of_our_own_plugins_are_let_in() -> None:
    registry = default_registry()
    for plugin in BUILT_IN:
        served = [point for point in POINTS if registry.implements(plugin.name, point)]
        assert served == [point for point, kind in POINTS.items() if issubclass(plugin, kind)] != [], plugin.name


def test_no_plugin_serves_an_unknown_point() -> None:
    registry = default_registry()
    assert not registry.implements("NodeName", ExtensionPoint.SCORE)
    assert not registry.implements("NodeName", ExtensionPoint.PLACEMENT_SCORE)
    assert not registry.implements("Nobody", ExtensionPoint.FILTER)


class Remembers(PreFilter[int], Filter[int], Score[int]):
    """Remembers what it was given."""

    name = "Remembers"
    filter_reasons = (NO,)

    def __init__(self, columns: Columns, arguments: object, verbose: bool = True) -> None:
        self.columns = columns
        self.arguments = arguments
        self.verbose = verbose

    def pre_filter(self, pod: PodInfo) -> Proceed[int]:
        return Proceed(1)

    def pre_score(self, pod: PodInfo, feasible: Rows) -> int:
        return 1

    def filter(self, state: int, rows: Rows) -> Int64s:
        return np.zeros(length_of(rows), dtype=np.int64)

    def score(self, state: int, rows: Rows) -> Int64s:
        return np.zeros(length_of(rows), dtype=np.int64)


class Timely(Likes):
    name = "Timely"

    def __init__(self, clock: object) -> None: ...


def test_a_plugin_is_made_once_and_given_what_it_names() -> None:
    columns = Columns()
    arguments = [{"name": "Remembers", "args": {"colour": "blue"}}]
    profile = built(["PrioritySort", "Remembers", "DefaultBinder"], columns=columns, pluginConfig=arguments)
    plugin = profile.plugins["Remembers"]
    assert isinstance(plugin, Remembers)
    assert plugin.columns is columns
    assert plugin.arguments == {"colour": "blue"}
    assert plugin.verbose, "a parameter with a default is the plugin's own business"
    assert [use.plugin for use in profile.filters] == [plugin]
    assert [use.plugin for use in profile.scores] == [plugin]
    assert profile.pre_filters == (plugin,)


def test_a_plugin_without_arguments_is_given_none() -> None:
    plugin = built(["PrioritySort", "Remembers", "DefaultBinder"]).plugins["Remembers"]
    assert isinstance(plugin, Remembers)
    assert plugin.arguments == {}


def test_a_service_that_the_scheduler_lacks_is_named() -> None:
    with pytest.raises(BadPluginError) as rejected:
        built(["PrioritySort", "Timely", "DefaultBinder"])
    assert str(rejected.value) == f"plugin Timely {HERE} needs clock, which this scheduler was not given"


def test_only_plugins_of_the_plan_are_made() -> None:
    assert set(built(["PrioritySort", "Rejects", "DefaultBinder"]).plugins) == {
        "PrioritySort",
        "Rejects",
        "DefaultBinder",
    }


def test_filters_are_numbered_and_scores_are_weighed_as_the_plan_says() -> None:
    profile = built(["PrioritySort", "Rejects", "Remembers=3", "Likes=7", "DefaultBinder"])
    assert [(use.number, use.plugin.name) for use in profile.filters] == [(0, "Rejects"), (1, "Remembers")]
    assert [(use.plugin.name, use.weight) for use in profile.scores] == [("Remembers", 3), ("Likes", 7)]
    assert isinstance(profile.queue_sort, QueueSort)


def built(names: list[str], columns: Columns | None = None, **profile: object) -> Profile:
    """The profile with these plugins and no others."""
    registry = Registry([PrioritySort, DefaultBinder, Likes, Rejects, Remembers, Timely])
    enabled = {"multiPoint": {"enabled": plugins(*names), "disabled": plugins("*")}}
    written: Written = configuration(profiles=[{"plugins": enabled, **profile}])
    plans = expand_profiles(load_configuration(written), registry.implements)
    services: dict[str, object] = {"columns": columns or Columns(), "client": object()}
    return registry.build(plans["default-scheduler"], services)


# --- Which answers of a plugin can be kept with the shape: it depends on what the plugin says that it reads ----------


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
def test_a_score_use_has_whether_its_plugin_has_pre_score(plugin: Any, prepares: bool) -> None:
    assert score_use(plugin, 1).has_pre_score is prepares


def test_the_lists_that_the_cycle_walks_agree_with_the_profile() -> None:
    profile = engine_of().cycles["default-scheduler"].profile
    assert [use.number for use in profile.filters] == list(range(len(profile.filters)))
    assert profile.cluster_filters == tuple(use for use in profile.filters if not use.is_row_local)
    assert [use.plugin.name for use in profile.filters_without_pre_filter] == ["NodeName"]
    assert [use.plugin.name for use in profile.topology_filters] == ["InterPodAffinity"]
    kept = {use.plugin.name for use in profile.filters if use.is_row_local}
    assert {plugin.name for plugin in profile.cluster_pre_filters} == {p.name for p in profile.pre_filters} - kept
