"""AllocationOutcomes for all rows: shared where rows are alike, and never stale."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mooring.api.views.devices import ResourceClaim, ResourceClaimSpec, ResourceSlice
from mooring.kit.clock import VirtualClock
from mooring.scheduler.devices import allocation_cache as allocation_cache
from mooring.scheduler.devices.allocation_cache import CANNOT, FAILED, FITS, INVALID_POOLS, AllocationCache
from mooring.scheduler.devices.allocator import Allocator, Deadline
from mooring.scheduler.devices.dra_manager import DRAManager
from mooring.scheduler.devices.requests import AllocationRequest, DeviceAllocationError
from tests.api.builders import node_selector, term
from tests.builders import ZONE, node
from tests.device_builders import asking, claim, device, device_class, first_of, given, gpus, slice_of, wants
from tests.scheduler.devices.clusters import columns_of

IN_A = node_selector(term(f"{ZONE} In a"))


def test_one_search_answers_for_all_rows_in_the_same_state(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = columns_of(*(gpus(f"n{number}", 2) for number in range(1, 51)), device_class(), zones="a" * 50)
    manager = DRAManager(columns)
    manager.sync()
    searches: list[Allocator] = []
    plain = Allocator.run

    def counted(search: Allocator) -> object:
        searches.append(search)
        return plain(search)

    monkeypatch.setattr(Allocator, "run", counted)
    outcomes = AllocationCache(manager, VirtualClock(), 10.0).outcomes_for([asking(wants())], 50)
    assert set(outcomes.at(np.arange(50)).tolist()) == {FITS}
    assert len(searches) == 1


def test_kinds_of_wants_that_were_not_seen_for_long_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocation_cache, "CACHE_BYTES_MAX", 0)
    monkeypatch.setattr(allocation_cache, "CACHE_ENTRIES_MIN", 2)
    manager = DRAManager(columns_of(device_class()))
    manager.sync()
    cache = AllocationCache(manager, VirtualClock(), 10.0)
    one, two, three = ([asking(wants(count=count))] for count in (1, 2, 3))
    first, second = cache.outcomes_for(one, 3), cache.outcomes_for(two, 3)
    assert cache.outcomes_for(one, 3) is first
    cache.outcomes_for(three, 3)
    assert cache.outcomes_for(one, 3) is first
    assert cache.outcomes_for(two, 3) is not second


def test_a_class_that_changes_changes_the_answers() -> None:
    columns = columns_of(device_class(), gpus("n1", 1))
    manager = DRAManager(columns)
    manager.sync()
    cache = AllocationCache(manager, VirtualClock(), 10.0)
    assert cache.outcomes_for([asking(wants())], 3).at(np.arange(3)).tolist() == [FITS, CANNOT, CANNOT]
    columns.objects.of(type(device_class())).put(device_class("gpu", "false"))
    assert cache.outcomes_for([asking(wants())], 3).at(np.arange(3)).tolist() == [CANNOT, CANNOT, CANNOT]


# Whatever happens, the answers are those of a search from scratch

_DEVICES = st.lists(
    st.builds(
        lambda name, numa, taints, shared: device(name, numa=numa, taints=taints, shared=shared, memory="8Gi"),
        st.sampled_from("abcd"),
        st.integers(0, 1),
        st.sampled_from([(), ("sick:NoSchedule",)]),
        st.sampled_from([None, None, True]),
    ),
    max_size=4,
)
_WANTS = [
    [asking(wants())],
    [asking(wants(count=2), same="numa")],
    [asking(first_of(wants(name="x", count=3), wants(name="y"))), asking(wants())],
    [asking(wants(every=True))],
    [asking(wants(capacity={"memory": "3Gi"}))],
]


class Allocations(RuleBasedStateMachine):
    """Slices, nodes and claims come and go."""

    @initialize()
    def start(self) -> None:
        self.columns = columns_of(device_class())
        self.manager = DRAManager(self.columns)
        self.cache = AllocationCache(self.manager, VirtualClock(), 10.0)

    @rule(devices=_DEVICES, on=st.sampled_from(["n1", "n2", "n3", "n4"]), of=st.sampled_from([1, 1, 1, 2]))
    def publish(self, devices: list[object], on: str, of: int) -> None:
        self.columns.objects.of(ResourceSlice).put(slice_of(*devices, node=on, of=of))  # type: ignore[arg-type]

    @rule(devices=_DEVICES, reached=st.sampled_from([None, IN_A]))
    def publish_for_many(self, devices: list[object], reached: object) -> None:
        everywhere = True if reached is None else None
        shared = slice_of(*devices, everywhere=everywhere, reached=reached, pool="shared")  # type: ignore[arg-type]
        self.columns.objects.of(ResourceSlice).put(shared)

    @rule(name=st.sampled_from(["n1-gpu.example.com", "n2-gpu.example.com", "shared-gpu.example.com"]))
    def withdraw(self, name: str) -> None:
        self.columns.objects.of(ResourceSlice).remove(name)

    @rule(
        name=st.sampled_from("xyz"),
        pool=st.sampled_from(["n1", "n2", "n3", "shared"]),
        taken=st.sampled_from("abcd"),
        share=st.booleans(),
    )
    def allocate(self, name: str, pool: str, taken: str, share: bool) -> None:
        allocation = given(
            taken, pool=pool, share="s" if share else None, consumes={"memory": "3Gi"} if share else None
        )
        self.columns.objects.of(ResourceClaim).put(claim(name, has=allocation))

    @rule(name=st.sampled_from("xyz"))
    def deallocate(self, name: str) -> None:
        self.columns.objects.of(ResourceClaim).remove(f"default/{name}")

    @rule(name=st.sampled_from(["n1", "n2", "n3", "n4"]), zone=st.sampled_from("ab"))
    def put_node(self, name: str, zone: str) -> None:
        self.columns.put_node(node(name, zone=zone))

    @rule(name=st.sampled_from(["n2", "n3"]))
    def remove_node(self, name: str) -> None:
        if name in self.columns.row_of:
            self.columns.remove_node(name)

    @rule(on=st.sampled_from([0, 1, 2]), which=st.sampled_from(_WANTS))
    def allocate_early(self, on: int, which: list[ResourceClaimSpec]) -> None:
        """Some rows are asked about before others."""
        self.manager.sync()
        outcomes = self.cache.outcomes_for(which, self.columns.height)
        outcomes.at(np.array([on]))

    @invariant()
    def nothing_cached_is_stale(self) -> None:
        if not hasattr(self, "columns"):
            return
        self.manager.sync()
        fresh = DRAManager(self.columns)
        fresh.sync()
        rows = np.arange(self.columns.height)
        for specs in _WANTS:
            outcomes = self.cache.outcomes_for(specs, self.columns.height)
            found = outcomes.at(rows)
            for row in rows[self.columns.alive[: len(rows)]].tolist():
                expected, score = self._from_scratch(fresh, specs, row)
                assert int(found[row]) == expected
                if expected == FITS:
                    assert int(outcomes.scores(rows)[row]) == score

    def _from_scratch(self, manager: DRAManager, specs: list[ResourceClaimSpec], row: int) -> tuple[int, int]:
        wanted = AllocationRequest(specs, manager.classes)
        pools = manager.inventory.pools(row)
        try:
            found = Allocator(pools, manager.allocated, wanted, Deadline(VirtualClock(), 10.0)).run()
        except DeviceAllocationError:
            return FAILED, 0
        if found is not None:
            return FITS, found.score(wanted)
        return INVALID_POOLS if any(pool.is_invalid for pool in pools) else CANNOT, 0


Allocations.TestCase.settings = settings(max_examples=25, stateful_step_count=15, deadline=None)
TestAllocations = Allocations.TestCase
