"""The allocator: which devices, in which order, and how it fails."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given as over
from hypothesis import settings
from hypothesis import strategies as st

from mooring.api.views.devices import (
    AllocationResult,
    Device,
    DeviceClass,
    DeviceRequest,
    ResourceClaimSpec,
    ResourceSlice,
)
from mooring.kit.clock import VirtualClock
from mooring.scheduler.cache.objects import ObjectStore
from mooring.scheduler.devices import allocator as allocator
from mooring.scheduler.devices.allocator import Allocation, AllocationTimeout, Allocator, Deadline
from mooring.scheduler.devices.claims import AllocatedState
from mooring.scheduler.devices.pools import DeviceKinds, PooledSlice, PoolView, view_of
from mooring.scheduler.devices.requests import AllocationRequest, DeviceAllocationError
from tests.device_builders import GPU, asking, device, device_class, first_of, given, slice_of, wants
from tests.scheduler.devices.plain_search import PlainSearch

MEMORY = f'device.capacity["{GPU}"].memory'


def classes() -> ObjectStore[DeviceClass]:
    store: ObjectStore[DeviceClass] = ObjectStore()
    store.put(device_class("gpu"))
    store.put(device_class("big", f'{MEMORY}.compareTo(quantity("40Gi")) >= 0'))
    return store


def pool_of(*slices: ResourceSlice) -> PoolView:
    kinds = DeviceKinds()
    pooled = [PooledSlice(slice_, kinds) for slice_ in slices]
    view = view_of(pooled[0].pool_id, pooled, {pooled_slice.name: None for pooled_slice in pooled})
    assert view is not None
    return view


def in_use(*allocations: AllocationResult) -> AllocatedState:
    allocated = AllocatedState()
    for allocation in allocations:
        allocated.add(allocation)
    return allocated


def search(
    specs: Sequence[ResourceClaimSpec],
    *pools: PoolView,
    allocated: AllocatedState | None = None,
    timeout_s: float = 10.0,
) -> Allocation | None:
    deadline = Deadline(VirtualClock(), timeout_s)
    return Allocator(pools, allocated or AllocatedState(), AllocationRequest(specs, classes()), deadline).run()


def names(found: Allocation | None) -> list[list[str]] | None:
    return [[taken.device.id[2] for taken in claim] for claim in found.claims] if found is not None else None


FOUR = [
    device(f"g{number}", memory="40Gi" if number > 1 else "16Gi", numa=number % 2, bus=number) for number in range(4)
]


@pytest.mark.parametrize(
    ("requests", "same", "distinct", "expected"),
    [
        pytest.param([wants()], None, None, ["g0"], id="the first"),
        pytest.param([wants(count=3)], None, None, ["g0", "g1", "g2"], id="the first three"),
        pytest.param([wants(count=5)], None, None, None, id="more than there are"),
        pytest.param([wants("big", count=2)], None, None, ["g2", "g3"], id="of a class"),
        pytest.param(
            [wants("gpu", f'device.attributes["{GPU}"].numa == 1')], None, None, ["g1"], id="by a selector of its own"
        ),
        pytest.param([wants(every=True)], None, None, ["g0", "g1", "g2", "g3"], id="every one"),
        pytest.param([wants("big", every=True)], None, None, ["g2", "g3"], id="every one of a class"),
        pytest.param(
            [wants("gpu", f'device.attributes["{GPU}"].numa == 7', every=True)],
            None,
            None,
            None,
            id="every one of none",
        ),
        pytest.param(
            [wants(name="a", count=2), wants("big", name="b", count=2)],
            None,
            None,
            ["g0", "g1", "g2", "g3"],
            id="two requests",
        ),
        pytest.param(
            [wants(name="a", count=3), wants("big", name="b")],
            None,
            None,
            ["g0", "g1", "g2", "g3"],
            id="the second is left something",
        ),
        pytest.param(
            [wants(name="a"), wants("gpu", f'device.attributes["{GPU}"].bus == 0', name="b")],
            None,
            None,
            ["g1", "g0"],
            id="the first gives way to the second",
        ),
        pytest.param([wants(count=2)], "numa", None, ["g0", "g2"], id="with one value"),
        pytest.param([wants(count=3)], "numa", None, None, id="too many for one value"),
        pytest.param([wants(count=2)], "colour", None, None, id="by an attribute that nobody has"),
        pytest.param([wants(name="a"), wants(name="b")], None, "numa", ["g0", "g1"], id="with different values"),
        pytest.param(
            [wants(name="a"), wants(name="b"), wants(name="c")], None, "numa", None, id="more than there are values"
        ),
        pytest.param(
            [wants(count=3)], None, "numa", ["g0", "g1", "g2"], id="one request remembers only its last value"
        ),
        pytest.param([wants(count=0)], None, None, [], id="none at all"),
    ],
)
def test_which_devices_are_taken(
    requests: list[DeviceRequest], same: str | None, distinct: str | None, expected: list[str] | None
) -> None:
    found = search([asking(*requests, same=same, distinct=distinct)], pool_of(slice_of(*FOUR)))
    assert names(found) == ([expected] if expected is not None else None)


@pytest.mark.parametrize(
    ("alternatives", "expected", "score"),
    [
        pytest.param(
            [wants("big", name="x", count=2), wants(name="y")], ["g2", "g3"], 8, id="the first that can be had"
        ),
        pytest.param([wants("big", name="x", count=3), wants(name="y")], ["g0"], 7, id="else the second"),
        pytest.param([wants("big", name="x", count=3), wants(name="y", count=9)], None, 0, id="or none"),
        pytest.param([wants(name="x", count=40), wants(name="y")], ["g0"], 7, id="more than a claim may have, or one"),
    ],
)
def test_alternatives_and_their_score(
    alternatives: list[DeviceRequest], expected: list[str] | None, score: int
) -> None:
    specs = [asking(first_of(*alternatives))]
    found = search(specs, pool_of(slice_of(*FOUR)))
    assert names(found) == ([expected] if expected is not None else None)
    assert (found.score(AllocationRequest(specs, classes())) if found is not None else 0) == score


def test_claims_do_not_get_the_same_device() -> None:
    assert names(search([asking(wants()), asking(wants())], pool_of(slice_of(*FOUR)))) == [["g0"], ["g1"]]


def test_what_is_in_use_is_not_given_again() -> None:
    allocated = in_use(given("g0", pool="pool"))
    assert names(search([asking(wants())], pool_of(slice_of(*FOUR)), allocated=allocated)) == [["g1"]]


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        pytest.param([asking(wants(admin=True))], [["g0"]], id="an administrator sees devices in use"),
        pytest.param([asking(wants(admin=True, count=2))], [["g0", "g1"]], id="each device once in a claim"),
        pytest.param(
            [asking(wants(admin=True)), asking(wants(admin=True))], [["g0"], ["g0"]], id="again in the next claim"
        ),
        pytest.param(
            [asking(wants(admin=True, count=2)), asking(wants())], [["g0", "g1"], ["g2"]], id="others wait for him"
        ),
    ],
)
def test_administrators(specs: list[ResourceClaimSpec], expected: list[list[str]]) -> None:
    allocated = in_use(given("g0", pool="pool"))
    assert names(search(specs, pool_of(slice_of(*FOUR)), allocated=allocated)) == expected


@pytest.mark.parametrize(
    ("taints", "tolerates", "is_allocated"),
    [
        pytest.param(["sick=yes:NoSchedule"], [], False, id="a tainted device is left alone"),
        pytest.param(["sick=yes:NoExecute"], [], False, id="the stronger taint, too"),
        pytest.param(["sick=yes:None"], [], True, id="an effect that means nothing"),
        pytest.param(["sick=yes:NoSchedule"], ["sick"], True, id="tolerated whatever the value"),
        pytest.param(["sick=yes:NoSchedule"], ["sick=no"], False, id="another value is tolerated"),
        pytest.param(["sick=yes:NoSchedule"], ["sick=yes:NoExecute"], False, id="another effect is tolerated"),
        pytest.param(["sick=yes:NoSchedule", "old=1:NoSchedule"], ["sick"], False, id="one of two"),
        pytest.param(["sick=yes:NoSchedule", "old=1:NoExecute"], ["*"], True, id="everything is tolerated"),
    ],
)
def test_taints(taints: list[str], tolerates: list[str], is_allocated: bool) -> None:
    pool = pool_of(slice_of(device("d", taints=taints)))
    assert (search([asking(wants(tolerates=tolerates))], pool) is not None) is is_allocated


def test_shares_of_a_device_until_it_is_full() -> None:
    pool = pool_of(slice_of(device("d", memory="8Gi", shared=True)))
    third = asking(wants(capacity={"memory": "3Gi"}))
    found = search([third, third], pool)
    assert names(found) == [["d"], ["d"]]
    assert found is not None
    assert [str(share["memory"]) for ((_, _, share),) in found.claims if share is not None] == ["3Gi", "3Gi"]
    assert search([third, third, third], pool) is None
    allocated = in_use(given("d", pool="pool", share="s", consumes={"memory": "5Gi"}))
    assert names(search([third], pool, allocated=allocated)) == [["d"]]
    assert search([third, third], pool, allocated=allocated) is None


def test_a_device_for_one_claim_must_be_large_enough_too() -> None:
    pool = pool_of(slice_of(device("small", memory="8Gi"), device("large", memory="80Gi")))
    found = search([asking(wants(capacity={"memory": "10Gi"}))], pool)
    assert names(found) == [["large"]]
    assert search([asking(wants(capacity={"nothing": "1"}))], pool) is None


@pytest.mark.parametrize("shared", [None, True])
def test_one_large_device_too_few_needs_no_search_of_all_combinations(shared: bool | None) -> None:
    """2**24 of them would end in `AllocationTimeout`."""
    large = [device(f"large-{number}", memory="80Gi", shared=shared) for number in range(24)]
    small = [device(f"small-{number}", memory="8Gi", shared=shared) for number in range(8)]
    pool = pool_of(slice_of(*large, *small))
    assert search([asking(wants(count=25, capacity={"memory": "10Gi"}))], pool) is None
    assert search([asking(wants(count=24, capacity={"memory": "10Gi"}))], pool) is not None


def test_partitions_share_counters() -> None:
    whole, half, other = (
        device(name, consumes={"m": size}) for name, size in (("whole", 4), ("half", 2), ("other", 2))
    )
    pool = pool_of(slice_of(name="c", counters={"m": 4}, of=2), slice_of(whole, half, other, name="s", of=2))
    assert names(search([asking(wants())], pool)) == [["whole"]]
    assert names(search([asking(wants(count=2))], pool)) == [["half", "other"]]
    assert search([asking(wants(count=3))], pool) is None
    assert names(search([asking(wants())], pool, allocated=in_use(given("half", pool="pool")))) == [["other"]]
    assert search([asking(wants())], pool, allocated=in_use(given("whole", pool="pool"))) is None


@pytest.mark.parametrize(
    ("specs", "pools", "text"),
    [
        pytest.param(
            [asking(wants("gone"))],
            [],
            'claim c0, request r: could not retrieve device class gone: deviceclass.resource.k8s.io "gone" not found',
            id="no such class",
        ),
        pytest.param(
            [asking(wants(count=33))],
            [],
            "claim c0: number of requested devices 33 exceeds the claim limit of 32",
            id="more than a claim may have",
        ),
        pytest.param(
            [asking(wants()), asking(wants(every=True))],
            [slice_of(*FOUR, of=2)],
            "claim c1, request r: asks for all devices, but resource pool gpu.example.com/pool is currently being "
            "updated",
            id="all of an incomplete pool",
        ),
        pytest.param(
            [asking(wants(every=True))],
            [slice_of(device("a"), device("a"))],
            "claim c0, request r: asks for all devices, but resource pool gpu.example.com/pool is currently invalid",
            id="all of an invalid pool",
        ),
        pytest.param(
            [asking(wants(every=True), same="numa")],
            [slice_of(*FOUR)],
            "claim c0, request r: cannot add device gpu.example.com/pool/g1 because a claim constraint would not be "
            "satisfied",
            id="all, and yet alike",
        ),
        pytest.param(
            [asking(wants("gpu", "device.nothing == 1"))],
            [slice_of(*FOUR)],
            "claim c0: selector #0: CEL compile error: ",
            id="an expression that does not compile",
        ),
        pytest.param(
            [asking(wants("gpu", f'device.attributes["{GPU}"].nothing == 1'))],
            [slice_of(*FOUR)],
            "claim c0: selector #0: CEL runtime error: no such key: nothing",
            id="an expression that fails",
        ),
    ],
)
def test_errors(specs: list[ResourceClaimSpec], pools: list[ResourceSlice], text: str) -> None:
    with pytest.raises(DeviceAllocationError) as caught:
        search(specs, *(pool_of(pool) for pool in pools))
    assert caught.value.text(["c0", "c1"]).startswith(text)


def test_an_expression_that_fails_on_an_unneeded_device_has_no_effect() -> None:
    only_first = asking(wants("gpu", f'device.attributes["{GPU}"].numa == 0'))
    pool = pool_of(slice_of(device("first", numa=0), device("second")))
    assert names(search([only_first], pool)) == [["first"]]
    with pytest.raises(DeviceAllocationError):
        search([only_first], pool, allocated=in_use(given("first", pool="pool")))


def test_no_device_is_taken_of_pools_that_give_nothing() -> None:
    incomplete, invalid = pool_of(slice_of(*FOUR, of=2)), pool_of(slice_of(device("a"), device("a")))
    assert search([asking(wants())], incomplete, invalid) is None
    assert names(search([asking(wants())], incomplete, pool_of(slice_of(*FOUR)))) == [["g0"]]


def test_a_search_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocator, "STEPS_MAX", 2_000)
    many = [device(f"d{number}", n=number) for number in range(30)]
    hopeless = asking(wants(name="a", count=15), wants(name="b", count=16))
    with pytest.raises(AllocationTimeout):
        search([hopeless], pool_of(slice_of(*many)))


def test_time_ends_a_search() -> None:
    class Hurrying(VirtualClock):
        def now_s(self) -> float:
            self.advance_to(super().now_s() + 4.0)
            return super().now_s()

    many = [device(f"d{number}", n=number) for number in range(30)]
    wanted = AllocationRequest([asking(wants(name="a", count=15), wants(name="b", count=16))], classes())
    with pytest.raises(AllocationTimeout):
        Allocator([pool_of(slice_of(*many))], AllocatedState(), wanted, Deadline(Hurrying(), 10.0)).run()


# Against the plain search

_TAINTS = st.sampled_from([(), ("sick=1:NoSchedule",)])


@st.composite
def devices(draw: st.DrawFn) -> list[Device]:
    count = draw(st.integers(1, 5))
    return [
        device(
            f"d{number}",
            memory=draw(st.sampled_from([None, "8Gi", "40Gi"])),
            shared=draw(st.sampled_from([None, None, True])),
            taints=draw(_TAINTS),
            consumes=draw(st.sampled_from([None, None, {"m": 1}, {"m": 2}])),
            numa=draw(st.integers(0, 2)),
            has={"bus": draw(st.integers(0, 1))} if draw(st.booleans()) else None,
        )
        for number in range(count)
    ]


NUMA_BELOW_2 = f'device.attributes["{GPU}"].numa < 2'
BUS_0 = f'device.attributes["{GPU}"].bus == 0'
"""Fails on devices without the attribute."""


@st.composite
def requests(draw: st.DrawFn, name: str, count_max: int) -> DeviceRequest:
    def one(own_name: str) -> DeviceRequest:
        return wants(
            draw(st.sampled_from(["gpu", "gpu", "big"])),
            *draw(st.sampled_from([(), (), (NUMA_BELOW_2,), (BUS_0,)])),
            name=own_name,
            count=draw(st.integers(1, count_max)),
            every=count_max > 1 and draw(st.sampled_from([False, False, False, True])),
            tolerates=draw(st.sampled_from([(), ("sick",)])),
            capacity=draw(st.sampled_from([None, None, {"memory": "3Gi"}])),
        )

    if draw(st.sampled_from([False, False, True])):
        return first_of(one("x"), one("y"), name=name)
    return one(name)


@st.composite
def claims(draw: st.DrawFn) -> ResourceClaimSpec:
    distinct = draw(st.sampled_from([None, None, None, "numa"]))
    # What a request for several devices remembers of their values depends on what was tried before.
    count_max = 1 if distinct is not None else 3
    return asking(
        *(draw(requests(f"r{number}", count_max)) for number in range(draw(st.integers(1, 2)))),
        same=draw(st.sampled_from([None, None, "numa", "bus"])),
        distinct=distinct,
    )


@settings(max_examples=250, deadline=None)
@over(devices(), st.lists(claims(), min_size=1, max_size=2), st.sets(st.integers(0, 4), max_size=2), st.booleans())
def test_finds_what_a_plain_search_finds(
    published: list[Device], specs: list[ResourceClaimSpec], taken: set[int], part_is_shared: bool
) -> None:
    pool = pool_of(slice_of(name="c", counters={"m": 3}, of=2), slice_of(*published, name="s", of=2))
    allocated = AllocatedState()
    for number in sorted(taken):
        share = "s" if part_is_shared else None
        allocated.add(given(f"d{number}", pool="pool", share=share, consumes={"memory": "3Gi"} if share else None))
    plain, error = None, False
    try:
        plain = PlainSearch([pool], allocated, AllocationRequest(specs, classes())).run()
    except DeviceAllocationError:
        error = True
    try:
        found = search(specs, pool, allocated=allocated)
    except DeviceAllocationError:
        assert error
    else:
        assert not error
        flat = [(t.request.full_name, t.device.id[2]) for claim in found.claims for t in claim] if found else None
        assert flat == plain
