"""Tests of kinds.pod.status."""

from __future__ import annotations

from copy import deepcopy

import pytest

from mooring.api.document import Document
from mooring.apiserver.kinds.pod.options import STRICT_POD
from mooring.apiserver.kinds.pod.status import (
    validate_allocated_resources,
    validate_claim_statuses,
    validate_extended_claim,
    validate_pod_status,
)
from tests.apiserver.core_documents import messages
from tests.apiserver.pod_builders import pod, stored

SPEC = pod(
    {"resourceClaims": [{"name": "rc", "resourceClaimTemplateName": "t"}]},
    {"resources": {"limits": {"example.com/a": "1"}, "claims": [{"name": "rc", "request": "r"}]}},
)["spec"]


def test_claim_statuses_match_claims_of_the_spec_and_are_unique() -> None:
    statuses = [{"name": "rc", "resourceClaimName": "x"}, {"name": "rc"}, {"name": "z"}]
    assert messages(validate_claim_statuses({"resourceClaimStatuses": statuses}, SPEC)) == [
        'status.resourceClaimStatuses[1].name: Duplicate value: "rc"',
        'status.resourceClaimStatuses[2].name: Invalid value: "z": '
        "must match the name of an entry in `spec.resourceClaims`",
    ]


@pytest.mark.parametrize(
    ("mapping", "claim", "count"),
    [
        pytest.param({"containerName": "c", "resourceName": "example.com/a", "requestName": "r"}, "x", 0, id="valid"),
        pytest.param(
            {"containerName": "q", "resourceName": "example.com/a", "requestName": "r"},
            "x",
            1,
            id="an unknown container",
        ),
        pytest.param(
            {"containerName": "c", "resourceName": "z", "requestName": "R_"},
            "x",
            2,
            id="an unknown resource and an invalid request name",
        ),
        pytest.param({"containerName": "c", "resourceName": "example.com/a", "requestName": "r"}, "", 1, id="no claim"),
    ],
)
def test_extended_resource_claim_statuses_are_validated(mapping: Document, claim: str, count: int) -> None:
    status = {"requestMappings": [mapping], "resourceClaimName": claim}
    assert len(validate_extended_claim(status, SPEC)) == count


def test_allocated_resource_statuses_are_validated() -> None:
    devices = [{"resourceID": "a", "health": "Healthy"}, {"resourceID": "a", "health": "Fine", "message": ""}]
    allocations = [{"name": "example.com/a", "resources": devices}, {"name": "claim:rc/r"}, {"name": "claim:rc"}]
    errors = validate_allocated_resources(
        {"containerStatuses": [{"name": "c", "allocatedResourcesStatus": allocations}]}, SPEC
    )
    assert [error.field.removeprefix("status.containerStatuses[0].allocatedResourcesStatus") for error in errors] == [
        "[0].resources[1].health",
        "[0].resources[1].message",
        "[0].resources[1].resourceID",
        "[2].name",
    ]


RUNNING: Document = {"running": {}}
NOT_AGAIN = "Forbidden: may not be transitioned to non-terminated state"


def ended(name: str, exit_code: int) -> Document:
    return {"name": name, "state": {"terminated": {"exitCode": exit_code}}}


def old_pod() -> Document:
    rules = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [5]}}]
    made = pod(
        {
            "restartPolicy": "OnFailure",
            "nodeName": "n1",
            "initContainers": [{"name": "i", "image": "x"}, {"name": "s", "image": "x", "restartPolicy": "Always"}],
            "containers": [
                {"name": "c", "image": "x"},
                {"name": "d", "image": "x"},
                {"name": "r", "image": "x", "restartPolicy": "Never", "restartPolicyRules": rules},
            ],
        }
    )
    made["status"] = {
        "qosClass": "BestEffort",
        "containerStatuses": [ended("c", 0), ended("d", 1), ended("r", 5)],
        "initContainerStatuses": [ended("i", 0), ended("s", 0)],
    }
    return stored(made)


@pytest.mark.parametrize(
    ("status", "errors"),
    [
        pytest.param({}, [], id="nothing changes"),
        pytest.param({"phase": "Whatever"}, [], id="an unknown phase is accepted"),
        pytest.param(
            {"qosClass": "Guaranteed"},
            ['status.qosClass: Invalid value: "Guaranteed": field is immutable'],
            id="another quality of service",
        ),
        pytest.param(
            {"observedGeneration": -1},
            ["status.observedGeneration: Invalid value: -1: must be a non-negative integer"],
            id="a negative generation",
        ),
        pytest.param(
            {"nominatedNodeName": "n2"},
            ["status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"],
            id="a nomination of a pod that has a node",
        ),
        pytest.param(
            {"containerStatuses": [{"name": "c", "state": RUNNING}]},
            [f"status.containerStatuses[0].state: {NOT_AGAIN}"],
            id="a container that succeeded runs again",
        ),
        pytest.param(
            {"containerStatuses": [{"name": "d", "state": RUNNING}]}, [], id="a container that failed runs again"
        ),
        pytest.param(
            {"containerStatuses": [{"name": "r", "state": RUNNING}]}, [], id="a container with restart rules runs again"
        ),
        pytest.param(
            {"initContainerStatuses": [{"name": "i", "state": RUNNING}]},
            [f"status.initContainerStatuses[0].state: {NOT_AGAIN}"],
            id="an init container that succeeded runs again",
        ),
        pytest.param({"initContainerStatuses": [{"name": "s", "state": RUNNING}]}, [], id="a sidecar runs again"),
        pytest.param(
            {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]},
            [
                'status.podIPs: Invalid value: [{"IP":"10.0.0.1"},{"IP":"10.0.0.2"}]: '
                "may specify no more than one IP for each IP family"
            ],
            id="two addresses of one family",
        ),
        pytest.param(
            {"hostIP": "1.1.1.1", "hostIPs": [{"ip": "1.1.1.2"}]},
            ['status.hostIPs[0].ip: Invalid value: "1.1.1.2": must be equal to `hostIP`'],
            id="hostIP differs from the first of hostIPs",
        ),
        pytest.param(
            {"containerStatuses": [{**ended("c", 0), "user": {"linux": {"uid": -1, "gid": 0}}}]},
            [
                "status.containerStatuses[0].user.linux.uid: Invalid value: -1: "
                "must be between 0 and 2147483647, inclusive"
            ],
            id="a user out of range",
        ),
    ],
)
def test_updates_of_pod_statuses_are_validated(status: Document, errors: list[str]) -> None:
    old = old_pod()
    new = deepcopy(old)
    new["status"].update(status)
    assert messages(validate_pod_status(new, old, STRICT_POD)) == errors
