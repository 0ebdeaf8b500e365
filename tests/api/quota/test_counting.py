"""What objects, services and volume claims use of a quota, and which of them a scope selects."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.decode import convert_as
from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, DEPLOYMENT, NODE, SECRET, Kind
from mooring.api.quota.counting import kind_counted_as, matches_value, names_of, scopes_of
from mooring.api.quota.services import service_usage
from mooring.api.quota.volume_claims import is_volume_claim_in_scope, is_volume_claim_name, volume_claim_usage
from mooring.api.views.quotas import ResourceQuotaSpec, ScopeRequirement
from mooring.api.views.storage import PersistentVolumeClaim
from mooring.api.views.workloads import Service
from tests.api.quota.builders import texts


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        pytest.param(DEPLOYMENT, {"count/deployments.apps"}, id="a kind of a group"),
        pytest.param(CONFIG_MAP, {"count/configmaps", "configmaps"}, id="a kind with an older name"),
    ],
)
def test_a_kind_is_counted_under_all_its_names(kind: Kind, names: set[str]) -> None:
    assert names_of(kind) == names
    assert {kind_counted_as(name) for name in names} == {kind}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param("secrets", SECRET, id="an older name"),
        pytest.param("deployments.apps", None, id="a kind has to be counted"),
        pytest.param("count/unheard.of", None, id="a kind that there is not"),
        pytest.param(f"count/{NODE.resource}", None, id="a kind outside of namespaces"),
    ],
)
def test_a_name_means_a_kind(name: str, kind: Kind | None) -> None:
    assert kind_counted_as(name) is kind


def test_the_scopes_of_a_quota_are_those_it_names_and_those_it_selects() -> None:
    selected = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
    spec = convert_as(ResourceQuotaSpec, {"scopes": ["Terminating"], "scopeSelector": {"matchExpressions": [selected]}})
    assert [(scope.scope_name, scope.operator) for scope in scopes_of(spec)] == [
        ("Terminating", "Exists"),
        ("PriorityClass", "In"),
    ]
    assert scopes_of(ResourceQuotaSpec()) == []


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        ("In", "a", True),
        ("In", "b", False),
        ("In", "", False),
        ("NotIn", "a", False),
        ("NotIn", "b", True),
        ("NotIn", "", True),
        ("Exists", "b", True),
        ("Exists", "", False),
        ("DoesNotExist", "b", False),
        ("DoesNotExist", "", True),
        ("Unheard", "a", False),
    ],
)
def test_scopes_with_values(operator: str, value: str, expected: bool) -> None:
    scope = ScopeRequirement(scope_name="PriorityClass", operator=operator, values=("a",))
    assert matches_value(scope, value) is expected


# --- What services use of a quota ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "node_ports", "load_balancers"),
    [
        pytest.param({"type": "ClusterIP"}, "0", "0", id="inside only"),
        pytest.param({"type": "NodePort"}, "2", "0", id="ports of every node"),
        pytest.param({"type": "LoadBalancer"}, "2", "1", id="a load balancer"),
        pytest.param(
            {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False},
            "1",
            "1",
            id="a load balancer without ports but those that were named",
        ),
    ],
)
def test_a_service_uses(spec: dict[str, Any], node_ports: str, load_balancers: str) -> None:
    ports = [{"port": 1, "nodePort": 30000}, {"port": 2}]
    assert texts(service_usage(convert_as(Service, {"spec": {**spec, "ports": ports}}))) == {
        "count/services": "1",
        "services": "1",
        "services.nodeports": node_ports,
        "services.loadbalancers": load_balancers,
    }


# --- What claims of volumes use of a quota, and which ones a scope means ---------------------------------------------


def claim(storage: str | None = None, status: Document | None = None, **spec: Any) -> PersistentVolumeClaim:
    requests = {"storage": storage} if storage is not None else {}
    document = {"spec": {"resources": {"requests": requests}, **spec}, "status": status or {}}
    return convert_as(PersistentVolumeClaim, document)


@pytest.mark.parametrize(
    ("asked", "given", "storage"),
    [
        pytest.param("1Gi", None, "1Gi", id="what it asks for"),
        pytest.param("1500m", None, "2", id="in whole bytes"),
        pytest.param("1Gi", "3Gi", "3Gi", id="what it was given, if that is more"),
        pytest.param("1Gi", "1Mi", "1Gi", id="and only then"),
    ],
)
def test_a_claim_uses_storage_in_all_and_by_class(asked: str, given: str | None, storage: str) -> None:
    status = {"allocatedResources": {"storage": given}} if given else {}
    assert texts(volume_claim_usage(claim(asked, status, storageClassName="gold"))) == {
        "persistentvolumeclaims": "1",
        "count/persistentvolumeclaims": "1",
        "requests.storage": storage,
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
        "gold.storageclass.storage.k8s.io/requests.storage": storage,
    }


def test_a_claim_that_says_nothing_is_only_counted() -> None:
    expected = {"persistentvolumeclaims": "1", "count/persistentvolumeclaims": "1"}
    assert texts(volume_claim_usage(claim())) == expected


@pytest.mark.parametrize(
    ("spec", "status", "is_meant"),
    [
        pytest.param({"volumeAttributesClassName": "fast"}, {}, True, id="the class that it asks for"),
        pytest.param({}, {"currentVolumeAttributesClassName": "fast"}, True, id="the class that it has"),
        pytest.param(
            {"volumeAttributesClassName": "slow"},
            {"modifyVolumeStatus": {"targetVolumeAttributesClassName": "fast"}},
            True,
            id="the class that it is on its way to",
        ),
        pytest.param({"volumeAttributesClassName": "slow"}, {}, False, id="another class"),
        pytest.param({}, {}, False, id="no class"),
    ],
)
def test_a_scope_means_claims_of_a_class_of_attributes(spec: Document, status: Document, is_meant: bool) -> None:
    scope = ScopeRequirement(scope_name="VolumeAttributesClass", operator="In", values=("fast",))
    assert is_volume_claim_in_scope(scope, claim(status=status, **spec)) is is_meant


def test_no_other_scope_means_a_claim() -> None:
    scope = ScopeRequirement(scope_name="PriorityClass", operator="DoesNotExist")
    assert not is_volume_claim_in_scope(scope, claim())


@pytest.mark.parametrize(
    ("name", "is_theirs"),
    [
        pytest.param("count/persistentvolumeclaims", True, id="their number"),
        pytest.param("requests.storage", True, id="storage"),
        pytest.param("gold.storageclass.storage.k8s.io/requests.storage", True, id="storage of a class"),
        pytest.param("requests.ephemeral-storage", False, id="storage of pods"),
    ],
)
def test_claims_are_measured_by(name: str, is_theirs: bool) -> None:
    assert is_volume_claim_name(name) is is_theirs
