"""Claims and disks in use, by row."""

from __future__ import annotations

import pytest

from mooring.api.views.pod import Pod
from mooring.api.views.storage import (
    AWSElasticBlockStoreVolumeSource,
    ISCSIVolumeSource,
    RBDVolumeSource,
    Volume,
)
from mooring.scheduler.cache.columns import Columns, Transaction
from mooring.scheduler.cache.volumes import disks_of
from tests.builders import disk, node, pod


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
