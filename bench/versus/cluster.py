"""The objects of a workload as requests to a real API server.

Input: a workload of `bench/workloads`, at a size. Output: requests, as bytes, in the order in which objects need each
other.

1. What a server assigns (uid, revision, time, managed fields, the status of a pod) is left out.
2. Victims end at once (`terminationGracePeriodSeconds: 0`), because no kubelet ends them.
3. A pod keeps its name in every round, so that both schedulers get the same pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from bench.client import request
from bench.scenario import Scenario
from bench.versus.servers import TOKEN
from bench.workload import Outcome, Size, Workload
from mooring.api.kinds import kind_named

Json = dict[str, Any]

SERVER_FIELDS = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generateName", "ownerReferences")
PRIORITY_CLASSES = {"important": 1000}


class VersusPod(NamedTuple):
    """A pod of the workload: the requests that create and delete it."""

    key: str
    create: bytes
    delete: bytes
    outcome: Outcome

    @property
    def is_bound_in_the_end(self) -> bool:
        return self.outcome in ("placed", "preempts")


class VersusCluster(NamedTuple):
    """Everything that a comparison creates."""

    before: list[list[bytes]]
    """Requests for what is there before; each list needs the lists before it."""
    node_names: list[str]
    placed: list[VersusPod]
    warm_up: list[VersusPod]
    pods: list[VersusPod]


def cluster_of(workload: Workload, size: Size) -> VersusCluster:
    scenario = Scenario(workload, size)
    nodes = [msgspec.json.decode(item.raw) for item in scenario.nodes()]
    objects = [msgspec.json.decode(item.raw) for item in scenario.objects()]
    placed = list(islice(scenario.placed(), size.placed_count))
    measured = list(islice(scenario.measured(), size.warm_up + size.pods))
    companions = [msgspec.json.decode(item.raw) for pod in (*placed, *measured) for item in pod.companions]
    pods = [_pod(msgspec.json.decode(item.raw), item.outcome) for item in measured]
    existing = [_pod(msgspec.json.decode(item.raw), item.outcome) for item in placed]
    namespaces = [each for each in objects if each["kind"] == "Namespace"]
    needed = {pod.key.partition("/")[0] for pod in (*existing, *pods)} | {"shop"}
    needed -= {each["metadata"]["name"] for each in namespaces}
    namespaces += [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in sorted(needed - {"default"})
    ]
    others = [each for each in objects if each["kind"] != "Namespace"]
    return VersusCluster(
        before=[
            [_create(each) for each in (*namespaces, *_priority_classes())],
            [_create(each) for each in (*nodes, *others)],
            [_create(each) for each in companions],
            [pod.create for pod in existing],
        ],
        node_names=[node["metadata"]["name"] for node in nodes],
        placed=existing,
        warm_up=pods[: size.warm_up],
        pods=pods[size.warm_up :],
    )


def bindings(pods: Sequence[VersusPod], node_names: Sequence[str]) -> Iterator[bytes]:
    """Binds the pods to the nodes in turn, as a scheduler does, without looking."""
    for number, pod in enumerate(pods):
        namespace, _, name = pod.key.partition("/")
        target = {"apiVersion": "v1", "kind": "Node", "name": node_names[number % len(node_names)]}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "namespace": namespace}}
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
        yield request(TOKEN, "POST", path, msgspec.json.encode({**binding, "target": target}))


def _priority_classes() -> Iterator[Json]:
    for name, value in PRIORITY_CLASSES.items():
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }


def _pod(pod: Json, outcome: Outcome) -> VersusPod:
    pod.pop("status", None)
    pod["spec"]["terminationGracePeriodSeconds"] = 0
    path = f"{_path(pod)}/{pod['metadata']['name']}"
    key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    return VersusPod(key, _create(pod), request(TOKEN, "DELETE", path), outcome)


def _create(each: Json) -> bytes:
    metadata = each["metadata"]
    for field in SERVER_FIELDS:
        metadata.pop(field, None)
    each.get("spec", {}).get("claimRef", {}).pop("uid", None)  # the server gives the claim another one
    if each["kind"] == "ReplicaSet":
        each["spec"].setdefault("template", _pod_template(each["spec"]["selector"]["matchLabels"]))
    return request(TOKEN, "POST", _path(each), msgspec.json.encode(each))


def _pod_template(labels: Json) -> Json:
    return {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "main"}]}}


def _path(each: Json) -> str:
    kind = kind_named(each["apiVersion"], each["kind"])
    start = f"/apis/{kind.api_version}" if "/" in kind.api_version else f"/api/{kind.api_version}"
    namespace = f"/namespaces/{each['metadata']['namespace']}" if kind.is_namespaced else ""
    return f"{start}{namespace}/{kind.plural}"
