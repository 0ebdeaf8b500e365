"""What claims of devices use of a quota."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.decode import convert_as
from mooring.api.document import Document
from mooring.api.quantity import parse_quantity
from mooring.api.quota.device_claims import (
    device_claim_usage,
    extended_names,
    is_charged_to,
    is_device_claim_name,
    pod_behind,
)
from mooring.api.views.devices import DeviceClass, ResourceClaim
from tests.api.quota.builders import pod, texts

EXTENDED = {"gpu": "example.com/gpu"}
FOR_EXTENDED = {"resource.kubernetes.io/extended-resource-claim": "true"}


def claim(*requests: Document, **metadata: Any) -> ResourceClaim:
    document = {"metadata": {"name": "c", **metadata}, "spec": {"devices": {"requests": list(requests)}}}
    return convert_as(ResourceClaim, document)


def owner(**fields: Any) -> Document:
    return {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True, **fields}


def made_for_pod(name: str, created: str = "2026-01-01T00:00:00Z") -> ResourceClaim:
    return claim(name=name, annotations=FOR_EXTENDED, ownerReferences=[owner()], creationTimestamp=created)


def device(name: str, mode: str = "ExactCount", count: int = 1) -> Document:
    return {"deviceClassName": name, "allocationMode": mode, "count": count}


@pytest.mark.parametrize(
    ("requests", "gpus", "nics"),
    [
        pytest.param(
            [{"exactly": device("gpu", count=2)}, {"exactly": device("gpu")}], "3", None, id="requests add up"
        ),
        pytest.param([{"exactly": device("nic", "All")}], None, "32", id="all of them are as many as there can be"),
        pytest.param(
            [{"firstAvailable": [device("gpu"), device("gpu", count=4), device("nic")]}],
            "4",
            "1",
            id="of alternatives the largest of each class",
        ),
        pytest.param([{"exactly": device("nic", "Unheard")}], None, "0", id="a mode that nobody knows counts nothing"),
        pytest.param([{"name": "unheard"}], None, None, id="a sort of request that nobody knows neither"),
    ],
)
def test_a_claim_uses_devices_by_class(requests: list[Document], gpus: str | None, nics: str | None) -> None:
    expected = {"count/resourceclaims.resource.k8s.io": "1"}
    for name, number in (("gpu", gpus), ("nic", nics)):
        if number is not None:
            expected[f"{name}.deviceclass.resource.k8s.io/devices"] = number
        if number not in (None, "0"):
            expected[f"requests.deviceclass.resource.kubernetes.io/{name}"] = str(number)
    if gpus is not None:
        expected["requests.example.com/gpu"] = gpus
    assert texts(device_claim_usage(claim(*requests), EXTENDED, {})) == expected


def test_what_was_charged_with_a_pod_is_not_charged_again() -> None:
    charged = {"requests.example.com/gpu": parse_quantity("2")}
    used = texts(device_claim_usage(claim({"exactly": device("gpu", count=3)}), EXTENDED, charged))
    assert used["requests.example.com/gpu"] == "1"
    assert used["gpu.deviceclass.resource.k8s.io/devices"] == "3"
    used = texts(device_claim_usage(claim({"exactly": device("gpu", count=2)}), EXTENDED, charged))
    assert "requests.example.com/gpu" not in used


@pytest.mark.parametrize(
    ("made", "name"),
    [
        pytest.param(claim(annotations=FOR_EXTENDED, ownerReferences=[owner()]), "p", id="its pod"),
        pytest.param(claim(ownerReferences=[owner()]), "", id="a claim that somebody asked for himself"),
        pytest.param(claim(annotations=FOR_EXTENDED), "", id="a claim of nobody"),
        pytest.param(
            claim(annotations=FOR_EXTENDED, ownerReferences=[owner(controller=False)]), "", id="an owner without a say"
        ),
        pytest.param(claim(annotations=FOR_EXTENDED, ownerReferences=[owner(kind="Job")]), "", id="not a pod"),
    ],
)
def test_behind_a_claim_for_extended_resources_stands(made: ResourceClaim, name: str) -> None:
    assert pod_behind(made) == name


@pytest.mark.parametrize(
    ("uid", "status", "others", "is_charged"),
    [
        pytest.param("u", {}, [], True, id="the only one"),
        pytest.param("u", {}, [made_for_pod("a", "2026-01-01T00:00:01Z")], True, id="the first by time"),
        pytest.param("u", {}, [made_for_pod("a")], False, id="not the first by name"),
        pytest.param("u", {}, [claim(name="a", ownerReferences=[owner()])], True, id="the first of its sort"),
        pytest.param("u", {"resourceClaimName": "c"}, [made_for_pod("a")], True, id="the one that the pod names"),
        pytest.param("u", {"resourceClaimName": "a"}, [], False, id="not the one that the pod names"),
        pytest.param("v", {}, [], False, id="another pod of that name"),
    ],
)
def test_a_pod_is_charged_with_one_claim(
    uid: str, status: Document, others: list[ResourceClaim], is_charged: bool
) -> None:
    mine = made_for_pod("c")
    found = pod(metadata={"uid": uid}, status={"extendedResourceClaimStatus": status} if status else {})
    assert is_charged_to(found, mine, [mine, *others]) is is_charged


def test_a_class_may_stand_behind_an_extended_resource() -> None:
    classes = [
        convert_as(DeviceClass, {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}),
        convert_as(DeviceClass, {"metadata": {"name": "nic"}, "spec": {}}),
    ]
    assert extended_names(classes) == EXTENDED


@pytest.mark.parametrize(
    ("name", "is_theirs"),
    [
        ("count/resourceclaims.resource.k8s.io", True),
        ("nic.deviceclass.resource.k8s.io/devices", True),
        ("requests.deviceclass.resource.kubernetes.io/gpu", True),
        ("requests.example.com/gpu", True),
        ("requests.deviceclass.resource.kubernetes.io/nic", False),
        ("requests.example.com/nic", False),
        ("pods", False),
    ],
)
def test_claims_are_measured_by(name: str, is_theirs: bool) -> None:
    assert is_device_claim_name(name, EXTENDED) is is_theirs
