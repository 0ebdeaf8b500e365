"""Plans beside a running scheduler: they yield control often, and their cost is limited."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any

import msgspec
import pytest

from mooring.kit.entropy import Entropy
from mooring.kit.loop import run_real
from mooring.scheduler.config import load_configuration
from mooring.scheduler.engine import Engine
from mooring.scheduler.plan import planner as planner_module
from mooring.scheduler.plan.planner import PLAN_S_MAX, Planner
from mooring.scheduler.plan.request import NodeType, PlanError, PlanRequest, PlanResult, Question, decode_request
from mooring.scheduler.plan.slices import SLICE_S, SLICE_S_MIN, NoChanges, Slices, run_in_slices, run_to_end
from mooring.scheduler.plan.what_if import WhatIf
from tests.api.builders import selector
from tests.builders import HOSTNAME, ZONE, budget, node, owned_by, pod, spread
from tests.scheduler.cache.logical_state import logical_state

OPERATIONS_MAX = 3
"""Decisions and changes between two points where a plan gives way."""
LONGEST_S = 0.15
"""Three times the promise, for slow machines."""
WORKLOADS = 100


def cluster(nodes: int, pods_per_node: int) -> Engine:
    """A random cluster, half full: pods of several sizes and priorities, a DaemonSet and budgets."""
    entropy = Entropy(7)
    engine = Engine(load_configuration(None), entropy=Entropy(1))
    templates = [
        pod(
            labels={"app": f"app-{number}"},
            cpu=f"{100 * (1 + entropy.integer_below(14))}m",
            priority=entropy.integer_below(3),
            owner=owned_by("ReplicaSet", f"app-{number}"),
        )
        for number in range(WORKLOADS)
    ]
    for number in range(nodes):
        engine.put(node(f"n{number}", cpu=16, memory="64Gi", zone="abc"[number % 3]))
        engine.put(pod(f"agent-{number}", cpu="100m", owner=owned_by("DaemonSet", "agent"), on=f"n{number}"))
    for number in range(nodes * pods_per_node):
        template = templates[entropy.integer_below(WORKLOADS)]
        metadata = msgspec.structs.replace(template.metadata, name=f"placed-{number}")
        spec = msgspec.structs.replace(template.spec, node_name=f"n{entropy.integer_below(nodes - nodes // 10)}")
        engine.put(msgspec.structs.replace(template, metadata=metadata, spec=spec))
    for number in range(20):
        engine.put(budget(f"b{number}", selector(app=f"app-{number}"), allowed=number % 3))
    return engine


def requests(nodes: int) -> Mapping[str, PlanRequest]:
    """One request of each kind, as large as the cluster allows."""
    many = nodes // 2
    spreading = [spread(ZONE, app="new")]
    types = tuple(NodeType(f"t{cpu}", node(f"t{cpu}", cpu=cpu), 1.0 + cpu / 10) for cpu in range(8, 48, 8))
    small = tuple(pod(f"small-{number}", cpu="10m", labels={"app": "new"}, spread=spreading) for number in range(many))
    large = tuple(pod(f"large-{number}", cpu=15) for number in range(many // 10))
    urgent = tuple(
        pod(f"urgent-{number}", cpu=15, priority=9, node_labels={HOSTNAME: f"n{number}"})
        for number in range(1 + many // 50)
    )
    return {
        "place": PlanRequest(Question.PLACE, pods=small),
        "place what fits nowhere": PlanRequest(Question.PLACE, pods=(pod("huge", cpu=99), *large)),
        "preempt": PlanRequest(Question.PLACE, pods=urgent),
        "remove": PlanRequest(Question.REMOVE_NODES, nodes=tuple(f"n{number}" for number in range(many // 20))),
        "add": PlanRequest(Question.ADD_NODES, pods=large, node_types=types, wants_bound=False),
        "fix": PlanRequest(Question.FIX, pods=(pod("f", cpu=10),)),
        "capacity": PlanRequest(Question.CAPACITY, pods=(pod("c", cpu="10m"), pod("d", cpu="20m")), ratio=(3, 1)),
        "defragment": PlanRequest(Question.DEFRAGMENT, wants_bound=False),
        "make room": PlanRequest(Question.DEFRAGMENT, pods=(pod("r", cpu=14),), wants_bound=False),
    }


# Giving way


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch, owner: type, *names: str) -> Iterator[list[int]]:
    """Counts the calls of methods, in the only item of the list."""
    calls = [0]

    def counting(method: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            calls[0] += 1
            return method(*arguments, **options)

        return called

    with monkeypatch.context() as patched:
        for name in names:
            patched.setattr(owner, name, counting(getattr(owner, name)))
        yield calls


@pytest.mark.parametrize("kind", requests(60))
def test_a_plan_yields_between_operations(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, request = cluster(60, 10), requests(60)[kind]
    planner = Planner(engine, lambda: ())
    seen: list[int] = []
    with counted(monkeypatch, Engine, "decide", "record") as decided, counted(monkeypatch, WhatIf, "_do") as changed:

        def step() -> None:
            seen.append(decided[0] + changed[0])
            decided[0] = changed[0] = 0

        result = planner.plan(request, step)
    assert sum(seen) > 1, result
    assert max(seen) <= OPERATIONS_MAX


def test_no_slice_of_a_plan_takes_long() -> None:
    """In CPU time, at 5,000 nodes with 50,000 pods."""
    engine = cluster(5_000, 10)
    longest = {kind: longest_slice_s(engine, request) for kind, request in requests(5_000).items()}
    assert max(longest.values()) < LONGEST_S, longest


def longest_slice_s(engine: Engine, request: PlanRequest) -> float:
    planner = Planner(engine, lambda: ())
    slices: list[float] = []
    gc.collect()
    gc.disable()  # the collector of a scheduler skips the objects of its cluster, that of the tests does not
    began_s = time.thread_time()

    async def yield_control() -> None:
        nonlocal began_s
        slices.append(time.thread_time() - began_s)
        began_s = time.thread_time()

    try:
        # On the clock of the CPU: the time of other processes ends neither a slice nor the plan.
        run_real(planner.plan_in_slices(request, time.thread_time, yield_control))
    finally:
        gc.enable()
    return max([*slices, time.thread_time() - began_s])


class Stopwatch:
    """A clock that moves when it is told to, and changes that take time to undo and to apply."""

    def __init__(self, changes_s: float) -> None:
        self.now_s = 0.0
        self.changes_s = changes_s
        self.pauses: list[float] = []

    def now(self) -> float:
        return self.now_s

    def suspend(self) -> None:
        self.now_s += self.changes_s

    resume = suspend

    async def yield_control(self) -> None:
        self.pauses.append(self.now_s)
        self.now_s += 1.0


@pytest.mark.parametrize(
    ("changes_s", "slice_s"),
    [
        pytest.param(0.0, SLICE_S, id="nothing to undo"),
        pytest.param(0.01, SLICE_S, id="a slice includes undoing and applying"),
        pytest.param(0.03, 2 * 0.03 + SLICE_S_MIN, id="a slice always gets something done"),
    ],
)
def test_a_slice_includes_what_the_pause_costs(changes_s: float, slice_s: float) -> None:
    watch, step_s = Stopwatch(changes_s), 0.001

    def steps() -> Slices[str]:
        for _ in range(200):
            yield
            watch.now_s += step_s
        return "done"

    assert run_real(run_in_slices(steps(), watch, watch.now, watch.yield_control)) == "done"
    lasted = [after - before - 1.0 for before, after in zip(watch.pauses, watch.pauses[1:], strict=False)]
    assert lasted
    assert all(slice_s - 2 * step_s <= lasted_s <= slice_s + 2 * step_s for lasted_s in lasted), lasted


# Limits


async def _nothing() -> None:
    pass


def planned_beside(engine: Engine, request: PlanRequest, step_s: float = 0.0) -> PlanResult:
    """A plan beside the scheduler, which leaves no trace, whether it succeeds or not."""
    before, looks = logical_state(engine.columns), count()
    try:
        return run_real(Planner(engine, lambda: ()).plan_in_slices(request, lambda: next(looks) * step_s, _nothing))
    finally:
        assert logical_state(engine.columns) == before


def test_a_plan_with_too_many_changes_is_refused_beside_the_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner_module, "CHANGES_MAX", 20)
    pods = tuple(pod(f"p{number}", cpu="1m") for number in range(21))
    engine = cluster(10, 2)
    assert len(planned_beside(engine, PlanRequest(Question.PLACE, pods=pods[:19])).placements) == 19
    with pytest.raises(PlanError, match="more than 20 changes; `mooring plan` takes larger ones"):
        planned_beside(engine, PlanRequest(Question.PLACE, pods=pods))
    assert len(Planner(engine, lambda: ()).plan(PlanRequest(Question.PLACE, pods=pods)).placements) == 21


def test_a_capacity_beside_the_scheduler_ends_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner_module, "CHANGES_MAX", 20)
    capacity = planned_beside(cluster(10, 2), PlanRequest(Question.CAPACITY, pods=(pod("p", cpu="1m"),))).capacity
    assert capacity is not None
    assert (capacity.groups, capacity.is_limit_reached) == (20, True)


def test_a_plan_that_takes_too_long_is_refused() -> None:
    pods = tuple(pod(f"p{number}", cpu="1m") for number in range(30))
    with pytest.raises(PlanError, match="longer than 30 s"):
        planned_beside(cluster(10, 2), PlanRequest(Question.PLACE, pods=pods), step_s=PLAN_S_MAX / 50)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"pods": [{}], "copies": [10**9]}, "found 1000000000 pods; a plan takes at most 10000"),
        ({"pods": [{}] * 10_001}, "found 10001 pods; a plan takes at most 10000"),
        ({"podNames": ["default/p"] * 10_001}, "found 10001 pods; a plan takes at most 10000"),
        ({"question": "capacity", "pods": [{}], "ratio": [10**12]}, "a group of 1000000000000 pods"),
        ({"question": "addNodes", "nodeTypes": [{"like": "n1"}] * 101}, "at most 100"),
        ({"question": "addNodes", "nodeTypes": [{"like": "n1", "price": 1e300}]}, "price from 0 to 1e\\+09"),
        ({"question": "addNodes", "nodeTypes": [{"like": "n1", "count": 1001}]}, "adds at most 1000"),
        ({"question": "removeNodes", "nodes": ["n1", "n1"]}, 'found node "n1" twice'),
        ({"question": "removeNodes", "nodes": ["n11"]}, "did you mean n1"),
        ({"pods": [{}, {}]}, "found pod default/p twice"),
    ],
)
def test_a_request_beyond_a_limit_is_an_error(asked: dict[str, Any], message: str) -> None:
    engine = cluster(10, 2)
    asked["pods"] = [{"metadata": {"name": "p", "namespace": "default"}, **given} for given in asked.get("pods", ())]

    async def main() -> PlanResult:
        decoding = decode_request(msgspec.json.encode(asked), engine.columns, lambda: ())
        request = await run_in_slices(decoding, NoChanges(), time.thread_time, _nothing)
        return await Planner(engine, lambda: ()).plan_in_slices(request, time.thread_time, _nothing)

    with pytest.raises(PlanError, match=message):
        run_real(main())


def test_a_pod_that_exists_may_be_given_as_an_example() -> None:
    engine = cluster(10, 2)
    before = logical_state(engine.columns)
    known = engine.columns.pods["default/placed-1"]
    given = {
        "metadata": {"name": "placed-1", "namespace": "default", "uid": known.uid},
        "spec": {"nodeName": known.node_name, "containers": [{"name": "c"}]},
        "status": {"phase": "Running"},
    }
    body = msgspec.json.encode({"pods": [given], "copies": [2]})
    request = run_to_end(decode_request(body, engine.columns, lambda: ()))
    assert [placement.pod for placement in planned_beside(engine, request).placements] == [
        "default/placed-1-0",
        "default/placed-1-1",
    ]
    assert logical_state(engine.columns) == before
