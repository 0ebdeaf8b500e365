"""Claims as they are believed, and what is in use because of them."""

from __future__ import annotations

import pytest

from mooring.api.views.devices import ResourceClaim
from mooring.api.views.meta import ObjectMeta, OwnerReference
from mooring.scheduler.cache.objects import ObjectStore
from mooring.scheduler.devices.claims import (
    EXTENDED_RESOURCE_ANNOTATION,
    AllocatedState,
    ClaimTracker,
    UnknownClaimError,
)
from tests.device_builders import GPU, claim, given, wants

G0, G1 = (GPU, "n1", "gpu-0"), (GPU, "n1", "gpu-1")


class Setting:
    """A store with the book and the usage that follow from it."""

    def __init__(self, *claims: ResourceClaim) -> None:
        self.store: ObjectStore[ResourceClaim] = ObjectStore()
        for each in claims:
            self.store.put(each)
        self.allocated = AllocatedState()
        self.tracker = ClaimTracker(self.store, self.allocated)


PLAIN = claim("c", wants(), version="5")
ALLOCATED = claim("c", wants(), has=given("gpu-0"), version="6")


def test_allocations_of_claims_are_in_use_as_long_as_they_have_them() -> None:
    setting = Setting(ALLOCATED)
    assert setting.allocated.is_allocated(G0)
    setting.store.put(claim("c", wants(), version="7"))
    assert not setting.allocated.is_in_use(G0)
    setting.store.put(claim("c", wants(), has=given("gpu-1"), version="8"))
    assert setting.allocated.is_allocated(G1)
    setting.store.remove("default/c")
    assert not setting.allocated.is_in_use(G1)


def test_what_is_in_flight_is_in_use_until_it_has_landed() -> None:
    setting = Setting(PLAIN)
    setting.tracker.add_pending("uid-c", given("gpu-0"))
    assert setting.allocated.is_allocated(G0)
    assert setting.tracker.pending_allocation("uid-c") == given("gpu-0")
    assert setting.tracker.remove_pending("uid-c")
    assert not setting.allocated.is_in_use(G0)
    assert not setting.tracker.remove_pending("uid-c"), "there is nothing to land any more"


def test_a_flight_that_several_wait_for_lasts_until_the_last_of_them() -> None:
    setting = Setting(PLAIN)
    setting.tracker.add_pending("uid-c", given("gpu-0"))
    setting.tracker.add_pending("uid-c", given("gpu-0"))
    assert not setting.tracker.remove_pending("uid-c")
    assert setting.allocated.is_allocated(G0)
    assert setting.tracker.remove_pending("uid-c", for_all=True)
    assert not setting.allocated.is_in_use(G0)


def test_what_was_written_is_believed_before_the_watch_reports_of_it() -> None:
    setting = Setting(PLAIN)
    setting.tracker.assume(ALLOCATED)
    assert setting.tracker.get("default/c") is ALLOCATED
    assert setting.allocated.is_allocated(G0)


@pytest.mark.parametrize(
    ("version", "is_believed"),
    [
        pytest.param("4", False, id="older"),
        pytest.param("6", False, id="just what was written"),
        pytest.param("10", True, id="newer, as a number"),
        pytest.param("x", True, id="a version that cannot be compared"),
    ],
)
def test_only_a_newer_version_from_the_watch_beats_what_is_assumed(version: str, is_believed: bool) -> None:
    setting = Setting(PLAIN)
    setting.tracker.assume(ALLOCATED)
    reported = claim("c", wants(), version=version)
    setting.store.put(reported)
    assert (setting.tracker.get("default/c") is reported) is is_believed
    assert setting.allocated.is_allocated(G0) is not is_believed


def test_an_assumption_can_be_taken_back() -> None:
    setting = Setting(PLAIN)
    setting.tracker.assume(ALLOCATED)
    setting.tracker.restore("default/c")
    assert setting.tracker.get("default/c") is PLAIN
    assert not setting.allocated.is_in_use(G0)


def test_nothing_is_assumed_of_what_the_watch_has_not_reported_or_knows_better() -> None:
    with pytest.raises(UnknownClaimError, match='could not find ResourceClaim "default/c"'):
        Setting().tracker.assume(ALLOCATED)
    setting = Setting(claim("c", wants(), version="9"))
    setting.tracker.assume(ALLOCATED)
    assert not setting.allocated.is_in_use(G0)


def test_listeners_are_called_after_every_change() -> None:
    setting = Setting(PLAIN)
    heard: list[str] = []
    setting.tracker.listen(heard.append)
    setting.tracker.assume(ALLOCATED)
    setting.store.remove("default/c")
    assert heard == ["default/c", "default/c"]


def test_the_claim_for_extended_resources_is_found_by_its_pod() -> None:
    owner = OwnerReference(api_version="v1", kind="Pod", name="p", uid="p-1", controller=True)
    metadata = ObjectMeta(
        name="p-extended",
        namespace="default",
        annotations={EXTENDED_RESOURCE_ANNOTATION: "true"},
        owner_references=(owner,),
    )
    left = ResourceClaim(metadata=metadata)
    setting = Setting(left)
    assert setting.tracker.for_extended_resources("p", "p-1") is left
    assert setting.tracker.for_extended_resources("p", "p-2") is None
    assert setting.tracker.for_extended_resources("q", "p-1") is None
    setting.store.remove(left.key)
    assert setting.tracker.for_extended_resources("p", "p-1") is None


G0, G1 = (GPU, "n1", "gpu-0"), (GPU, "n1", "gpu-1")


def test_shares_and_administrators() -> None:
    allocated = AllocatedState()
    share = given("gpu-0", share="s", consumes={"memory": "2Gi"})
    allocated.add(share)
    allocated.add(given("gpu-1", admin=True))
    assert (allocated.is_allocated(G0), allocated.is_in_use(G0), allocated.is_in_use(G1)) == (False, True, False)
    assert allocated.consumed[G0] == {"memory": 2 * 2**30 * 10**9}
    allocated.add(share)
    assert allocated.consumed[G0] == {"memory": 4 * 2**30 * 10**9}
    allocated.remove(share)
    allocated.remove(share)
    assert not allocated.is_in_use(G0)
    assert G0 not in allocated.consumed


def test_a_device_that_two_claims_have_is_free_when_both_have_given_it_back() -> None:
    allocated = AllocatedState()
    allocated.add(given("gpu-0"))
    allocated.add(given("gpu-0"))
    allocated.remove(given("gpu-0"))
    assert allocated.is_allocated(G0)
    allocated.remove(given("gpu-0"))
    assert not allocated.is_allocated(G0)


def test_pools_in_which_something_changed_are_reported() -> None:
    allocated = AllocatedState()
    allocated.add(given("gpu-0", pool="n1"))
    allocated.add(given("gpu-0", pool="n2", admin=True))
    assert allocated.changed_pools == {(GPU, "n1")}
