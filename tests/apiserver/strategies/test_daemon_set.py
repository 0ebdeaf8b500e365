"""Daemon sets, created and changed."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver.defaults.workloads import TEMPLATE_GENERATION
from tests.apiserver.workload_builders import body, changed, created, updated


@pytest.mark.parametrize(
    ("annotations", "generation"),
    [
        pytest.param({}, "1", id="the first"),
        pytest.param({TEMPLATE_GENERATION: "5"}, "5", id="a later one"),
        pytest.param({TEMPLATE_GENERATION: "-5"}, "1", id="never before the first"),
    ],
)
def test_a_new_one_has_a_generation_of_its_template(annotations: dict[str, str], generation: str) -> None:
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
        pytest.param({"metadata__annotations": {TEMPLATE_GENERATION: "9"}}, "1", 1, id="the number itself is fixed"),
        pytest.param({"spec__minReadySeconds": 4}, "1", 2, id="the spec"),
        pytest.param({"spec__template__spec__nodeSelector": {"a": "b"}}, "2", 2, id="the template"),
    ],
)
def test_what_counts(changes: dict[str, Any], template_generation: str, generation: int) -> None:
    old = created(body("DaemonSet")).obj
    obj = updated(body("DaemonSet", **changes), old).obj
    assert obj["metadata"]["annotations"][TEMPLATE_GENERATION] == template_generation
    assert obj["metadata"]["generation"] == generation


def test_a_status_update_keeps_the_generation_of_the_template() -> None:
    old = created(body("DaemonSet")).obj
    raw = {**changed(old, metadata__annotations={"a": "b"}, status={"numberReady": 1}), "kind": "DaemonSet"}
    obj = updated({**raw, "apiVersion": "apps/v1"}, old, "status").obj
    assert obj["metadata"]["annotations"] == {"a": "b", TEMPLATE_GENERATION: "1"}
