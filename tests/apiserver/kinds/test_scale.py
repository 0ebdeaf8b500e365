"""Tests of kinds.scale."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.kinds import DEPLOYMENT, REPLICATION_CONTROLLER
from mooring.apiserver.kinds.scale import scale_of, scaled, validate_scale
from tests.apiserver.core_documents import messages
from tests.apiserver.workload_builders import UID, body, changed, created


def test_a_scale_needs_a_name_and_no_negative_replicas() -> None:
    assert validate_scale({"metadata": {"name": "o", "namespace": "n"}, "spec": {}}) == []
    assert messages(validate_scale({"metadata": {"namespace": "n"}, "spec": {"replicas": -1}})) == [
        "metadata.name: Required value: name or generateName is required",
        "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
    ]


def _deployment() -> Document:
    return changed(created(body("Deployment")).obj, metadata__resourceVersion="7", metadata__labels={"a": "b"})


def test_scale_of_returns_replicas_selector_and_basic_metadata() -> None:
    assert scale_of(DEPLOYMENT, changed(_deployment(), status={"replicas": 2})) == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": "o",
            "namespace": "n",
            "uid": UID,
            "resourceVersion": "7",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"replicas": 1},
        "status": {"replicas": 2, "selector": "app=x"},
    }


def test_scale_of_formats_the_selector() -> None:
    selector = {
        "matchLabels": {"b": "1"},
        "matchExpressions": [
            {"key": "c", "operator": "DoesNotExist"},
            {"key": "b", "operator": "In", "values": ["2", "1"]},
            {"key": "a", "operator": "NotIn", "values": ["x"]},
            {"key": "d", "operator": "Exists"},
        ],
    }
    scale = scale_of(DEPLOYMENT, changed(_deployment(), spec__selector=selector))
    assert scale["status"]["selector"] == "a notin (x),b=1,b in (1,2),!c,d"


def test_scale_of_omits_zero_replicas() -> None:
    assert scale_of(DEPLOYMENT, changed(_deployment(), spec__replicas=0))["spec"] == {}


def test_scale_of_formats_the_selector_of_a_replication_controller() -> None:
    obj = {"metadata": {"name": "o"}, "spec": {"replicas": 1, "selector": {"b": "2", "a": "1"}}, "status": {}}
    assert scale_of(REPLICATION_CONTROLLER, obj)["status"] == {"replicas": 0, "selector": "a=1,b=2"}


def test_scaled_changes_only_the_replicas() -> None:
    obj = _deployment()
    scale = changed(scale_of(DEPLOYMENT, obj), spec__replicas=5, metadata__labels={"ignored": "yes"})
    after = scaled(obj, scale)
    assert after["spec"]["replicas"] == 5
    assert after["metadata"] == obj["metadata"]
    assert obj["spec"]["replicas"] == 1


def test_scaled_has_no_resource_version_if_the_scale_has_none() -> None:
    after = scaled(_deployment(), {"metadata": {"name": "o"}, "spec": {}})
    assert "resourceVersion" not in after["metadata"]
    assert after["spec"]["replicas"] == 0
