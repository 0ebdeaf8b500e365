"""Tests of kinds.lease."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.kinds.lease import validate_lease
from tests.apiserver.core_documents import messages
from tests.apiserver.workload_builders import body, changed, created, updated


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        pytest.param({}, [], id="an empty one"),
        pytest.param(
            {"leaseDurationSeconds": 0},
            ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
            id="a duration of zero",
        ),
        pytest.param(
            {"leaseTransitions": -1},
            ["spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"],
            id="negative transitions",
        ),
        pytest.param({"strategy": "OldestEmulationVersion", "preferredHolder": "me"}, [], id="a known strategy"),
        pytest.param({"strategy": "example.com/mine"}, [], id="a custom strategy"),
        pytest.param(
            {"strategy": "X"},
            ['spec.strategy.strategy: Unsupported value: "X": supported values: "OldestEmulationVersion"'],
            id="an unknown strategy",
        ),
        pytest.param(
            {"preferredHolder": "me"},
            ["spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined"],
            id="a preferred holder without a strategy",
        ),
    ],
)
def test_lease_specs_are_validated(spec: Document, errors: list[str]) -> None:
    assert messages(validate_lease(spec, "spec")) == errors


def test_coordinated_leader_election_fields_are_dropped_unless_in_use() -> None:
    coordinated = {"spec__strategy": "OldestEmulationVersion", "spec__preferredHolder": "me"}
    plain = created(body("Lease")).obj
    assert created(body("Lease", **coordinated)).obj["spec"] == plain["spec"]
    assert updated(body("Lease", **coordinated), plain).obj["spec"] == plain["spec"]
    old = changed(plain, **coordinated)
    assert updated(body("Lease", **coordinated), old).obj["spec"] == old["spec"]


def test_finalizers_of_leases_are_not_validated() -> None:
    assert created(body("Lease", metadata__finalizers=["x"])).errors == []
