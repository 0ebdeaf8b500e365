"""Tests of kinds.resource_claim and kinds.resource_claim_template."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.kinds import RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from mooring.apiserver.kinds.resource_claim import (
    validate_resource_claim_spec,
    validate_resource_claim_status,
    validate_resource_claim_template,
)
from mooring.apiserver.validation.fields import forbidden
from tests.apiserver.core_documents import call, changed, created, document, messages, strategy


@pytest.mark.parametrize(
    ("device_request", "mode", "count"),
    [
        pytest.param({}, "ExactCount", 1, id="empty"),
        pytest.param({"count": 3}, "ExactCount", 3, id="a number"),
        pytest.param({"allocationMode": "All"}, "All", None, id="all of them"),
    ],
)
def test_allocation_mode_and_count_are_defaulted(device_request: dict[str, Any], mode: str, count: int | None) -> None:
    requests = [{"name": "a", "exactly": device_request}, {"name": "b", "firstAvailable": [device_request]}]
    claim = document(RESOURCE_CLAIM, spec={"devices": {"requests": requests}})
    template = document(RESOURCE_CLAIM_TEMPLATE, spec={"spec": {"devices": {"requests": requests}}})
    for spec in (claim["spec"], template["spec"]["spec"]):
        exact, choice = spec["devices"]["requests"]
        for made in (exact["exactly"], choice["firstAvailable"][0]):
            assert (made["allocationMode"], made.get("count")) == (mode, count)


def test_the_operator_of_tolerations_defaults_to_equal() -> None:
    result = {"request": "a", "tolerations": [{"key": "x"}, {"key": "y", "operator": "Exists"}]}
    claim = document(RESOURCE_CLAIM, status={"allocation": {"devices": {"results": [result]}}})
    tolerations = claim["status"]["allocation"]["devices"]["results"][0]["tolerations"]
    assert [toleration["operator"] for toleration in tolerations] == ["Equal", "Exists"]


UNKNOWN = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
FIRST = "spec.devices.requests[0]"


def exactly(**device_request: Any) -> dict[str, Any]:
    return {"name": "r", "exactly": {"deviceClassName": "c", **device_request}}


def choice(*names: str, **device_request: Any) -> dict[str, Any]:
    return {"name": "r", "firstAvailable": [{"name": name, "deviceClassName": "c", **device_request} for name in names]}


def spec(*requests: dict[str, Any], **devices: Any) -> dict[str, Any]:
    made: dict[str, Any] = document(RESOURCE_CLAIM, spec={"devices": {"requests": list(requests), **devices}})["spec"]
    return made


@pytest.mark.parametrize(
    ("requests", "errors"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([exactly()], [], id="one device"),
        pytest.param([choice("s", "t", count=2)], [], id="two subrequests"),
        pytest.param(
            [{"name": "r"}],
            [f"{FIRST}: Required value: exactly one of `exactly` or `firstAvailable` is required"],
            id="neither",
        ),
        pytest.param(
            [{**exactly(), **choice("s")}],
            [
                f"{FIRST}: Invalid value: null: exactly one of `exactly` or `firstAvailable` is required, "
                "but multiple fields are set"
            ],
            id="both",
        ),
        pytest.param([exactly(), exactly()], ['spec.devices.requests[1]: Duplicate value: "r"'], id="a duplicate name"),
        pytest.param(
            [choice("s", "s")], [f'{FIRST}.firstAvailable[1]: Duplicate value: "s"'], id="a duplicate subrequest"
        ),
        pytest.param(
            [choice(*"abcdefghi")],
            [f"{FIRST}.firstAvailable: Too many: 9: must have at most 8 items"],
            id="too many subrequests",
        ),
        pytest.param(
            [exactly(deviceClassName="")], [f"{FIRST}.exactly.deviceClassName: Required value"], id="no class"
        ),
        pytest.param(
            [exactly(count=-1)],
            [f"{FIRST}.exactly.count: Invalid value: -1: must be greater than zero"],
            id="a negative count",
        ),
        pytest.param(
            [exactly(allocationMode="All", count=2)],
            [f"{FIRST}.exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'"],
            id="a count with the mode All",
        ),
        pytest.param(
            [exactly(allocationMode="X")],
            [f'{FIRST}.exactly.allocationMode: Unsupported value: "X": supported values: "All", "ExactCount"'],
            id="an unknown mode",
        ),
        pytest.param(
            [exactly(selectors=[{}])], [f"{FIRST}.exactly.selectors[0].cel: Required value"], id="an empty selector"
        ),
        pytest.param(
            [exactly(tolerations=[{"operator": "Exists", "value": "x", "effect": "X"}])],
            [
                f'{FIRST}.exactly.tolerations[0].value: Invalid value: "x": must be empty for operator `Exists`',
                f'{FIRST}.exactly.tolerations[0].effect: Unsupported value: "X": supported values: "NoExecute", '
                '"NoSchedule", "None"',
            ],
            id="invalid tolerations",
        ),
        pytest.param(
            [exactly(tolerations=[{"operator": "X"}])],
            [f'{FIRST}.exactly.tolerations[0].operator: Unsupported value: "X": supported values: "Equal", "Exists"'],
            id="an unknown operator",
        ),
    ],
)
def test_device_requests_are_validated(requests: list[dict[str, Any]], errors: list[str]) -> None:
    assert messages(validate_resource_claim_spec(spec(*requests), "spec")) == errors


@pytest.mark.parametrize(
    ("devices", "errors"),
    [
        pytest.param({"constraints": [{"matchAttribute": "a/b"}]}, [], id="an attribute of all requests"),
        pytest.param({"constraints": [{"requests": ["r/s"], "distinctAttribute": "a/b"}]}, [], id="a subrequest"),
        pytest.param(
            {"constraints": [{"requests": ["x", "a/b/c"], "matchAttribute": "a/b"}]},
            [
                f'spec.devices.constraints[0].requests[0]: Invalid value: "x": {UNKNOWN}',
                f'spec.devices.constraints[0].requests[1]: Invalid value: "a/b/c": {UNKNOWN}',
            ],
            id="unknown requests",
        ),
        pytest.param(
            {"constraints": [{"requests": ["r", "r"], "matchAttribute": "a/b"}]},
            ['spec.devices.constraints[0].requests[1]: Duplicate value: "r"'],
            id="a duplicate request",
        ),
        pytest.param(
            {"constraints": [{}]},
            [
                'spec.devices.constraints[0]: Required value: exactly one of "matchAttribute" or "distinctAttribute" '
                "is required, but multiple fields are set"
            ],
            id="no attribute",
        ),
        pytest.param(
            {"config": [{"requests": ["r/x"]}]},
            [
                f'spec.devices.config[0].requests[0]: Invalid value: "r/x": {UNKNOWN}',
                "spec.devices.config[0].opaque: Required value",
            ],
            id="configuration of an unknown subrequest",
        ),
    ],
)
def test_constraints_and_configuration_must_refer_to_requests(devices: dict[str, Any], errors: list[str]) -> None:
    assert messages(validate_resource_claim_spec(spec(choice("s"), **devices), "spec")) == errors


def test_templates_must_not_have_names_and_uids() -> None:
    metadata = {"labels": {"a": "b"}, "name": "x", "uid": "y"}
    assert messages(
        validate_resource_claim_template({"metadata": metadata, "spec": spec(exactly(deviceClassName=""))}, "spec")
    ) == [
        "spec.metadata.name: Forbidden: cannot be set",
        "spec.metadata.uID: Forbidden: cannot be set",
        "spec.spec.devices.requests[0].exactly.deviceClassName: Required value",
    ]


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
    ("status", "errors"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({**ALLOCATED, "reservedFor": [USER]}, [], id="allocated and reserved at once"),
        pytest.param(
            {"reservedFor": [USER]},
            ["status.reservedFor: Forbidden: may not be specified when `allocated` is not set"],
            id="reserved without an allocation",
        ),
        pytest.param(
            {**ALLOCATED, "reservedFor": [USER, USER, {}]},
            [
                "status.reservedFor[2].resource: Required value",
                "status.reservedFor[2].name: Required value",
                "status.reservedFor[2].uid: Required value",
                'status.reservedFor[1]: Duplicate value: "u"',
            ],
            id="duplicate users and an empty one",
        ),
        pytest.param(
            {"allocation": allocation({**RESULT, "request": "x", "driver": "", "pool": ""})},
            [
                'status.allocation.devices.results[0].request: Invalid value: "x": must be the name of a request in '
                "the claim or the name of a request and a subrequest separated by '/'",
                "status.allocation.devices.results[0].driver: Required value",
                "status.allocation.devices.results[0].pool: Required value",
            ],
            id="a device without driver and pool for an unknown request",
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
            id="configuration from an unknown source",
        ),
        pytest.param(
            {"allocation": {**ALLOCATED["allocation"], "nodeSelector": {}}},
            [
                "status.allocation.nodeSelector.nodeSelectorTerms: Required value: "
                "must have at least one node selector term"
            ],
            id="an empty node selector",
        ),
    ],
)
def test_allocations_and_reservations_are_validated(status: dict[str, Any], errors: list[str]) -> None:
    assert messages(validate_resource_claim_status(claim(**status), claim())) == errors


@pytest.mark.parametrize(
    ("device", "errors"),
    [
        pytest.param({"conditions": [], "data": {"a": 1}, "networkData": {"ips": ["10.0.0.1/24"]}}, [], id="valid"),
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
            id="invalid addresses",
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
def test_device_statuses_are_validated(device: dict[str, Any], errors: list[str]) -> None:
    new = claim(**ALLOCATED, devices=[{**DEVICE, **device}])
    found = messages(validate_resource_claim_status(new, claim(**ALLOCATED)))
    assert found[: len(errors)] == [f"status.devices[0]{error}" for error in errors]
    assert len(found) == len(errors) or "conditions" in device


def test_device_statuses_must_be_unique() -> None:
    (error,) = validate_resource_claim_status(claim(**ALLOCATED, devices=[DEVICE, DEVICE]), claim(**ALLOCATED))
    assert error.message.startswith("status.devices[1]: Duplicate value: {")


def test_an_allocation_can_be_removed_but_not_changed() -> None:
    old = claim(**ALLOCATED)
    assert validate_resource_claim_status(claim(), old) == []
    (error,) = validate_resource_claim_status(claim(allocation=allocation({**RESULT, "device": "d1"})), old)
    assert (error.field, error.detail) == ("status.allocation", "field is immutable")


def test_a_terminating_claim_gets_no_new_reservations() -> None:
    ends = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    old = claim(ends, **ALLOCATED, reservedFor=[USER])
    assert validate_resource_claim_status(claim(ends, **ALLOCATED, reservedFor=[USER]), old) == []
    (error,) = validate_resource_claim_status(claim(ends, **ALLOCATED, reservedFor=[USER, {**USER, "uid": "v"}]), old)
    assert error.detail.startswith("new entries may not be added")


VALID_SPEC = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
ALLOCATED_DEVICE = {"driver": "d", "pool": "p", "device": "x"}
STATUS = {
    "allocation": {"devices": {"results": [{"request": "r", **ALLOCATED_DEVICE}]}},
    "devices": [ALLOCATED_DEVICE],
}


def test_a_new_claim_is_not_allocated() -> None:
    made = document(RESOURCE_CLAIM, spec=VALID_SPEC, status=STATUS)
    assert created(RESOURCE_CLAIM, made) == []
    assert made["status"] == {}


def test_the_spec_of_a_claim_is_immutable() -> None:
    old = document(RESOURCE_CLAIM, spec=VALID_SPEC)
    assert changed(RESOURCE_CLAIM, old, metadata={"labels": {"a": "b"}})[0] == []
    (error,) = changed(RESOURCE_CLAIM, old, spec={})[0]
    assert error.startswith("spec: Invalid value: {")
    assert error.endswith(": field is immutable")


def test_a_status_update_without_an_allocation_drops_device_statuses() -> None:
    old = document(RESOURCE_CLAIM, spec=VALID_SPEC, status=STATUS)
    errors, new = changed(RESOURCE_CLAIM, old, "status", status={"devices": [ALLOCATED_DEVICE]}, spec={})
    assert (errors, new["status"], new["spec"]) == ([], {}, old["spec"])


def test_prior_errors_of_a_claim_come_first() -> None:
    api_call = call(RESOURCE_CLAIM)
    api_call.prior_errors = [forbidden("spec", "no")]
    made = document(RESOURCE_CLAIM, spec={"devices": {"requests": [{"name": "r"}]}})
    assert messages(strategy(RESOURCE_CLAIM).validate(made, api_call))[0] == "spec: Forbidden: no"
    assert messages(strategy(RESOURCE_CLAIM, "status").validate_update(made, made, api_call)) == ["spec: Forbidden: no"]
    assert strategy(RESOURCE_CLAIM, "status").ignored_fields == (("metadata",), ("spec",))


TEMPLATE_SPEC = {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}}


def test_the_spec_of_a_template_is_immutable() -> None:
    made = document(RESOURCE_CLAIM_TEMPLATE, spec=TEMPLATE_SPEC)
    assert created(RESOURCE_CLAIM_TEMPLATE, made) == []
    assert changed(RESOURCE_CLAIM_TEMPLATE, made)[0] == []
    first, second = changed(RESOURCE_CLAIM_TEMPLATE, made, spec={**TEMPLATE_SPEC, "metadata": {"name": "x"}})[0]
    assert first == "spec.metadata.name: Forbidden: cannot be set"
    assert second.endswith(": field is immutable")


def test_prior_errors_of_a_template_are_reported() -> None:
    api_call = call(RESOURCE_CLAIM_TEMPLATE)
    api_call.prior_errors = [forbidden("spec", "no")]
    made = document(RESOURCE_CLAIM_TEMPLATE, spec=TEMPLATE_SPEC)
    assert messages(strategy(RESOURCE_CLAIM_TEMPLATE).validate(made, api_call)) == ["spec: Forbidden: no"]
