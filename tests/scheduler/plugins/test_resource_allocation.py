"""Kernels of resource scoring against the rule for one node; NodeResourcesBalancedAllocation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.views.devices import ResourceSlice
from mooring.api.views.pod import Pod
from mooring.scheduler.devices.dra_manager import DRAManager
from mooring.scheduler.framework.plugin import SKIP
from mooring.scheduler.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from mooring.scheduler.plugins.node_resources_fit import NodeResourcesFit
from mooring.scheduler.plugins.resource_allocation import (
    ResourceAllocation,
    average_score,
    balance_score,
    evenness,
    free_share_score,
    one_balance_score,
    ratio_score,
    shape_points,
    used_share_score,
)
from tests.api.builders import node_selector, term
from tests.builders import ZONE, node, pod
from tests.device_builders import GPU, claim, claiming, device, device_class, gpus, slice_of, wants
from tests.device_builders import given as given_devices
from tests.scheduler.config.builders import with_arguments
from tests.scheduler.harness import decide, engine_of, scored_by, settle

Resource = tuple[int, int, int]
"""Of one node: used, added, allocatable."""

amounts = st.one_of(st.integers(0, 200), st.integers(0, 2**40), st.integers(2**45, 2**55))
capacities = st.one_of(st.just(0), st.integers(1, 200), st.integers(1, 2**40), st.integers(2**45, 2**55))
KINDS = 3


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[list[Resource]], list[int]]:
    """Nodes with the same kinds of resources, and a weight for each kind."""
    kinds = draw(st.integers(1, KINDS))
    added = [draw(amounts) for _ in range(kinds)]
    nodes = draw(st.lists(st.tuples(*[st.tuples(amounts, capacities)] * kinds), min_size=1, max_size=6))
    weights = draw(st.lists(st.integers(1, 10), min_size=kinds, max_size=kinds))
    return [[(used, added[kind], allocatable) for kind, (used, allocatable) in enumerate(n)] for n in nodes], weights


def resources(nodes: Sequence[Sequence[Resource]], weights: Sequence[int]) -> list[ResourceAllocation]:
    found = []
    for kind, weight in enumerate(weights):
        used = np.array([node[kind][0] for node in nodes], dtype=np.int64)
        allocatable = np.array([node[kind][2] for node in nodes], dtype=np.int64)
        bounds = (int(allocatable.min()), int(allocatable.max()))
        found.append(
            ResourceAllocation(used, nodes[0][kind][1], allocatable, np.maximum(allocatable, 1.0), weight, *bounds)
        )
    return found


def free_share(used: int, added: int, allocatable: int) -> int:
    requested = used + added
    return 0 if requested > allocatable else (allocatable - requested) * 100 // allocatable


def used_share(used: int, added: int, allocatable: int) -> int:
    return min(used + added, allocatable) * 100 // allocatable


def average(scores: Sequence[tuple[int, int]]) -> int:
    """Of (score, weight)."""
    weights = sum(weight for _, weight in scores)
    return sum(score * weight for score, weight in scores) // weights if weights else 0


@given(clusters())
def test_least_allocated(cluster: tuple[list[list[Resource]], list[int]]) -> None:
    nodes, weights = cluster
    expected = [average([(free_share(*r), w) for r, w in zip(node, weights) if r[2]]) for node in nodes]
    assert average_score(resources(nodes, weights), free_share_score).tolist() == expected


@given(clusters())
def test_most_allocated(cluster: tuple[list[list[Resource]], list[int]]) -> None:
    nodes, weights = cluster
    expected = [average([(used_share(*r), w) for r, w in zip(node, weights) if r[2]]) for node in nodes]
    assert average_score(resources(nodes, weights), used_share_score).tolist() == expected


SHAPES = ([(0, 0), (100, 100)], [(0, 100), (100, 0)], [(10, 30), (50, 70), (90, 10)], [(40, 100)])


@given(clusters(), st.sampled_from(SHAPES))
def test_requested_to_capacity_ratio(
    cluster: tuple[list[list[Resource]], list[int]], shape: list[tuple[int, int]]
) -> None:
    nodes, weights = cluster

    def points(used: int, added: int, allocatable: int) -> int:
        requested = used + added
        full = requested > allocatable or allocatable == 0
        return on_line(shape, 100 if full else requested * 100 // allocatable)

    def score(node: list[Resource]) -> int:
        reported = [(points(*r), w) for r, w in zip(node, weights) if r[2]]
        reported = [(got, weight) for got, weight in reported if got > 0]
        weight_sum = sum(weight for _, weight in reported)
        return math.floor(sum(p * w for p, w in reported) / weight_sum + 0.5) if weight_sum else 0

    assert ratio_score(resources(nodes, weights), shape_points(shape)).tolist() == [score(node) for node in nodes]


def on_line(shape: Sequence[tuple[int, int]], percent: int) -> int:
    """The broken line, divided as Go divides: towards zero."""
    for (low, low_score), (high, high_score) in zip([shape[0], *shape], shape):
        if percent <= high:
            if low == high:
                return high_score
            return low_score + int((high_score - low_score) * (percent - low) / (high - low))
    return shape[-1][1]


@pytest.mark.parametrize(
    ("shape", "percent", "points"),
    [
        ([(0, 0), (100, 100)], 37, 37),
        ([(0, 100), (100, 0)], 37, 63),
        ([(0, 100), (3, 0)], 1, 67),
        ([(20, 50), (80, 10)], 0, 50),
        ([(20, 50), (80, 10)], 100, 10),
        ([(20, 50), (80, 10)], 21, 50),
        ([(40, 70)], 99, 70),
    ],
)
def test_points_of_a_shape(shape: list[tuple[int, int]], percent: int, points: int) -> None:
    assert shape_points(shape)[percent] == points


def even(node: Sequence[Resource], *, with_pod: bool) -> int:
    """100 times one minus the standard deviation of the used shares; of two, half their distance."""
    shares = [min((used + (added if with_pod else 0)) / offered, 1.0) for used, added, offered in node if offered]
    deviation = 0.0
    if len(shares) == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        mean = sum(shares) / len(shares)
        total = 0.0
        for share in shares:
            total += (share - mean) * (share - mean)
        deviation = math.sqrt(total / len(shares))
    return int((1 - deviation) * 100.0)


@given(clusters())
def test_balanced_allocation(cluster: tuple[list[list[Resource]], list[int]]) -> None:
    nodes, weights = cluster
    before = [even(node, with_pod=False) for node in nodes]
    after = [even(node, with_pod=True) for node in nodes]
    found = resources(nodes, weights)
    assert evenness(found, with_pod=False).tolist() == before
    assert evenness(found, with_pod=True).tolist() == after
    expected = [50 + (50 + now - then) // 2 for now, then in zip(after, before)]
    assert balance_score(found).tolist() == expected
    if len(weights) <= 2:
        offered = [[resource for resource in node if resource[2]] for node in nodes]
        assert [one_balance_score(node) for node in offered] == expected


@pytest.mark.parametrize(
    ("node", "score"),
    [
        pytest.param([(0, 1, 4), (0, 2, 8)], 75, id="an empty node stays even"),
        pytest.param([(0, 4, 4), (0, 0, 8)], 50, id="one resource is full, the other empty"),
        pytest.param([(2, 0, 4), (0, 4, 8)], 87, id="the pod mends an imbalance"),
        pytest.param([(9, 1, 4), (8, 1, 8)], 75, id="more than everything is everything"),
        pytest.param([(1, 1, 4), (0, 0, 0)], 75, id="a single resource is always even"),
    ],
)
def test_balance_by_example(node: list[Resource], score: int) -> None:
    found = resources([node], [1, 1])
    assert balance_score(found).tolist() == [score]


GPUS = "example.com/gpu"


def config(plugin: str, **args: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": plugin, "args": args}]}],
    }


MOST = config("NodeResourcesFit", scoringStrategy={"type": "MostAllocated", "resources": [{"name": GPUS, "weight": 1}]})
BALANCED = config(
    "NodeResourcesBalancedAllocation", resources=[{"name": GPUS, "weight": 1}, {"name": "cpu", "weight": 1}]
)


def test_scores_count_devices_where_a_node_offers_nothing_itself() -> None:
    views = (
        node("n1"),
        node("n2"),
        node("n3", others={GPUS: 5}),
        gpus("n1", 4),
        gpus("n2", 4),
        device_class(resource=GPUS),
        claim("c", wants(), has=given_devices("gpu-0", pool="n2")),
    )
    engine = engine_of(*views, config=MOST)
    assert scored_by(engine, NodeResourcesFit, pod(others={GPUS: 1})) == {"n1": 25, "n2": 50, "n3": 20}
    engine.put(claim("d", wants(), has=given_devices("gpu-1", pool="n2")))
    assert scored_by(engine, NodeResourcesFit, pod(others={GPUS: 1})) == {"n1": 25, "n2": 75, "n3": 20}


def test_cached_scores_are_dropped_when_devices_are_allocated() -> None:
    views = (node("n1"), node("n2"), gpus("n1", 2), gpus("n2", 4), device_class(resource=GPUS), claim("c", wants()))
    engine = engine_of(*views, config=MOST)
    assert decide(engine, pod("a", others={GPUS: 1})).node_name == "n1"
    assert settle(engine, *(claiming(f"p{n}", "c") for n in range(1))) == ["n1"]
    fresh = decide(engine, pod("b", others={GPUS: 1}))
    assert {name: scores["NodeResourcesFit"] for name, scores in fresh.scores.items()} == {"n1": 100, "n2": 25}


def test_balance_counts_devices_too() -> None:
    engine = engine_of(node("n1", cpu=4), gpus("n1", 4), device_class(resource=GPUS), config=BALANCED)
    assert scored_by(engine, NodeResourcesBalancedAllocation, pod(cpu=1, others={GPUS: 1})) == {"n1": 75}
    assert scored_by(engine, NodeResourcesBalancedAllocation, pod(cpu=1, others={GPUS: 4})) == {"n1": 56}


@pytest.mark.parametrize(
    ("published", "totals"),
    [
        pytest.param(gpus("n1", 2), (2, 0), id="of one node"),
        pytest.param(slice_of(device("d"), everywhere=True), (1, 1), id="that all reach"),
        pytest.param(
            slice_of(device("d"), reached=node_selector(term(f"{ZONE} In b"))), (0, 1), id="that a zone reaches"
        ),
        pytest.param(slice_of(device("d")), (1, 1), id="that say nothing count everywhere"),
        pytest.param(slice_of(device("d"), node="n1", of=2), (1, 0), id="of an incomplete pool"),
        pytest.param(
            slice_of(device("d", on="n1"), device("e", everywhere=True), per_device=True), (2, 1), id="each for itself"
        ),
        pytest.param(slice_of(device("d", shared=True), node="n1"), (1, 0), id="that may be shared"),
    ],
)
def test_which_devices_count(published: ResourceSlice, totals: tuple[int, int]) -> None:
    kind = device_class("unshared", "device.allowMultipleAllocations == false")
    engine = engine_of(node("n1", zone="a"), node("n2", zone="b"), published, kind)
    found = engine.columns.shared(DRAManager).totals(kind)
    assert tuple(found.devices.tolist()) == totals


def test_an_expression_that_fails_makes_it_nothing() -> None:
    kind = device_class("odd", f'device.attributes["{GPU}"].x == 1')
    engine = engine_of(node("n1"), node("n2"), gpus("n1", 1), gpus("n2", 1, x=1), kind)
    assert engine.columns.shared(DRAManager).totals(kind).devices.tolist() == [0, 1]


# --- NodeResourcesBalancedAllocation: whether a pod makes a node more even -------------------------------------------


BALANCED_GPU = "example.com/gpu"


def balancing(*names: str) -> dict[str, Any]:
    resources = [{"name": name, "weight": 1} for name in names]
    return with_arguments("NodeResourcesBalancedAllocation", {"resources": resources})


@pytest.mark.parametrize(
    ("config", "wanting", "scores"),
    [
        pytest.param(None, pod(cpu=1, memory="1Gi"), {"even": 75, "lopsided": 75}, id="it changes nothing"),
        pytest.param(None, pod(memory="2Gi"), {"even": 62, "lopsided": 87}, id="it mends one and spoils the other"),
        pytest.param(None, pod(cpu=2), {"even": 62, "lopsided": 62}, id="it spoils both"),
        pytest.param(None, pod(cpu=100, memory="100Gi"), {"even": 75, "lopsided": 87}, id="more than full is full"),
        pytest.param(balancing("cpu"), pod(cpu=2), {"even": 75, "lopsided": 75}, id="one resource is always even"),
        pytest.param(
            balancing("cpu", "memory", BALANCED_GPU),
            pod(cpu=2, memory="2Gi", others={BALANCED_GPU: 1}),
            {"even": 75, "lopsided": 71},
            id="three resources where they are offered",
        ),
        pytest.param(
            balancing("cpu", "memory", BALANCED_GPU),
            pod(cpu=2, memory="2Gi"),
            {"even": 75, "lopsided": 75},
            id="a special one that is not requested is left out",
        ),
    ],
)
def test_how_even_it_gets(config: dict[str, Any] | None, wanting: Pod, scores: dict[str, int]) -> None:
    engine = engine_of(
        node("even", cpu=4, memory="4Gi"),
        node("lopsided", cpu=4, memory="4Gi", others={BALANCED_GPU: 4}),
        pod("a", cpu=2, on="lopsided"),
        config=config,
    )
    assert scored_by(engine, NodeResourcesBalancedAllocation, wanting) == scores


@pytest.mark.parametrize(
    "wanting",
    [pod(), pod(others={BALANCED_GPU: 1}), pod(cpu=0)],
    ids=["nothing", "other things", "zero"],
)
def test_pods_that_request_nothing_of_it_are_left_out(wanting: Pod) -> None:
    assert scored_by(engine_of(node("n1")), NodeResourcesBalancedAllocation, wanting) is SKIP


def test_the_balance_is_what_it_is_now() -> None:
    """What is kept of the rows between pods follows their changes."""
    engine = engine_of(node("n1", cpu=4, memory="4Gi"), node("n2", cpu=4, memory="4Gi"))
    wanting = pod(memory="2Gi")
    assert scored_by(engine, NodeResourcesBalancedAllocation, wanting) == {"n1": 62, "n2": 62}
    engine.put(pod("a", cpu=2, on="n1"))
    assert scored_by(engine, NodeResourcesBalancedAllocation, wanting) == {"n1": 87, "n2": 62}
    engine.put(node("n2", cpu=4, memory="8Gi"))
    assert scored_by(engine, NodeResourcesBalancedAllocation, wanting) == {"n1": 87, "n2": 68}
    engine.remove(pod("a"))
    assert scored_by(engine, NodeResourcesBalancedAllocation, wanting) == {"n1": 62, "n2": 68}
