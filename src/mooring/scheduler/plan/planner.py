"""Runs a plan on an engine: without interruption, or in slices between which the scheduler runs.

1. A plan changes nothing: the engine is the same before and after, and between two slices.
2. Bad requests raise `PlanError`: an unknown node or pod, too many pods.
3. The pods of a request are placed after the pending pods of the cluster with the same priority.
4. If the cluster changes between two slices so that the plan can no longer go on, it starts again, at most
   `STARTS_MAX` times.
5. In a running scheduler a plan has limits: `PLAN_S_MAX` and `CHANGES_MAX`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from heapq import nlargest

from msgspec.structs import replace

from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.engine import Engine
from mooring.scheduler.plan.add_nodes import NODES_MAX, add_nodes
from mooring.scheduler.plan.bound import fewest_used_nodes
from mooring.scheduler.plan.drain import empty_nodes, move_pods_for, remove_nodes, usage
from mooring.scheduler.plan.fix import fixes_for
from mooring.scheduler.plan.place import Placed, capacity_for, place_pods
from mooring.scheduler.plan.request import (
    CAPACITY_MAX,
    NODE_TYPES_MAX,
    PODS_MAX,
    Placement,
    PlanError,
    PlanRequest,
    PlanResult,
    Question,
)
from mooring.scheduler.plan.slices import NowS, Slices, YieldControl, map_in_slices, run_in_slices, run_to_end
from mooring.scheduler.plan.what_if import OutdatedPlan, WhatIf

STARTS_MAX = 5
NAME_LENGTH_MAX = 253
"""A longer text is no name of a node, and is not compared with names: that takes a second for 3 MB."""

PLAN_S_MAX = 30.0
"""How long a plan may take in a running scheduler."""
CHANGES_MAX = 5_000
"""Maximum size of the steps of a plan in a running scheduler (`WhatIf.is_full`): undoing and applying them again takes
about 6 µs for each, between two slices."""
NAMES_COMPARED_MAX = 200


_ELSEWHERE = "`mooring plan` takes larger ones: it reads the cluster, and plans outside of the scheduler"


class Planner:
    """Runs requests on an engine. `pending` are the pods of the cluster without a node, in queue order."""

    def __init__(self, engine: Engine, pending: Callable[[], Sequence[PodInfo]]) -> None:
        self._engine = engine
        self._pending = pending

    def plan(self, request: PlanRequest, progress: Callable[[], None] = lambda: None) -> PlanResult:
        """Run a plan without interruption. `progress` is called after each decision."""
        self._check(request)
        with WhatIf(self._engine, request.seed) as what_if:
            return run_to_end(self._answer(what_if, request), progress)

    async def plan_in_slices(self, request: PlanRequest, now_s: NowS, yield_control: YieldControl) -> PlanResult:
        """Run a plan in slices, in a running scheduler. Raises `OutdatedPlan` if the cluster changes too quickly."""
        started_s = now_s()
        for start in range(STARTS_MAX):
            self._check(request)
            try:
                with WhatIf(self._engine, request.seed, CHANGES_MAX) as what_if:

                    def check(changes: WhatIf = what_if) -> None:
                        if changes.is_full:
                            raise PlanError(f"the plan makes more than {CHANGES_MAX} changes; {_ELSEWHERE}")
                        if now_s() - started_s > PLAN_S_MAX:
                            raise PlanError(f"the plan takes longer than {PLAN_S_MAX:.0f} s; {_ELSEWHERE}")

                    answer = self._answer(what_if, request)
                    return await run_in_slices(answer, what_if, now_s, yield_control, check)
            except OutdatedPlan:
                if start + 1 == STARTS_MAX:
                    raise
        raise AssertionError("the last start returns or raises")

    def _check(self, request: PlanRequest) -> None:
        names = self._engine.columns.row_of
        for name in request.nodes:
            if name not in names:
                near = _similar(name, names) if len(name) <= NAME_LENGTH_MAX else []
                raise PlanError(f'found no node "{name}"' + (f"; did you mean {' or '.join(near)}?" if near else ""))
        twice = [name for name, count in Counter(request.nodes).items() if count > 1]
        if twice:
            raise PlanError(f'found node "{twice[0]}" twice')
        if len(request.pods) > PODS_MAX:
            raise PlanError(f"found {len(request.pods)} pods; a plan takes at most {PODS_MAX}")
        pod_twice = [key for key, count in Counter(view.key for view in request.pods).items() if count > 1]
        if pod_twice:
            raise PlanError(f"found pod {pod_twice[0]} twice")
        for view in request.pods:
            placed = self._engine.columns.pods.get(view.metadata.uid or view.key)
            if placed is not None:
                raise PlanError(f"pod {view.key} is on node {placed.node_name} already")
        if request.question in (Question.FIX, Question.CAPACITY) and not request.pods:
            raise PlanError(f"{request.question} needs a pod")
        if request.question is Question.ADD_NODES and not request.node_types:
            raise PlanError("adding nodes needs at least one type of node")
        if len(request.node_types) > NODE_TYPES_MAX:
            raise PlanError(f"found {len(request.node_types)} types of nodes; a plan takes at most {NODE_TYPES_MAX}")
        if sum(request.ratio) > CAPACITY_MAX:
            raise PlanError(f"found a group of {sum(request.ratio)} pods; a plan places at most {CAPACITY_MAX}")
        given = Counter(node_type.name for node_type in request.node_types)
        if given and max(given.values()) > 1:
            raise PlanError(f'found two types of nodes with the name "{given.most_common(1)[0][0]}"')
        added = sum(node_type.count or 0 for node_type in request.node_types)
        if added > NODES_MAX:
            raise PlanError(f"found {added} nodes to add; a plan adds at most {NODES_MAX}")

    def _answer(self, what_if: WhatIf, request: PlanRequest) -> Slices[PlanResult]:
        result = PlanResult(request.question, request.seed, self._engine.columns.node_count)
        match request.question:
            case Question.PLACE:
                placed = yield from self._place(what_if, request)
                return _with_pods(result, placed)
            case Question.REMOVE_NODES:
                return (yield from self._remove_nodes(what_if, request, result))
            case Question.ADD_NODES:
                return (yield from self._add_nodes(what_if, request, result))
            case Question.FIX:
                return (yield from self._fix(what_if, request, result))
            case Question.CAPACITY:
                ratio = request.ratio or (1,) * len(request.pods)
                return replace(result, capacity=(yield from capacity_for(what_if, request.pods, ratio)))
            case Question.DEFRAGMENT:
                return (yield from self._defragment(what_if, request, result))

    def _place(self, what_if: WhatIf, request: PlanRequest) -> Slices[Placed]:
        requested = yield from self._pods(request)
        keys = {pod.key for pod in requested}
        before = [pod for pod in self._pending() if pod.key not in keys] if request.pods else []
        placed = yield from place_pods(what_if, [*before, *requested])
        placed.placements = [placement for placement in placed.placements if placement.pod in keys]
        placed.pending = [pending for pending in placed.pending if pending.pod in keys]
        return placed

    def _remove_nodes(self, what_if: WhatIf, request: PlanRequest, result: PlanResult) -> Slices[PlanResult]:
        drained = yield from remove_nodes(what_if, request.nodes)
        placed = (yield from self._place(what_if, request)) if request.pods else Placed()
        return replace(
            result,
            placements=(*drained.placed.placements, *placed.placements),
            pending=(*drained.placed.pending, *placed.pending),
            drained=tuple(drained.nodes),
        )

    def _add_nodes(self, what_if: WhatIf, request: PlanRequest, result: PlanResult) -> Slices[PlanResult]:
        pods = yield from self._pods(request)
        added = yield from add_nodes(what_if, pods, request.node_types, wants_bound=request.wants_bound)
        return replace(_with_pods(result, added.placed), nodes_to_add=tuple(added.nodes), bound=added.bound)

    def _fix(self, what_if: WhatIf, request: PlanRequest, result: PlanResult) -> Slices[PlanResult]:
        view = request.pods[0]
        pod = self._engine.record(view)
        mark = what_if.mark()
        placed = yield from place_pods(what_if, [pod])
        yield from what_if.undo_in_slices(mark)
        fixes = (yield from fixes_for(what_if, pod, view)) if placed.pending else []
        return replace(_with_pods(result, placed), fixes=tuple(fixes))

    def _defragment(self, what_if: WhatIf, request: PlanRequest, result: PlanResult) -> Slices[PlanResult]:
        result = replace(result, before=(yield from usage(what_if)))
        if not request.pods:
            bound = fewest_used_nodes(self._engine) if request.wants_bound else None
            yield
            found = yield from empty_nodes(what_if, request.moves_max)
            after = yield from usage(what_if)
            return replace(result, moves=tuple(found.moves), cordoned=tuple(found.cordoned), after=after, bound=bound)
        pod = self._engine.record(request.pods[0])
        freed = yield from move_pods_for(what_if, pod, request.moves_max)
        if freed is None:
            placed = yield from place_pods(what_if, [pod])
            after = yield from usage(what_if, len(placed.pending))
            return replace(result, pending=tuple(placed.pending), after=after)
        moves, node_name = freed
        after = yield from usage(what_if)
        return replace(result, placements=(Placement(pod.key, node_name),), moves=tuple(moves), after=after)

    def _pods(self, request: PlanRequest) -> Slices[list[PodInfo]]:
        if request.pods:
            return (yield from map_in_slices(self._engine.record, request.pods))
        return list(self._pending())


def _with_pods(result: PlanResult, placed: Placed) -> PlanResult:
    return replace(result, placements=tuple(placed.placements), pending=tuple(placed.pending))


def _similar(name: str, names: Iterable[str]) -> list[str]:
    """Names that are like this one. Comparing takes about 50 µs, so those with a longer common prefix go first."""
    candidates = nlargest(NAMES_COMPARED_MAX, names, key=lambda other: _common_prefix_length(other, name))
    return get_close_matches(name, candidates, n=3)


def _common_prefix_length(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
