"""What quotas are asked about."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api import kinds
from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, DEPLOYMENT, DEVICE_CLASS, POD, RESOURCE_CLAIM, Kind
from mooring.api.views.administration import ScopeRequirement
from mooring.apiserver.admission.resource_quota import (
    DeviceClaimMeasure,
    Measure,
    ServiceMeasure,
    VolumeClaimMeasure,
)
from mooring.apiserver.call import Operation
from tests.apiserver.admission.builders import Known, attempt, container, named, pod, wait

VOLUMES = VolumeClaimMeasure(kinds.PERSISTENT_VOLUME_CLAIM)
SERVICES = ServiceMeasure(kinds.SERVICE)
DEVICES = DeviceClaimMeasure(RESOURCE_CLAIM)
CLASSES = Known({DEVICE_CLASS: [named("gpu", spec={"extendedResourceName": "example.com/gpu"}), named("nic", spec={})]})


def used(measure: Measure, obj: Document, known: Known | None = None) -> dict[str, str]:
    amounts = wait(measure.usage(obj, attempt(measure.kind, obj), known or Known()))
    return {name: str(amount) for name, amount in amounts.items()}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(DEPLOYMENT, {"count/deployments.apps": "1"}), (CONFIG_MAP, {"count/configmaps": "1", "configmaps": "1"})],
    ids=str,
)
def test_objects_are_counted_under_all_their_names(kind: Kind, expected: dict[str, str]) -> None:
    measure = Measure(kind)
    assert used(measure, named("x")) == expected
    assert sorted(wait(measure.counted([*expected, "pods"], Known()))) == sorted(expected)


@pytest.mark.parametrize(
    ("measure", "handled"),
    [
        pytest.param(Measure(CONFIG_MAP), {("", "CREATE")}, id="what is only counted"),
        pytest.param(SERVICES, {("", "CREATE"), ("", "UPDATE")}, id="services"),
        pytest.param(VOLUMES, {("", "CREATE"), ("", "UPDATE"), ("status", "UPDATE")}, id="volumes grow"),
        pytest.param(DEVICES, {("", "CREATE"), ("", "UPDATE")}, id="devices"),
    ],
)
def test_writes_that_can_change_what_is_used(measure: Measure, handled: set[tuple[str, str]]) -> None:
    possible = [(subresource, operation) for subresource in ("", "status") for operation in Operation]
    assert {(each, does.value) for each, does in possible if measure.handles(each, does)} == handled


def test_services() -> None:
    obj = named("s", spec={"type": "NodePort", "ports": [{"port": 1}]})
    assert used(SERVICES, obj)["services.nodeports"] == "1"
    assert wait(SERVICES.counted(["services.loadbalancers", "pods"], Known())) == ["services.loadbalancers"]


def test_volumes() -> None:
    claim = named("c", spec={"resources": {"requests": {"storage": "1Gi"}}, "volumeAttributesClassName": "fast"})
    assert used(VOLUMES, claim)["requests.storage"] == "1Gi"
    assert wait(VOLUMES.counted(["requests.storage", "pods"], Known())) == ["requests.storage"]
    for name, expected in (("fast", True), ("slow", False)):
        scope = ScopeRequirement(scope_name="VolumeAttributesClass", operator="In", values=(name,))
        assert VOLUMES.is_in_scope(scope, claim) is expected


def devices(name: str, count: int, **metadata: Any) -> Document:
    request = {"exactly": {"deviceClassName": name, "allocationMode": "ExactCount", "count": count}}
    return {"metadata": {"name": "c", **metadata}, "spec": {"devices": {"requests": [request]}}}


def test_devices_count_under_the_name_that_their_class_stands_behind() -> None:
    assert used(DEVICES, devices("gpu", 2), CLASSES) == {
        "count/resourceclaims.resource.k8s.io": "1",
        "gpu.deviceclass.resource.k8s.io/devices": "2",
        "requests.deviceclass.resource.kubernetes.io/gpu": "2",
        "requests.example.com/gpu": "2",
    }
    names = ["requests.example.com/gpu", "requests.example.com/other"]
    assert wait(DEVICES.counted(names, CLASSES)) == names[:1]


@pytest.mark.parametrize(("uid", "expected"), [("u", "1"), ("another", "3")], ids=["its pod", "another pod"])
def test_devices_that_a_pod_is_charged_with_are_not_charged_again(uid: str, expected: str) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
    annotations = {"resource.kubernetes.io/extended-resource-claim": "true"}
    claim = devices(
        "gpu", 3, annotations=annotations, ownerReferences=[owner], creationTimestamp="2026-01-01T00:00:00Z"
    )
    asking = pod(containers=[container("a", {"example.com/gpu": "2"})])
    asking["metadata"]["uid"] = "u"
    known = Known({**CLASSES.objects, POD: [asking], RESOURCE_CLAIM: [claim]})
    assert used(DEVICES, claim, known)["requests.example.com/gpu"] == expected
