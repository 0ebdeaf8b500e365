"""Tests of kinds.pod.resize."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.kinds.pod.options import STRICT_POD
from mooring.apiserver.kinds.pod.update import validate_resize
from tests.apiserver.field_errors import messages
from tests.apiserver.pod_builders import changed, pod, stored

SIZES: Document = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}


def old_pod() -> Document:
    made = stored(pod({"initContainers": [{"name": "i", "image": "x", "resources": {"requests": {"cpu": "1"}}}]}))
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}
    made["status"]["qosClass"] = "Burstable"
    return made


@pytest.mark.parametrize(
    ("field", "value", "errors"),
    [
        pytest.param("resources", SIZES, [], id="nothing changes"),
        pytest.param("resources", {**SIZES, "requests": {"cpu": "1500m", "memory": "1Gi"}}, [], id="more cpu"),
        pytest.param(
            "resources",
            {"requests": SIZES["requests"]},
            ["spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed"],
            id="no limit any more",
        ),
        pytest.param(
            "resources",
            {**SIZES, "requests": {**SIZES["requests"], "ephemeral-storage": "1Gi"}},
            ["spec: Forbidden: only cpu and memory resources are mutable"],
            id="something else",
        ),
        pytest.param(
            "resources",
            {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}},
            [],
            id="guaranteed for one container of two leaves the pod burstable",
        ),
        pytest.param("image", "y", ["spec: Forbidden: only cpu and memory resources are mutable"], id="the image"),
        pytest.param(
            "name",
            "z",
            ["spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize"],
            id="the name",
        ),
    ],
)
def test_containers(field: str, value: object, errors: list[str]) -> None:
    old = old_pod()
    new = changed(old, {"containers": [{**old["spec"]["containers"][0], field: value}]})
    assert messages(validate_resize(new, old, STRICT_POD)) == errors


def test_the_quality_of_service_stays() -> None:
    old = stored(pod())
    new = changed(old, {"containers": [{**old["spec"]["containers"][0], "resources": {"requests": {"cpu": "1"}}}]})
    assert messages(validate_resize(new, old, STRICT_POD)) == [
        'spec: Invalid value: "BestEffort": Pod QOS Class may not change as a result of resizing'
    ]


def test_a_kubelet_that_reports_no_resources_cannot_resize() -> None:
    old = old_pod()
    old["status"]["containerStatuses"] = [{"name": "c", "state": {"running": {}}}]
    assert messages(validate_resize(changed(old), old, STRICT_POD)) == [
        "spec: Forbidden: Pod running on node without support for resize"
    ]


@pytest.mark.parametrize(
    ("resources", "errors"),
    [
        pytest.param({"requests": {"cpu": "3"}}, [], id="more for the pod as a whole"),
        pytest.param(None, ["spec.resources: Forbidden: pod-level resources cannot be removed"], id="nothing any more"),
        pytest.param(
            {"requests": {"memory": "1Gi"}},
            ["spec.resources.requests: Forbidden: pod-level resource requests cannot be removed"],
            id="something else instead",
        ),
    ],
)
def test_the_pod_as_a_whole(resources: Document | None, errors: list[str]) -> None:
    old = stored(pod({"resources": {"requests": {"cpu": "2"}}}))
    old["status"]["qosClass"] = "Burstable"
    found = messages(validate_resize(changed(old, {"resources": resources}), old, STRICT_POD))
    assert [each for each in found if "QOS" not in each] == errors
