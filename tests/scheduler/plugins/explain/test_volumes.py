"""What the volume plugins say of a node that they reject: which claim, which class, which size."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mooring.api.views.meta import ApiObject, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from mooring.api.views.pod import Pod
from mooring.scheduler.cycle.explain import explain
from mooring.scheduler.framework.obstacle import ObstacleKind, selected_nodes_text
from tests.api.builders import selector
from tests.builders import HOSTNAME, ZONE, claim, disk, node, persistent_volume, pod
from tests.scheduler.harness import engine_of, obstacles
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
            [claim("data", volume="v1"), persistent_volume("v1", zone="elsewhere")],
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
            "claim default/data waits for a 5Gi volume of class static, which nobody provisions",
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
    found = texts(pod(claims=["data"]), claim("data", volume="v1"), labelled("v1", "b__c"))
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
def test_selectors_in_words(terms: list[list[tuple[str, str, tuple[str, ...]]]], text: str) -> None:
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
