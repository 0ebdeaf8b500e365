"""Deployments, created and changed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.workload_builders import body, changed, created, updated


def test_a_new_deployment_is_defaulted_and_has_no_status() -> None:
    obj = created(body("Deployment", status={"replicas": 7}, metadata__generation=9)).obj
    assert obj["status"] == {}
    assert obj["metadata"]["generation"] == 1
    assert obj["spec"]["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
    }
    assert obj["spec"]["replicas"] == 1
    assert obj["spec"]["revisionHistoryLimit"] == 10
    assert obj["spec"]["progressDeadlineSeconds"] == 600


@pytest.mark.parametrize(
    ("changes", "generation"),
    [
        pytest.param({"spec__replicas": 3}, 2, id="a change of the spec counts"),
        pytest.param({"metadata__annotations": {"a": "b"}}, 2, id="annotations count"),
        pytest.param({"metadata__labels": {"a": "b"}}, 1, id="labels do not count"),
        pytest.param({"status": {"replicas": 4}}, 1, id="the status is kept as it was"),
    ],
)
def test_what_counts_as_a_new_generation(changes: dict[str, Any], generation: int) -> None:
    old = created(body("Deployment")).obj
    outcome = updated(body("Deployment", **changes), old)
    assert outcome.faults == []
    assert outcome.obj["metadata"]["generation"] == generation
    assert outcome.obj["status"] == {}


def test_the_selector_cannot_be_changed() -> None:
    old = created(body("Deployment")).obj
    wider = body(
        "Deployment",
        spec__selector={"matchLabels": {"b": "c", "app": "x"}},
        spec__template__metadata__labels={"app": "x", "b": "c"},
    )
    assert updated(wider, old).faults == [
        'spec.selector: Invalid value: {"matchLabels":{"app":"x","b":"c"}}: field is immutable'
    ]


def test_a_status_update_changes_neither_spec_nor_labels() -> None:
    old = created(body("Deployment")).obj
    wanted = changed(old, status={"replicas": 1}, spec__replicas=5, metadata__labels={"a": "b"}, kind="Deployment")
    outcome = updated({**wanted, "apiVersion": "apps/v1"}, old, "status")
    assert outcome.faults == []
    assert outcome.obj["spec"] == old["spec"]
    assert outcome.obj["status"] == {"replicas": 1}
    assert "labels" not in outcome.obj["metadata"]


def test_a_name_that_cannot_be_a_hostname_is_warned_of() -> None:
    assert created(body("Deployment", metadata__name="a.b")).warnings == [
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
        "a DNS label is recommended: [must not contain dots]"
    ]
