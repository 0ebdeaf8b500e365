"""What the volume plugins say of a node that they reject: which claim, which class, which size."""

from __future__ import annotations

import pytest

from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.scheduler.framework.obstacle import ObstacleKind
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
            f"{NEEDS}volume v is reserved for it and cannot be used from here",
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
            "claim default/data needs a 5Gi volume of class zonal: no volume is free here, and allowedTopologies of "
            "its class exclude this node",
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
            "volume v of claim default/data cannot be used from here",
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
            "volume v1 of claim default/data cannot be used from here",
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
