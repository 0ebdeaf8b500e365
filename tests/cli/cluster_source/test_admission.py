"""Objects as the API server would create them."""

from __future__ import annotations

import io
from typing import Any

import msgspec
import pytest

from mooring.api.views.meta import LabelSelector, ObjectMeta
from mooring.api.views.pod import Pod, PodSpec
from mooring.api.views.workloads import PriorityClass
from mooring.cli.cluster_source.admission import DryRunServer
from mooring.cli.cluster_source.cluster_input import ClusterInput, complete
from mooring.cli.errors import InputError
from mooring.cli.manifests.read import Source, read_manifests
from mooring.client.errors import ForbiddenError
from mooring.kit.entropy import Entropy
from tests.api.builders import selector


def server(*classes: PriorityClass) -> DryRunServer:
    return DryRunServer({(stored.kind, stored.key): stored for stored in classes}, [], 0.0)


def admitted(spec: dict[str, Any], *classes: PriorityClass, **metadata: Any) -> Pod:
    body = {"metadata": metadata, "spec": spec}
    return server(*classes).created_pod(body, ObjectMeta(name="p", namespace="default")).view


def completed(*objects: dict[str, Any]) -> ClusterInput:
    """The cluster of these objects, as JSON in a file."""
    text = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects})
    manifests = read_manifests([Source("f", None)], io.BytesIO(text), lambda amount: None)
    return complete(manifests.objects, [], manifests.kinds, Entropy(1), 0.0, manifests.policies)


def pod(spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", **metadata}, "spec": spec or {}}


def priority_class(name: str, value: int, *, default: bool = False, policy: str | None = None) -> PriorityClass:
    return PriorityClass(metadata=ObjectMeta(name=name), value=value, global_default=default, preemption_policy=policy)


# Priority

CLASSES = (priority_class("gold", 100, policy="Never"), priority_class("plain", 5, default=True))


@pytest.mark.parametrize(
    ("spec", "classes", "priority", "policy"),
    [
        pytest.param({"priorityClassName": "gold"}, CLASSES, 100, "Never", id="the class's"),
        pytest.param({"priorityClassName": "gold", "priority": 7}, CLASSES, 7, None, id="its own, if it has one"),
        pytest.param({}, CLASSES, 5, None, id="the default class's"),
        pytest.param({}, CLASSES[:1], 0, "PreemptLowerPriority", id="none without a default class"),
        pytest.param(
            {"priorityClassName": "system-node-critical"}, (), 2_000_001_000, "PreemptLowerPriority", id="node"
        ),
        pytest.param(
            {"priorityClassName": "system-cluster-critical"}, (), 2_000_000_000, "PreemptLowerPriority", id="cluster"
        ),
        pytest.param({"priorityClassName": "silver"}, CLASSES, 0, None, id="a class that the input lacks"),
        pytest.param(
            {"priorityClassName": "silver", "preemptionPolicy": "Never"}, CLASSES, 0, "Never",
            id="the policy of a class that the input lacks",
        ),
        pytest.param(
            {}, (priority_class("b", 9, default=True), priority_class("a", 3, default=True)), 3, None,
            id="of two default classes the lower",
        ),
    ],
)  # fmt: skip
def test_priority(spec: dict[str, Any], classes: tuple[PriorityClass, ...], priority: int, policy: str | None) -> None:
    given = admitted(spec, *classes).spec
    assert (given.priority, given.preemption_policy) == (priority, policy)
    if "priority" not in spec:
        resolved = server(*classes).priority_of(spec.get("priorityClassName", ""))
        policy = None if "preemptionPolicy" in spec else policy
        assert (resolved.priority, resolved.preemption_policy) == (priority, policy)


def test_a_policy_other_than_that_of_the_class_is_rejected() -> None:
    with pytest.raises(ForbiddenError, match="the string value of PreemptionPolicy"):
        admitted({"priorityClassName": "gold", "preemptionPolicy": "PreemptLowerPriority"}, *CLASSES)


@pytest.mark.parametrize("uid", ["", "u1"])
def test_classes_that_the_input_lacks_are_counted(uid: str) -> None:
    spec = {"priorityClassName": "silver"}
    cluster = completed(pod(spec, uid=uid), pod(spec, name="q", uid=uid and "u2"))
    assert cluster.notes == ['priority class "silver" is not in the input: 2 pods of it counted with priority 0']
    assert [each.spec.priority for each in cluster.pending] == [0, 0]
    assert cluster.unranked == {"default/p", "default/q"}


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
    container = {"resources": {"requests": requests, "limits": limits}}
    spec = admitted({"containers": [container], "initContainers": [container]}).spec
    assert [c.resources.requests for c in (*spec.containers, *spec.init_containers)] == [requested, requested]


@pytest.mark.parametrize(
    ("requests", "limits", "of_container", "requested"),
    [
        pytest.param({}, {"cpu": "4"}, {"cpu": "1500m"}, {"cpu": "1500m"}, id="what its containers request"),
        pytest.param({}, {"cpu": "4"}, {}, {"cpu": "4"}, id="else what it is limited to"),
        pytest.param({"cpu": "2"}, {"cpu": "4"}, {"cpu": "1"}, {"cpu": "2"}, id="unless it requests as a whole"),
        pytest.param({"cpu": "2"}, {}, {"memory": "1Gi"}, {"cpu": "2"}, id="nothing without limits"),
    ],
)
def test_requests_of_a_pod_as_a_whole(
    requests: dict[str, str], limits: dict[str, str], of_container: dict[str, str], requested: dict[str, str]
) -> None:
    containers = [{"resources": {"requests": of_container}}]
    whole = admitted({"containers": containers, "resources": {"requests": requests, "limits": limits}}).spec.resources
    assert whole is not None
    assert whole.requests == requested


@pytest.mark.parametrize(("host_network", "ports"), [(True, [80, 9090]), (False, [0, 9090])])
def test_ports_of_the_hosts_network(host_network: bool, ports: list[int]) -> None:
    container = {"ports": [{"containerPort": 80}, {"containerPort": 90, "hostPort": 9090}]}
    spec = admitted({"containers": [container], "hostNetwork": host_network}).spec
    assert [port.host_port for port in spec.containers[0].ports] == ports


# Tolerations and affinity


def not_ready(effect: str) -> dict[str, str]:
    return {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": effect}


@pytest.mark.parametrize(
    ("tolerations", "added"),
    [
        pytest.param([], 2, id="both"),
        pytest.param([not_ready("NoExecute")], 1, id="one is there"),
        pytest.param([{"operator": "Exists"}], 0, id="it tolerates everything"),
        pytest.param([not_ready("NoSchedule")], 2, id="another effect"),
    ],
)
def test_tolerations_of_short_outages(tolerations: list[dict[str, str]], added: int) -> None:
    given = admitted({"tolerations": tolerations}).spec.tolerations
    assert [each.key for each in given[: len(tolerations)]] == [toleration.get("key", "") for toleration in tolerations]
    assert [(each.effect, each.toleration_seconds) for each in given[len(tolerations) :]] == [
        ("NoExecute", 300)
    ] * added


def term(selected: dict[str, Any] | None) -> dict[str, Any]:
    keys = {"matchLabelKeys": ["hash", "absent"], "mismatchLabelKeys": ["tenant"]}
    return {"topologyKey": "zone", **({} if selected is None else {"labelSelector": selected}), **keys}


@pytest.mark.parametrize(
    ("selected", "merged"),
    [
        pytest.param(
            {"matchLabels": {"app": "web"}},
            selector("hash In 7c9", "tenant NotIn blue", app="web"),
            id="a selector",
        ),
        pytest.param({}, selector("hash In 7c9", "tenant NotIn blue"), id="an empty one"),
        pytest.param(None, None, id="none selects nothing, still"),
    ],
)
def test_label_keys_are_merged_into_selectors(selected: dict[str, Any] | None, merged: LabelSelector | None) -> None:
    near = {
        "requiredDuringSchedulingIgnoredDuringExecution": [term(selected)],
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term(selected)}],
    }
    affinity = admitted({"affinity": {"podAffinity": near}}, labels={"hash": "7c9", "tenant": "blue"}).spec.affinity
    assert affinity is not None
    assert affinity.pod_affinity is not None
    required = affinity.pod_affinity.required_during_scheduling_ignored_during_execution
    preferred = affinity.pod_affinity.preferred_during_scheduling_ignored_during_execution
    assert [required[0].label_selector, preferred[0].pod_affinity_term.label_selector] == [merged, merged]


def test_a_pod_with_a_uid_is_left_as_it_is() -> None:
    container = {"resources": {"limits": {"cpu": "1"}}, "ports": [{"containerPort": 80}]}
    near = {"requiredDuringSchedulingIgnoredDuringExecution": [term({})]}
    spec = {
        "containers": [container], "hostNetwork": True, "priority": 3, "schedulerName": "s",
        "affinity": {"podAffinity": near},
    }  # fmt: skip
    cluster = completed(pod(spec, uid="u1", labels={"hash": "7c9"}))
    assert cluster.pending[0].spec == msgspec.convert(spec, PodSpec)


@pytest.mark.parametrize("uid", ["", "u1"])
def test_a_pod_without_a_scheduler_is_the_default_ones(uid: str) -> None:
    assert completed(pod(uid=uid)).pending[0].spec.scheduler_name == "default-scheduler"


# LimitRanges, RuntimeClasses and namespaces of the input


def limit_range(**limit: Any) -> dict[str, Any]:
    spec = {"limits": [{"type": "Container", **limit}]}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": spec}


def runtime_class(**parts: Any) -> dict[str, Any]:
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "vm"},
        "handler": "vm",
        **parts,
    }


def namespace(labels: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": labels}}


CONTAINER = {"name": "c", "image": "i"}
ENFORCE = "pod-security.kubernetes.io/enforce"
LARGE = {"containers": [{**CONTAINER, "resources": {"limits": {"cpu": "4"}}}]}


def test_a_limit_range_gives_requests() -> None:
    cluster = completed(pod({"containers": [CONTAINER]}), limit_range(defaultRequest={"cpu": "2"}))
    assert cluster.pending[0].spec.containers[0].resources.requests == {"cpu": "2"}


def test_a_runtime_class_gives_overhead_and_a_node_selector() -> None:
    vm = runtime_class(overhead={"podFixed": {"cpu": "1"}}, scheduling={"nodeSelector": {"vm": "yes"}})
    spec = completed(pod({"runtimeClassName": "vm"}), vm).pending[0].spec
    assert (spec.overhead, spec.node_selector) == ({"cpu": "1"}, {"vm": "yes"})


def test_a_pod_keeps_its_overhead_if_the_input_lacks_its_runtime_class() -> None:
    cluster = completed(pod({"runtimeClassName": "vm", "overhead": {"cpu": "2"}}))
    assert cluster.pending[0].spec.overhead == {"cpu": "2"}
    note = 'runtime class "vm" is not in the input: 1 pod of it counted without what the class adds'
    assert cluster.notes == [note]


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        pytest.param(
            [pod(LARGE), limit_range(max={"cpu": "2"})],
            'pods "p" is forbidden: maximum cpu usage per Container is 2, but limit is 4',
            id="LimitRanger",
        ),
        pytest.param(
            [
                pod({"runtimeClassName": "vm", "nodeSelector": {"vm": "no"}}),
                runtime_class(scheduling={"nodeSelector": {"vm": "yes"}}),
            ],
            'pods "p" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; '
            "pod.spec.nodeSelector[vm] = no",
            id="RuntimeClass",
        ),
        pytest.param(
            [pod({"containers": [CONTAINER], "hostNetwork": True}), namespace({ENFORCE: "baseline"})],
            'pods "p" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)',
            id="PodSecurity",
        ),
        pytest.param(
            [pod({"preemptionPolicy": "Never"})],
            'pods "p" is forbidden: the string value of PreemptionPolicy (Never) must not be provided in pod spec; '
            "priority admission controller computed PreemptLowerPriority from the given PriorityClass name",
            id="Priority",
        ),
        pytest.param(
            [pod({"containers": [{"name": "c", "workingDir": 5}]})],
            'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal number into Go struct field '
            "Container.spec.containers.workingDir of type string",
            id="a bad type where scheduling does not look",
        ),
    ],
)  # fmt: skip
def test_what_the_api_server_rejects(objects: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(InputError) as caught:
        completed(*objects)
    assert caught.value.lines() == [f'f:1: Pod "default/p": {message}']


def test_a_limit_range_that_cannot_be_decoded() -> None:
    with pytest.raises(InputError) as caught:
        completed(limit_range(max={"cpu": "lots"}))
    assert caught.value.lines()[0].startswith(
        'f:1: LimitRange: LimitRange in version "v1" cannot be handled as a Limit'
    )


@pytest.mark.parametrize("given", [{"nodeName": "n1"}, {"priority": 0}])
def test_a_pod_that_was_admitted_before_is_not_rejected(given: dict[str, Any]) -> None:
    assert len(completed(pod({**LARGE, **given}), limit_range(max={"cpu": "2"})).pods()) == 1


def test_rejected_pods_of_a_workload_are_noted() -> None:
    template = {"metadata": {"labels": {"app": "w"}}, "spec": LARGE}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "w"}}, "template": template}
    workload = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "w"}, "spec": spec}
    cluster = completed(workload, limit_range(max={"cpu": "2"}))
    forbidden = 'pods "w-" is forbidden: maximum cpu usage per Container is 2, but limit is 4'
    assert cluster.notes == [f'ReplicaSet "default/w": the API server rejects its pods: {forbidden}']
    assert cluster.pending == []
