"""What the volume plugins say of a node that they reject: which claim, which class, which size."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mooring.api.views.devices import ResourceClaim
from mooring.api.views.meta import ApiObject, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from mooring.api.views.pod import Pod
from mooring.scheduler.cycle.explain import explain
from mooring.scheduler.framework.obstacle import ObstacleKind, selected_nodes_text
from mooring.scheduler.plugins.dynamic_resources.plugin import expression_text
from tests.api.builders import selector
from tests.builders import HOSTNAME, ZONE, disk, node, persistent_volume, pod
from tests.builders import claim as volume_claim
from tests.device_builders import GPU, claim, claiming, device, device_class, first_of, given, slice_of, wants
from tests.scheduler.harness import engine_of, explained, obstacles
from tests.storage_builders import (
    allowing,
    bound,
    capacity,
    csi_driver,
    from_nodes,
    storage_class,
    volume,
    waiting,
)

DRIVER = "disks.example"
LOCAL = storage_class("local")
DYNAMIC = storage_class("dynamic", provisioner=DRIVER)
HERE = from_nodes(HOSTNAME, "n1")
NEEDS = "claim default/data needs a 5Gi volume of class local: "
NEEDS_DYNAMIC = "claim default/data needs a 5Gi volume of class dynamic: "
DATA = waiting("data")


def texts(view: Pod, *views: ApiObject) -> list[str]:
    found = obstacles(engine_of(node("n1", zone="a"), node("n2", zone="b"), *views), view, "n1")
    assert {obstacle.kind for obstacle in found} <= {ObstacleKind.VOLUME}
    return [obstacle.text for obstacle in found]


@pytest.mark.parametrize(
    ("views", "text"),
    [
        pytest.param([DATA], f"{NEEDS}no volume is free here", id="no volume at all"),
        pytest.param(
            [DATA, volume("v", of_class="local", reached=from_nodes(HOSTNAME, "n2"))],
            f"{NEEDS}no volume is free here",
            id="a volume of another node",
        ),
        pytest.param(
            [DATA, volume("v", of_class="local", size="1Gi"), volume("w", of_class="local", size="2Gi")],
            f"{NEEDS}the largest free volume here has 2Gi",
            id="volumes that are too small",
        ),
        pytest.param(
            [DATA, volume("v", of_class="local", modes=["ReadOnlyMany"], mode="Block")],
            f"{NEEDS}the free volumes here do not match its accessModes, volumeMode",
            id="a volume with other modes",
        ),
        pytest.param(
            [waiting("data", like=selector(tier="fast")), volume("v", of_class="local")],
            f"{NEEDS}the free volumes here do not match its selector",
            id="a volume with other labels",
        ),
        pytest.param(
            [DATA, volume("v", of_class="local", claimed_by="data", reached=from_nodes(HOSTNAME, "n2"))],
            f"{NEEDS}volume v is reserved for it and can only be used on node n2",
            id="a volume that names the claim, on another node",
        ),
        pytest.param(
            [waiting("data", on="n2")], "claim default/data gets its volume on node n2", id="another node is selected"
        ),
        pytest.param(
            [waiting("data", size=None)],
            "claim default/data needs a volume of class local: no volume is free here",
            id="a claim without a size",
        ),
        pytest.param(
            [
                waiting("data", of_class="zonal"),
                storage_class("zonal", provisioner=DRIVER, allowed=[allowing(**{ZONE: ["b"]})]),
            ],
            "claim default/data needs a 5Gi volume of class zonal: no volume is free here, and its class "
            "allows to create one only where zone is b",
            id="the class creates volumes elsewhere",
        ),
        pytest.param(
            [
                waiting("data", of_class="dynamic"),
                DYNAMIC,
                csi_driver(DRIVER),
                capacity("x", of_class="dynamic", size="1Gi", reached=selector(**{ZONE: "a"})),
            ],
            f"{NEEDS_DYNAMIC}no volume is free here, and its driver has too little capacity here to create one",
            id="the driver has too little capacity",
        ),
        pytest.param(
            [waiting("data", of_class="dynamic", on="n1"), DYNAMIC, csi_driver(DRIVER)],
            f"{NEEDS_DYNAMIC}its driver has too little capacity here to create one",
            id="too little capacity on the selected node",
        ),
        pytest.param(
            [bound("data", to="v"), volume("v", reached=from_nodes(HOSTNAME, "n2"), phase="Bound")],
            "volume v of claim default/data can only be used on node n2",
            id="a bound volume of another node",
        ),
    ],
)
def test_what_a_claim_lacks(views: list[ApiObject], text: str) -> None:
    assert texts(pod("p", claims=["data"]), LOCAL, *views) == [text]


def test_every_claim_that_lacks_a_volume_is_listed() -> None:
    views = [LOCAL, DATA, waiting("logs", size="6Gi"), volume("v", of_class="local", reached=HERE)]
    assert texts(pod("p", claims=["data", "logs"]), *views) == [
        "claim default/logs needs a 6Gi volume of class local: the free volumes here go to other claims of the pod"
    ]
    assert len(texts(pod("p", claims=["data", "logs"]), *views[:-1])) == 2


def test_facts_for_programs() -> None:
    (found,) = obstacles(engine_of(node("n1"), LOCAL, DATA), pod("p", claims=["data"]), "n1")
    assert found.details == {"claim": "default/data", "storageClass": "local", "requested": "5Gi"}


@pytest.mark.parametrize(
    ("view", "others", "text"),
    [
        pytest.param(
            pod(claims=["data"]),
            [volume_claim("data", volume="v1"), persistent_volume("v1", zone="elsewhere")],
            "volume v1 of claim default/data can only be used where zone is elsewhere",
            id="a volume in another zone",
        ),
        pytest.param(
            pod(volumes=[disk("d1")]),
            [pod("writer", on="n1", volumes=[disk("d1")])],
            "had no available disk",
            id="a disk in use",
        ),
        pytest.param(
            pod(claims=["data"]),
            [
                bound("data", to="v", modes=["ReadWriteOncePod"]),
                volume("v", modes=["ReadWriteOncePod"], phase="Bound"),
                pod("writer", on="n2", claims=["data"]),
            ],
            "claim default/data is for one pod only (ReadWriteOncePod), and default/writer uses it",
            id="a claim for one pod",
        ),
    ],
)
def test_volumes_in_use_or_out_of_reach(view: Pod, others: list[ApiObject], text: str) -> None:
    assert texts(view, *others) == [text]


def labelled(name: str, zones: str) -> ApiObject:
    """A volume of before node affinity: its label names zones."""
    plain = persistent_volume(name)
    return replace(plain, metadata=replace(plain.metadata, labels={ZONE: zones}))


@pytest.mark.parametrize(
    ("views", "text"),
    [
        pytest.param(
            [waiting("data", of_class="now"), storage_class("now", provisioner=DRIVER, binding="Immediate")],
            "claim default/data waits for a 5Gi volume of class now from provisioner disks.example",
            id="a provisioner that has not created the volume",
        ),
        pytest.param(
            [waiting("data", of_class="static"), storage_class("static", binding="Immediate")],
            "claim default/data waits for a 5Gi volume of class static, which has no provisioner",
            id="no provisioner",
        ),
        pytest.param(
            [waiting("data", of_class="nosuch")],
            "claim default/data waits for a 5Gi volume of class nosuch, and there is no such StorageClass",
            id="no such class",
        ),
        pytest.param(
            [waiting("data", of_class="")], "claim default/data waits for a 5Gi volume without class", id="no class"
        ),
        pytest.param([], 'persistentvolumeclaim "data" not found', id="no such claim"),
    ],
)
def test_what_a_claim_waits_for_on_whatever_node(views: list[ApiObject], text: str) -> None:
    engine = engine_of(node("n1"), *views)
    record = engine.record(pod("p", claims=["data"]))
    explained = explain(engine.cycle_for(record).profile, engine.columns, record)
    assert [(obstacle.kind, obstacle.text) for obstacle in explained.everywhere] == [(ObstacleKind.VOLUME, text)]


def test_zones_in_the_labels_of_a_volume() -> None:
    found = texts(pod(claims=["data"]), volume_claim("data", volume="v1"), labelled("v1", "b__c"))
    assert found == ["volume v1 of claim default/data can only be used where zone is b or c"]


@pytest.mark.parametrize(
    ("terms", "text"),
    [
        pytest.param(
            [[("a", "In", ("1", "2")), ("b", "NotIn", ("3",))]], "where a is 1 or 2 and b is not 3", id="all of"
        ),
        pytest.param(
            [[("a", "Exists", ())], [("b", "DoesNotExist", ())]],
            "where there is label a, or there is no label b",
            id="one of",
        ),
        pytest.param([[("a", "Gt", ("5",))]], "where a > 5", id="a number"),
        pytest.param([[(HOSTNAME, "In", ("n1", "n2"))]], "on node n1 or n2", id="nodes"),
        pytest.param([[(HOSTNAME, "NotIn", ("n1",))]], "where the node is not n1", id="all but a node"),
        pytest.param([], "where nothing is selected", id="nothing"),
    ],
)
def test_texts_of_selectors(terms: list[list[tuple[str, str, tuple[str, ...]]]], text: str) -> None:
    selector = NodeSelector(
        node_selector_terms=tuple(
            NodeSelectorTerm(
                match_expressions=tuple(
                    NodeSelectorRequirement(key=key, operator=operator, values=values) for key, operator, values in term
                )
            )
            for term in terms
        )
    )
    assert selected_nodes_text(selector) == text


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
    assert [obstacle.text for obstacle in obstacles(engine, pending, "n1")] == [
        "needs 1 of class gpu: the node has none"
    ]
    assert [obstacle.text for obstacle in obstacles(engine, pending, "n2")] == [
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


def test_extended_resources_with_a_class_are_explained_as_devices() -> None:
    engine = engine_of(node("n1"), device_class(resource="example.com/gpu"), slice_of(*GPUS, node="n1"))
    found = obstacles(engine, pod(others={"example.com/gpu": 9}), "n1")
    assert [obstacle.text for obstacle in found] == ["needs 9 of class gpu: 3 free, 1 tainted"]


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
