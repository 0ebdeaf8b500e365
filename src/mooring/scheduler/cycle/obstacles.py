"""Obstacles: everything that stands between a pod and a node, and which nodes are nearest.

Comes in   an engine and a pending pod that found no node (or one that did: then some nodes have no obstacles)
Goes out   `Survey`: what is in the way whatever the node, and the nodes, nearest first, each with its `Obstacle`s

The cycle stops at the first filter that refuses a node: that is what users read in events. Whoever wants to change
something needs all of it, so here every filter with a say is asked about every node.

 1. Asking changes nothing; the columns are read as they are now, and nominated pods of at least the pod's priority
    count as if they were there already.
 2. Nearer is: fewer obstacles; then smaller ones (a resource by the share of the request that is missing, anything
    else by `HARDNESS`); then the name. Each short resource and each taint is an obstacle of its own.
 3. Nodes are ranked by arrays, and put into words only when they are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mooring.api.tolerations import HARD_EFFECTS, UNSCHEDULABLE_TAINT, is_tolerated
from mooring.api.views.node import Taint
from mooring.scheduler.cache.arrays import Float64s, Int64s, ReasonBits
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodRecord
from mooring.scheduler.cache.resources import PODS
from mooring.scheduler.cache.whatif import WhatIf
from mooring.scheduler.cycle.obstacle import HARDNESS, Kind, Obstacle, Place
from mooring.scheduler.cycle.obstacle_words import kind_of, told_everywhere, words_for
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.plugin import SKIP, Adjustable, Filter, Proceed, Reads
from mooring.scheduler.framework.status import Rejection
from mooring.scheduler.plugins.node_resources_fit import NodeResourcesFit, Wanted
from mooring.scheduler.plugins.node_unschedulable import NodeUnschedulable
from mooring.scheduler.plugins.taint_toleration import TaintToleration

TOO_SMALL_SIZE = 1.0
"""Added for a node that could not hold the pod even if it were empty: freeing something there does not help."""

Promises = dict[int, tuple[PodRecord, ...]]
"""The nominated pods that a pod must leave room for, by row."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What is in a pod's way, everywhere and on each node."""

    everywhere: tuple[Obstacle, ...]
    """What no node can change: a claim that does not exist, for example."""
    nearest: tuple[str, ...]
    """The nodes that have obstacles of their own, nearest first."""
    free_count: int
    """How many nodes have none."""
    _asked: _Asked

    def at(self, node_name: str) -> tuple[Obstacle, ...]:
        """All that is in the way on one node; nothing if the node would take the pod."""
        return _in_words(self._asked, node_name)


def survey(engine: Engine, pod: PodRecord) -> Survey:
    """Asks every filter with a say about every node."""
    asked = _ask(engine, pod)
    counts, sizes = _ranks(asked)
    names = engine.columns.node_names
    blocked = np.flatnonzero(counts > 0)
    order = sorted(blocked.tolist(), key=lambda at: (int(counts[at]), float(sizes[at]), names[asked.rows[at]]))
    return Survey(
        everywhere=asked.everywhere,
        nearest=tuple(names[asked.rows[at]] for at in order),
        free_count=len(asked.rows) - len(order),
        _asked=asked,
    )


def obstacles(engine: Engine, pod: PodRecord, node_name: str) -> tuple[Obstacle, ...]:
    """All that stands between a pod and one node, what is in the way everywhere included."""
    found = survey(engine, pod)
    return (*found.everywhere, *found.at(node_name))


@dataclass(frozen=True, slots=True)
class _Asked:
    """The filters' answers: for each filter with a say its state, and its bits for each row in question."""

    columns: Columns
    pod: PodRecord
    rows: Int64s
    index_of: dict[str, int]
    answers: tuple[tuple[Filter[Any], Any, Int64s], ...]
    everywhere: tuple[Obstacle, ...]
    promised: Promises

    @property
    def minds_cordons(self) -> bool:
        return any(isinstance(plugin, NodeUnschedulable) for plugin, _, _ in self.answers)


def _ask(engine: Engine, pod: PodRecord) -> _Asked:
    profile, columns = engine.cycle_for(pod).profile, engine.columns
    states: dict[str, Any] = {}
    everywhere: list[Obstacle] = []
    for plugin in profile.pre_filters:
        answer = plugin.pre_filter(pod)
        if isinstance(answer, Rejection):
            everywhere.append(told_everywhere(plugin.name, answer))
        elif isinstance(answer, Proceed):
            states[plugin.name] = answer.state
    for use in profile.filters:
        if use.pre_filter is None:
            state = use.plugin.prepare(pod)
            if state is not SKIP:
                states[use.plugin.name] = state
    rows: Int64s = np.flatnonzero(columns.alive[: columns.height]).astype(np.int64)
    promised = _promised(columns, pod)
    answers = []
    # What a node has against volumes that nobody can make out is no news.
    is_told = {obstacle.kind for obstacle in everywhere if obstacle.kind is Kind.VOLUME}
    for use in profile.filters:
        if use.plugin.name in states and kind_of(use.plugin) not in is_told:
            state = states[use.plugin.name]
            bits = use.plugin.filter(state, rows).astype(np.int64)
            _overlay_promised(columns, use.plugin, state, promised, rows, bits)
            answers.append((use.plugin, state, bits))
    index_of = {columns.node_names[row]: at for at, row in enumerate(rows.tolist())}
    # Several plugins may say the same of the same claim: once is enough.
    distinct = {obstacle.text: obstacle for obstacle in reversed(everywhere)}
    return _Asked(columns, pod, rows, index_of, tuple(answers), tuple(reversed(distinct.values())), promised)


def _promised(columns: Columns, pod: PodRecord) -> Promises:
    found = {}
    for row in columns.rows_named(columns.nominations.nodes()).tolist():
        pods = tuple(
            other
            for other in columns.nominations.on(columns.node_names[row])
            if other.priority >= pod.priority and other.uid != pod.uid
        )
        if pods:
            found[row] = pods
    return found


def _overlay_promised(
    columns: Columns, plugin: Filter[Any], state: Any, promised: Promises, rows: Int64s, bits: Int64s
) -> None:
    """Writes over the bits of rows with promised pods: there the pod must fit beside those pods too."""
    if not promised or plugin.filter_reads is Reads.FACTS:
        return
    at_rows = np.array(sorted(promised), dtype=np.int64)
    if isinstance(plugin, Adjustable):
        difference = np.zeros((plugin.measures(state), len(at_rows)), dtype=np.int64)
        for index, row in enumerate(at_rows.tolist()):
            for pod in promised[row]:
                difference[:, index] += plugin.contribution(state, pod, row)
        beside: ReasonBits = plugin.filter_adjusted(state, at_rows, difference)
    else:
        with WhatIf(columns) as experiment:
            for row, pods in promised.items():
                for pod in pods:
                    experiment.place(pod, row)
            beside = plugin.filter(state, at_rows)
    at = np.searchsorted(rows, at_rows)
    bits[at] = np.where(beside != 0, beside, bits[at])


def _ranks(asked: _Asked) -> tuple[Int64s, Float64s]:
    """Per row: how many obstacles there are, and how large they are together."""
    counts: Int64s = np.zeros(len(asked.rows), dtype=np.int64)
    sizes: Float64s = np.zeros(len(asked.rows))
    for plugin, state, bits in asked.answers:
        match plugin:
            case NodeResourcesFit():
                count, size = _shortages(asked, state)
                counts += count
                sizes += size
            case TaintToleration():
                count = _intolerable(asked)
                counts += count
                sizes += count * HARDNESS[Kind.TAINT]
            case _:
                counts += bits != 0
                sizes += (bits != 0) * HARDNESS[kind_of(plugin)]
    return counts, sizes


def _shortages(asked: _Asked, wanted: Wanted) -> tuple[Int64s, Float64s]:
    """Per row: how many resources are short, and the missing shares of the request added up."""
    resources = asked.columns.resources
    rows, promised = asked.rows, _promised_amounts(asked)
    no_slot = resources.used[PODS, rows] + promised[PODS] >= resources.allocatable[PODS, rows]
    count = no_slot.astype(np.int64)
    size: Float64s = np.where(no_slot, HARDNESS[Kind.POD_SLOT], 0.0)
    for slot, amount in wanted.demands:
        offered = resources.allocatable[slot, rows]
        missing = np.maximum(amount - (offered - resources.used[slot, rows] - promised[slot]), 0)
        if slot in wanted.of_devices:
            missing = np.where(offered == 0, 0, missing)
        count += missing > 0
        size += np.minimum(missing / amount, 1.0) + np.where((missing > 0) & (amount > offered), TOO_SMALL_SIZE, 0.0)
    return count, size


def _promised_amounts(asked: _Asked) -> Int64s:
    """Per resource and row: what nominated pods will take."""
    amounts = np.zeros((len(asked.columns.resources.names), len(asked.rows)), dtype=np.int64)
    for row, pods in asked.promised.items():
        at = int(np.searchsorted(asked.rows, row))
        for pod in pods:
            vector = pod.shape.request_vector
            amounts[: len(vector), at] += vector
    return amounts


def _intolerable(asked: _Asked) -> Int64s:
    """Per row: how many taints keep the pod away; the taint of a cordon counts with the cordon."""
    columns, tolerations = asked.columns, asked.pod.shape.spec.tolerations

    def keeps_away(taint: Taint) -> bool:
        return taint.effect in HARD_EFFECTS and not is_tolerated(taint, tolerations)

    sets = columns.taints.set_of_row[asked.rows]
    all_taints = columns.taints.judge(lambda taints: sum(map(keeps_away, taints)), np.int64)[sets]
    if not asked.minds_cordons:
        return all_taints
    but_cordon = columns.taints.judge(
        lambda taints: sum(keeps_away(taint) for taint in taints if taint.key != UNSCHEDULABLE_TAINT.key), np.int64
    )[sets]
    return np.where(columns.unschedulable[asked.rows], but_cordon, all_taints)


def _in_words(asked: _Asked, node_name: str) -> tuple[Obstacle, ...]:
    at = asked.index_of[node_name]
    row = int(asked.rows[at])
    is_cordoned = asked.minds_cordons and bool(asked.columns.unschedulable[row])
    place = Place(asked.columns, asked.pod, row, asked.promised.get(row, ()), is_cordoned)
    found: list[Obstacle] = []
    for plugin, state, bits in asked.answers:
        if bits[at]:
            found += words_for(place, plugin, state, int(bits[at]))
    return tuple(found)
