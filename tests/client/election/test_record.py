"""The election record: what is read from a Lease, and what is written into one."""

from __future__ import annotations

import msgspec
import pytest

from mooring.client.election.record import ElectionRecord, lease_with, new_lease, record_in, released, taken
from mooring.client.errors import ServerError

NOW_S = 1_767_225_600.25
NOW = "2026-01-01T00:00:00.250000Z"
EARLIER = "2025-12-31T23:00:00.000000Z"


@pytest.mark.parametrize(
    ("lease", "record"),
    [
        pytest.param({}, ElectionRecord(), id="no spec"),
        pytest.param({"spec": None}, ElectionRecord(), id="an empty spec"),
        pytest.param({"spec": {"holderIdentity": None, "leaseTransitions": None}}, ElectionRecord(), id="nulls"),
        pytest.param(
            {
                "spec": {
                    "holderIdentity": "host_1",
                    "leaseDurationSeconds": 15,
                    "acquireTime": EARLIER,
                    "renewTime": NOW,
                    "leaseTransitions": 3,
                    "strategy": "OldestEmulationVersion",
                }
            },
            ElectionRecord("host_1", 15, EARLIER, NOW, 3),
            id="what client-go wrote",
        ),
    ],
)
def test_reading(lease: dict[str, object], record: ElectionRecord) -> None:
    assert record_in(msgspec.json.encode(lease)) == record


@pytest.mark.parametrize("raw", [b"", b"<html>", b'{"spec": 3}'], ids=["nothing", "a page", "a number"])
def test_what_is_no_lease(raw: bytes) -> None:
    with pytest.raises(ServerError, match="something else than a lease"):
        record_in(raw)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(None, ElectionRecord("a", 15, NOW, NOW, 0), id="a new lease"),
        pytest.param(
            ElectionRecord("a", 15, EARLIER, EARLIER, 4), ElectionRecord("a", 15, EARLIER, NOW, 4), id="ours goes on"
        ),
        pytest.param(
            ElectionRecord("b", 15, EARLIER, EARLIER, 4), ElectionRecord("a", 15, NOW, NOW, 5), id="another's is taken"
        ),
        pytest.param(
            ElectionRecord("", 1, EARLIER, EARLIER, 4), ElectionRecord("a", 15, NOW, NOW, 5), id="nobody's is taken"
        ),
    ],
)
def test_taking(before: ElectionRecord | None, after: ElectionRecord) -> None:
    assert taken("a", 15, NOW_S, before) == after


def test_giving_back() -> None:
    assert released(ElectionRecord("a", 15, EARLIER, EARLIER, 4), NOW_S) == ElectionRecord("", 1, NOW, NOW, 4)


def test_what_we_do_not_know_stays() -> None:
    raw = msgspec.json.encode({"metadata": {"resourceVersion": "7", "labels": {"a": "b"}}, "spec": {"strategy": "s"}})
    assert lease_with(raw, ElectionRecord("a", 15, EARLIER, NOW, 1)) == {
        "metadata": {"resourceVersion": "7", "labels": {"a": "b"}},
        "spec": {
            "strategy": "s",
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": EARLIER,
            "renewTime": NOW,
            "leaseTransitions": 1,
        },
    }


def test_a_new_lease_is_read_back() -> None:
    record = taken("a", 15, NOW_S, None)
    assert record_in(msgspec.json.encode(new_lease("kube-system", "kube-scheduler", record))) == record
