"""Plugins return the same results for all rows, some rows, single rows, and in a dry run.

The result cache, single rows in plain Python and preemption rely on this.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import given, settings

from mooring.scheduler.cache.arrays import Int64s
from mooring.scheduler.cache.columns import Transaction
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.plugin import SKIP, Adjustable, Filter, Score
from mooring.scheduler.framework.status import Status
from mooring.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from mooring.scheduler.plugins.pod_topology_spread import PodTopologySpread
from tests.scheduler.harness import filter_state, live_rows, plugin_of, score_state
from tests.scheduler.random_history import History, Seeds, event_seeds, world_seeds
from tests.scheduler.random_world import World

SOME_PODS = 4


@settings(max_examples=60)
@given(seed=world_seeds, events=event_seeds)
def test_a_filter_returns_for_all_rows_what_it_returns_for_each(seed: int, events: Seeds) -> None:
    engine, pods = _cluster(seed, events)
    rows = live_rows(engine)
    everything = slice(0, engine.columns.height)
    for plugin, state in _filters(engine, pods):
        together = plugin.filter(state, rows).tolist()
        assert [int(plugin.filter(state, np.array([row]))[0]) for row in rows] == together, plugin.name
        assert [plugin.filter_row(state, int(row)) for row in rows] == together, plugin.name
        assert plugin.filter(state, everything)[rows].tolist() == together, plugin.name
        assert plugin.filter(state, rows[::-1]).tolist() == together[::-1], plugin.name


@settings(max_examples=60)
@given(seed=world_seeds, events=event_seeds)
def test_a_score_returns_for_all_rows_what_it_returns_for_each(seed: int, events: Seeds) -> None:
    engine, pods = _cluster(seed, events)
    rows = live_rows(engine)
    for plugin, state in _scores(engine, pods, rows):
        together = plugin.score(state, rows).tolist()
        assert [int(plugin.score(state, np.array([row]))[0]) for row in rows] == together, plugin.name
        assert [plugin.score_row(state, int(row)) for row in rows] == together, plugin.name
        assert plugin.score(state, rows[::-1]).tolist() == together[::-1], plugin.name


@settings(max_examples=60)
@given(seed=world_seeds, events=event_seeds)
def test_a_difference_of_zero_changes_no_result(seed: int, events: Seeds) -> None:
    engine, pods = _cluster(seed, events)
    rows = live_rows(engine)
    for plugin, state in _filters(engine, pods):
        if isinstance(plugin, Adjustable):
            nothing = np.zeros((plugin.measures(state), len(rows)), dtype=np.int64)
            assert plugin.filter_adjusted(state, rows, nothing).tolist() == plugin.filter(state, rows).tolist()


@settings(max_examples=60)
@given(seed=world_seeds, events=event_seeds)
def test_the_difference_of_a_pod_is_what_its_coming_or_going_changes(seed: int, events: Seeds) -> None:
    engine, pods = _cluster(seed, events)
    strangers = [engine.record(World(event).pod(pods_views(pods), f"s{event}")) for event in sorted(set(events))[-3:]]
    for plugin in (plugin_of(engine, PodTopologySpread), plugin_of(engine, InterPodAffinity)):
        for pod in pods:
            state = filter_state(plugin, pod)
            if state is SKIP or isinstance(state, Status) or _has_empty_selector(pod):
                continue
            for row in live_rows(engine).tolist():
                for stranger in strangers:
                    _assert_same_after(engine, plugin, pod, state, row, stranger, 1)
                for resident in list(engine.columns.pods_on[row].values()):
                    _assert_same_after(engine, plugin, pod, state, row, resident, -1)


def _assert_same_after(
    engine: Engine, plugin: Any, pod: PodInfo, state: Any, row: int, mover: PodInfo, count: int
) -> None:
    """One pod more or less on a row: reported as a difference, or done and counted anew."""
    if mover.terminating:
        return  # not counted at first, but counted when it comes or goes: so does kube-scheduler
    at_row = np.array([row], dtype=np.int64)
    with Transaction(engine.columns) as transaction:
        if count > 0:
            transaction.place(mover, row)
        difference = np.array(
            [[count * contributed] for contributed in plugin.contribution(state, mover, row)], dtype=np.int64
        )
        reported = plugin.filter_adjusted(state, at_row, difference)
        if count < 0:
            transaction.displace(mover)
        counted_anew = filter_state(plugin, pod)
        done = [0] if counted_anew is SKIP else plugin.filter(counted_anew, at_row).tolist()
    assert reported.tolist() == done, f"{plugin.name} for {pod}, {count} of {mover} on {engine.columns.node_names[row]}"


def _has_empty_selector(pod: PodInfo) -> bool:
    """It counts nobody at first, but everybody who comes or goes: so does kube-scheduler."""
    selectors = [constraint.label_selector for constraint in pod.signature.spec.topology_spread_constraints]
    return any(s is not None and not s.match_labels and not s.match_expressions for s in selectors)


def _cluster(seed: int, events: Seeds) -> tuple[Engine, list[PodInfo]]:
    history = History(seed)
    for event in events:
        history.happen(event)
    world = World(seed)
    pods = [history.engine.record(world.pod(history.templates, f"x{number}")) for number in range(SOME_PODS)]
    return history.engine, pods


def pods_views(pods: list[PodInfo]) -> list[Any]:
    return [pod.view for pod in pods]


def _filters(engine: Engine, pods: list[PodInfo]) -> Iterator[tuple[Filter[Any], Any]]:
    for pod in pods:
        for use in engine.cycle_for(pod).profile.filters:
            state = filter_state(use.plugin, pod)
            if state is not SKIP and not isinstance(state, Status):
                yield use.plugin, state


def _scores(engine: Engine, pods: list[PodInfo], rows: Int64s) -> Iterator[tuple[Score[Any], Any]]:
    for pod in pods:
        for use in engine.cycle_for(pod).profile.scores:
            state = score_state(use.plugin, pod, rows)
            if state is not SKIP and not isinstance(state, Status):
                yield use.plugin, state
