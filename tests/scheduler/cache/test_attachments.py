"""How many different volumes each row has attached."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mooring.api.views.storage import PersistentVolume, VolumeAttachment
from mooring.scheduler.cache.attachments import AttachmentColumns, attachable
from mooring.scheduler.cache.columns import Columns
from tests.builders import node
from tests.storage_builders import attachment, volume

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
