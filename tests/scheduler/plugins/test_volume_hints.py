"""Queueing hints: pods that were rejected for their volumes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.api.views.storage import (
    AWSElasticBlockStoreVolumeSource,
    AzureFileVolumeSource,
    CSIVolumeSource,
    PersistentVolumeClaim,
    Volume,
)
from mooring.scheduler.framework.plugin import Plugin
from mooring.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from mooring.scheduler.plugins.volume_binding.plugin import VolumeBinding
from mooring.scheduler.plugins.volume_restrictions import VolumeRestrictions
from mooring.scheduler.plugins.volume_zone import VolumeZone
from tests.builders import ZONE, disk, node, pod
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
def test_a_pod_that_wants_a_disk_or_a_claim(change: Change, is_queued: bool) -> None:
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
def test_a_pod_whose_volumes_are_elsewhere(change: Change, is_queued: bool) -> None:
    assert queues(VolumeZone, DATA, **change) is is_queued
