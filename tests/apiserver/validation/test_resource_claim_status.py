"""What a claim was given never changes, who uses it is told once, and drivers report on what was given."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.kinds import RESOURCE_CLAIM
from mooring.apiserver.validation.resource_claim_status import claim_status_faults
from tests.apiserver.core_documents import document
from tests.apiserver.field_errors import messages

SPEC = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
USER = {"resource": "pods", "name": "p", "uid": "u"}
RESULT = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "d0"}
DEVICE = {"driver": "d.example.com", "pool": "p", "device": "d0"}


def claim(metadata: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    return document(RESOURCE_CLAIM, metadata, spec=SPEC, status=status)


def allocation(*results: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return {"devices": {"results": list(results), **parts}}


ALLOCATED = {"allocation": allocation(RESULT)}


@pytest.mark.parametrize(
    ("status", "faults"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({**ALLOCATED, "reservedFor": [USER]}, [], id="allocated and reserved at once"),
        pytest.param(
            {"reservedFor": [USER]},
            ["status.reservedFor: Forbidden: may not be specified when `allocated` is not set"],
            id="reserved without anything",
        ),
        pytest.param(
            {**ALLOCATED, "reservedFor": [USER, USER, {}]},
            [
                "status.reservedFor[2].resource: Required value",
                "status.reservedFor[2].name: Required value",
                "status.reservedFor[2].uid: Required value",
                'status.reservedFor[1]: Duplicate value: "u"',
            ],
            id="users twice, and nobody",
        ),
        pytest.param(
            {"allocation": allocation({**RESULT, "request": "x", "driver": "", "pool": ""})},
            [
                'status.allocation.devices.results[0].request: Invalid value: "x": must be the name of a request in '
                "the claim or the name of a request and a subrequest separated by '/'",
                "status.allocation.devices.results[0].driver: Required value",
                "status.allocation.devices.results[0].pool: Required value",
            ],
            id="a device of nobody for nothing",
        ),
        pytest.param(
            {"allocation": allocation(*[RESULT] * 33)},
            ["status.allocation.devices.results: Too many: 33: must have at most 32 items"],
            id="too many devices",
        ),
        pytest.param(
            {"allocation": allocation(RESULT, config=[{"source": "X"}, {}])},
            [
                'status.allocation.devices.config[0].source: Unsupported value: "X": supported values: "FromClaim", '
                '"FromClass"',
                "status.allocation.devices.config[0].opaque: Required value",
                "status.allocation.devices.config[1].source: Required value",
                "status.allocation.devices.config[1].opaque: Required value",
            ],
            id="configuration from nowhere",
        ),
        pytest.param(
            {"allocation": {**ALLOCATED["allocation"], "nodeSelector": {}}},
            [
                "status.allocation.nodeSelector.nodeSelectorTerms: Required value: "
                "must have at least one node selector term"
            ],
            id="at no node",
        ),
    ],
)
def test_what_is_wrong_with_an_allocation(status: dict[str, Any], faults: list[str]) -> None:
    assert messages(claim_status_faults(claim(**status), claim())) == faults


@pytest.mark.parametrize(
    ("device", "faults"),
    [
        pytest.param({"conditions": [], "data": {"a": 1}, "networkData": {"ips": ["10.0.0.1/24"]}}, [], id="a report"),
        pytest.param(
            {"data": []}, ['.data: Invalid value: "<value omitted>": must be a valid JSON object'], id="a list"
        ),
        pytest.param(
            {"networkData": {"interfaceName": "x" * 257, "hardwareAddress": "x" * 129}},
            [
                ".networkData.interfaceName: Too long: may not be more than 256 bytes",
                ".networkData.hardwareAddress: Too long: may not be more than 128 bytes",
            ],
            id="long names",
        ),
        pytest.param(
            {"networkData": {"ips": ["10.0.0.1", "::ffff:10.0.0.1/120"]}},
            [
                '.networkData.ips[0]: Invalid value: "10.0.0.1": must be a valid address in CIDR form, '
                "(e.g. 10.9.8.7/24 or 2001:db8::1/64)",
                '.networkData.ips[1]: Invalid value: "::ffff:10.0.0.1/120": must be in canonical form ("10.0.0.1/24")',
            ],
            id="odd addresses",
        ),
        pytest.param(
            {"conditions": [{"type": f"C{number}"} for number in range(9)]},
            [".conditions: Too many: 9: must have at most 8 items"],
            id="too many conditions",
        ),
        pytest.param(
            {"device": "d1"},
            [
                ': Invalid value: {"Driver":"d.example.com","Pool":"p","Device":"d1","ShareID":""}: '
                "must be an allocated device in the claim"
            ],
            id="another device",
        ),
    ],
)
def test_what_is_wrong_with_a_report(device: dict[str, Any], faults: list[str]) -> None:
    new = claim(**ALLOCATED, devices=[{**DEVICE, **device}])
    found = messages(claim_status_faults(new, claim(**ALLOCATED)))
    assert found[: len(faults)] == [f"status.devices[0]{fault}" for fault in faults]
    assert len(found) == len(faults) or "conditions" in device


def test_devices_are_reported_on_once() -> None:
    (fault,) = claim_status_faults(claim(**ALLOCATED, devices=[DEVICE, DEVICE]), claim(**ALLOCATED))
    assert fault.message.startswith("status.devices[1]: Duplicate value: {")


def test_an_allocation_is_taken_away_and_never_changed() -> None:
    old = claim(**ALLOCATED)
    assert claim_status_faults(claim(), old) == []
    (fault,) = claim_status_faults(claim(allocation=allocation({**RESULT, "device": "d1"})), old)
    assert (fault.field, fault.detail) == ("status.allocation", "field is immutable")


def test_a_claim_that_ends_gets_no_new_users() -> None:
    ends = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    old = claim(ends, **ALLOCATED, reservedFor=[USER])
    assert claim_status_faults(claim(ends, **ALLOCATED, reservedFor=[USER]), old) == []
    (fault,) = claim_status_faults(claim(ends, **ALLOCATED, reservedFor=[USER, {**USER, "uid": "v"}]), old)
    assert fault.detail.startswith("new entries may not be added")
