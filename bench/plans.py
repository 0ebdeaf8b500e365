"""Plans on a large cluster: how long each question takes.

    python -m bench.plans            5,000 nodes with 50,000 pods
    python -m bench.plans --quick    a small cluster: does everything work?

1. A figure is the best of `TRIES` runs, each after a change of the cluster, as between two requests to a running
   scheduler. The pods that are asked about are new each time.
2. Each plan is checked: a plan that answers nothing is not fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import click
import msgspec

from bench.results import Figure, print_figures
from mooring.api.decode import convert_as
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.kit.clock import SystemClock
from mooring.kit.entropy import Entropy
from mooring.scheduler.config import load_configuration
from mooring.scheduler.engine import Engine
from mooring.scheduler.plan.planner import Planner
from mooring.scheduler.plan.request import NodeType, PlanRequest, PlanResult, Question

TRIES = 3
NODES, PODS_PER_NODE = 5_000, 10
NODES_QUICK = 30
NODE_TYPES = 20
ZONE = "topology.kubernetes.io/zone"


def node(name: str, cpu: int, zone: str) -> Node:
    labels = {"kubernetes.io/hostname": name, ZONE: zone}
    allocatable = {"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "pods": "110"}
    return convert_as(Node, {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": allocatable}})


def pod(name: str, cpu: str, *, app: str = "", on: str = "", spread: bool = False) -> Pod:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": app, "controller": True}
    metadata = {"name": name, "namespace": "bench", "labels": {"app": app}, "ownerReferences": [owner] if app else []}
    spec: dict[str, object] = {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}],
        "nodeName": on,
    }
    if spread:
        selector = {"matchLabels": {"app": app}}
        constraint = {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": selector,
        }
        spec["topologySpreadConstraints"] = [constraint]
    return convert_as(Pod, {"metadata": metadata, "spec": spec})


def full_engine(nodes: int) -> Engine:
    """A cluster of 16 cpu nodes, half of which is requested, by 300 workloads."""
    engine = Engine(load_configuration(None), entropy=Entropy(1), best_nodes_max=1)
    for number in range(nodes):
        engine.put(node(f"n{number}", 16, "abc"[number % 3]))
    for number in range(nodes * PODS_PER_NODE):
        engine.put(pod(f"p{number}", "800m", app=f"app-{number % 300}", on=f"n{number % nodes}"))
    return engine


def measure(quick: bool) -> Iterator[Figure]:
    nodes = NODES_QUICK if quick else NODES
    engine = full_engine(nodes)
    planner = Planner(engine, lambda: ())
    clock = SystemClock()
    types = tuple(
        NodeType(f"t{number}", node(f"t{number}", 8 + 8 * number, "a"), 1.0 + 0.9 * number)
        for number in range(NODE_TYPES)
    )

    def figure(
        name: str, at_most_ms: float, request: Callable[[int], PlanRequest], check: Callable[[PlanResult], bool]
    ) -> Figure:
        best_ms = float("inf")
        for number in range(1 if quick else TRIES):
            engine.put(pod(f"other-{name}-{number}", "10m", app="other", on=f"n{number}"))
            started_s = clock.now_s()
            result = planner.plan(request(number))
            best_ms = min(best_ms, 1000 * (clock.now_s() - started_s))
            assert check(result), f"{name}: {msgspec.json.encode(result)[:2000]!r}"
        return Figure(name, best_ms, "ms", at_most=at_most_ms)

    yield figure(
        "place one pod",
        10,
        lambda number: PlanRequest(Question.PLACE, pods=(pod(f"one-{number}", f"{1000 + number}m"),)),
        lambda result: len(result.placements) == 1,
    )
    yield figure(
        "place a Deployment of 100, spread over zones",
        100,
        lambda number: PlanRequest(
            Question.PLACE,
            pods=tuple(pod(f"d-{number}-{index}", "1", app=f"d-{number}", spread=True) for index in range(100)),
        ),
        lambda result: len(result.placements) == (100 if nodes > 100 else len(result.placements)) > 0,
    )
    yield figure(
        "remove a node",
        200,
        lambda number: PlanRequest(Question.REMOVE_NODES, nodes=(f"n{number + 3}",)),
        lambda result: result.drained[0].is_safe and len(result.placements) >= PODS_PER_NODE,
    )
    yield figure(
        "add nodes of 20 types for 100 pods",
        1000,
        lambda number: PlanRequest(
            Question.ADD_NODES,
            pods=tuple(pod(f"a-{number}-{index}", f"{12000 + number}m") for index in range(100)),
            node_types=types,
            wants_bound=False,
        ),
        lambda result: bool(result.nodes_to_add) and not result.pending,
    )
    yield figure(
        "fix a pod",
        50,
        lambda number: PlanRequest(Question.FIX, pods=(pod(f"f-{number}", f"{10000 + number}m"),)),
        lambda result: bool(result.fixes),
    )
    yield figure(
        "capacity for a pod",
        1000,
        lambda number: PlanRequest(Question.CAPACITY, pods=(pod(f"c-{number}", f"{4000 + number}m"),)),
        lambda result: result.capacity is not None and result.capacity.groups > 0,
    )
    yield figure(
        "defragment, 50 moves",
        5000,
        lambda number: PlanRequest(Question.DEFRAGMENT, moves_max=50, wants_bound=False),
        lambda result: len(result.moves) > 0,
    )


@click.command()
@click.option("--quick", is_flag=True, help="A small cluster: does everything work?")
@click.option("--output", type=click.Path(path_type=Path), help="Write the figures there, as JSON.")
def main(quick: bool, output: Path | None) -> None:
    """Measure plans."""
    print_figures(measure(quick), output)


if __name__ == "__main__":
    main()
