"""VolumeZone and VolumeRestrictions; queueing hints of pods that were rejected for their volumes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from msgspec.structs import replace

from mooring.api.csi_translation import BETA_REGION_LABEL, BETA_ZONE_LABEL, REGION_LABEL, ZONE_LABEL
from mooring.api.storage import STORAGE_CLASS_BETA
from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.api.views.storage import (
    AWSElasticBlockStoreVolumeSource,
    AzureFileVolumeSource,
    CSIVolumeSource,
    PersistentVolumeClaim,
    Volume,
)
from mooring.scheduler.framework.plugin import SKIP, Plugin, Proceed
from mooring.scheduler.framework.status import Code, Status
from mooring.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from mooring.scheduler.plugins.volume_binding.plugin import VolumeBinding
from mooring.scheduler.plugins.volume_restrictions import VolumeRestrictions
from mooring.scheduler.plugins.volume_zone import VolumeZone, zones_of
from tests.builders import ZONE, claim, disk, node, pod
from tests.scheduler.harness import engine_of, plugin_of, rejected_by
from tests.scheduler.queueing import Change, queues
from tests.storage_builders import (
    allowing,
    attachment,
    bound,
    capacity,
    csi_driver,
    csi_node,
    ephemeral,
    storage_class,
    volume,
    waiting,
)

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
    rejected = {name: ELSEWHERE for name in (node_view.metadata.name for node_view in NODES) if name not in reached}
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
    assert [name for name in (node_view.metadata.name for node_view in NODES) if name not in rejected] == ["unzoned"]


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
    assert [requirement.values for requirement in zones_of(volume("v", labels=labels))] == [
        ("1",),
        ("2",),
        ("3",),
        ("4",),
    ]


NO_DISK = "node(s) had no available disk"
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
EXCLUSIVE = claim("mine", modes=["ReadWriteOncePod"])
SHARED = claim("ours")
TWO_NODES = (node("n1"), node("n2"))


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(pod(), id="a pod without volumes"),
        pytest.param(pod(volumes=[Volume(name="config")]), id="volumes that bind to nothing"),
        pytest.param(pod(claims=["ours"]), id="a claim that may be shared"),
        pytest.param(pod(claims=["mine"]), id="an exclusive claim that nobody uses"),
    ],
)
def test_pods_that_take_nothing_from_anybody_are_none_of_its_business(view: Pod) -> None:
    engine = engine_of(*TWO_NODES, EXCLUSIVE, SHARED, pod("user", uid="1", claims=["ours"], on="n1"))
    assert rejected_by(engine, VolumeRestrictions, view) is SKIP


def test_a_claim_that_does_not_exist_keeps_the_pod_from_every_node() -> None:
    engine = engine_of(*TWO_NODES, EXCLUSIVE)
    assert rejected_by(engine, VolumeRestrictions, pod(claims=["mine", "gone", "lost"])) == Status(
        Code.UNRESOLVABLE, ('persistentvolumeclaim "gone" not found',)
    )


@pytest.mark.parametrize(
    ("others", "rejected"),
    [
        pytest.param([pod("a", uid="1", volumes=[disk("d")], on="n1")], {"n1": (NO_DISK,)}, id="where it is held"),
        pytest.param([pod("a", uid="1", volumes=[disk("e")], on="n1")], {}, id="another disk is no matter"),
        pytest.param(
            [
                pod("a", uid="1", volumes=[disk("d")], on="n1"),
                pod("b", uid="2", claims=["mine"], on="n2"),
            ],
            {"n1": (NO_DISK,), "n2": (IN_USE,)},
            id="the disk is reported before the claim",
        ),
    ],
)
def test_a_disk_is_rejected_where_another_pod_holds_it(
    others: list[ApiObject], rejected: dict[str, tuple[str, ...]]
) -> None:
    engine = engine_of(*TWO_NODES, EXCLUSIVE, *others)
    assert rejected_by(engine, VolumeRestrictions, pod(volumes=[disk("d")], claims=["mine"])) == rejected


def test_an_exclusive_claim_in_use_is_rejected_everywhere() -> None:
    engine = engine_of(*TWO_NODES, EXCLUSIVE, pod("user", uid="1", claims=["mine"], on="n2"))
    assert rejected_by(engine, VolumeRestrictions, pod(claims=["mine"])) == {"n1": (IN_USE,), "n2": (IN_USE,)}


def test_the_same_claim_name_in_another_namespace_is_another_claim() -> None:
    engine = engine_of(*TWO_NODES, EXCLUSIVE, pod("user", uid="1", namespace="other", claims=["mine"], on="n2"))
    assert rejected_by(engine, VolumeRestrictions, pod(claims=["mine"])) is SKIP


@pytest.mark.parametrize(
    ("other", "claim_uses", "disk_holders"),
    [
        pytest.param(pod("a"), 0, 0, id="a pod without volumes"),
        pytest.param(pod("a", claims=["mine"]), 1, 0, id="a user of the claim"),
        pytest.param(pod("a", claims=["mine", "mine"]), 2, 0, id="who mentions it twice"),
        pytest.param(pod("a", namespace="other", claims=["mine"]), 1, 0, id="even in another namespace"),
        pytest.param(pod("a", claims=["ours"]), 0, 0, id="a claim that may be shared"),
        pytest.param(pod("a", volumes=[disk("d"), disk("d")]), 0, 1, id="a holder of the disk counts once"),
        pytest.param(pod("a", volumes=[disk("e")]), 0, 0, id="another disk"),
    ],
)
def test_what_a_pod_that_comes_or_goes_changes(other: Pod, claim_uses: int, disk_holders: int) -> None:
    engine = engine_of(*TWO_NODES, EXCLUSIVE, SHARED)
    plugin = plugin_of(engine, VolumeRestrictions)
    answer = plugin.pre_filter(engine.record(pod(volumes=[disk("d")], claims=["mine", "ours"])))
    assert isinstance(answer, Proceed)
    assert plugin.measures(answer.state) == 2
    assert tuple(plugin.contribution(answer.state, engine.record(other), 0)) == (claim_uses, disk_holders)


def test_differences_count_only_on_their_row() -> None:
    holder = pod("holder", uid="1", volumes=[disk("d")], on="n1")
    engine = engine_of(*TWO_NODES, EXCLUSIVE, holder, pod("user", uid="2", claims=["mine"], on="n1"))
    plugin = plugin_of(engine, VolumeRestrictions)
    answer = plugin.pre_filter(engine.record(pod(volumes=[disk("d")], claims=["mine"])))
    assert isinstance(answer, Proceed)
    rows = np.array([0, 1])
    assert plugin.filter(answer.state, rows).tolist() == [1, 2]
    without_user = np.array([[-1, 0], [0, 0]])
    assert plugin.filter_adjusted(answer.state, rows, without_user).tolist() == [1, 2]
    without_both = np.array([[-1, 0], [-1, 0]])
    assert plugin.filter_adjusted(answer.state, rows, without_both).tolist() == [0, 2]


def test_preemption_frees_an_exclusive_claim_by_evicting_its_user() -> None:
    user = pod("user", uid="1", claims=["mine"], on="n2", priority=1)
    engine = engine_of(*TWO_NODES, EXCLUSIVE, user)
    plugin = plugin_of(engine, VolumeRestrictions)
    answer = plugin.pre_filter(engine.record(pod(claims=["mine"], priority=10)))
    assert isinstance(answer, Proceed)
    gone = np.array([[0, -1], [0, 0]])
    assert plugin.filter_adjusted(answer.state, np.array([0, 1]), gone).tolist() == [2, 0]


DATA = pod(claims=["data"])
SCRATCH = pod(volumes=[ephemeral("scratch")])
EBS = "ebs.csi.aws.com"


def elsewhere(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    return replace(claim, metadata=replace(claim.metadata, namespace="team-a"))


def ebs(volume_id: str) -> Volume:
    return Volume(name="disk", aws_elastic_block_store=AWSElasticBlockStoreVolumeSource(volume_id=volume_id))


@pytest.mark.parametrize(
    "plugin", [VolumeBinding, NodeVolumeLimits, VolumeRestrictions, VolumeZone], ids=lambda p: p.name
)
@pytest.mark.parametrize(
    ("rejected", "claim", "queues_if_named", "queues_if_needed"),
    [
        pytest.param(DATA, waiting("data"), True, True, id="its claim"),
        pytest.param(DATA, waiting("logs"), False, False, id="another claim"),
        pytest.param(DATA, elsewhere(waiting("data")), False, False, id="a claim of that name in another namespace"),
        pytest.param(SCRATCH, waiting("p-scratch"), False, True, id="the claim of its ephemeral volume"),
        pytest.param(SCRATCH, waiting("scratch"), False, False, id="a claim with the name of its ephemeral volume"),
    ],
)
def test_a_claim_came(
    plugin: type[Plugin], rejected: Pod, claim: PersistentVolumeClaim, queues_if_named: bool, queues_if_needed: bool
) -> None:
    looks_at_ephemeral = plugin in (VolumeBinding, NodeVolumeLimits)
    assert queues(plugin, rejected, came=claim) is (queues_if_needed if looks_at_ephemeral else queues_if_named)


@pytest.mark.parametrize(
    ("plugin", "is_queued"),
    [(VolumeBinding, True), (VolumeZone, True), (NodeVolumeLimits, False), (VolumeRestrictions, False)],
)
def test_a_claim_was_bound(plugin: type[Plugin], is_queued: bool) -> None:
    assert queues(plugin, DATA, before=waiting("data"), after=bound("data", "pv-1")) is is_queued


@pytest.mark.parametrize(
    ("change", "is_queued"),
    [
        pytest.param({"came": storage_class("local")}, True, id="a class came"),
        pytest.param(
            {"before": storage_class("local"), "after": storage_class("local", allowed=[allowing(zone=["a"])])},
            True,
            id="a class allows other topologies",
        ),
        pytest.param(
            {"before": storage_class("local"), "after": storage_class("local", provisioner="x")},
            False,
            id="a class changed otherwise",
        ),
        pytest.param({"came": volume("pv-1")}, True, id="any volume came"),
        pytest.param({"before": volume("pv-1"), "after": volume("pv-1", phase="Bound")}, True, id="a volume changed"),
        pytest.param({"gone": volume("pv-1")}, False, id="a volume is gone"),
        pytest.param({"came": node()}, True, id="a node came"),
        pytest.param({"before": node(), "after": node(zone="a")}, True, id="a node has another label"),
        pytest.param({"before": node(cpu=1), "after": node(cpu=2)}, False, id="a node offers more"),
        pytest.param({"came": csi_node("n1")}, True, id="a CSINode came"),
        pytest.param(
            {"before": csi_node("n1"), "after": csi_node("n1", migrated=["kubernetes.io/aws-ebs"])},
            True,
            id="a plugin migrated",
        ),
        pytest.param({"before": csi_node("n1"), "after": csi_node("n1", {EBS: 1})}, False, id="a driver came"),
        pytest.param({"came": capacity("c", of_class="local")}, True, id="a capacity came"),
        pytest.param(
            {"before": capacity("c", of_class="l", size="1Gi"), "after": capacity("c", of_class="l", size="2Gi")},
            True,
            id="there is more space",
        ),
        pytest.param(
            {"before": capacity("c", of_class="l", size="2Gi"), "after": capacity("c", of_class="l", size="2048Mi")},
            False,
            id="there is as much space as before",
        ),
        pytest.param(
            {
                "before": capacity("c", of_class="l", size="1Gi", largest="1Gi"),
                "after": capacity("c", of_class="l", size="9Gi", largest="1Gi"),
            },
            False,
            id="there is more space, but not for a larger volume",
        ),
        pytest.param(
            {"before": capacity("c", of_class="l"), "after": capacity("c", of_class="l", size=0)},
            True,
            id="it is known",
        ),
        pytest.param(
            {"before": capacity("c", of_class="l", size=1), "after": capacity("c", of_class="l")}, False, id="no longer"
        ),
        pytest.param(
            {"before": csi_driver("d"), "after": csi_driver("d", tracks_capacity=False)},
            False,
            id="a driver reports no capacity any more: kube-scheduler does not look at claims",
        ),
        pytest.param({"gone": pod("q", on="n1")}, False, id="a pod is gone"),
    ],
)
def test_a_pod_that_volume_binding_rejected(change: Change, is_queued: bool) -> None:
    assert queues(VolumeBinding, DATA, **change) is is_queued


@pytest.mark.parametrize(
    ("driver", "reported", "telling", "is_queued"),
    [
        ("d", True, False, True),
        ("d", True, None, True),
        ("d", False, True, False),
        ("d", None, False, False),
        ("other", True, False, False),
    ],
)
def test_a_driver_reports_no_capacity_any_more(
    driver: str, reported: bool | None, telling: bool | None, is_queued: bool
) -> None:
    rejected = pod(claims=["data"], volumes=[Volume(name="v", csi=CSIVolumeSource(driver=driver))])
    before, after = csi_driver("d", tracks_capacity=reported), csi_driver("d", tracks_capacity=telling)
    assert queues(VolumeBinding, rejected, before=before, after=after) is is_queued


@pytest.mark.parametrize(
    ("change", "is_queued"),
    [
        pytest.param({"came": csi_node("n1")}, True, id="a CSINode came"),
        pytest.param({"before": csi_node("n1", {EBS: 1}), "after": csi_node("n1", {EBS: 2})}, True, id="a limit rose"),
        pytest.param({"before": csi_node("n1", {EBS: 2}), "after": csi_node("n1", {EBS: 1})}, False, id="a limit fell"),
        pytest.param({"before": csi_node("n1"), "after": csi_node("n1", {EBS: 1})}, True, id="a driver came"),
        pytest.param(
            {"before": csi_node("n1", {EBS: 1}), "after": csi_node("n1", {EBS: None})},
            False,
            id="a limit was lifted: kube-scheduler takes that for none at all",
        ),
        pytest.param({"gone": csi_node("n1", {EBS: 1})}, False, id="a CSINode is gone"),
        pytest.param({"gone": pod("q", claims=["logs"], on="n1")}, True, id="a pod with a claim is gone"),
        pytest.param({"gone": pod("q", volumes=[ephemeral("x")], on="n1")}, True, id="one with an ephemeral volume"),
        pytest.param({"gone": pod("q", volumes=[disk("x")], on="n1")}, True, id="one with an in-tree disk"),
        pytest.param({"gone": pod("q", claims=["logs"], nominated="n1")}, True, id="one with the promise of a node"),
        pytest.param({"gone": pod("q", claims=["logs"])}, False, id="one that was nowhere"),
        pytest.param({"gone": pod("q", on="n1")}, False, id="one without volumes"),
        pytest.param(
            {"gone": pod("q", volumes=[Volume(name="v", csi=CSIVolumeSource(driver="d"))], on="n1")},
            False,
            id="one with a volume that is not counted",
        ),
        pytest.param({"gone": attachment("a", of="pv-1", on="n1", by="d")}, True, id="a volume was detached"),
        pytest.param({"came": node()}, False, id="a node came"),
    ],
)
def test_a_pod_that_exceeds_limits(change: Change, is_queued: bool) -> None:
    assert queues(NodeVolumeLimits, DATA, **change) is is_queued


@pytest.mark.parametrize(
    ("own", "is_queued"),
    [
        pytest.param(ebs("vol-1"), True, id="its disk is of the driver"),
        pytest.param(disk("d"), False, id="its disk is of another driver"),
        pytest.param(
            Volume(name="f", azure_file=AzureFileVolumeSource(share_name="s")), False, id="its share is of a third"
        ),
        pytest.param(Volume(name="v", csi=CSIVolumeSource(driver=EBS)), False, id="its volume is not counted"),
        pytest.param(ephemeral("x"), False, id="kube-scheduler does not look at ephemeral volumes"),
    ],
)
def test_a_volume_was_detached(own: Volume, is_queued: bool) -> None:
    gone = attachment("a", of="pv-1", on="n1", by=EBS)
    assert queues(NodeVolumeLimits, pod(volumes=[own]), gone=gone) is is_queued


def test_a_disk_that_no_driver_could_know_may_be_anybodys() -> None:
    gone = attachment("a", of="pv-1", on="n1", by="other")
    assert queues(NodeVolumeLimits, pod(volumes=[ebs("aws:///nonsense")]), gone=gone)


WANTING = pod(claims=["data"], volumes=[disk("d", read_only=True)])


@pytest.mark.parametrize(
    ("change", "is_queued"),
    [
        pytest.param({"gone": pod("q", claims=["data"], on="n1")}, True, id="a user of its claim is gone"),
        pytest.param({"gone": pod("q", claims=["logs"], on="n1")}, False, id="a user of another claim is gone"),
        pytest.param({"gone": pod("q", volumes=[disk("d")], on="n1")}, True, id="a holder of its disk is gone"),
        pytest.param({"gone": pod("q", volumes=[disk("d", read_only=True)], on="n1")}, False, id="one that only read"),
        pytest.param({"gone": pod("q", volumes=[disk("e")], on="n1")}, False, id="a holder of another disk is gone"),
        pytest.param(
            {"gone": pod("q", namespace="b", volumes=[disk("d")], on="n1")},
            False,
            id="kube-scheduler looks at its namespace only",
        ),
        pytest.param({"gone": pod("q", volumes=[disk("d")])}, True, id="and does not ask where the pod was"),
        pytest.param({"came": node()}, True, id="a node came"),
        pytest.param({"before": node(), "after": node(zone="a")}, False, id="a node has another label"),
    ],
)
def test_hints_of_a_pod_with_a_disk_or_a_claim(change: Change, is_queued: bool) -> None:
    assert queues(VolumeRestrictions, WANTING, **change) is is_queued


def in_zones(text: str, **others: str) -> ApiObject:
    return volume("pv-1", labels={ZONE: text, **others})


@pytest.mark.parametrize(
    ("change", "is_queued"),
    [
        pytest.param({"came": storage_class("local")}, True, id="a class came that waits"),
        pytest.param({"came": storage_class("local", binding="Immediate")}, False, id="a class came that does not"),
        pytest.param({"came": storage_class("local", binding=None)}, False, id="a class came that does not say"),
        pytest.param({"came": node()}, True, id="a node came"),
        pytest.param({"before": node(), "after": node(zone="a")}, True, id="a node has another label"),
        pytest.param({"came": volume("pv-1")}, True, id="a volume came"),
        pytest.param({"before": in_zones("a"), "after": in_zones("a__b")}, True, id="a volume is in one zone more"),
        pytest.param({"before": in_zones("b__a"), "after": in_zones("a__b")}, False, id="they are listed otherwise"),
        pytest.param({"before": in_zones("a"), "after": in_zones("a", x="y")}, False, id="another label changed"),
        pytest.param({"before": in_zones("a__"), "after": volume("pv-1")}, False, id="a label that is no list is none"),
    ],
)
def test_hints_of_a_pod_whose_volumes_are_in_another_zone(change: Change, is_queued: bool) -> None:
    assert queues(VolumeZone, DATA, **change) is is_queued
