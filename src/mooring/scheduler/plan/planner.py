"""Runs a plan on an engine: at once, or in slices between which the scheduler goes on.

1. A plan changes nothing: the engine is the same before and after, and between two slices.
2. Bad requests raise `PlanError`: an unknown node or pod, too many pods.
3. Pods that are asked about wait behind the pending pods of the cluster with the same priority.
4. If the cluster changes between two slices so that the plan can no longer go on, it starts again, at most
   `STARTS_MAX` times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from difflib import get_close_matches

from msgspec.structs import replace

from mooring.api.views.pod import Pod
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.engine import Engine
from mooring.scheduler.plan.add_nodes import NODES_MAX, add_nodes
from mooring.scheduler.plan.bound import fewest_used_nodes
from mooring.scheduler.plan.capacity import capacity_for
from mooring.scheduler.plan.defragment import empty_nodes, move_pods_for, usage
from mooring.scheduler.plan.drain import remove_nodes
from mooring.scheduler.plan.fix import fixes_for
from mooring.scheduler.plan.place import Placed, Slices, place_pods, run_to_end
from mooring.scheduler.plan.request import PODS_MAX, Placement, PlanRequest, PlanResult, Question
from mooring.scheduler.plan.what_if import OutdatedPlan, WhatIf

SLICE_S = 0.03
"""Time after which a plan in slices lets the scheduler go on. The step that is running then ends first."""
STARTS_MAX = 5
NAME_LENGTH_MAX = 253
"""A longer text is no name of a node, and is not compared with names: that takes a second for 3 MB."""

NowS = Callable[[], float]


class PlanError(Exception):
    """The request cannot be planned."""


class Planner:
    """Answers requests with an engine. `pending` are the pods of the cluster without a node, in queue order."""

    def __init__(self, engine: Engine, pending: Callable[[], Sequence[PodInfo]]) -> None:
        self._engine = engine
        self._pending = pending

    def plan(self, request: PlanRequest, progress: Callable[[], None] = lambda: None) -> PlanResult:
        """Run a plan at once. `progress` is called after each decision."""
        self._check(request)
        with WhatIf(self._engine, request.seed) as what_if:
            return run_to_end(self._answer(what_if, request), progress)

    async def plan_in_slices(
        self, request: PlanRequest, now_s: NowS, let_others_run: Callable[[], Awaitable[None]]
    ) -> PlanResult:
        """Run a plan in slices. Raises `OutdatedPlan` if the cluster changes too quickly."""
        for start in range(STARTS_MAX):
            try:
                return await self._run_in_slices(request, now_s, let_others_run)
            except OutdatedPlan:
                if start + 1 == STARTS_MAX:
                    raise
        raise AssertionError("the last start returns or raises")

    async def _run_in_slices(
        self, request: PlanRequest, now_s: NowS, let_others_run: Callable[[], Awaitable[None]]
    ) -> PlanResult:
        self._check(request)
        with WhatIf(self._engine, request.seed) as what_if:
            steps = self._answer(what_if, request)
            end_s = now_s() + SLICE_S
            while True:
                try:
                    next(steps)
                except StopIteration as end:
                    result: PlanResult = end.value
                    return result
                if now_s() >= end_s:
                    what_if.suspend()
                    await let_others_run()
                    what_if.resume()
                    end_s = now_s() + SLICE_S

    def _check(self, request: PlanRequest) -> None:
        names = self._engine.columns.row_of
        for name in request.nodes:
            if name not in names:
                near = get_close_matches(name, names, n=3) if len(name) <= NAME_LENGTH_MAX else []
                raise PlanError(f'found no node "{name}"' + (f"; did you mean {' or '.join(near)}?" if near else ""))
        if len(request.pods) > PODS_MAX:
            raise PlanError(f"found {len(request.pods)} pods; a plan takes at most {PODS_MAX}")
        if request.question in (Question.FIX, Question.CAPACITY) and not request.pods:
            raise PlanError(f"{request.question} needs a pod")
        if request.question is Question.ADD_NODES and not request.node_types:
            raise PlanError("adding nodes needs at least one type of node")
        given = Counter(each.name for each in request.node_types)
        if given and max(given.values()) > 1:
            raise PlanError(f'found two types of nodes with the name "{given.most_common(1)[0][0]}"')
        added = sum(each.count or 0 for each in request.node_types)
        if added > NODES_MAX:
            raise PlanError(f"found {added} nodes to add; a plan adds at most {NODES_MAX}")

    def _answer(self, what_if: WhatIf, request: PlanRequest) -> Slices[PlanResult]:
        match request.question:
            case Question.PLACE:
                return (yield from self._place(what_if, request))
            case Question.REMOVE_NODES:
                return (yield from self._remove_nodes(what_if, request))
            case Question.ADD_NODES:
                return (yield from self._add_nodes(what_if, request))
            case Question.FIX:
                return (yield from self._fix(what_if, request))
            case Question.CAPACITY:
                return (yield from self._capacity(what_if, request))
            case Question.DEFRAGMENT:
                return (yield from self._defragment(what_if, request))

    def _place(self, what_if: WhatIf, request: PlanRequest) -> Slices[PlanResult]:
        asked = self._pods(request)
        before = [] if not request.pods else list(self._pending())
        placed = yield from place_pods(what_if, [*before, *asked])
        wanted = {pod.key for pod in asked}
        placed.placements = [each for each in placed.placements if each.pod in wanted]
        placed.pending = [each for each in placed.pending if each.pod in wanted]
        return self._result(request, placed)

    def _remove_nodes(self, what_if: WhatIf, request: PlanRequest) -> Slices[PlanResult]:
        node_count = self._engine.columns.node_count
        drained = yield from remove_nodes(what_if, request.nodes)
        return PlanResult(
            request.question,
            request.seed,
            node_count,
            placements=tuple(drained.placed.placements),
            pending=tuple(drained.placed.pending),
            drained=tuple(drained.nodes),
        )

    def _add_nodes(self, what_if: WhatIf, request: PlanRequest) -> Slices[PlanResult]:
        node_count = self._engine.columns.node_count
        added = yield from add_nodes(what_if, self._pods(request), request.node_types, wants_bound=request.wants_bound)
        return PlanResult(
            request.question,
            request.seed,
            node_count,
            placements=tuple(added.placed.placements),
            pending=tuple(added.placed.pending),
            nodes_to_add=tuple(added.nodes),
            bound=added.bound,
        )

    def _fix(self, what_if: WhatIf, request: PlanRequest) -> Slices[PlanResult]:
        view = request.pods[0]
        pod = self._record(view)
        mark = what_if.mark()
        placed = yield from place_pods(what_if, [pod])
        what_if.undo_to(mark)
        fixes = (yield from fixes_for(what_if, pod, view)) if placed.pending else []
        return replace(self._result(request, placed), fixes=tuple(fixes))

    def _capacity(self, what_if: WhatIf, request: PlanRequest) -> Slices[PlanResult]:
        ratio = request.ratio or (1,) * len(request.pods)
        capacity = yield from capacity_for(what_if, request.pods, ratio)
        return PlanResult(request.question, request.seed, self._engine.columns.node_count, capacity=capacity)

    def _defragment(self, what_if: WhatIf, request: PlanRequest) -> Slices[PlanResult]:
        engine, before = self._engine, usage(self._engine)
        node_count = engine.columns.node_count
        if not request.pods:
            bound = fewest_used_nodes(engine) if request.wants_bound else None
            yield
            found = yield from empty_nodes(what_if, request.moves_max)
            return PlanResult(
                request.question,
                request.seed,
                node_count,
                moves=tuple(found.moves),
                cordoned=tuple(found.cordoned),
                before=before,
                after=usage(engine),
                bound=bound,
            )
        pod = self._record(request.pods[0])
        freed = yield from move_pods_for(what_if, pod, request.moves_max)
        placed = (yield from place_pods(what_if, [pod])) if freed is None else Placed()
        return PlanResult(
            request.question,
            request.seed,
            node_count,
            placements=(Placement(pod.key, freed[1]),) if freed is not None else (),
            pending=tuple(placed.pending),
            moves=tuple(freed[0]) if freed is not None else (),
            before=before,
            after=usage(engine, len(placed.pending)),
        )

    def _pods(self, request: PlanRequest) -> list[PodInfo]:
        if request.pods:
            return [self._record(view) for view in request.pods]
        return list(self._pending())

    def _record(self, view: Pod) -> PodInfo:
        return self._engine.record(view)

    def _result(self, request: PlanRequest, placed: Placed) -> PlanResult:
        return PlanResult(
            request.question,
            request.seed,
            self._engine.columns.node_count,
            placements=tuple(placed.placements),
            pending=tuple(placed.pending),
        )
