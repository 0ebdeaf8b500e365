"""What surrounds pods."""

from __future__ import annotations

import pytest

from mooring.api.decode import convert
from mooring.api.views.meta import ApiObject
from mooring.api.views.selectors import LabelSelector
from mooring.api.views.workloads import (
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
def test_what_is_read_of_each_kind(api_version: str, kind: str, written: dict[str, object], read: ApiObject) -> None:
    assert convert({"apiVersion": api_version, "kind": kind} | written) == read
