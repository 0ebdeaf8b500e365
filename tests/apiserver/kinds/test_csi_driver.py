"""Tests of kinds.csi_driver."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.kinds import CSI_DRIVER
from mooring.apiserver.kinds import strategy_of
from mooring.apiserver.kinds.csi_driver import validate_csi_driver, validate_csi_driver_update
from tests.apiserver.core_documents import call, changed, created, document, messages, strategy


def spec(**parts: Any) -> dict[str, Any]:
    made: dict[str, Any] = document(CSI_DRIVER, spec=parts)["spec"]
    return made


@pytest.mark.parametrize(
    ("parts", "errors"),
    [
        pytest.param({}, [], id="defaults"),
        pytest.param(
            {"fsGroupPolicy": "X"},
            ['spec.fsGroupPolicy: Unsupported value: "X": supported values: "File", "None", "ReadWriteOnceWithFSType"'],
            id="an unknown policy",
        ),
        pytest.param(
            {"volumeLifecycleModes": ["X"]},
            ['spec.volumeLifecycleModes: Unsupported value: "X": supported values: "Persistent", "Ephemeral"'],
            id="an unknown mode",
        ),
        pytest.param(
            {"tokenRequests": [{"audience": "a"}, {"audience": "a", "expirationSeconds": 1}]},
            ['spec.tokenRequests[1].audience: Duplicate value: "a"'],
            id="a duplicate audience",
        ),
        pytest.param(
            {
                "tokenRequests": [
                    {"audience": "", "expirationSeconds": 599},
                    {"audience": "b", "expirationSeconds": 2**33},
                ]
            },
            [
                "spec.tokenRequests[0].expirationSeconds: Invalid value: 599: "
                "may not specify a duration less than 10 minutes",
                "spec.tokenRequests[1].expirationSeconds: Invalid value: 8589934592: "
                "may not specify a duration larger than 2^32 seconds",
            ],
            id="tokens with too short and too long expirations",
        ),
        pytest.param(
            {"nodeAllocatableUpdatePeriodSeconds": 9},
            ["spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 9: must be greater than or equal to 10 seconds"],
            id="a short update period",
        ),
        pytest.param(
            {"serviceAccountTokenInSecrets": False},
            [
                "spec.serviceAccountTokenInSecrets: Invalid value: false: "
                "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
            ],
            id="tokens in secrets without token requests",
        ),
    ],
)
def test_csi_drivers_are_validated(parts: dict[str, Any], errors: list[str]) -> None:
    assert messages(validate_csi_driver(spec(**parts), "spec")) == errors


def test_fields_of_csi_drivers_without_defaults_are_required() -> None:
    assert messages(validate_csi_driver({}, "spec")) == [
        f"spec.{field}: Required value"
        for field in ("attachedRequired", "podInfoOnMount", "storageCapacity", "seLinuxMount")
    ]


def test_immutable_fields_of_csi_drivers() -> None:
    assert validate_csi_driver_update(spec(podInfoOnMount=True), spec(), "spec") == []
    changed = spec(attachRequired=False, volumeLifecycleModes=["Ephemeral"])
    assert messages(validate_csi_driver_update(changed, spec(), "spec")) == [
        "spec.attachedRequired: Invalid value: false: field is immutable",
        'spec.volumeLifecycleModes: Invalid value: ["Ephemeral"]: field is immutable',
    ]


TOKENS = {"tokenRequests": [{"audience": "a"}]}


def test_the_generation_of_a_csi_driver_is_set_by_the_first_change() -> None:
    made = document(CSI_DRIVER, spec={"preventPodSchedulingIfMissing": True})
    assert created(CSI_DRIVER, made) == []
    assert "preventPodSchedulingIfMissing" not in made["spec"]
    assert "generation" not in made["metadata"]
    errors, new = changed(CSI_DRIVER, made, spec={**made["spec"], "podInfoOnMount": True})
    assert (errors, new["metadata"]["generation"]) == ([], 1)


@pytest.mark.parametrize(
    ("spec", "is_warned"),
    [
        pytest.param({}, False, id="no tokens"),
        pytest.param(TOKENS, True, id="tokens in attributes"),
        pytest.param({**TOKENS, "serviceAccountTokenInSecrets": False}, False, id="an explicit choice"),
    ],
)
def test_tokens_in_volume_attributes_have_a_warning(spec: dict[str, object], is_warned: bool) -> None:
    made, kind_strategy = document(CSI_DRIVER, spec=spec), strategy(CSI_DRIVER)
    assert bool(kind_strategy.warnings_on_create(made, call(CSI_DRIVER))) is is_warned
    assert bool(kind_strategy.warnings_on_update(made, document(CSI_DRIVER, spec={}), call(CSI_DRIVER))) is is_warned
    assert kind_strategy.warnings_on_update(made, made, call(CSI_DRIVER)) == []


def test_csi_drivers_are_defaulted() -> None:
    made = document(CSI_DRIVER, spec={"volumeLifecycleModes": []})
    assert made["spec"] == {
        "attachRequired": True,
        "podInfoOnMount": False,
        "storageCapacity": False,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "volumeLifecycleModes": ["Persistent"],
        "requiresRepublish": False,
        "seLinuxMount": False,
    }
    again = {"spec": dict(made["spec"])}
    strategy_of(CSI_DRIVER).default(again)
    assert again["spec"] == made["spec"]
