"""Claims of devices that pods imply: their names, their making, and when they are no longer needed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mooring.api.decode import convert_as, decode_as
from mooring.api.document import Document
from mooring.api.views.devices import ResourceClaim, ResourceClaimTemplate
from mooring.api.views.pod import Pod, PodResourceClaim
from mooring.api.well_known import RESOURCE_CLAIM_FINALIZER
from mooring.controllers.resourceclaim.plan import (
    NAME_BASE_MAX,
    ClaimName,
    claim_name_of,
    generated_base,
    is_for_pod,
    is_pod_done,
    must_reserve,
    owning_pod,
    released_document,
    reserved_document,
    template_claim,
)

OWNER: Document = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}


def pod(*, status: Document | None = None, metadata: Document | None = None, **spec: Any) -> Pod:
    identity = {"name": "p", "namespace": "default", "uid": "u"}
    return convert_as(Pod, {"metadata": {**identity, **(metadata or {})}, "spec": spec, "status": status or {}})


def claim(*consumers: str, is_allocated: bool = False, **metadata: Any) -> ResourceClaim:
    status: Document = {"reservedFor": [{"resource": "pods", "name": uid, "uid": uid} for uid in consumers]}
    if is_allocated:
        status["allocation"] = {"devices": {}}
    document = {"metadata": {"name": "c", "namespace": "default", **metadata}, "status": status}
    return decode_as(ResourceClaim, msgspec.json.encode(document))


@pytest.mark.parametrize(
    ("use", "statuses", "expected"),
    [
        pytest.param({"resourceClaimName": "mine"}, [], ClaimName("mine"), id="a claim that is named"),
        pytest.param(
            {"resourceClaimTemplateName": "t"},
            [{"name": "other", "resourceClaimName": "x"}, {"name": "gpu", "resourceClaimName": "p-gpu-1"}],
            ClaimName("p-gpu-1", is_from_template=True),
            id="the claim of a template, as the status says",
        ),
        pytest.param(
            {"resourceClaimTemplateName": "t"},
            [{"name": "gpu"}],
            ClaimName(None, is_from_template=True),
            id="none is needed",
        ),
        pytest.param({"resourceClaimTemplateName": "t"}, [], None, id="not created yet"),
    ],
)
def test_a_pod_means_a_claim(use: Document, statuses: list[Document], expected: ClaimName | None) -> None:
    found = pod(status={"resourceClaimStatuses": statuses})
    assert claim_name_of(found, convert_as(PodResourceClaim, {"name": "gpu", **use})) == expected


GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("found", "is_done"),
    [
        pytest.param(pod(), False, id="it waits"),
        pytest.param(pod(status={"phase": "Succeeded"}, nodeName="n"), True, id="it has ended"),
        pytest.param(pod(metadata=GOING), True, id="deleted before it got a node"),
        pytest.param(pod(metadata=GOING, nodeName="n"), False, id="deleted, and its containers may still run"),
    ],
)
def test_a_pod_needs_no_devices_any_more(found: Pod, is_done: bool) -> None:
    assert is_pod_done(found) is is_done


@pytest.mark.parametrize(
    ("owners", "namespace", "is_its_own"),
    [
        pytest.param([OWNER], "default", True, id="created for it"),
        pytest.param([{**OWNER, "uid": "v"}], "default", False, id="created for one of that name before"),
        pytest.param([{**OWNER, "controller": False}], "default", False, id="owned beside others"),
        pytest.param([OWNER], "other", False, id="elsewhere"),
        pytest.param([], "default", False, id="owned by nobody"),
    ],
)
def test_a_claim_is_for_a_pod(owners: list[Document], namespace: str, is_its_own: bool) -> None:
    assert is_for_pod(claim(ownerReferences=owners, namespace=namespace), pod()) is is_its_own


@pytest.mark.parametrize(
    ("owner", "is_pod"),
    [
        pytest.param(OWNER, True, id="a pod"),
        pytest.param({**OWNER, "kind": "Job"}, False, id="a job"),
        pytest.param({**OWNER, "apiVersion": "example.com/v1"}, False, id="what somebody else calls a pod"),
    ],
)
def test_a_claim_is_owned_by_a_pod(owner: Document, is_pod: bool) -> None:
    assert (owning_pod(claim(ownerReferences=[owner])) is not None) is is_pod


@pytest.mark.parametrize(
    ("found", "created", "is_due"),
    [
        pytest.param(pod(nodeName="n"), claim(is_allocated=True), True, id="bound without asking the scheduler"),
        pytest.param(pod(), claim(is_allocated=True), False, id="not bound yet"),
        pytest.param(pod(nodeName="n"), claim(), False, id="not allocated yet"),
        pytest.param(pod(nodeName="n"), claim("u", is_allocated=True), False, id="reserved already"),
    ],
)
def test_a_claim_must_be_reserved(found: Pod, created: ResourceClaim, is_due: bool) -> None:
    assert must_reserve(created, found) is is_due


def test_a_pod_is_added_to_those_for_whom_a_claim_is_reserved() -> None:
    reserved = reserved_document(claim("other"), pod())["status"]["reservedFor"]
    assert reserved[1:] == [{"resource": "pods", "name": "p", "uid": "u"}]
    assert [each["uid"] for each in reserved] == ["other", "u"]


@pytest.mark.parametrize(
    ("created", "gone", "status"),
    [
        pytest.param(claim("a", "b"), ["c"], None, id="all stay"),
        pytest.param(
            claim("a", "b", is_allocated=True, finalizers=[RESOURCE_CLAIM_FINALIZER]),
            ["a"],
            {"reservedFor": [{"resource": "pods", "name": "b", "uid": "b"}], "allocation": {"devices": {}}},
            id="somebody stays",
        ),
        pytest.param(
            claim("a", is_allocated=True, finalizers=[RESOURCE_CLAIM_FINALIZER]),
            ["a"],
            {},
            id="the last gives devices back",
        ),
        pytest.param(
            claim("a", is_allocated=True), ["a"], {"allocation": {"devices": {}}}, id="a driver of old keeps them"
        ),
    ],
)
def test_consumers_that_are_gone_are_released(created: ResourceClaim, gone: list[str], status: Document | None) -> None:
    document = released_document(created, gone)
    assert (document["status"] if document is not None else None) == status


@pytest.mark.parametrize(
    ("pod_name", "use_name", "expected"),
    [
        pytest.param("p", "gpu", "p-gpu-", id="short names stay"),
        pytest.param("p" * 50, "g" * 5, f"{'p' * 50}-{'g' * 5}-", id="as long as it may be"),
        pytest.param("p" * 60, "g" * 20, f"{'p' * 41}-{'g' * 13}", id="long ones are shortened alike"),
    ],
)
def test_a_generated_name_begins_with(pod_name: str, use_name: str, expected: str) -> None:
    assert generated_base(pod_name, use_name) == expected
    assert len(expected) <= NAME_BASE_MAX


def test_a_template_becomes_the_pods_own_claim() -> None:
    template = {
        "metadata": {"name": "t"},
        "spec": {"metadata": {"labels": {"a": "b"}, "annotations": {"x": "y"}}, "spec": {"devices": {"requests": []}}},
    }
    view = decode_as(ResourceClaimTemplate, msgspec.json.encode(template))
    assert template_claim(pod(), PodResourceClaim(name="gpu"), view) == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": "p-gpu-",
            "labels": {"a": "b"},
            "annotations": {"x": "y", "resource.kubernetes.io/pod-claim-name": "gpu"},
            "ownerReferences": [OWNER],
        },
        "spec": {"devices": {"requests": []}},
    }
