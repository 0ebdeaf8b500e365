"""What is wrong with what a status says about claims and devices."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.validation.pod_status_devices import (
    allocated_resources_faults,
    claim_statuses_faults,
    extended_claim_faults,
)
from tests.apiserver.field_errors import messages
from tests.apiserver.pod_builders import pod

SPEC = pod(
    {"resourceClaims": [{"name": "rc", "resourceClaimTemplateName": "t"}]},
    {"resources": {"limits": {"example.com/a": "1"}, "claims": [{"name": "rc", "request": "r"}]}},
)["spec"]


def test_claims_are_those_of_the_spec_each_once() -> None:
    statuses = [{"name": "rc", "resourceClaimName": "x"}, {"name": "rc"}, {"name": "z"}]
    assert messages(claim_statuses_faults({"resourceClaimStatuses": statuses}, SPEC)) == [
        'status.resourceClaimStatuses[1].name: Duplicate value: "rc"',
        'status.resourceClaimStatuses[2].name: Invalid value: "z": '
        "must match the name of an entry in `spec.resourceClaims`",
    ]


@pytest.mark.parametrize(
    ("mapping", "claim", "count"),
    [
        pytest.param({"containerName": "c", "resourceName": "example.com/a", "requestName": "r"}, "x", 0, id="sound"),
        pytest.param({"containerName": "q", "resourceName": "example.com/a", "requestName": "r"}, "x", 1, id="nobody"),
        pytest.param(
            {"containerName": "c", "resourceName": "z", "requestName": "R_"}, "x", 2, id="nothing, badly named"
        ),
        pytest.param({"containerName": "c", "resourceName": "example.com/a", "requestName": "r"}, "", 1, id="no claim"),
    ],
)
def test_extended_resources(mapping: Document, claim: str, count: int) -> None:
    status = {"requestMappings": [mapping], "resourceClaimName": claim}
    assert len(extended_claim_faults(status, SPEC)) == count


def test_allocated_devices_are_of_the_container_and_told_apart() -> None:
    devices = [{"resourceID": "a", "health": "Healthy"}, {"resourceID": "a", "health": "Fine", "message": ""}]
    allocations = [{"name": "example.com/a", "resources": devices}, {"name": "claim:rc/r"}, {"name": "claim:rc"}]
    faults = allocated_resources_faults(
        {"containerStatuses": [{"name": "c", "allocatedResourcesStatus": allocations}]}, SPEC
    )
    assert [fault.field.removeprefix("status.containerStatuses[0].allocatedResourcesStatus") for fault in faults] == [
        "[0].resources[1].health",
        "[0].resources[1].message",
        "[0].resources[1].resourceID",
        "[2].name",
    ]
