"""Volumes of placed pods: claims, disks and CSI volumes in use, by row."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.api.views.storage import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    ISCSIVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    RBDVolumeSource,
    StorageClass,
    Volume,
    VsphereVirtualDiskVolumeSource,
)
from mooring.scheduler.cache.attachments import AttachmentColumns
from mooring.scheduler.cache.columns import Columns, Transaction
from mooring.scheduler.cache.volumes import AttachedVolumes, ClaimedVolumes, disks_of, volume_of_claim
from tests.builders import claim_volume, disk, node, pod
from tests.storage_builders import attachment, bound, ephemeral, storage_class, volume, waiting


def _ebs(volume_id: str, *, read_only: bool = False) -> Volume:
    return Volume(aws_elastic_block_store=AWSElasticBlockStoreVolumeSource(volume_id=volume_id, read_only=read_only))


def _iscsi(iqn: str, *, read_only: bool = False, lun: int = 0) -> Volume:
    return Volume(iscsi=ISCSIVolumeSource(iqn=iqn, read_only=read_only, lun=lun))


def _rbd(*monitors: str, pool: str = "p", image: str = "i", read_only: bool = False) -> Volume:
    return Volume(rbd=RBDVolumeSource(monitors=monitors, pool=pool, image=image, read_only=read_only))


@pytest.mark.parametrize(
    ("mine", "theirs", "conflict"),
    [
        pytest.param(disk("d"), disk("d"), True, id="one Google disk, both write"),
        pytest.param(disk("d", read_only=True), disk("d"), True, id="one Google disk, one writes"),
        pytest.param(disk("d", read_only=True), disk("d", read_only=True), False, id="one Google disk, both read"),
        pytest.param(disk("d"), disk("e"), False, id="two Google disks"),
        pytest.param(_ebs("v"), _ebs("v"), True, id="one Amazon disk"),
        pytest.param(_ebs("v", read_only=True), _ebs("v", read_only=True), True, id="even if both only read it"),
        pytest.param(_ebs("v"), _ebs("w"), False, id="two Amazon disks"),
        pytest.param(_ebs("d"), disk("d"), False, id="the same name at another cloud"),
        pytest.param(_iscsi("q", lun=1), _iscsi("q", lun=2), True, id="one iSCSI target, whatever the unit"),
        pytest.param(_iscsi("q", read_only=True), _iscsi("q", read_only=True), False, id="one target, both read"),
        pytest.param(_rbd("a", "b"), _rbd("b", "c"), True, id="one Ceph image, by a common monitor"),
        pytest.param(_rbd("a"), _rbd("b"), False, id="the same image name at other monitors"),
        pytest.param(_rbd("a", pool="x"), _rbd("a", pool="y"), False, id="the same image name in another pool"),
        pytest.param(_rbd("a", read_only=True), _rbd("a", read_only=True), False, id="one Ceph image, both read"),
        pytest.param(_rbd("a", read_only=True), _rbd("a"), True, id="one Ceph image, one writes"),
        pytest.param(Volume(name="config"), Volume(name="config"), False, id="config maps are shared"),
    ],
)
def test_which_disks_conflict(mine: Volume, theirs: Volume, conflict: bool) -> None:
    columns = _cluster(pod("holder", uid="1", volumes=[theirs], on="n1"))
    assert dict(columns.volumes.conflicting_pods(disks_of([mine]))) == ({0: 1} if conflict else {})


def test_a_pod_conflicts_once_however_many_disks_it_holds() -> None:
    columns = _cluster(
        pod("both", uid="1", volumes=[disk("d"), disk("e")], on="n1"),
        pod("one", uid="2", volumes=[disk("e")], on="n1"),
        pod("elsewhere", uid="3", volumes=[disk("d")], on="n2"),
    )
    wanted = disks_of([disk("d"), disk("e")])
    assert dict(columns.volumes.conflicting_pods(wanted)) == {0: 2, 1: 1}


def test_claims_are_counted_by_mention() -> None:
    columns = _cluster(
        pod("a", uid="1", claims=["data"], on="n1"),
        pod("b", uid="2", claims=["data", "data"], on="n1"),
        pod("c", uid="3", claims=["data"], on="n2"),
        pod("d", uid="4", claims=["data"], namespace="other", on="n2"),
    )
    assert dict(columns.volumes.users_of("default/data")) == {0: 3, 1: 1}
    assert dict(columns.volumes.users_of("default/nothing")) == {}


def test_nothing_is_left_of_pods_that_went() -> None:
    columns = _cluster(pod("a", uid="1", claims=["data"], volumes=[disk("d"), disk("d")], on="n1"))
    columns.displace(columns.pods["1"])
    assert dict(columns.volumes.users_of("default/data")) == {}
    assert dict(columns.volumes.conflicting_pods(disks_of([disk("d")]))) == {}


def test_a_what_if_leaves_no_trace() -> None:
    columns = _cluster(pod("a", uid="1", claims=["data"], volumes=[disk("d")], on="n1"))
    wanted = disks_of([disk("d")])
    with Transaction(columns) as transaction:
        transaction.displace(columns.pods["1"])
        assert not columns.volumes.users_of("default/data")
        transaction.place(columns.record(pod("b", uid="2", claims=["data"], volumes=[disk("d")])), 1)
        assert dict(columns.volumes.conflicting_pods(wanted)) == {1: 1}
    assert dict(columns.volumes.users_of("default/data")) == {0: 1}
    assert dict(columns.volumes.conflicting_pods(wanted)) == {0: 1}


def test_the_counts_of_attached_volumes_are_made_once() -> None:
    columns = _cluster()
    assert columns.volumes.attached() is columns.volumes.attached()
    assert columns.volumes.attached().csi_nodes is columns.volumes.csi_nodes()


def _cluster(*pods: Pod) -> Columns:
    columns = Columns()
    for name in ("n1", "n2"):
        columns.put_node(node(name))
    for view in pods:
        record = columns.record(view)
        columns.place(record, record.node_name)
    return columns


EBS = "ebs.csi.aws.com"
IN_TREE = "kubernetes.io/aws-ebs"


@pytest.mark.parametrize(
    ("objects", "driver"),
    [
        pytest.param([bound("c", to="v"), volume("v", driver=EBS)], EBS, id="a driver's own volume"),
        pytest.param([bound("c", to="v"), volume("v", ebs="vol-1")], EBS, id="an in-tree volume is its driver's"),
        pytest.param([bound("c", to="v"), volume("v", ebs="aws://a/nonsense")], None, id="unless it is nonsense"),
        pytest.param([bound("c", to="v"), volume("v")], None, id="a volume of nobody"),
        pytest.param(
            [bound("c", to="gone", of_class="s"), storage_class("s", provisioner=EBS)],
            EBS,
            id="a volume that is missing counts as one to come",
        ),
        pytest.param([waiting("c", of_class="s"), storage_class("s", provisioner=EBS)], EBS, id="a volume to come"),
        pytest.param(
            [waiting("c", of_class="s"), storage_class("s", provisioner=IN_TREE)], EBS, id="of an in-tree provisioner"
        ),
        pytest.param(
            [waiting("c", of_class="s"), storage_class("s", provisioner="kubernetes.io/vsphere-volume")],
            None,
            id="of an in-tree provisioner that the scheduler does not translate",
        ),
        pytest.param([waiting("c", of_class="s")], None, id="a class that is missing"),
        pytest.param([waiting("c", of_class=None)], None, id="no class"),
    ],
)
def test_the_driver_behind_a_claim(objects: list[ApiObject], driver: str | None) -> None:
    columns, _ = _cluster_of_claims(*objects)
    claim = columns.objects.of(PersistentVolumeClaim).get("default/c")
    assert claim is not None
    found = volume_of_claim(columns.objects, claim)
    assert (found.driver if found is not None else None) == driver


def test_volumes_to_come_are_different_for_different_claims() -> None:
    columns, attached = _cluster_of_claims(
        waiting("c", of_class="s"), waiting("d", of_class="s"), storage_class("s", provisioner=EBS)
    )
    _place(columns, pod("p", uid="1", claims=["c", "d"]), "n1")
    _place(columns, pod("q", uid="2", claims=["c"]), "n1")
    assert _counts(columns, attached) == [2, 0]


def test_pods_share_a_volume() -> None:
    columns, attached = _cluster_of_claims(bound("c", to="v"), bound("d", to="v"), volume("v", driver=EBS))
    _place(columns, pod("p", uid="1", claims=["c"]), "n1")
    _place(columns, pod("q", uid="2", claims=["d", "c"]), "n1")
    assert _counts(columns, attached) == [1, 0]
    columns.displace(columns.pods["1"])
    assert _counts(columns, attached) == [1, 0]
    columns.displace(columns.pods["2"])
    assert _counts(columns, attached) == [0, 0]


def test_pods_that_were_there_before_are_counted() -> None:
    columns = Columns()
    for view in (bound("c", to="v"), volume("v", driver=EBS)):
        _put(columns, view)
    columns.put_node(node("n1"))
    _place(columns, pod("p", uid="1", claims=["c"]), "n1")
    _place(columns, pod("plain", uid="2"), "n1")
    assert _counts(columns, columns.volumes.attached()) == [1]


def test_a_claim_is_looked_up_again_when_something_changes() -> None:
    columns, attached = _cluster_of_claims()
    _place(columns, pod("p", uid="1", claims=["c"]), "n1")
    _place(columns, pod("q", uid="2", claims=["c", "c"]), "n2")
    assert _counts(columns, attached) == [0, 0]
    _put(columns, waiting("c", of_class="s"))
    assert _counts(columns, attached) == [0, 0]
    _put(columns, storage_class("s", provisioner="other"))
    assert _counts(columns, attached, "other") == [1, 1]
    _put(columns, bound("c", to="v", of_class="s"))
    assert _counts(columns, attached, "other") == [1, 1]
    _put(columns, volume("v", driver=EBS))
    assert (_counts(columns, attached, "other"), _counts(columns, attached)) == ([0, 0], [1, 1])
    columns.objects.of(PersistentVolume).remove("v")
    assert (_counts(columns, attached, "other"), _counts(columns, attached)) == ([1, 1], [0, 0])
    columns.objects.of(StorageClass).remove("s")
    assert _counts(columns, attached, "other") == [0, 0]
    columns.objects.of(PersistentVolumeClaim).remove("default/c")
    columns.displace(columns.pods["1"])
    columns.displace(columns.pods["2"])
    assert (_counts(columns, attached, "other"), _counts(columns, attached)) == ([0, 0], [0, 0])


def test_a_pods_own_disk_counts_for_its_driver() -> None:
    columns, attached = _cluster_of_claims()
    own = Volume(name="v", aws_elastic_block_store=AWSElasticBlockStoreVolumeSource(volume_id="vol-1"))
    unknown = Volume(name="w", vsphere_volume=VsphereVirtualDiskVolumeSource())
    _place(columns, pod("p", uid="1", volumes=[own, unknown]), "n1")
    assert _counts(columns, attached) == [1, 0]
    columns.displace(columns.pods["1"])
    assert _counts(columns, attached) == [0, 0]


@pytest.mark.parametrize(
    ("volumes", "fault"),
    [
        pytest.param(
            [Volume(name="v", azure_disk=AzureDiskVolumeSource(kind="Shared"))],
            "converting volume(v) from inline to csi: kind(Shared) is not supported in csi migration",
            id="a disk that nobody can name",
        ),
        pytest.param([claim_volume("")], "PersistentVolumeClaim had no name", id="a claim without a name"),
        pytest.param(
            [claim_volume("c"), ephemeral("v")],
            "PVC default/p-v was not created for pod default/p (pod is not owner)",
            id="an ephemeral claim of somebody else",
        ),
        pytest.param([claim_volume("missing"), ephemeral("missing")], None, id="claims that do not exist"),
    ],
)
def test_what_is_wrong_with_a_placed_pod(volumes: list[Volume], fault: str | None) -> None:
    columns, attached = _cluster_of_claims(waiting("c"), waiting("p-v"))
    _place(columns, pod("p", uid="1", volumes=volumes), "n2")
    assert attached.claimed.errors == ({1: {"1": fault}} if fault is not None else {})
    columns.displace(columns.pods["1"])
    assert attached.claimed.errors == {}


def test_an_ephemeral_claim_may_find_its_owner() -> None:
    columns, attached = _cluster_of_claims(waiting("p-v"))
    view = pod("p", uid="1", volumes=[ephemeral("v")])
    _place(columns, view, "n1")
    assert 0 in attached.claimed.errors
    _put(columns, waiting("p-v", owner=view))
    assert attached.claimed.errors == {}
    _put(columns, waiting("p-v"))
    assert 0 in attached.claimed.errors
    columns.objects.of(PersistentVolumeClaim).remove("default/p-v")
    assert attached.claimed.errors == {}


def test_a_what_if_leaves_no_trace_of_claimed_volumes() -> None:
    columns, attached = _cluster_of_claims(bound("c", to="v"), volume("v", driver=EBS), waiting("p-e"))
    _place(columns, pod("p", uid="1", claims=["c"], volumes=[ephemeral("e")]), "n1")
    faults = {row: dict(texts) for row, texts in attached.claimed.errors.items()}
    with Transaction(columns) as transaction:
        transaction.displace(columns.pods["1"])
        assert _counts(columns, attached) == [0, 0]
        assert attached.claimed.errors == {}
        transaction.place(columns.record(pod("q", uid="2", claims=["c"])), 1)
        assert _counts(columns, attached) == [0, 1]
    assert _counts(columns, attached) == [1, 0]
    assert attached.claimed.errors == faults


# --- any history ------------------------------------------------------------------------------------------------

_OWNER = pod("p0", uid="0")
_EVENTS: list[ApiObject] = [
    *(node(name) for name in ("n1", "n2", "n3")),
    bound("c", to="v", of_class="s"),
    bound("c", to="w"),
    waiting("c", of_class="s"),
    bound("d", to="v"),
    waiting("p0-e", of_class="s"),
    waiting("p0-e", of_class="s", owner=_OWNER),
    volume("v", driver=EBS),
    volume("v", ebs="vol-1"),
    volume("w", driver="other"),
    storage_class("s", provisioner=EBS),
    storage_class("s", provisioner="other"),
    attachment("a", of="v", on="n1", by=EBS),
    attachment("a", of="w", on="n2", by="other"),
    attachment("b", of="v", on="n3", by=EBS),
]
_PODS = [
    pod("p0", uid="0", claims=["c", "d"], volumes=[ephemeral("e")]),
    pod("p1", uid="1", claims=["c"]),
    pod("p2", uid="2", claims=["d", "d"]),
]


class _Step(NamedTuple):
    subject: ApiObject
    where: str
    """The node of a pod."""
    goes: bool


_steps = st.builds(
    _Step,
    subject=st.sampled_from([*_EVENTS, *_PODS, *_PODS]),
    where=st.sampled_from(["n1", "n2", "n3"]),
    goes=st.sampled_from([False, False, True]),
)


@settings(max_examples=120)
@given(st.lists(_steps, max_size=40))
def test_after_any_history_the_counts_are_those_of_a_fresh_look(steps: list[_Step]) -> None:
    columns = Columns()
    attached = columns.volumes.attached()
    for step in steps:
        _happen(columns, step)
    fresh_attachments = AttachmentColumns(columns)
    fresh = AttachedVolumes(attached.csi_nodes, fresh_attachments, ClaimedVolumes(columns, fresh_attachments))
    for driver in (EBS, "other"):
        assert _counts(columns, attached, driver) == _counts(columns, fresh, driver)
    assert attached.claimed.errors == fresh.claimed.errors


def _happen(columns: Columns, step: _Step) -> None:
    match step.subject:
        case Pod() as view:
            known = columns.pods.get(view.metadata.uid)
            if known is not None:
                columns.displace(known)
            if not step.goes:
                _place(columns, view, step.where)
        case Node() as view:
            if not step.goes:
                columns.put_node(view)
            elif view.metadata.name in columns.row_of:
                columns.remove_node(view.metadata.name)
        case view if step.goes:
            columns.objects.of(type(view)).remove(view.key)
        case view:
            _put(columns, view)


def _cluster_of_claims(*objects: ApiObject) -> tuple[Columns, AttachedVolumes]:
    columns = Columns()
    for name in ("n1", "n2"):
        columns.put_node(node(name))
    for view in objects:
        _put(columns, view)
    return columns, columns.volumes.attached()


def _put(columns: Columns, view: ApiObject) -> None:
    columns.objects.of(type(view)).put(view)


def _place(columns: Columns, view: Pod, node_name: str) -> None:
    columns.place(columns.record(view), node_name)


def _counts(columns: Columns, attached: AttachedVolumes, driver: str = EBS) -> list[int]:
    attached.sync()
    counts = attached.attachments.count(driver)
    return [0] * columns.height if counts is None else counts[: columns.height].tolist()
