"""Quotas: usage and scopes of objects, services, volume claims, pods and device claims."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.decode import convert_as
from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, DEPLOYMENT, NODE, SECRET, Kind
from mooring.api.quantity import parse_quantity
from mooring.api.quota import (
    container_usage,
    device_claim_usage,
    extended_names,
    is_alive,
    is_charged_to,
    is_device_claim_name,
    is_pod_in_scope,
    is_pod_name,
    is_volume_claim_in_scope,
    is_volume_claim_name,
    kind_counted_as,
    matches_value,
    names_of,
    pod_behind,
    pod_usage,
    scopes_of,
    service_usage,
    volume_claim_usage,
)
from mooring.api.views.administration import ResourceQuotaSpec, ScopeRequirement
from mooring.api.views.devices import DeviceClass, ResourceClaim
from mooring.api.views.pod import Pod, ResourceRequirements
from mooring.api.views.storage import PersistentVolumeClaim
from mooring.api.views.workloads import Service
from tests.api.quota_builders import container, pod, texts


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
def test_kind_counted_as(name: str, kind: Kind | None) -> None:
    assert kind_counted_as(name) is kind


def test_scopes_of_a_quota() -> None:
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
def test_usage_of_services(spec: dict[str, Any], node_ports: str, load_balancers: str) -> None:
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
def test_usage_of_volume_claims(asked: str, given: str | None, storage: str) -> None:
    status = {"allocatedResources": {"storage": given}} if given else {}
    assert texts(volume_claim_usage(claim(asked, status, storageClassName="gold"))) == {
        "persistentvolumeclaims": "1",
        "count/persistentvolumeclaims": "1",
        "requests.storage": storage,
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
        "gold.storageclass.storage.k8s.io/requests.storage": storage,
    }


def test_a_volume_claim_without_requests_is_only_counted() -> None:
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
def test_the_scope_of_volume_attributes_classes(spec: Document, status: Document, is_meant: bool) -> None:
    scope = ScopeRequirement(scope_name="VolumeAttributesClass", operator="In", values=("fast",))
    assert is_volume_claim_in_scope(scope, claim(status=status, **spec)) is is_meant


def test_volume_claims_have_no_other_scope() -> None:
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
def test_quota_names_of_volume_claims(name: str, is_theirs: bool) -> None:
    assert is_volume_claim_name(name) is is_theirs


NOW_S = 1_000_000.0
ASKING = container("c", {"cpu": "250m", "memory": "64Mi"}, {"memory": "128Mi"})


@pytest.mark.parametrize(
    ("found", "amounts"),
    [
        pytest.param(
            pod(ASKING, status={"phase": "Running"}),
            {
                "count/pods": "1",
                "pods": "1",
                "cpu": "250m",
                "requests.cpu": "250m",
                "memory": "64Mi",
                "requests.memory": "64Mi",
                "limits.memory": "128Mi",
            },
            id="one that runs",
        ),
        pytest.param(pod(ASKING, status={"phase": "Failed"}), {"count/pods": "1"}, id="one that has failed"),
        pytest.param(pod(ASKING, status={"phase": "Succeeded"}), {"count/pods": "1"}, id="one that has ended well"),
        pytest.param(
            pod(container("c", {}, {"memory": "2Mi"}), overhead={"memory": "1Mi"}),
            {"count/pods": "1", "pods": "1", "memory": "1Mi", "requests.memory": "1Mi", "limits.memory": "3Mi"},
            id="overhead is on top",
        ),
        pytest.param(
            pod(container("c", {"example.com/gpu": "2", "weird": "1"}, {"hugepages-2Mi": "4Mi"})),
            {"count/pods": "1", "pods": "1", "requests.example.com/gpu": "2"},
            id="a vendor's resource",
        ),
        pytest.param(
            pod(container("c", {"hugepages-2Mi": "4Mi"})),
            {"count/pods": "1", "pods": "1", "hugepages-2Mi": "4Mi", "requests.hugepages-2Mi": "4Mi"},
            id="huge pages",
        ),
        pytest.param(
            pod(container("a", {"memory": "0"}), container("b", {"memory": "1Gi"})),
            {"count/pods": "1", "pods": "1", "memory": "1Gi", "requests.memory": "1Gi"},
            id="written as the first that asks for anything",
        ),
    ],
)
def test_usage_of_pods(found: Pod, amounts: dict[str, str]) -> None:
    assert texts(pod_usage(found, NOW_S)) == amounts
    assert texts(pod_usage(found, NOW_S)) == amounts, "remembered"


def test_usage_depends_on_the_status_of_containers() -> None:
    status = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    resized = {"containerStatuses": [status]}
    infeasible = {**resized, "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}
    asking = container("c", {"cpu": "2"})
    assert str(pod_usage(pod(asking, status=resized), NOW_S)["cpu"]) == "2"
    assert str(pod_usage(pod(asking, status=infeasible), NOW_S)["cpu"]) == "1"


def test_usage_of_a_container() -> None:
    resources = ResourceRequirements(requests={"cpu": "1"}, limits={"memory": "1Gi"})
    assert texts(container_usage(resources)) == {"pods": "1", "cpu": "1", "requests.cpu": "1", "limits.memory": "1Gi"}


OTHER_NAMESPACES: Document = {
    "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"namespaceSelector": {}}]}
}


@pytest.mark.parametrize(
    ("scope", "found", "is_meant"),
    [
        pytest.param("Terminating", pod(activeDeadlineSeconds=0), True, id="a deadline"),
        pytest.param("NotTerminating", pod(), True, id="no deadline"),
        pytest.param("BestEffort", pod(ASKING), False, id="it asks for something"),
        pytest.param("NotBestEffort", pod(ASKING), True, id="and is not of the best effort"),
        pytest.param("BestEffort", pod(container()), True, id="it asks for nothing"),
        pytest.param("BestEffort", pod(container("c", {"cpu": "0"})), True, id="it asks for zero"),
        pytest.param("BestEffort", pod(overhead={"cpu": "1"}), True, id="overhead is nothing that it asks for"),
        pytest.param("BestEffort", pod(ASKING, resources={}), True, id="as a whole it asks for nothing"),
        pytest.param("BestEffort", pod(status={"qosClass": "Burstable"}), False, id="its class is known"),
        pytest.param("PriorityClass", pod(priorityClassName="high"), True, id="its priority class"),
        pytest.param("PriorityClass", pod(), False, id="no priority class"),
        pytest.param("CrossNamespacePodAffinity", pod(affinity=OTHER_NAMESPACES), True, id="it looks elsewhere"),
        pytest.param("CrossNamespacePodAffinity", pod(), False, id="it stays at home"),
        pytest.param("VolumeAttributesClass", pod(), False, id="a scope that is not about pods"),
    ],
)
def test_scopes_of_pods(scope: str, found: Pod, is_meant: bool) -> None:
    operator = "In" if scope == "PriorityClass" else "Exists"
    requirement = ScopeRequirement(scope_name=scope, operator=operator, values=("high",))
    assert is_pod_in_scope(requirement, found) is is_meant


@pytest.mark.parametrize(
    ("name", "is_theirs"),
    [
        pytest.param("pods", True, id="pods"),
        pytest.param("limits.cpu", True, id="limits"),
        pytest.param("requests.hugepages-2Mi", True, id="huge pages"),
        pytest.param("requests.example.com/gpu", True, id="a vendor's resource"),
        pytest.param("requests.deviceclass.resource.kubernetes.io/gpu", True, id="a device class"),
        pytest.param("requests.kubernetes.io/gpu", False, id="a resource of Kubernetes' own"),
        pytest.param("requests.storage", False, id="storage is for claims"),
        pytest.param("services", False, id="services"),
    ],
)
def test_quota_names_of_pods(name: str, is_theirs: bool) -> None:
    assert is_pod_name(name) is is_theirs


@pytest.mark.parametrize(
    ("metadata", "now_s", "expected"),
    [
        ({"deletionTimestamp": "1970-01-01T00:00:10Z", "deletionGracePeriodSeconds": 30}, 40.0, True),
        ({"deletionTimestamp": "1970-01-01T00:00:10Z", "deletionGracePeriodSeconds": 30}, 41.0, False),
        ({"deletionTimestamp": "1970-01-01T00:00:10Z"}, 41.0, True),
    ],
    ids=["its time to end", "its time is over", "nobody said how long it takes"],
)
def test_a_pod_beyond_its_grace_period_is_only_counted(metadata: Document, now_s: float, expected: bool) -> None:
    found = pod(ASKING, metadata=metadata)
    assert is_alive(found, now_s) is expected
    assert ("pods" in pod_usage(found, now_s)) is expected


EXTENDED = {"gpu": "example.com/gpu"}
FOR_EXTENDED = {"resource.kubernetes.io/extended-resource-claim": "true"}


def device_claim(*requests: Document, **metadata: Any) -> ResourceClaim:
    document = {"metadata": {"name": "c", **metadata}, "spec": {"devices": {"requests": list(requests)}}}
    return convert_as(ResourceClaim, document)


def owner(**fields: Any) -> Document:
    return {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True, **fields}


def made_for_pod(name: str, created: str = "2026-01-01T00:00:00Z") -> ResourceClaim:
    return device_claim(name=name, annotations=FOR_EXTENDED, ownerReferences=[owner()], creationTimestamp=created)


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
def test_usage_of_device_claims(requests: list[Document], gpus: str | None, nics: str | None) -> None:
    expected = {"count/resourceclaims.resource.k8s.io": "1"}
    for name, number in (("gpu", gpus), ("nic", nics)):
        if number is not None:
            expected[f"{name}.deviceclass.resource.k8s.io/devices"] = number
        if number not in (None, "0"):
            expected[f"requests.deviceclass.resource.kubernetes.io/{name}"] = str(number)
    if gpus is not None:
        expected["requests.example.com/gpu"] = gpus
    assert texts(device_claim_usage(device_claim(*requests), EXTENDED, {})) == expected


def test_devices_charged_to_the_pod_are_not_charged_to_the_claim() -> None:
    charged = {"requests.example.com/gpu": parse_quantity("2")}
    used = texts(device_claim_usage(device_claim({"exactly": device("gpu", count=3)}), EXTENDED, charged))
    assert used["requests.example.com/gpu"] == "1"
    assert used["gpu.deviceclass.resource.k8s.io/devices"] == "3"
    used = texts(device_claim_usage(device_claim({"exactly": device("gpu", count=2)}), EXTENDED, charged))
    assert "requests.example.com/gpu" not in used


@pytest.mark.parametrize(
    ("made", "name"),
    [
        pytest.param(device_claim(annotations=FOR_EXTENDED, ownerReferences=[owner()]), "p", id="its pod"),
        pytest.param(device_claim(ownerReferences=[owner()]), "", id="a claim that somebody asked for himself"),
        pytest.param(device_claim(annotations=FOR_EXTENDED), "", id="a claim of nobody"),
        pytest.param(
            device_claim(annotations=FOR_EXTENDED, ownerReferences=[owner(controller=False)]),
            "",
            id="an owner without a say",
        ),
        pytest.param(device_claim(annotations=FOR_EXTENDED, ownerReferences=[owner(kind="Job")]), "", id="not a pod"),
    ],
)
def test_pod_behind_a_claim_for_extended_resources(made: ResourceClaim, name: str) -> None:
    assert pod_behind(made) == name


@pytest.mark.parametrize(
    ("uid", "status", "others", "is_charged"),
    [
        pytest.param("u", {}, [], True, id="the only one"),
        pytest.param("u", {}, [made_for_pod("a", "2026-01-01T00:00:01Z")], True, id="the first by time"),
        pytest.param("u", {}, [made_for_pod("a")], False, id="not the first by name"),
        pytest.param("u", {}, [device_claim(name="a", ownerReferences=[owner()])], True, id="the first of its sort"),
        pytest.param("u", {"resourceClaimName": "c"}, [made_for_pod("a")], True, id="the one that the pod names"),
        pytest.param("u", {"resourceClaimName": "a"}, [], False, id="not the one that the pod names"),
        pytest.param("v", {}, [], False, id="another pod of that name"),
    ],
)
def test_a_pod_is_charged_for_one_claim(
    uid: str, status: Document, others: list[ResourceClaim], is_charged: bool
) -> None:
    mine = made_for_pod("c")
    found = pod(metadata={"uid": uid}, status={"extendedResourceClaimStatus": status} if status else {})
    assert is_charged_to(found, mine, [mine, *others]) is is_charged


def test_extended_resources_of_device_classes() -> None:
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
def test_quota_names_of_device_claims(name: str, is_theirs: bool) -> None:
    assert is_device_claim_name(name, EXTENDED) is is_theirs
