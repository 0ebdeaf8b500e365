"""Tests of kinds.daemon_set."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver.kinds.daemon_set import (
    TEMPLATE_GENERATION,
    validate_daemon_set,
    validate_daemon_set_status,
    validate_daemon_set_update,
)
from tests.apiserver.core_documents import messages
from tests.apiserver.workload_builders import GONE, body, changed, created, defaulted, updated

ROLLING = "spec.updateStrategy.rollingUpdate"


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        pytest.param({}, [], id="valid"),
        pytest.param(
            {"spec__selector": GONE},
            ['spec.template.metadata.labels: Invalid value: {"app":"x"}: `selector` does not match template `labels`'],
            id="no selector",
        ),
        pytest.param(
            {"spec__selector": {}},
            ["spec.selector: Invalid value: {}: empty selector is invalid for daemonset"],
            id="an empty selector",
        ),
        pytest.param(
            {"spec__updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}},
            [f"{ROLLING}.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"],
            id="maxSurge and maxUnavailable",
        ),
        pytest.param(
            {"spec__updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}},
            [f"{ROLLING}.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"],
            id="neither maxSurge nor maxUnavailable",
        ),
        pytest.param({"spec__updateStrategy": {"type": "OnDelete"}}, [], id="OnDelete"),
        pytest.param(
            {"spec__updateStrategy": {"type": "X"}},
            [
                'spec.updateStrategy: Unsupported value: {"Type":"X","RollingUpdate":null}: '
                'supported values: "RollingUpdate", "OnDelete"'
            ],
            id="an unknown strategy",
        ),
        pytest.param(
            {"spec__template__spec__activeDeadlineSeconds": 5},
            [
                "spec.template.spec.activeDeadlineSeconds: Forbidden: "
                "activeDeadlineSeconds in DaemonSet is not Supported"
            ],
            id="pods with a deadline",
        ),
    ],
)
def test_daemon_set_specs_are_validated(changes: dict[str, Any], errors: list[str]) -> None:
    obj = defaulted(body("DaemonSet", **changes))
    assert messages(validate_daemon_set(obj["spec"], None, "spec")) == errors


def test_a_changed_selector_is_the_first_error() -> None:
    old = created(body("DaemonSet")).obj
    new = defaulted(body("DaemonSet", spec__selector={"matchLabels": {"app": "y"}}))
    found = messages(validate_daemon_set_update(new["spec"], old["spec"], "spec"))
    assert found[0] == 'spec.selector: Invalid value: {"matchLabels":{"app":"y"}}: field is immutable'
    assert len(found) == 2


def test_negative_counts_in_a_daemon_set_status_are_rejected() -> None:
    assert messages(validate_daemon_set_status({"numberReady": -1}, {}, "status")) == [
        "status.numberReady: Invalid value: -1: must be greater than or equal to 0"
    ]


@pytest.mark.parametrize(
    ("annotations", "generation"),
    [
        pytest.param({}, "1", id="no annotation"),
        pytest.param({TEMPLATE_GENERATION: "5"}, "5", id="a higher annotation"),
        pytest.param({TEMPLATE_GENERATION: "-5"}, "1", id="a negative annotation"),
    ],
)
def test_a_new_daemon_set_has_a_template_generation(annotations: dict[str, str], generation: str) -> None:
    obj = created(body("DaemonSet", metadata__annotations=annotations)).obj
    assert obj["metadata"]["annotations"] == {TEMPLATE_GENERATION: generation}
    assert obj["status"] == {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    }


@pytest.mark.parametrize(
    ("changes", "template_generation", "generation"),
    [
        pytest.param({"metadata__labels": {"a": "b"}}, "1", 1, id="labels"),
        pytest.param(
            {"metadata__annotations": {TEMPLATE_GENERATION: "9"}},
            "1",
            1,
            id="the annotation of the template generation",
        ),
        pytest.param({"spec__minReadySeconds": 4}, "1", 2, id="the spec"),
        pytest.param({"spec__template__spec__nodeSelector": {"a": "b"}}, "2", 2, id="the template"),
    ],
)
def test_updates_increment_the_generations_of_daemon_set_and_template(
    changes: dict[str, Any], template_generation: str, generation: int
) -> None:
    old = created(body("DaemonSet")).obj
    obj = updated(body("DaemonSet", **changes), old).obj
    assert obj["metadata"]["annotations"][TEMPLATE_GENERATION] == template_generation
    assert obj["metadata"]["generation"] == generation


def test_a_status_update_keeps_the_template_generation() -> None:
    old = created(body("DaemonSet")).obj
    raw = {**changed(old, metadata__annotations={"a": "b"}, status={"numberReady": 1}), "kind": "DaemonSet"}
    obj = updated({**raw, "apiVersion": "apps/v1"}, old, "status").obj
    assert obj["metadata"]["annotations"] == {"a": "b", TEMPLATE_GENERATION: "1"}
