"""Leases, created and changed."""

from __future__ import annotations

from tests.apiserver.workload_builders import body, changed, created, updated


def test_coordinated_election_waits_behind_its_gate() -> None:
    wish = {"spec__strategy": "OldestEmulationVersion", "spec__preferredHolder": "me"}
    plain = created(body("Lease")).obj
    assert created(body("Lease", **wish)).obj["spec"] == plain["spec"]
    assert updated(body("Lease", **wish), plain).obj["spec"] == plain["spec"]
    old = changed(plain, **wish)
    assert updated(body("Lease", **wish), old).obj["spec"] == old["spec"]


def test_any_finalizer_will_do() -> None:
    assert created(body("Lease", metadata__finalizers=["x"])).faults == []
