"""The devices that each row sees, the rows that a change concerns, and the cached outcomes of the allocator."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mooring.api.views.devices import DeviceClass, ResourceClaim, ResourceClaimSpec, ResourceSlice
from mooring.kit.clock import VirtualClock
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.devices import allocation_cache as allocation_cache
from mooring.scheduler.devices import dra_manager as dra_manager
from mooring.scheduler.devices.allocation_cache import CANNOT, FAILED, FITS, INVALID_POOLS, AllocationCache
from mooring.scheduler.devices.allocator import Allocator, Deadline
from mooring.scheduler.devices.dra_manager import DRAManager, Inventory
from mooring.scheduler.devices.requests import AllocationRequest, DeviceAllocationError
from tests.api.builders import node_selector, term
from tests.builders import ZONE, node
from tests.device_builders import asking, claim, device, device_class, first_of, given, gpus, slice_of, wants


def columns_of(*views: ResourceSlice | DeviceClass | ResourceClaim, zones: str = "aab") -> Columns:
    """Nodes n1, n2, … in these zones, and objects."""
    columns = Columns()
    for number, zone in enumerate(zones, start=1):
        columns.put_node(node(f"n{number}", zone=zone))
    for view in views:
        columns.objects.of(type(view)).put(view)
    return columns


IN_A = node_selector(term(f"{ZONE} In a"))


def seen(columns: Columns) -> dict[str, list[str]]:
    """The pools that each node sees; in brackets those that give nothing."""
    inventory = Inventory(columns)
    inventory.sync()
    return {
        name: [
            f"({pool.id[1]})" if pool.is_incomplete or pool.is_invalid else f"{pool.id[1]}:{len(pool.devices)}"
            for pool in inventory.pools(row)
        ]
        for name, row in columns.row_of.items()
    }


@pytest.mark.parametrize(
    ("slices", "expected"),
    [
        pytest.param([gpus("n1", 2)], {"n1": ["n1:2"], "n2": [], "n3": []}, id="devices of one node"),
        pytest.param(
            [slice_of(device("d"), everywhere=True)],
            {"n1": ["pool:1"], "n2": ["pool:1"], "n3": ["pool:1"]},
            id="devices that all reach",
        ),
        pytest.param(
            [slice_of(device("d"), reached=IN_A)],
            {"n1": ["pool:1"], "n2": ["pool:1"], "n3": []},
            id="devices that a zone reaches",
        ),
        pytest.param(
            [slice_of(device("d", on="n1"), device("e", reached=IN_A), device("f", everywhere=True), per_device=True)],
            {"n1": ["pool:3"], "n2": ["pool:3"], "n3": ["pool:3"]},
            id="devices that say it themselves: the slice reaches whom one of them reaches",
        ),
        pytest.param([slice_of(device("d"))], {"n1": [], "n2": [], "n3": []}, id="devices that say nothing"),
        pytest.param(
            [
                slice_of(device("d"), node="n1", pool="x", name="1", of=2),
                slice_of(device("e"), node="n2", pool="x", name="2", of=2),
            ],
            {"n1": ["x:1"], "n2": ["x:1"], "n3": []},
            id="a pool of several nodes",
        ),
        pytest.param(
            [slice_of(device("d"), node="n1", of=2)],
            {"n1": ["(n1)"], "n2": [], "n3": []},
            id="an incomplete pool concerns its node",
        ),
        pytest.param(
            [slice_of(counters={"m": 1}, node="n1", name="c", of=2)],
            {"n1": ["(n1)"], "n2": ["(n1)"], "n3": ["(n1)"]},
            id="unless it has counters: then it concerns all",
        ),
        pytest.param(
            [slice_of(counters={"m": 1}, node="n1", name="c", of=2), slice_of(device("d"), node="n1", name="s", of=2)],
            {"n1": ["n1:1"], "n2": [], "n3": []},
            id="complete, it concerns its node again",
        ),
        pytest.param(
            [
                gpus("n1", 1),
                slice_of(device("r", ready_when=["up"]), node="n1", pool="a"),
                slice_of(device("z"), everywhere=True, pool="z"),
            ],
            {"n1": ["n1:1", "z:1", "a:1"], "n2": ["z:1"], "n3": ["z:1"]},
            id="by name, and what must be bound first comes last",
        ),
    ],
)
def test_which_pools_a_node_sees(slices: list[ResourceSlice], expected: dict[str, list[str]]) -> None:
    assert seen(columns_of(*slices)) == expected


def test_a_selector_that_cannot_be_read_hides_everything() -> None:
    inventory = Inventory(columns_of(slice_of(device("d"), name="s", reached=node_selector(term("zone Like a")))))
    inventory.sync()
    assert (inventory.error or "").startswith(
        "gather pool information: failed to perform node selection for slice s: failed to parse node selector "
        "&NodeSelector{NodeSelectorTerms:[]NodeSelectorTerm{NodeSelectorTerm{MatchExpressions:"
        "[]NodeSelectorRequirement{NodeSelectorRequirement{Key:zone,Operator:Like,Values:[a],},},"
    )


# --- Rows with the same devices and allocations have the same code


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


def test_codes_are_numbered_again_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_one_allocation_serves_all_rows_with_the_same_code(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_the_least_recently_used_requests_are_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_changed_class_changes_the_outcomes() -> None:
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
