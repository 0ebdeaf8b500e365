"""What is in use: devices, shares of devices, counters."""

from __future__ import annotations

from mooring.scheduler.devices.usage import Usage
from tests.device_builders import GPU, given

G0, G1 = (GPU, "n1", "gpu-0"), (GPU, "n1", "gpu-1")


def test_shares_and_administrators() -> None:
    usage = Usage()
    share = given("gpu-0", share="s", consumes={"memory": "2Gi"})
    usage.add(share)
    usage.add(given("gpu-1", admin=True))
    assert (usage.is_taken(G0), usage.is_used(G0), usage.is_used(G1)) == (False, True, False)
    assert usage.consumed[G0] == {"memory": 2 * 2**30 * 10**9}
    usage.add(share)
    assert usage.consumed[G0] == {"memory": 4 * 2**30 * 10**9}
    usage.remove(share)
    usage.remove(share)
    assert not usage.is_used(G0)
    assert G0 not in usage.consumed


def test_a_device_that_two_claims_have_is_free_when_both_have_given_it_back() -> None:
    usage = Usage()
    usage.add(given("gpu-0"))
    usage.add(given("gpu-0"))
    usage.remove(given("gpu-0"))
    assert usage.is_taken(G0)
    usage.remove(given("gpu-0"))
    assert not usage.is_taken(G0)


def test_pools_in_which_something_changed_are_told() -> None:
    usage = Usage()
    usage.add(given("gpu-0", pool="n1"))
    usage.add(given("gpu-0", pool="n2", admin=True))
    assert usage.changed_pools == {(GPU, "n1")}
