"""What drivers say about nodes, by row."""

from __future__ import annotations

from mooring.api.views.storage import CSINode
from mooring.scheduler.cache.attachments import NO_LIMIT, CsiNodeColumns
from mooring.scheduler.cache.columns import Columns
from tests.builders import node
from tests.storage_builders import csi_node

EBS = "ebs.csi.aws.com"


def test_limits_are_read_from_the_node_of_the_same_name() -> None:
    columns = _cluster("n1", "n2", "n3")
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
    columns = _cluster("n1")
    columns.objects.of(CSINode).put(csi_node("n1", {EBS: None}))
    csi_nodes = _synced(columns)
    assert csi_nodes.present[0]
    assert not csi_nodes.limited[0]
    assert csi_nodes.limits(EBS) is None


def test_a_limit_of_nothing_is_a_limit() -> None:
    columns = _cluster("n1")
    columns.objects.of(CSINode).put(csi_node("n1", {EBS: 0}))
    assert _limits(_synced(columns), EBS) == [0]


def test_a_csi_node_that_changes_is_read_at_once() -> None:
    columns = _cluster("n1")
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
    columns = _cluster("n1")
    csi_nodes = _synced(columns)
    columns.objects.of(CSINode).put(csi_node("n2", {EBS: 25}))
    columns.put_node(node("n2"))
    csi_nodes.sync()
    assert _limits(csi_nodes, EBS) == [NO_LIMIT, 25]


def test_a_row_that_another_node_takes_over_says_what_that_one_says() -> None:
    columns = _cluster("n1")
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
    columns = _cluster("n1", "n2")
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
    columns = _cluster("n0")
    columns.objects.of(CSINode).put(csi_node("n0", {EBS: 1}))
    csi_nodes = _synced(columns)
    for number in range(1, 200):
        columns.put_node(node(f"n{number}"))
    columns.objects.of(CSINode).put(csi_node("n199", {EBS: 2}))
    csi_nodes.sync()
    limits = csi_nodes.limits(EBS)
    assert limits is not None
    assert (limits[0], limits[100], limits[199]) == (1, NO_LIMIT, 2)


def _cluster(*names: str) -> Columns:
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
