"""Consumable capacity: portions, policies, and whether there is room."""

from __future__ import annotations

import pytest

from mooring.api.quantity import quantity_nano
from mooring.api.views.devices import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity
from mooring.scheduler.devices.capacity import consumption, fits, read_capacities

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


def test_what_a_device_does_not_have_cannot_be_asked_of_it() -> None:
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
def test_room_beside_others(others: list[dict[str, str]], is_room: bool) -> None:
    capacities = read_capacities({"memory": DeviceCapacity(value="8Gi")})
    consumed = consumption(capacities, {"memory": "2Gi"})
    assert consumed is not None
    amounts = [{name: quantity_nano(raw) for name, raw in other.items()} for other in others]
    assert fits(capacities, consumed, *amounts) is is_room
