"""Rows with the same devices and allocations have the same code."""

from __future__ import annotations

import numpy as np
import pytest

from mooring.api.views.devices import ResourceClaim, ResourceSlice
from mooring.scheduler.devices import dra_manager as dra_manager
from mooring.scheduler.devices.dra_manager import DRAManager
from tests.builders import node
from tests.device_builders import claim, device, given, gpus, slice_of
from tests.scheduler.devices.clusters import columns_of


def test_rows_in_the_same_state_have_the_same_code() -> None:
    columns = columns_of(gpus("n1", 2), gpus("n2", 2), gpus("n3", 3))
    manager = DRAManager(columns)
    manager.sync()
    assert manager.codes[0] == manager.codes[1]
    assert manager.codes[0] != manager.codes[2]
    columns.objects.of(ResourceClaim).put(claim("c", has=given("gpu-0", pool="n1")))
    manager.sync()
    assert manager.codes[0] != manager.codes[1]
    columns.objects.of(ResourceClaim).put(claim("d", has=given("gpu-0", pool="n2")))
    manager.sync()
    assert manager.codes[0] == manager.codes[1]


def test_rows_with_the_same_devices_are_grouped() -> None:
    columns = columns_of(gpus("n1", 2), gpus("n2", 3), gpus("n3", 2))
    manager = DRAManager(columns)
    manager.sync()
    assert [places.tolist() for places in manager.group_alike(np.array([2, 1, 0]))] == [[0, 2], [1]]
    assert manager.group_alike(np.zeros(0, dtype=np.int64)) == []


def test_a_shared_device_that_is_taken_changes_its_groups_and_no_codes() -> None:
    columns = columns_of(slice_of(device("d"), everywhere=True), gpus("n1", 1))
    manager = DRAManager(columns)
    manager.sync()
    codes, uses = manager.codes.tolist(), list(manager.group_uses)
    assert manager.groups[0] == manager.groups[1] == manager.groups[2]
    columns.objects.of(ResourceClaim).put(claim("c", has=given("d", pool="pool")))
    manager.sync()
    assert manager.codes.tolist() == codes
    assert manager.group_uses != uses


def test_only_rows_that_changed_are_reported() -> None:
    columns = columns_of(gpus("n1", 1), gpus("n2", 1))
    manager = DRAManager(columns)
    manager.sync()
    position = manager.changes.position
    columns.objects.of(ResourceClaim).put(claim("c", has=given("gpu-0", pool="n2")))
    manager.sync()
    changed = manager.changes.since(position)
    assert changed is not None
    assert changed.tolist() == [1]


def test_states_are_numbered_anew_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dra_manager, "CODES_MAX", 1)
    columns = columns_of(gpus("n1", 1), gpus("n2", 2))
    manager = DRAManager(columns)
    manager.sync()
    generation = manager.generation
    columns.objects.of(ResourceSlice).put(gpus("n3", 2))
    manager.sync()
    assert manager.generation > generation
    assert manager.codes[1] == manager.codes[2]


def test_nodes_that_come_later_are_seen() -> None:
    columns = columns_of(gpus("n4", 1))
    manager = DRAManager(columns)
    manager.sync()
    columns.put_node(node("n4"))
    manager.sync()
    assert [pool.id[1] for pool in manager.inventory.pools(3)] == ["n4"]
