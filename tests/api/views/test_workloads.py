"""Views of workloads, endpoints, quotas, accounts, custom resource definitions and leases."""

from __future__ import annotations

import msgspec
import pytest

from mooring.api.decode import convert, convert_as, decode
from mooring.api.document import Document
from mooring.api.views.administration import (
    ClusterRole,
    CustomResourceDefinition,
    CustomResourceDefinitionSpec,
    CustomResourceDefinitionStatus,
    DefinitionNames,
    DefinitionVersion,
    ResourceQuota,
)
from mooring.api.views.meta import ApiObject, Condition, LabelSelector, ObjectMeta, ObjectWithRaw
from mooring.api.views.node import Lease, LeaseSpec
from mooring.api.views.workloads import (
    EndpointSlice,
    Namespace,
    NamespaceStatus,
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    PriorityClass,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicationController,
    ReplicationControllerSpec,
    Service,
    ServiceSpec,
    StatefulSet,
    StatefulSetSpec,
)

WEB = LabelSelector(match_labels={"app": "web"})


@pytest.mark.parametrize(
    ("api_version", "kind", "written", "read"),
    [
        ("v1", "Namespace", {"status": {"phase": "Active"}}, Namespace(status=NamespaceStatus(phase="Active"))),
        ("v1", "Service", {"spec": {"selector": {"app": "web"}}}, Service(spec=ServiceSpec(selector={"app": "web"}))),
        ("v1", "Service", {"spec": {"selector": {}}}, Service(spec=ServiceSpec(selector={}))),
        ("v1", "Service", {"spec": {"selector": None}}, Service(spec=ServiceSpec(selector=None))),
        (
            "v1",
            "ReplicationController",
            {"spec": {"replicas": 2, "selector": {"app": "web"}}},
            ReplicationController(spec=ReplicationControllerSpec(replicas=2, selector={"app": "web"})),
        ),
        (
            "apps/v1",
            "ReplicaSet",
            {"spec": {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": {"spec": 1}}},
            ReplicaSet(spec=ReplicaSetSpec(replicas=0, selector=WEB)),
        ),
        (
            "apps/v1",
            "StatefulSet",
            {"spec": {"selector": {"matchLabels": {"app": "web"}}}},
            StatefulSet(spec=StatefulSetSpec(selector=WEB)),
        ),
        (
            "policy/v1",
            "PodDisruptionBudget",
            {
                "spec": {"minAvailable": 2, "maxUnavailable": "30%", "selector": {"matchLabels": {"app": "web"}}},
                "status": {"disruptionsAllowed": 1, "disruptedPods": {"p": "2024-06-12T22:21:21Z"}},
            },
            PodDisruptionBudget(
                spec=PodDisruptionBudgetSpec(min_available=2, max_unavailable="30%", selector=WEB),
                status=PodDisruptionBudgetStatus(disruptions_allowed=1, disrupted_pods={"p": "2024-06-12T22:21:21Z"}),
            ),
        ),
        (
            "scheduling.k8s.io/v1",
            "PriorityClass",
            {"value": -5, "globalDefault": True, "preemptionPolicy": "Never", "description": "slow"},
            PriorityClass(value=-5, global_default=True, preemption_policy="Never"),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_view_of_each_kind(api_version: str, kind: str, written: dict[str, object], read: ApiObject) -> None:
    assert convert({"apiVersion": api_version, "kind": kind} | written) == read


# --- Endpoints, quotas and accounts, read and left whole -------------------------------------------------------------


SLICE: Document = {
    "apiVersion": "discovery.k8s.io/v1",
    "kind": "EndpointSlice",
    "metadata": {"name": "s"},
    "addressType": "IPv4",
    "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": False}, "deprecatedTopology": {"a": "b"}}],
    "ports": None,
}
QUOTA: Document = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "q"},
    "spec": {"hard": {"pods": "2"}, "scopeSelector": {"matchExpressions": [{"scopeName": "Terminating"}]}},
}


@pytest.mark.parametrize("document", [pytest.param(SLICE, id="a slice"), pytest.param(QUOTA, id="a quota")])
def test_objects_that_are_written_back_keep_all_fields(document: Document) -> None:
    view = decode(msgspec.json.encode(document))
    assert isinstance(view, ObjectWithRaw)
    assert msgspec.json.decode(view.raw) == document


def test_a_slice_without_ports_has_none() -> None:
    view = decode(msgspec.json.encode(SLICE))
    assert isinstance(view, EndpointSlice)
    assert view.ports == ()
    assert (view.endpoints[0].conditions.ready, view.endpoints[0].conditions.serving) == (False, None)


def test_a_quota_names_its_scopes() -> None:
    view = decode(msgspec.json.encode(QUOTA))
    assert isinstance(view, ResourceQuota)
    assert view.spec.scope_selector is not None
    assert view.spec.scope_selector.match_expressions[0].scope_name == "Terminating"


def test_a_role_keeps_its_rules_as_they_are_written() -> None:
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    document = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}}
    view = decode(msgspec.json.encode({**document, "rules": [rule]}))
    assert isinstance(view, ClusterRole)
    assert [{name: [*values] for name, values in each.items()} for each in view.rules] == [rule]


# --- The view of a definition of a custom kind -----------------------------------------------------------------------


def test_view_of_a_definition() -> None:
    names = {"plural": "widgets", "kind": "Widget", "listKind": "WidgetList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    written = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
        "status": {"acceptedNames": names, "conditions": [{"type": "Established", "status": "True"}]},
    }
    read = DefinitionNames(plural="widgets", kind="Widget")
    assert convert_as(CustomResourceDefinition, written) == CustomResourceDefinition(
        metadata=ObjectMeta(name="widgets.example.com"),
        spec=CustomResourceDefinitionSpec(
            group="example.com",
            scope="Namespaced",
            names=read,
            versions=(DefinitionVersion(name="v1", served=True, storage=True),),
        ),
        status=CustomResourceDefinitionStatus(
            conditions=(Condition(type="Established", status="True"),), accepted_names=read
        ),
    )


# --- The view of a lease ---------------------------------------------------------------------------------------------


def test_view_of_a_lease() -> None:
    written = {
        "metadata": {"name": "n1", "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": "n1", "renewTime": "2024-06-12T22:21:21.000001Z", "leaseDurationSeconds": 40},
    }
    assert convert_as(Lease, written) == Lease(
        metadata=ObjectMeta(name="n1", namespace="kube-node-lease"),
        spec=LeaseSpec(holder_identity="n1", renew_time="2024-06-12T22:21:21.000001Z"),
    )
