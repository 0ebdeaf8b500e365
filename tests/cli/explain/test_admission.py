"""What an API server adds to pods. The same pod with a uid has been there already."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mooring.api.views.meta import ObjectMeta
from mooring.api.views.pod import (
    Affinity,
    Container,
    ContainerPort,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    ResourceRequirements,
    Toleration,
    WeightedPodAffinityTerm,
)
from mooring.api.views.selectors import LabelSelector
from mooring.api.views.workloads import PriorityClass
from mooring.cli.explain.admission import PriorityRules, admitted_pod
from tests.api.builders import selector, toleration
from tests.builders import pod


def admitted(view: Pod, *classes: PriorityClass) -> Pod:
    return admitted_pod(view, PriorityRules(classes))


def priority_class(name: str, value: int, *, default: bool = False, policy: str | None = None) -> PriorityClass:
    return PriorityClass(metadata=ObjectMeta(name=name), value=value, global_default=default, preemption_policy=policy)


# Priority

CLASSES = (priority_class("gold", 100, policy="Never"), priority_class("plain", 5, default=True))


@pytest.mark.parametrize(
    ("spec", "classes", "priority", "policy"),
    [
        pytest.param(PodSpec(priority_class_name="gold"), CLASSES, 100, "Never", id="the class's"),
        pytest.param(PodSpec(priority_class_name="gold", priority=7), CLASSES, 7, None, id="its own, if it has one"),
        pytest.param(
            PodSpec(priority_class_name="gold", preemption_policy="PreemptLowerPriority"),
            CLASSES, 100, "PreemptLowerPriority", id="its own policy",
        ),
        pytest.param(PodSpec(), CLASSES, 5, None, id="the default class's"),
        pytest.param(PodSpec(), CLASSES[:1], 0, None, id="none without a default class"),
        pytest.param(PodSpec(priority_class_name="system-node-critical"), (), 2_000_001_000, None, id="node"),
        pytest.param(PodSpec(priority_class_name="system-cluster-critical"), (), 2_000_000_000, None, id="cluster"),
        pytest.param(PodSpec(priority_class_name="silver"), CLASSES, 0, None, id="a class that nobody knows"),
        pytest.param(
            PodSpec(), (priority_class("b", 9, default=True), priority_class("a", 3, default=True)), 3, None,
            id="of two default classes the lower",
        ),
    ],
)  # fmt: skip
def test_priority(spec: PodSpec, classes: Sequence[PriorityClass], priority: int, policy: str | None) -> None:
    for uid in ("", "u1"):
        given = admitted(Pod(metadata=ObjectMeta(name="p", uid=uid), spec=spec), *classes)
        assert (given.spec.priority, given.spec.preemption_policy) == (priority, policy)


def test_classes_that_nobody_knows_are_remembered() -> None:
    rules = PriorityRules(CLASSES)
    for _ in range(2):
        admitted_pod(Pod(spec=PodSpec(priority_class_name="silver")), rules)
    assert rules.missing == {"silver": 2}


# Resources and ports


@pytest.mark.parametrize(
    ("requests", "limits", "requested"),
    [
        pytest.param({}, {"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}, id="limits are requests"),
        pytest.param({"cpu": "500m"}, {"cpu": "1"}, {"cpu": "500m"}, id="unless it requests"),
        pytest.param({"cpu": "1"}, {"memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}, id="resource by resource"),
        pytest.param({"cpu": "1"}, {}, {"cpu": "1"}, id="no limits"),
    ],
)
def test_requests_from_limits(requests: dict[str, str], limits: dict[str, str], requested: dict[str, str]) -> None:
    container = Container(resources=ResourceRequirements(requests=requests, limits=limits))
    spec = admitted(Pod(spec=PodSpec(containers=(container,), init_containers=(container,)))).spec
    assert [c.resources.requests for c in (*spec.containers, *spec.init_containers)] == [requested, requested]


@pytest.mark.parametrize(
    ("requests", "limits", "of_container", "requested"),
    [
        pytest.param({}, {"cpu": "4"}, {"cpu": "1500m"}, {"cpu": "1500000000n"}, id="what its containers request"),
        pytest.param({}, {"cpu": "4"}, {}, {"cpu": "4"}, id="else what it is limited to"),
        pytest.param({"cpu": "2"}, {"cpu": "4"}, {"cpu": "1"}, {"cpu": "2"}, id="unless it requests as a whole"),
        pytest.param({"cpu": "2"}, {}, {"memory": "1Gi"}, {"cpu": "2"}, id="nothing without limits"),
    ],
)
def test_requests_of_a_pod_as_a_whole(
    requests: dict[str, str], limits: dict[str, str], of_container: dict[str, str], requested: dict[str, str]
) -> None:
    spec = PodSpec(
        containers=(Container(resources=ResourceRequirements(requests=of_container)),),
        resources=ResourceRequirements(requests=requests, limits=limits),
    )
    whole = admitted(Pod(spec=spec)).spec.resources
    assert whole is not None
    assert whole.requests == requested


@pytest.mark.parametrize(("host_network", "ports"), [(True, [80, 9090]), (False, [0, 9090])])
def test_ports_of_the_hosts_network(host_network: bool, ports: list[int]) -> None:
    container = Container(ports=(ContainerPort(container_port=80), ContainerPort(container_port=90, host_port=9090)))
    spec = admitted(Pod(spec=PodSpec(containers=(container,), host_network=host_network))).spec
    assert [port.host_port for port in spec.containers[0].ports] == ports


# Tolerations and affinity


@pytest.mark.parametrize(
    ("tolerations", "added"),
    [
        pytest.param([], 2, id="both"),
        pytest.param([toleration("node.kubernetes.io/not-ready:NoExecute")], 1, id="one is there"),
        pytest.param([toleration("")], 0, id="it tolerates everything"),
        pytest.param([toleration("node.kubernetes.io/not-ready:NoSchedule")], 2, id="another effect"),
    ],
)
def test_tolerations_of_short_outages(tolerations: list[Toleration], added: int) -> None:
    given = admitted(Pod(spec=PodSpec(tolerations=tuple(tolerations)))).spec.tolerations
    assert given[: len(tolerations)] == tuple(tolerations)
    assert [(each.effect, each.toleration_seconds) for each in given[len(tolerations) :]] == [
        ("NoExecute", 300)
    ] * added


def term(selected: LabelSelector | None) -> PodAffinityTerm:
    return PodAffinityTerm(
        topology_key="zone",
        label_selector=selected,
        match_label_keys=("hash", "absent"),
        mismatch_label_keys=("tenant",),
    )


@pytest.mark.parametrize(
    ("selected", "merged"),
    [
        pytest.param(selector(app="web"), selector("hash In 7c9", "tenant NotIn blue", app="web"), id="a selector"),
        pytest.param(selector(), selector("hash In 7c9", "tenant NotIn blue"), id="an empty one"),
        pytest.param(None, None, id="none selects nobody, still"),
    ],
)
def test_label_keys_are_merged_into_selectors(selected: LabelSelector | None, merged: LabelSelector | None) -> None:
    near = PodAffinity(
        required_during_scheduling_ignored_during_execution=(term(selected),),
        preferred_during_scheduling_ignored_during_execution=(
            WeightedPodAffinityTerm(weight=1, pod_affinity_term=term(selected)),
        ),
    )
    labels = {"hash": "7c9", "tenant": "blue"}
    view = Pod(metadata=ObjectMeta(labels=labels), spec=PodSpec(affinity=Affinity(pod_affinity=near)))
    affinity = admitted(view).spec.affinity
    assert affinity is not None
    assert affinity.pod_affinity is not None
    required = affinity.pod_affinity.required_during_scheduling_ignored_during_execution
    preferred = affinity.pod_affinity.preferred_during_scheduling_ignored_during_execution
    assert [required[0].label_selector, preferred[0].pod_affinity_term.label_selector] == [merged, merged]


def test_a_pod_that_was_at_an_api_server_is_left_as_it_is() -> None:
    container = Container(
        resources=ResourceRequirements(limits={"cpu": "1"}), ports=(ContainerPort(container_port=80),)
    )
    spec = PodSpec(
        containers=(container,), host_network=True, priority=3, scheduler_name="s",
        affinity=Affinity(pod_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=(term(selector()),))),
    )  # fmt: skip
    assert admitted(Pod(metadata=ObjectMeta(uid="u1", labels={"hash": "7c9"}), spec=spec)).spec == spec


def test_a_pod_without_a_scheduler_is_the_default_ones() -> None:
    assert admitted(pod("p")).spec.scheduler_name == "default-scheduler"
