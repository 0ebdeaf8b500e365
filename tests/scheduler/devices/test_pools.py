"""Pools as nodes see them: generations, incomplete and invalid pools, order."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mooring.api.quantity import quantity_nano
from mooring.api.views.devices import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity, ResourceSlice
from mooring.scheduler.devices.pools import (
    DeviceKinds,
    PooledSlice,
    PoolView,
    consumption,
    fits,
    read_capacities,
    view_of,
)
from tests.device_builders import GPU, device, slice_of

POOL = (GPU, "pool")


def seen(slices: Sequence[ResourceSlice], reaching: Sequence[str]) -> PoolView | None:
    kinds = DeviceKinds()
    pooled = sorted((PooledSlice(slice_, kinds) for slice_ in slices), key=lambda pooled_slice: pooled_slice.name)
    return view_of(POOL, pooled, dict.fromkeys(reaching))


A, B = device("a"), device("b")


@pytest.mark.parametrize(
    ("slices", "reaching", "names"),
    [
        pytest.param([slice_of(A, name="s")], ["s"], "a", id="one slice is all"),
        pytest.param([slice_of(A, name="s")], [], None, id="what does not reach is not seen"),
        pytest.param([slice_of(B, name="s2", of=2), slice_of(A, name="s1", of=2)], ["s1", "s2"], "ab", id="by name"),
        pytest.param([slice_of(A, name="s", of=2)], ["s"], "incomplete", id="a slice is missing"),
        pytest.param(
            [slice_of(A, name="s1", of=2), slice_of(B, name="s2", of=2)],
            ["s1"],
            "a",
            id="a slice that reaches others makes it whole",
        ),
        pytest.param(
            [slice_of(A, name="old"), slice_of(B, name="new", generation=2)],
            ["old", "new"],
            "b",
            id="the newest generation counts",
        ),
        pytest.param(
            [slice_of(A, name="old", of=2), slice_of(B, name="new", generation=2)],
            ["old"],
            None,
            id="being replaced, by what does not reach",
        ),
        pytest.param(
            [slice_of(A, name="old"), slice_of(B, name="new", generation=2)],
            ["old"],
            "a",
            id="complete: nobody asks for newer ones",
        ),
        pytest.param(
            [slice_of(A, name="s1", of=2), slice_of(A, name="s2", of=2)], ["s1", "s2"], "invalid", id="twice one name"
        ),
        pytest.param(
            [slice_of(device("p", consumes={"m": 1}), name="s")], ["s"], "invalid", id="counters that do not exist"
        ),
        pytest.param(
            [
                slice_of(name="c1", counters={"m": 1}, of=3),
                slice_of(name="c2", counters={"m": 1}, of=3),
                slice_of(A, name="s", of=3),
            ],
            ["c1", "c2", "s"],
            "invalid",
            id="two counter sets of one name",
        ),
        pytest.param(
            [slice_of(name="c", counters={"m": 2}, of=2), slice_of(device("p", consumes={"m": 1}), name="s", of=2)],
            ["c", "s"],
            "p",
            id="counters and their devices",
        ),
        pytest.param(
            [slice_of(name="c", counters={"m": 2}, of=2), slice_of(device("p", consumes={"n": 1}), name="s", of=2)],
            ["c"],
            "invalid",
            id="also devices elsewhere are looked at for counters",
        ),
    ],
)
def test_what_is_seen_of_a_pool(slices: list[ResourceSlice], reaching: list[str], names: str | None) -> None:
    view = seen(slices, reaching)
    if names is None:
        assert view is None
    else:
        assert view is not None
        reported = "incomplete" if view.is_incomplete else "invalid" if view.is_invalid else ""
        assert reported + "".join(device.id[2] for device in view.devices) == names


def test_devices_of_other_nodes_count_for_counters() -> None:
    slices = [
        slice_of(name="c", counters={"m": 2}, of=3),
        slice_of(device("here", consumes={"m": 1}), name="s1", of=3),
        slice_of(device("there", consumes={"m": 1}), name="s2", of=3),
    ]
    view = seen(slices, ["c", "s1"])
    assert view is not None
    assert [pooled_device.id[2] for pooled_device in view.devices] == ["here"]
    assert [other.id[2] for other in view.others] == ["there"]


def test_devices_that_differ_only_by_name_are_of_one_kind() -> None:
    kinds = DeviceKinds()
    one, same, other = (
        kinds.of(GPU, published) for published in (device("a", n=1), device("b", n=1), device("c", n=2))
    )
    assert one is same
    assert one is not other


def test_pools_that_differ_only_by_names_have_the_same_content() -> None:
    kinds = DeviceKinds()
    views = [
        view_of((GPU, node), [PooledSlice(slice_of(device(name), node=node), kinds)], {f"{node}-{GPU}": None})
        for node, name in (("n1", "x"), ("n2", "y"))
    ]
    assert views[0] is not None
    assert views[1] is not None
    assert views[0].content == views[1].content


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("gpu.example.com/model", "h", id="the driver's own, without a domain"),
        pytest.param("other.example.com/model", None, id="another domain's"),
        pytest.param("model", "h", id="as it is written"),
    ],
)
def test_attributes_by_full_name(name: str, value: str | None) -> None:
    found = DeviceKinds().of(GPU, device("a", model="h")).attribute(name)
    assert (found.string if found is not None else None) == value


STEPS = CapacityRequestPolicy(default="1Gi", valid_range=CapacityRequestPolicyRange(min="1Gi", max="4Gi", step="1Gi"))
FROM_ON = CapacityRequestPolicy(valid_range=CapacityRequestPolicyRange(min="2Gi"))
SIZES = CapacityRequestPolicy(default="2Gi", valid_values=("2Gi", "4Gi"))
ODD_DEFAULT = CapacityRequestPolicy(default="3Gi", valid_values=("2Gi", "4Gi"))
UP_TO = CapacityRequestPolicy(valid_range=CapacityRequestPolicyRange(max="4Gi"))


@pytest.mark.parametrize(
    ("policy", "requested", "consumed"),
    [
        pytest.param(None, None, "8Gi", id="who says nothing takes everything"),
        pytest.param(None, "3Gi", "3Gi", id="without a policy, as asked"),
        pytest.param(STEPS, None, "1Gi", id="who says nothing takes the default"),
        pytest.param(STEPS, "1", "1Gi", id="less than the least is the least"),
        pytest.param(STEPS, "1500Mi", "2Gi", id="rounded up to a step"),
        pytest.param(STEPS, "2Gi", "2Gi", id="a step is a step"),
        pytest.param(STEPS, "5Gi", None, id="more than the most"),
        pytest.param(FROM_ON, "2500Mi", "2500Mi", id="a range without steps"),
        pytest.param(FROM_ON, None, "8Gi", id="no default: everything"),
        pytest.param(SIZES, "1Gi", "2Gi", id="rounded up to a valid value"),
        pytest.param(SIZES, "3Gi", "4Gi", id="to the next one"),
        pytest.param(SIZES, "5Gi", None, id="more than all valid values"),
        pytest.param(ODD_DEFAULT, None, "3Gi", id="the default is valid whatever the values"),
        pytest.param(ODD_DEFAULT, "3Gi", "4Gi", id="asking for it is rounded all the same"),
        pytest.param(UP_TO, "4Gi", "4Gi", id="only a most"),
        pytest.param(UP_TO, None, None, id="everything is more than the most"),
    ],
)
def test_what_a_request_consumes(
    policy: CapacityRequestPolicy | None, requested: str | None, consumed: str | None
) -> None:
    capacities = read_capacities({"memory": DeviceCapacity(value="8Gi", request_policy=policy)})
    found = consumption(capacities, {"memory": requested} if requested is not None else {})
    assert (found["memory"].amount_nano if found is not None else None) == (
        quantity_nano(consumed) if consumed is not None else None
    )


def test_a_request_for_a_missing_capacity_is_rejected() -> None:
    assert consumption(read_capacities({}), {"memory": "1"}) is None
    assert consumption(read_capacities({}), {}) == {}


@pytest.mark.parametrize(
    ("others", "is_room"),
    [
        pytest.param([], True, id="nobody else"),
        pytest.param([{"memory": "6Gi"}], True, id="just enough"),
        pytest.param([{"memory": "4Gi"}, {"memory": "3Gi"}], False, id="too many"),
        pytest.param([{"cores": "100"}], True, id="others want something else"),
    ],
)
def test_resources_beside_others(others: list[dict[str, str]], is_room: bool) -> None:
    capacities = read_capacities({"memory": DeviceCapacity(value="8Gi")})
    consumed = consumption(capacities, {"memory": "2Gi"})
    assert consumed is not None
    amounts = [{name: quantity_nano(raw) for name, raw in other.items()} for other in others]
    assert fits(capacities, consumed, *amounts) is is_room
