"""A claim asks for devices exactly or for the first of some, and refers to its own requests only."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.kinds import RESOURCE_CLAIM
from mooring.apiserver.validation.resource_claim import claim_spec_faults, claim_template_faults
from tests.apiserver.core_documents import document
from tests.apiserver.field_errors import messages

UNKNOWN = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
FIRST = "spec.devices.requests[0]"


def exactly(**wish: Any) -> dict[str, Any]:
    return {"name": "r", "exactly": {"deviceClassName": "c", **wish}}


def choice(*names: str, **wish: Any) -> dict[str, Any]:
    return {"name": "r", "firstAvailable": [{"name": name, "deviceClassName": "c", **wish} for name in names]}


def spec(*requests: dict[str, Any], **devices: Any) -> dict[str, Any]:
    made: dict[str, Any] = document(RESOURCE_CLAIM, spec={"devices": {"requests": list(requests), **devices}})["spec"]
    return made


@pytest.mark.parametrize(
    ("requests", "faults"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([exactly()], [], id="one device"),
        pytest.param([choice("s", "t", count=2)], [], id="the first of two choices"),
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
        pytest.param([exactly(), exactly()], ['spec.devices.requests[1]: Duplicate value: "r"'], id="a name twice"),
        pytest.param([choice("s", "s")], [f'{FIRST}.firstAvailable[1]: Duplicate value: "s"'], id="a choice twice"),
        pytest.param(
            [choice(*"abcdefghi")],
            [f"{FIRST}.firstAvailable: Too many: 9: must have at most 8 items"],
            id="too many choices",
        ),
        pytest.param(
            [exactly(deviceClassName="")], [f"{FIRST}.exactly.deviceClassName: Required value"], id="no class"
        ),
        pytest.param(
            [exactly(count=-1)], [f"{FIRST}.exactly.count: Invalid value: -1: must be greater than zero"], id="fewer"
        ),
        pytest.param(
            [exactly(allocationMode="All", count=2)],
            [f"{FIRST}.exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'"],
            id="all two",
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
            id="odd tolerations",
        ),
        pytest.param(
            [exactly(tolerations=[{"operator": "X"}])],
            [f'{FIRST}.exactly.tolerations[0].operator: Unsupported value: "X": supported values: "Equal", "Exists"'],
            id="an unknown operator",
        ),
    ],
)
def test_what_is_wrong_with_requests(requests: list[dict[str, Any]], faults: list[str]) -> None:
    assert messages(claim_spec_faults(spec(*requests), "spec")) == faults


@pytest.mark.parametrize(
    ("devices", "faults"),
    [
        pytest.param({"constraints": [{"matchAttribute": "a/b"}]}, [], id="all requests alike"),
        pytest.param({"constraints": [{"requests": ["r/s"], "distinctAttribute": "a/b"}]}, [], id="a choice"),
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
            id="one twice",
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
            id="configuration of an unknown choice",
        ),
    ],
)
def test_what_is_wrong_with_references(devices: dict[str, Any], faults: list[str]) -> None:
    assert messages(claim_spec_faults(spec(choice("s"), **devices), "spec")) == faults


def test_templates_carry_labels_and_annotations_only() -> None:
    metadata = {"labels": {"a": "b"}, "name": "x", "uid": "y"}
    assert messages(
        claim_template_faults({"metadata": metadata, "spec": spec(exactly(deviceClassName=""))}, "spec")
    ) == [
        "spec.metadata.name: Forbidden: cannot be set",
        "spec.metadata.uID: Forbidden: cannot be set",
        "spec.spec.devices.requests[0].exactly.deviceClassName: Required value",
    ]
