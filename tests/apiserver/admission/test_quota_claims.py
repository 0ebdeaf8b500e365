"""What claims use."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import DEVICE_CLASS, PERSISTENT_VOLUME_CLAIM, POD, RESOURCE_CLAIM
from mooring.apiserver.admission.quota_claims import DeviceClaimMeasure, VolumeClaimMeasure
from tests.apiserver.admission.builders import Known, attempt, container, named, pod, wait

VOLUMES = VolumeClaimMeasure(PERSISTENT_VOLUME_CLAIM)
DEVICES = DeviceClaimMeasure(RESOURCE_CLAIM)
CLASSES = Known({DEVICE_CLASS: [named("gpu", spec={"extendedResourceName": "example.com/gpu"}), named("nic", spec={})]})


def used(measure: Any, kind: Any, claim: Document, known: Known | None = None) -> dict[str, str]:
    amounts = wait(measure.usage(claim, attempt(kind, claim), known or Known()))
    return {name: str(amount) for name, amount in amounts.items()}


@pytest.mark.parametrize(
    ("spec", "status", "storage"),
    [
        pytest.param({"storage": "1Gi"}, {}, "1Gi", id="what it asks for"),
        pytest.param({"storage": "1500m"}, {}, "2", id="in whole bytes"),
        pytest.param(
            {"storage": "1Gi"},
            {"allocatedResources": {"storage": "3Gi"}},
            "3Gi",
            id="what it was given, if that is more",
        ),
        pytest.param({"storage": "1Gi"}, {"allocatedResources": {"storage": "1Mi"}}, "1Gi", id="and only then"),
    ],
)
def test_volumes_in_all_and_by_class(spec: Document, status: Document, storage: str) -> None:
    claim = named("c", spec={"resources": {"requests": spec}, "storageClassName": "gold"}, status=status)
    assert used(VOLUMES, PERSISTENT_VOLUME_CLAIM, claim) == {
        "persistentvolumeclaims": "1",
        "count/persistentvolumeclaims": "1",
        "requests.storage": storage,
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
        "gold.storageclass.storage.k8s.io/requests.storage": storage,
    }


@pytest.mark.parametrize(("name", "expected"), [("fast", True), ("slow", False), (None, False)])
def test_volumes_of_a_class_of_attributes_have_a_scope(name: str | None, expected: bool) -> None:
    claim = named("c", spec={"volumeAttributesClassName": name} if name else {})
    scope = {"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["fast"]}
    assert VOLUMES.is_in_scope(scope, claim) is expected


def devices(*requests: Document, **metadata: Any) -> Document:
    return {"metadata": {"name": "c", **metadata}, "spec": {"devices": {"requests": list(requests)}}}


def exactly(name: str, mode: str = "ExactCount", count: int = 1) -> Document:
    return {"exactly": {"deviceClassName": name, "allocationMode": mode, "count": count}}


@pytest.mark.parametrize(
    ("requests", "gpus", "nics"),
    [
        pytest.param([exactly("gpu", count=2), exactly("gpu")], "3", None, id="they add up"),
        pytest.param([exactly("nic", "All")], None, "32", id="all of them are as many as there can be"),
        pytest.param(
            [{"firstAvailable": [exactly("gpu", count=n)["exactly"] for n in (1, 4)] + [exactly("nic")["exactly"]]}],
            "4",
            "1",
            id="of alternatives the largest of each class",
        ),
    ],
)
def test_devices_by_class(requests: list[Document], gpus: str | None, nics: str | None) -> None:
    expected = {"count/resourceclaims.resource.k8s.io": "1"}
    for name, number in (("gpu", gpus), ("nic", nics)):
        if number is not None:
            expected[f"{name}.deviceclass.resource.k8s.io/devices"] = number
            expected[f"requests.deviceclass.resource.kubernetes.io/{name}"] = number
    if gpus is not None:
        expected["requests.example.com/gpu"] = gpus
    assert used(DEVICES, RESOURCE_CLAIM, devices(*requests), CLASSES) == expected


def test_devices_that_a_pod_is_charged_with_are_not_charged_again() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
    claim = devices(
        exactly("gpu", count=3),
        annotations={"resource.kubernetes.io/extended-resource-claim": "true"},
        ownerReferences=[owner],
        creationTimestamp="2026-01-01T00:00:00Z",
    )
    asking = pod(containers=[container("a", {"example.com/gpu": "2"})])
    asking["metadata"]["uid"] = "u"
    known = Known({**CLASSES.objects, POD: [asking], RESOURCE_CLAIM: [claim]})
    assert used(DEVICES, RESOURCE_CLAIM, claim, known)["requests.example.com/gpu"] == "1"


def test_names_that_claims_of_devices_use() -> None:
    names = [
        "count/resourceclaims.resource.k8s.io",
        "gpu.deviceclass.resource.k8s.io/devices",
        "requests.deviceclass.resource.kubernetes.io/gpu",
        "requests.example.com/gpu",
        "requests.deviceclass.resource.kubernetes.io/other",
        "requests.example.com/other",
        "pods",
    ]
    assert wait(DEVICES.counted(names, CLASSES)) == names[:4]
