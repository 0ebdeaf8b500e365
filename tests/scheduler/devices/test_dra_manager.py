"""The ledger: situations as numbers."""

from __future__ import annotations

import numpy as np
import pytest

from mooring.api.views.devices import ResourceClaim, ResourceSlice
from mooring.scheduler.devices import dra_manager as ledgers
from mooring.scheduler.devices.dra_manager import DeviceLedger
from tests.builders import node
from tests.device_builders import claim, device, given, gpus, slice_of
from tests.scheduler.devices.clusters import columns_of


def test_rows_in_the_same_situation_have_the_same_code() -> None:
    columns = columns_of(gpus("n1", 2), gpus("n2", 2), gpus("n3", 3))
    ledger = DeviceLedger(columns)
    ledger.sync()
    assert ledger.codes[0] == ledger.codes[1]
    assert ledger.codes[0] != ledger.codes[2]
    columns.objects.of(ResourceClaim).put(claim("c", has=given("gpu-0", pool="n1")))
    ledger.sync()
    assert ledger.codes[0] != ledger.codes[1]
    columns.objects.of(ResourceClaim).put(claim("d", has=given("gpu-0", pool="n2")))
    ledger.sync()
    assert ledger.codes[0] == ledger.codes[1]


def test_rows_with_the_same_devices_are_grouped() -> None:
    columns = columns_of(gpus("n1", 2), gpus("n2", 3), gpus("n3", 2))
    ledger = DeviceLedger(columns)
    ledger.sync()
    assert [places.tolist() for places in ledger.alike(np.array([2, 1, 0]))] == [[0, 2], [1]]
    assert ledger.alike(np.zeros(0, dtype=np.int64)) == []


def test_a_shared_device_that_is_taken_changes_its_groups_and_no_codes() -> None:
    columns = columns_of(slice_of(device("d"), everywhere=True), gpus("n1", 1))
    ledger = DeviceLedger(columns)
    ledger.sync()
    codes, uses = ledger.codes.tolist(), list(ledger.group_uses)
    assert ledger.groups[0] == ledger.groups[1] == ledger.groups[2]
    columns.objects.of(ResourceClaim).put(claim("c", has=given("d", pool="pool")))
    ledger.sync()
    assert ledger.codes.tolist() == codes
    assert ledger.group_uses != uses


def test_only_rows_that_changed_are_told() -> None:
    columns = columns_of(gpus("n1", 1), gpus("n2", 1))
    ledger = DeviceLedger(columns)
    ledger.sync()
    position = ledger.changes.position
    columns.objects.of(ResourceClaim).put(claim("c", has=given("gpu-0", pool="n2")))
    ledger.sync()
    changed = ledger.changes.since(position)
    assert changed is not None
    assert changed.tolist() == [1]


def test_situations_are_numbered_anew_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledgers, "CODES_MAX", 1)
    columns = columns_of(gpus("n1", 1), gpus("n2", 2))
    ledger = DeviceLedger(columns)
    ledger.sync()
    generation = ledger.generation
    columns.objects.of(ResourceSlice).put(gpus("n3", 2))
    ledger.sync()
    assert ledger.generation > generation
    assert ledger.codes[1] == ledger.codes[2]


def test_nodes_that_come_later_are_seen() -> None:
    columns = columns_of(gpus("n4", 1))
    ledger = DeviceLedger(columns)
    ledger.sync()
    columns.put_node(node("n4"))
    ledger.sync()
    assert [pool.id[1] for pool in ledger.inventory.pools(3)] == ["n4"]
