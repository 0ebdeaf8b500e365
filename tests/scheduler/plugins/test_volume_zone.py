"""Volumes whose labels name a zone."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from mooring.api.csi_translation import BETA_REGION_LABEL, BETA_ZONE_LABEL, REGION_LABEL, ZONE_LABEL
from mooring.api.storage import STORAGE_CLASS_BETA
from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.scheduler.framework.plugin import SKIP
from mooring.scheduler.framework.status import Code, Status
from mooring.scheduler.plugins.volume_zone import VolumeZone, zones_of
from tests.builders import node, pod
from tests.scheduler.harness import engine_of, rejected_by
from tests.storage_builders import bound, ephemeral, storage_class, volume, waiting

ELSEWHERE = ("node(s) had no available volume zone",)
NODES = (
    node("unzoned"),
    node("today-a", labels={ZONE_LABEL: "a", REGION_LABEL: "r"}),
    node("today-b", labels={ZONE_LABEL: "b", REGION_LABEL: "r"}),
    node("beta-a", labels={BETA_ZONE_LABEL: "a"}),
    node("both", labels={BETA_ZONE_LABEL: "b", ZONE_LABEL: "a"}),
    node("region", labels={REGION_LABEL: "r"}),
)


@pytest.mark.parametrize(
    ("labels", "reached"),
    [
        pytest.param({ZONE_LABEL: "a"}, ["unzoned", "today-a", "both"], id="a zone of today is not read from the beta"),
        pytest.param({ZONE_LABEL: "a__b"}, ["unzoned", "today-a", "today-b", "both"], id="one of two zones"),
        pytest.param({ZONE_LABEL: "a__ b "}, ["unzoned", "today-a", "today-b", "both"], id="blanks do not matter"),
        pytest.param(
            {BETA_ZONE_LABEL: "a"},
            ["unzoned", "today-a", "beta-a"],
            id="a zone of the beta is read from today's label where there is none of the beta",
        ),
        pytest.param({REGION_LABEL: "r"}, ["unzoned", "today-a", "today-b", "region"], id="a region"),
        pytest.param({BETA_REGION_LABEL: "r"}, ["unzoned", "today-a", "today-b", "region"], id="a region of the beta"),
        pytest.param({ZONE_LABEL: "b", REGION_LABEL: "r"}, ["unzoned", "today-b"], id="zone and region"),
        pytest.param({ZONE_LABEL: "z"}, ["unzoned"], id="a zone without nodes: only nodes that know no zones"),
    ],
)
def test_which_nodes_reach_a_volume_with_labels(labels: Mapping[str, str], reached: list[str]) -> None:
    engine = engine_of(*NODES, bound("c", to="v"), volume("v", labels=labels))
    rejected = {name: ELSEWHERE for name in (each.metadata.name for each in NODES) if name not in reached}
    assert rejected_by(engine, VolumeZone, pod(claims=["c"])) == rejected


def test_all_volumes_of_a_pod_must_be_reached() -> None:
    engine = engine_of(
        *NODES,
        bound("c", to="v"),
        bound("d", to="w"),
        volume("v", labels={ZONE_LABEL: "a"}),
        volume("w", labels={ZONE_LABEL: "b"}),
    )
    rejected = rejected_by(engine, VolumeZone, pod(claims=["c", "d"]))
    assert isinstance(rejected, dict)
    assert [name for name in (each.metadata.name for each in NODES) if name not in rejected] == ["unzoned"]


@pytest.mark.parametrize(
    ("cluster", "view"),
    [
        pytest.param([], pod(), id="no volumes"),
        pytest.param([], pod(volumes=[ephemeral("v")]), id="ephemeral volumes"),
        pytest.param([bound("c", to="v"), volume("v")], pod(claims=["c"]), id="a volume without labels"),
        pytest.param(
            [bound("c", to="v"), volume("v", labels={ZONE_LABEL: "a____b"})],
            pod(claims=["c"]),
            id="a list of zones with a hole is no list",
        ),
        pytest.param(
            [waiting("c", of_class="s"), storage_class("s")],
            pod(claims=["c"]),
            id="a claim that waits for its first consumer",
        ),
    ],
)
def test_pods_without_zones_are_none_of_its_business(cluster: list[ApiObject], view: Pod) -> None:
    assert rejected_by(engine_of(*NODES, *cluster), VolumeZone, view) is SKIP


@pytest.mark.parametrize(
    ("cluster", "claims", "text"),
    [
        pytest.param([], ["c"], 'persistentvolumeclaim "c" not found', id="no claim"),
        pytest.param([], [""], "PersistentVolumeClaim had no name", id="no name"),
        pytest.param([bound("c", to="v")], ["c"], 'persistentvolume "v" not found', id="no volume"),
        pytest.param(
            [waiting("c", of_class=None)],
            ["c"],
            "PersistentVolumeClaim had no pv name and storageClass name",
            id="neither volume nor class",
        ),
        pytest.param(
            [waiting("c", of_class="s", annotations={STORAGE_CLASS_BETA: "t"}), storage_class("s")],
            ["c"],
            'storageclass.storage.k8s.io "t" not found',
            id="no such class",
        ),
        pytest.param(
            [waiting("c", of_class="s"), storage_class("s", binding=None)],
            ["c"],
            'VolumeBindingMode not set for StorageClass "s"',
            id="a class that does not say when it binds",
        ),
        pytest.param(
            [waiting("c", of_class="s"), storage_class("s", binding="Immediate")],
            ["c"],
            "PersistentVolume had no name",
            id="a claim that should have been bound",
        ),
    ],
)
def test_what_keeps_a_pod_from_every_node(cluster: list[ApiObject], claims: list[str], text: str) -> None:
    said = rejected_by(engine_of(*NODES, *cluster), VolumeZone, pod(claims=claims))
    assert said == Status(Code.UNRESOLVABLE, (text,))


def test_zones_are_looked_at_in_kubernetes_order() -> None:
    labels = {REGION_LABEL: "4", ZONE_LABEL: "3", BETA_REGION_LABEL: "2", BETA_ZONE_LABEL: "1", "other": "0"}
    assert [each.values for each in zones_of(volume("v", labels=labels))] == [("1",), ("2",), ("3",), ("4",)]
