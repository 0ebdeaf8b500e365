"""Engines for tests: a cluster in one line, and functions that call one plugin of it.

Nothing is random: a tie goes to the node whose name comes first, and preemption starts its search there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.scheduler.cache.arrays import Int64s
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.attempt import PodAttempt
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.cycle.explain import Explanation, explain
from mooring.scheduler.cycle.filter_nodes import find_feasible_nodes, run_pre_filter_phase
from mooring.scheduler.cycle.result_cache import ResultCache
from mooring.scheduler.engine import Engine
from mooring.scheduler.extenders.cycle import cycle_factory
from mooring.scheduler.framework.obstacle import Obstacle
from mooring.scheduler.framework.plugin import SKIP, Filter, Plugin, Proceed, Score, Skip
from mooring.scheduler.framework.registry import Registry
from mooring.scheduler.framework.status import Reason, Status
from mooring.scheduler.policy import load_configuration_or_policy
from tools.verdicts import AlwaysFirst, by_name

AnyPlugin = TypeVar("AnyPlugin", bound=Plugin)


def without_line(text: str) -> str:
    """The text of a plugin's failure without the file and line where it was raised."""
    return re.sub(r" \(\w+\.py, line \d+\)$", "", text)


def engine_of(*views: ApiObject, config: Mapping[str, Any] | None = None, registry: Registry | None = None) -> Engine:
    """An engine that knows these objects."""
    configuration = load_configuration_or_policy(config)
    engine = Engine(
        configuration,
        entropy=AlwaysFirst(seed=0),
        tie_break=by_name,
        registry=registry,
        cycle_factory=cycle_factory(configuration),
    )
    for view in views:
        engine.put(view)
    return engine


def decide(engine: Engine, view: Pod) -> Decision:
    return engine.decide(engine.record(view), in_full=True)


def settle(engine: Engine, *views: Pod) -> list[str | None]:
    """Decides for pods one after the other, each seeing those before it as placed; where each went."""
    chosen = []
    for view in views:
        decision = decide(engine, view)
        if decision.is_placed:
            assert engine.assume(decision) is None
        chosen.append(decision.node_name)
    return chosen


def explained(engine: Engine, view: Pod) -> Explanation:
    """The obstacles of a pod on all nodes."""
    record = engine.record(view)
    return explain(engine.cycle_for(record).profile, engine.columns, record)


def obstacles(engine: Engine, view: Pod, node_name: str) -> tuple[Obstacle, ...]:
    """The obstacles of a pod on one node, with those that exist everywhere."""
    found = explained(engine, view)
    return (*found.everywhere, *found.at(node_name))


def attempt_of(engine: Engine, view: Pod) -> PodAttempt:
    """What filtering finds out about a pod, with an empty cache."""
    record = engine.record(view)
    profile = engine.cycle_for(record).profile
    results = ResultCache(profile, engine.columns).results_for(record)
    attempt = run_pre_filter_phase(profile, engine.columns, results, record)
    find_feasible_nodes(attempt, None)
    return attempt


def plugin_of(engine: Engine, kind: type[AnyPlugin]) -> AnyPlugin:
    """The plugin of the default profile."""
    plugin = engine.cycles["default-scheduler"].profile.plugins[kind.name]
    assert isinstance(plugin, kind)
    return plugin


def filter_state(plugin: Filter[Any], pod: PodInfo) -> Any:
    """What a filter knows of a pod: its state, `SKIP`, or the rejection of its PreFilter."""
    answer = plugin.pre_filter(pod)
    return answer.state if isinstance(answer, Proceed) else answer


def score_state(plugin: Score[Any], pod: PodInfo, feasible: Int64s) -> Any:
    return plugin.pre_score(pod, feasible)


def rejected_by(engine: Engine, kind: type[Filter[Any]], view: Pod) -> dict[str, tuple[str, ...]] | Skip | Status:
    """What one filter says against each node; nodes that it lets through are left out."""
    plugin = plugin_of(engine, kind)
    state = filter_state(plugin, engine.record(view))
    if state is SKIP or isinstance(state, Status):
        return state
    rows = live_rows(engine)
    answers = dict(zip(rows.tolist(), plugin.filter(state, rows).tolist(), strict=True))
    names, reasons = engine.columns.node_names, plugin.reasons(state)
    return {names[row]: _said(bits, reasons) for row, bits in answers.items() if bits}


def scored_by(
    engine: Engine, kind: type[Score[Any]], view: Pod, feasible: Iterable[str] | None = None
) -> dict[str, int] | Skip | Status:
    """What one score plugin gives each node, normalised over the feasible ones (all, unless said otherwise)."""
    plugin = plugin_of(engine, kind)
    rows = live_rows(engine) if feasible is None else engine.columns.rows_named(feasible)
    state = score_state(plugin, engine.record(view), rows)
    if state is SKIP or isinstance(state, Status):
        return state
    scores = plugin.normalize(state, plugin.score(state, rows), rows)
    return {engine.columns.node_names[row]: score for row, score in zip(rows.tolist(), scores.tolist(), strict=True)}


def _said(bits: int, reasons: Sequence[Reason]) -> tuple[str, ...]:
    """The plugin's own words, before the framework adds any."""
    return tuple(r.message for place, r in enumerate(reasons) if bits >> place & 1 and r.message is not None)


def live_rows(engine: Engine) -> Int64s:
    return np.arange(engine.columns.height)[engine.columns.live_rows]
