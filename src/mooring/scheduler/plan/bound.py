"""What no placement can beat, from the linear relaxation of the placement problem, solved by HiGHS.

Pods may be split between nodes, and nodes that take the same pods are added up: both only make the relaxation easier,
so its optimum is a bound for every real placement.

1. The bound respects resources (the number of pods is one of them) and every filter that depends on the node alone:
   selectors, required node affinity, taints, cordons. It leaves out spreading, affinity between pods, volumes, devices
   and host ports.
2. `highspy` is an optional dependency. Without it the text of the bound says how to install it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mooring.scheduler.cache.arrays import Bools, Int64s
from mooring.scheduler.cache.pods import PodInfo, PodSignature
from mooring.scheduler.cache.resources import CPU_NON_ZERO, MEMORY_NON_ZERO
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.obstacle import ObstacleKind
from mooring.scheduler.framework.plugin import Proceed, Scope
from mooring.scheduler.plan.new_objects import RemovalOutcome, removal_outcome, replacement_of
from mooring.scheduler.plan.request import Bound

NOT_INSTALLED = "pip install 'mooring[bound]' to see how far from the best plan this may be"
_UNLIMITED = math.inf
_TOLERANCE = 1e-6

Amounts = tuple[int, ...]
"""By resource."""


@dataclass(slots=True)
class _Group:
    """Pods of one signature."""

    amounts: Amounts
    count: int
    fits: Bools
    """Per row: whether the filters that depend on the node alone accept the pod."""


@dataclass(slots=True)
class _Site:
    """Nodes that take the same pods."""

    offered: list[int]
    """By resource: what one node offers; of nodes that exist, what all of them have free."""
    groups: tuple[int, ...]
    count_max: float = 1.0
    price: float = 0.0
    """Of one node."""


@dataclass(slots=True)
class _Problem:
    groups: list[_Group]
    sites: list[_Site] = field(default_factory=list)


def fewest_nodes(engine: Engine, pods: Sequence[PodInfo], added: Mapping[str, tuple[int, float]]) -> Bound:
    """The lowest price of nodes to add with which all pods could fit. `added`: one new, empty node of each type, as its
    row and its price. The new nodes are in the columns, with the pods of their DaemonSets."""
    model = _model()
    if model is None:
        return Bound(NOT_INSTALLED)
    problem = _Problem(_groups(engine, pods))
    new_rows = {row for row, _ in added.values()}
    problem.sites = _existing_sites(engine, problem.groups, without=new_rows)
    for row, price in added.values():
        able = tuple(index for index, group in enumerate(problem.groups) if group.fits[row])
        problem.sites.append(_Site(_free(engine, row), able, _UNLIMITED, price))
    value = _lowest_price(model, problem)
    if value < _TOLERANCE:
        return Bound("lower bound: no nodes, as all nodes together have enough free.", 0.0)
    prices = {price for _, price in added.values()}
    if prices == {1.0}:
        count = math.ceil(value - _TOLERANCE)
        return Bound(f"no plan needs fewer than {count} node{'' if count == 1 else 's'}.", float(count))
    return Bound(f"no plan costs less than {value:.4g}.", round(value, 6))


def fewest_used_nodes(engine: Engine) -> Bound:
    """The smallest number of nodes that could hold all pods that can move."""
    model = _model()
    if model is None:
        return Bound(NOT_INSTALLED)
    columns = engine.columns
    moving = [pod for pod in columns.pods.values() if pod.row >= 0 and removal_outcome(pod) is RemovalOutcome.MOVES]
    problem = _Problem(_groups(engine, [replacement_of(engine, pod) for pod in moving], has_moved=True))
    freed: dict[int, Int64s] = {}
    for pod in moving:
        vector = pod.signature.request_vector
        amounts = freed.setdefault(pod.row, np.zeros(len(columns.resources.names), dtype=np.int64))
        amounts[: len(vector)] += vector
    fixed = 0
    alike: dict[tuple[Amounts, tuple[int, ...]], _Site] = {}
    for row in columns.row_of.values():
        free = _free(engine, row)
        for resource, amount in enumerate(freed.get(row, ())):
            free[resource] += int(amount)
        able = tuple(index for index, group in enumerate(problem.groups) if group.fits[row])
        if any(removal_outcome(pod) is RemovalOutcome.IS_LOST for pod in columns.pods_on[row].values()):
            fixed += 1
            problem.sites.append(_Site(free, able))
            continue
        # Of nodes of one size, each counts as if it had as much free as the emptiest of them.
        site = alike.setdefault((tuple(columns.resources.at(row)[0]), able), _Site(free, able, 0.0, 1.0))
        site.count_max += 1
        site.offered = [max(one, other) for one, other in zip(site.offered, free, strict=True)]
    problem.sites += alike.values()
    value = _lowest_price(model, problem)
    count = fixed + math.ceil(value - _TOLERANCE)
    return Bound(f"no placement uses fewer than {count} node{'' if count == 1 else 's'}.", float(count))


def most_pods(engine: Engine, pods: Sequence[PodInfo]) -> Bound:
    """The largest number of these pods that could get a node."""
    model = _model()
    if model is None:
        return Bound(NOT_INSTALLED)
    problem = _Problem(_groups(engine, pods))
    problem.sites = _existing_sites(engine, problem.groups, without=set())
    count = math.floor(_most_placed(model, problem) + _TOLERANCE)
    return Bound(f"no placement has more than {count} of {len(pods)} pods.", float(count))


def _groups(engine: Engine, pods: Iterable[PodInfo], *, has_moved: bool = False) -> list[_Group]:
    by_signature: dict[PodSignature, list[PodInfo]] = {}
    for pod in pods:
        by_signature.setdefault(pod.signature, []).append(pod)
    return [
        _Group(tuple(signature.request_vector.tolist()), len(members), _static_fits(engine, members[0], has_moved))
        for signature, members in by_signature.items()
    ]


def _static_fits(engine: Engine, pod: PodInfo, has_moved: bool) -> Bools:
    """Per row: whether the filters that depend on the node alone accept the pod. A pod that moves could stay."""
    columns = engine.columns
    fits: Bools = columns.alive[: columns.height].copy()
    rows = np.arange(columns.height)
    for use in engine.cycle_for(pod).profile.filters:
        is_ignored = has_moved and use.plugin.obstacle_kind is ObstacleKind.CORDON
        if use.plugin.filter_scope is Scope.NODE and not is_ignored:
            prepared = use.plugin.pre_filter(pod)
            if isinstance(prepared, Proceed):
                fits &= use.plugin.filter(prepared.state, rows) == 0
    return fits


def _existing_sites(engine: Engine, groups: Sequence[_Group], without: set[int]) -> list[_Site]:
    """The nodes of today, added up by the pods that they take."""
    by_able: dict[tuple[int, ...], list[int]] = {}
    for row in engine.columns.row_of.values():
        if row in without:
            continue
        able = tuple(index for index, group in enumerate(groups) if group.fits[row])
        free = [max(amount, 0) for amount in _free(engine, row)]
        known = by_able.get(able)
        by_able[able] = free if known is None else [one + other for one, other in zip(known, free, strict=True)]
    return [_Site(free, able) for able, free in by_able.items() if able]


def _free(engine: Engine, row: int) -> list[int]:
    offered, used = engine.columns.resources.at(row)
    return [one - other for one, other in zip(offered, used, strict=True)]


def _lowest_price(model: Any, problem: _Problem) -> float:
    """The lowest price of sites with which all pods fit."""
    counts = [model.addVariable(lb=0.0, ub=site.count_max, obj=site.price) for site in problem.sites]
    for group, placed in zip(problem.groups, _place(model, problem, counts), strict=True):
        if placed:
            model.addConstr(sum(placed[1:], placed[0]) >= float(group.count))
    model.minimize()
    return float(model.getObjectiveValue())


def _most_placed(model: Any, problem: _Problem) -> float:
    counts = [model.addVariable(lb=1.0, ub=1.0) for _ in problem.sites]
    for group, placed in zip(problem.groups, _place(model, problem, counts, value=-1.0), strict=True):
        if placed:
            model.addConstr(sum(placed[1:], placed[0]) <= float(group.count))
    model.minimize()
    return -float(model.getObjectiveValue())


def _place(model: Any, problem: _Problem, counts: Sequence[Any], value: float = 0.0) -> list[list[Any]]:
    """Variables for the pods of each group on each site, within the resources of the site. Returns them by group."""
    placed: list[list[Any]] = [[] for _ in problem.groups]
    for site, count in zip(problem.sites, counts, strict=True):
        here = {index: model.addVariable(lb=0.0, obj=value) for index in site.groups}
        for index, variable in here.items():
            placed[index].append(variable)
        for resource, offered in enumerate(site.offered):
            if resource in (CPU_NON_ZERO, MEMORY_NON_ZERO):
                continue
            used = [
                float(problem.groups[index].amounts[resource]) * variable
                for index, variable in here.items()
                if resource < len(problem.groups[index].amounts) and problem.groups[index].amounts[resource]
            ]
            if used:
                model.addConstr(sum(used[1:], used[0]) <= float(max(offered, 0)) * count)
    return placed


def _model() -> Any:
    """An empty model; None without highspy."""
    try:
        import highspy
    except ImportError:
        return None
    model = highspy.Highs()  # type: ignore[no-untyped-call]
    model.silent()
    return model
