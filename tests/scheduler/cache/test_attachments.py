"""Attached volumes: how many different volumes of a driver each row has."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mooring.api.views.storage import CSINode, PersistentVolume, VolumeAttachment
from mooring.scheduler.cache.attachments import NO_LIMIT, AttachmentColumns, CsiNodeColumns, attachable
from mooring.scheduler.cache.columns import Columns
from tests.builders import node
from tests.storage_builders import attachment, csi_node, volume

EBS = "ebs.csi.aws.com"


def test_a_volume_counts_once_for_all_pods_of_a_row() -> None:
    columns, attachments = _cluster("n1", "n2")
    one = attachable(EBS, "one")
    attachments.use(one, 0, 2)
    attachments.use(one, 1, 1)
    attachments.use(attachable(EBS, "two"), 0, 1)
    assert _counts(columns, attachments) == [2, 1]
    assert dict(attachments.rows_using(one)) == {0: 2, 1: 1}
    attachments.use(one, 0, -1)
    assert _counts(columns, attachments) == [2, 1]
    attachments.use(one, 0, -1)
    assert _counts(columns, attachments) == [1, 1]
    assert dict(attachments.rows_using(one)) == {1: 1}


def test_drivers_are_counted_apart() -> None:
    _, attachments = _cluster("n1")
    attachments.use(attachable(EBS, "v"), 0, 1)
    assert attachments.count("other") is None


def test_an_attachment_counts_where_its_node_is() -> None:
    columns, attachments = _cluster("n1", "n2")
    columns.objects.of(PersistentVolume).put(volume("v", driver=EBS))
    columns.objects.of(VolumeAttachment).put(attachment("a", of="v", on="n2", by=EBS))
    assert _counts(columns, attachments) == [0, 1]
    columns.objects.of(VolumeAttachment).put(attachment("a", of="v", on="n1", by=EBS))
    assert _counts(columns, attachments) == [1, 0]
    columns.objects.of(VolumeAttachment).remove("a")
    assert _counts(columns, attachments) == [0, 0]


def test_a_volume_that_is_used_and_attached_counts_once() -> None:
    columns, attachments = _cluster("n1")
    columns.objects.of(PersistentVolume).put(volume("v", driver=EBS))
    attachments.use(attachable(EBS, "v"), 0, 1)
    columns.objects.of(VolumeAttachment).put(attachment("a", of="v", on="n1", by=EBS))
    assert _counts(columns, attachments) == [1]
    attachments.use(attachable(EBS, "v"), 0, -1)
    assert _counts(columns, attachments) == [1]
    assert not attachments.rows_using(attachable(EBS, "v"))


def test_only_a_drivers_own_volumes_are_attached() -> None:
    columns, attachments = _cluster("n1")
    columns.objects.of(PersistentVolume).put(volume("in-tree", ebs="vol-1"))
    columns.objects.of(PersistentVolume).put(volume("v", driver=EBS))
    for number, (name, by) in enumerate([("in-tree", EBS), ("missing", EBS), (None, EBS), ("v", "")]):
        columns.objects.of(VolumeAttachment).put(attachment(f"a{number}", of=name, on="n1", by=by))
    assert _counts(columns, attachments) == [0]


def test_a_volume_may_come_after_its_attachment() -> None:
    columns, attachments = _cluster("n1")
    columns.objects.of(VolumeAttachment).put(attachment("a", of="v", on="n1", by=EBS))
    assert _counts(columns, attachments) == [0]
    columns.objects.of(PersistentVolume).put(volume("v", driver=EBS))
    assert _counts(columns, attachments) == [1]
    columns.objects.of(PersistentVolume).remove("v")
    assert _counts(columns, attachments) == [0]


def test_attachments_that_were_there_before_are_counted() -> None:
    columns = Columns()
    columns.objects.of(VolumeAttachment).put(attachment("a", of="v", on="n1", by=EBS))
    columns.objects.of(PersistentVolume).put(volume("v", driver=EBS))
    columns.put_node(node("n1"))
    assert _counts(columns, AttachmentColumns(columns)) == [1]


def test_attachments_go_and_come_back_with_their_node() -> None:
    columns, attachments = _cluster("n1")
    columns.objects.of(PersistentVolume).put(volume("v", driver=EBS))
    columns.objects.of(VolumeAttachment).put(attachment("a", of="v", on="n1", by=EBS))
    columns.remove_node("n1")
    columns.put_node(node("n2"))
    assert _counts(columns, attachments) == [0]
    columns.put_node(node("n1"))
    assert _counts(columns, attachments) == [0, 1]


def test_an_attachment_that_changed_while_its_node_was_away_is_counted_when_it_is_back() -> None:
    columns, attachments = _cluster("n1")
    columns.objects.of(PersistentVolume).put(volume("v", driver=EBS))
    columns.objects.of(VolumeAttachment).put(attachment("a", of="v", on="n1", by=EBS))
    columns.remove_node("n1")
    columns.objects.of(VolumeAttachment).put(attachment("a", of="v", on="n1", by=EBS))
    columns.put_node(node("n1"))
    assert _counts(columns, attachments) == [1]


def test_the_counts_grow_with_the_table() -> None:
    columns, attachments = _cluster("n1")
    attachments.use(attachable(EBS, "v"), 0, 1)
    for number in range(200):
        columns.put_node(node(f"more-{number}"))
    attachments.use(attachable(EBS, "w"), 150, 1)
    counts = _counts(columns, attachments)
    assert (len(counts), counts[0], counts[150], sum(counts)) == (201, 1, 1, 2)


_STEPS = st.lists(st.tuples(st.booleans(), st.sampled_from("vwx"), st.integers(0, 2)), max_size=40)


@given(_STEPS)
def test_counts_are_those_of_the_volumes_that_are_there(steps: list[tuple[bool, str, int]]) -> None:
    columns, attachments = _cluster("n0", "n1", "n2")
    for handle in "vwx":
        columns.objects.of(PersistentVolume).put(volume(handle, driver=EBS))
    used: set[tuple[str, int]] = set()
    attached: set[tuple[str, int]] = set()
    for by_pod, handle, row in steps:
        holders = used if by_pod else attached
        arrives = (handle, row) not in holders
        if by_pod:
            attachments.use(attachable(EBS, handle), row, 1 if arrives else -1)
        elif arrives:
            columns.objects.of(VolumeAttachment).put(attachment(f"{handle}-{row}", of=handle, on=f"n{row}", by=EBS))
        else:
            columns.objects.of(VolumeAttachment).remove(f"{handle}-{row}")
        holders ^= {(handle, row)}
        assert _counts(columns, attachments) == [sum(at == row for _, at in used | attached) for row in range(3)]


def _cluster(*names: str) -> tuple[Columns, AttachmentColumns]:
    columns = Columns()
    for name in names:
        columns.put_node(node(name))
    attachments = AttachmentColumns(columns)
    attachments.sync()
    return columns, attachments


def _counts(columns: Columns, attachments: AttachmentColumns) -> list[int]:
    attachments.sync()
    counts = attachments.count(EBS)
    return [0] * columns.height if counts is None else counts[: columns.height].tolist()


def test_limits_are_read_from_the_node_of_the_same_name() -> None:
    columns = _cluster_with_csi_nodes("n1", "n2", "n3")
    store = columns.objects.of(CSINode)
    store.put(csi_node("n1", {EBS: 25, "other": None}))
    store.put(csi_node("n2", {"other": 3}))
    csi_nodes = _synced(columns)
    assert _limits(csi_nodes, EBS) == [25, NO_LIMIT, NO_LIMIT]
    assert _limits(csi_nodes, "other") == [NO_LIMIT, 3, NO_LIMIT]
    assert csi_nodes.limits("unheard of") is None
    assert csi_nodes.present[:3].tolist() == [True, True, False]
    assert csi_nodes.limited[:3].tolist() == [True, True, False]


def test_a_driver_without_a_limit_does_not_limit_its_node() -> None:
    columns = _cluster_with_csi_nodes("n1")
    columns.objects.of(CSINode).put(csi_node("n1", {EBS: None}))
    csi_nodes = _synced(columns)
    assert csi_nodes.present[0]
    assert not csi_nodes.limited[0]
    assert csi_nodes.limits(EBS) is None


def test_a_limit_of_nothing_is_a_limit() -> None:
    columns = _cluster_with_csi_nodes("n1")
    columns.objects.of(CSINode).put(csi_node("n1", {EBS: 0}))
    assert _limits(_synced(columns), EBS) == [0]


def test_a_csi_node_that_changes_is_read_at_once() -> None:
    columns = _cluster_with_csi_nodes("n1")
    csi_nodes = _synced(columns)
    store = columns.objects.of(CSINode)
    store.put(csi_node("n1", {EBS: 25}))
    assert _limits(csi_nodes, EBS) == [25]
    store.put(csi_node("n1", {EBS: 20}))
    assert _limits(csi_nodes, EBS) == [20]
    store.remove("n1")
    assert _limits(csi_nodes, EBS) == [NO_LIMIT]
    assert not csi_nodes.present[0]


def test_either_may_come_first() -> None:
    columns = _cluster_with_csi_nodes("n1")
    csi_nodes = _synced(columns)
    columns.objects.of(CSINode).put(csi_node("n2", {EBS: 25}))
    columns.put_node(node("n2"))
    csi_nodes.sync()
    assert _limits(csi_nodes, EBS) == [NO_LIMIT, 25]


def test_a_reused_row_has_the_properties_of_its_new_node() -> None:
    columns = _cluster_with_csi_nodes("n1")
    columns.objects.of(CSINode).put(csi_node("n1", {EBS: 25}, migrated=["kubernetes.io/aws-ebs"]))
    csi_nodes = _synced(columns)
    columns.remove_node("n1")
    columns.put_node(node("n2"))
    csi_nodes.sync()
    assert columns.row_of == {"n2": 0}
    assert _limits(csi_nodes, EBS) == [NO_LIMIT]
    assert not csi_nodes.present[0]
    migrated = csi_nodes.migrated("kubernetes.io/aws-ebs")
    assert migrated is not None
    assert not migrated[0]


def test_the_plugins_that_a_node_has_migrated() -> None:
    columns = _cluster_with_csi_nodes("n1", "n2")
    columns.objects.of(CSINode).put(csi_node("n1", migrated=["kubernetes.io/aws-ebs", "kubernetes.io/gce-pd"]))
    columns.objects.of(CSINode).put(csi_node("n2", migrated=["kubernetes.io/gce-pd"]))
    csi_nodes = _synced(columns)
    rows = {
        plugin: migrated[:2].tolist()
        for plugin in ("kubernetes.io/aws-ebs", "kubernetes.io/gce-pd")
        if (migrated := csi_nodes.migrated(plugin)) is not None
    }
    assert rows == {"kubernetes.io/aws-ebs": [True, False], "kubernetes.io/gce-pd": [True, True]}
    assert csi_nodes.migrated("kubernetes.io/cinder") is None


def test_the_table_grows() -> None:
    columns = _cluster_with_csi_nodes("n0")
    columns.objects.of(CSINode).put(csi_node("n0", {EBS: 1}))
    csi_nodes = _synced(columns)
    for number in range(1, 200):
        columns.put_node(node(f"n{number}"))
    columns.objects.of(CSINode).put(csi_node("n199", {EBS: 2}))
    csi_nodes.sync()
    limits = csi_nodes.limits(EBS)
    assert limits is not None
    assert (limits[0], limits[100], limits[199]) == (1, NO_LIMIT, 2)


def _cluster_with_csi_nodes(*names: str) -> Columns:
    columns = Columns()
    for name in names:
        columns.put_node(node(name))
    return columns


def _synced(columns: Columns) -> CsiNodeColumns:
    csi_nodes = CsiNodeColumns(columns)
    csi_nodes.sync()
    return csi_nodes


def _limits(csi_nodes: CsiNodeColumns, driver: str) -> list[int]:
    limits = csi_nodes.limits(driver)
    assert limits is not None
    return [int(limit) for limit in limits[: csi_nodes._columns.height]]
