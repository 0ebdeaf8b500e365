"""What DynamicResources says of a node that it rejects, and which of those nodes are nearer."""

from __future__ import annotations

import pytest

from mooring.api.views.devices import ResourceClaim
from mooring.api.views.meta import ApiObject
from mooring.scheduler.framework.obstacle import ObstacleKind
from mooring.scheduler.plugins.dynamic_resources.plugin import expression_text
from tests.builders import node, pod
from tests.device_builders import GPU, claim, claiming, device, device_class, first_of, given, slice_of, wants
from tests.scheduler.harness import engine_of, explained, obstacles

LARGE = f'device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0'
MODEL_X = f'device.attributes["{GPU}"].model == "x"'
GPUS = [
    device("a", memory="80Gi", model="x", numa=0),
    device("b", memory="80Gi", model="y", numa=1),
    device("c", memory="16Gi", model="x", numa=0),
    device("d", memory="80Gi", model="x", numa=1, taints=["sick:NoSchedule"]),
]
USED = claim("used", has=given("a"))


def reported(*views: ApiObject, asks: ResourceClaim) -> list[str]:
    engine = engine_of(node("n1"), device_class(), slice_of(*GPUS, node="n1"), asks, *views)
    found = obstacles(engine, claiming("p", asks.metadata.name), "n1")
    assert {obstacle.kind for obstacle in found} <= {ObstacleKind.DEVICE}
    return [obstacle.text for obstacle in found]


@pytest.mark.parametrize(
    ("asks", "texts"),
    [
        pytest.param(claim("c", wants()), [], id="nothing is in the way"),
        pytest.param(
            claim("c", wants(count=4)), ["needs 4 of class gpu: 2 free, 1 in use, 1 tainted"], id="too few are free"
        ),
        pytest.param(
            claim("c", wants("gpu", LARGE, count=2)),
            ["needs 2 of class gpu with memory >= 40Gi: 1 free, 1 in use, 1 too small, 1 tainted"],
            id="large ones",
        ),
        pytest.param(
            claim("c", wants("gpu", MODEL_X, tolerates=["*"], count=3)),
            ["needs 3 of class gpu with model == x: 2 free, 1 in use, 1 of another sort"],
            id="of one model",
        ),
        pytest.param(
            claim("c", wants(capacity={"memory": "100Gi"})),
            ["needs 1 of class gpu with 100Gi memory left: 0 free, 1 in use, 3 too small"],
            id="more capacity than any has",
        ),
        pytest.param(
            claim("c", first_of(wants(name="x", count=9), wants("gpu", LARGE, name="y", count=5))),
            [
                "needs 9 of class gpu or 5 of class gpu with memory >= 40Gi: 2 free, 1 in use, 1 tainted or 1 free, "
                "1 in use, 1 too small, 1 tainted"
            ],
            id="neither alternative",
        ),
        pytest.param(claim("c", wants(every=True)), ["needs all of class gpu: 2 free, 1 in use, 1 tainted"], id="all"),
        pytest.param(
            claim("c", wants(count=2), same="numa"),
            ["no free devices for default/c that agree on gpu.example.com/numa"],
            id="two of one sort",
        ),
        pytest.param(
            claim("c", wants(name="a"), wants("gpu", LARGE, name="b"), wants("gpu", LARGE, name="c")),
            ["the devices for default/c cannot be had together"],
            id="each alone could be had",
        ),
        pytest.param(
            claim("c", wants(), has=given("b", node="n9")),
            ["claim default/c has devices that cannot be used from here"],
            id="what it has is elsewhere",
        ),
    ],
)
def test_what_is_in_the_way(asks: ResourceClaim, texts: list[str]) -> None:
    assert reported(USED, asks=asks) == texts


def test_a_node_without_devices_and_one_that_is_being_updated() -> None:
    asks = claim("c", wants())
    engine = engine_of(node("n1"), node("n2"), device_class(), slice_of(device("d"), node="n2", of=2), asks)
    pending = claiming("p", "c")
    assert [each.text for each in obstacles(engine, pending, "n1")] == ["needs 1 of class gpu: the node has none"]
    assert [each.text for each in obstacles(engine, pending, "n2")] == [
        "needs 1 of class gpu: the node has none (pool n2 is being updated)"
    ]


def test_numbers_are_there_for_programs() -> None:
    engine = engine_of(node("n1"), device_class(), slice_of(*GPUS, node="n1"), USED, claim("c", wants(count=9)))
    (found,) = obstacles(engine, claiming("p", "c"), "n1")
    assert found.details == {
        "claim": "default/c",
        "request": "r",
        "needs": "9 of class gpu",
        "free": 2,
        "in-use": 1,
        "too-small": 0,
        "of-another-sort": 0,
        "tainted": 1,
    }


def test_extended_resources_are_a_matter_of_devices_where_a_class_stands_behind_them() -> None:
    engine = engine_of(node("n1"), device_class(resource="example.com/gpu"), slice_of(*GPUS, node="n1"))
    found = obstacles(engine, pod(others={"example.com/gpu": 9}), "n1")
    assert [each.text for each in found] == ["needs 9 of class gpu: 3 free, 1 tainted"]


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        pytest.param(LARGE, "memory >= 40Gi", id="a capacity"),
        pytest.param(f'device.capacity["{GPU}"].memory.isGreaterThan(quantity("1Gi"))', "memory > 1Gi", id="in short"),
        pytest.param(f"{LARGE} && {MODEL_X}", "memory >= 40Gi and model == x", id="both"),
        pytest.param(f'device.attributes["{GPU}"].ecc', "ecc", id="a yes or no"),
        pytest.param("true || false", "true || false", id="anything else"),
    ],
)
def test_texts_of_expressions(expression: str, words: str) -> None:
    assert expression_text(expression) == words


@pytest.mark.parametrize(
    ("asks", "order"),
    [
        pytest.param(claim("c", wants()), ["one-used", "two-used", "none"], id="devices in use are nearer than none"),
        pytest.param(
            claim("c", wants("gpu", LARGE)), ["two-used", "none", "one-used"], id="one that is too small is like none"
        ),
        pytest.param(claim("c", wants(count=2)), ["two-used", "one-used", "none"], id="too few are nearer than none"),
        pytest.param(
            claim("c", first_of(wants(name="x", count=9), wants(name="y", count=2))),
            ["two-used", "one-used", "none"],
            id="the best alternative counts",
        ),
        pytest.param(
            claim("c", wants(), wants("gpu", LARGE, name="s")),
            ["two-used", "none", "one-used"],
            id="the request that lacks most counts",
        ),
    ],
)
def test_nodes_whose_devices_are_in_use_are_nearer_than_nodes_without_any(
    asks: ResourceClaim, order: list[str]
) -> None:
    engine = engine_of(
        node("none"), node("one-used"), node("two-used"), device_class(),
        slice_of(device("a", memory="16Gi"), node="one-used"),
        slice_of(device("b", memory="80Gi"), device("c", memory="80Gi"), node="two-used"),
        claim("first", has=given("a", pool="one-used")), claim("second", has=given("b", "c", pool="two-used")),
        asks,
    )  # fmt: skip
    assert list(explained(engine, claiming("p", "c")).nearest) == order


def test_extended_resources_rank_nodes_by_their_devices_too() -> None:
    engine = engine_of(
        node("none"), node("two-used"), device_class(resource="example.com/gpu"),
        slice_of(device("b"), device("c"), node="two-used"), claim("first", has=given("b", "c", pool="two-used")),
    )  # fmt: skip
    assert list(explained(engine, pod(others={"example.com/gpu": 1})).nearest) == ["two-used", "none"]
