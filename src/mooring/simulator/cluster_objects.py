"""The API objects of a simulation at cluster level: nodes, Deployments, Jobs, pods, priority classes.

1. A pod has the fields that the scheduler reads. Its container has no image worth the name, and the stage set of
   `STAGES` says when it starts and how long it runs.
2. Pods of a scenario name a priority, and the API server wants a PriorityClass: one is made for each priority.
3. A Job runs one pod until it has succeeded once. A pod that was evicted does not count as a failure.

The objects of a SimKube trace, as they are applied:

4. An object loses what belongs to the cluster that was traced: uids, owners, finalizers, status, nodes of pods. Volumes
   with claims become empty ones, because the trace has no volumes.
5. Pods of Jobs and CronJobs, and pods without a controller, run as long as the pods of this owner that finished in the
   trace, on average; without such pods, until they are deleted.
6. Namespaces, priority classes and runtime classes that objects name exist from the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any, cast

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import POD
from mooring.api.load import load_plain
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.api.well_known import DEPLOYMENT_REVISION
from mooring.cluster.clone import clone_body, implied_objects
from mooring.kubelet.simulated.stage_file import STAGES_ANNOTATION
from mooring.simulator.budgets import NAMESPACE
from mooring.simulator.scenario.fields import APP, PodTemplatePart, RolloutPart, seconds
from mooring.simulator.simkube import CLAIMS, SimkubeTrace, identity
from mooring.simulator.sources import SimulationInput
from mooring.simulator.workload import FOREVER_S, Arrival

START_FOR = "mooring.dev/start-for"
RUN_FOR = "mooring.dev/run-for"
AT_ONCE = "at-once"
"""The stage set of pods that start and stop without delay, as at the engine level."""
STAGES = f"""
stageSets:
  - name: simulated
    match: {{role: container}}
    stages:
      - {{name: starting, state: waiting, for: 1s, forAnnotation: {START_FOR}}}
      - {{name: running, state: running, forAnnotation: {RUN_FOR}}}
      - {{name: done, state: terminated}}
    stop: {{exitCode: 143}}
  - name: {AT_ONCE}
    stages:
      - {{name: running, state: running, forAnnotation: {RUN_FOR}}}
      - {{name: done, state: terminated}}
    stop: {{for: 0s, exitCode: 143}}
"""
"""A container that is stopped fails: a Job must not take an evicted pod for a success."""
CONTAINER = "main"
IMAGE = "simulated"
JOB_RETRIES = 1_000_000
_OWNERS = ("CronJob", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet")
EVICTED = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


def node_document(node: Node) -> Document:
    """A node that the hollow kubelets run, and that is ready."""
    document = {"apiVersion": "v1", "kind": "Node", **_plain(node)}
    return clone_body(document, {}, has_status=True)


def deployment_document(group: PodTemplatePart) -> Document:
    spec: Document = {"containers": [_container(group.cpu, group.memory)]}
    if group.priority:
        spec["priorityClassName"] = priority_class_name(group.priority)
    labels = {APP: group.name, **group.labels}
    annotations = _start_annotations(group.startup)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": group.name, "namespace": NAMESPACE},
        "spec": {
            "replicas": group.replicas,
            "selector": {"matchLabels": {APP: group.name}},
            "template": {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec},
        },
    }


def rollout_patch(change: RolloutPart) -> Document:
    """A strategic merge patch of a Deployment."""
    amounts = {"cpu": change.cpu, "memory": change.memory}
    requests = {name: amount for name, amount in amounts.items() if amount}
    template: Document = {"metadata": {"labels": change.labels}}
    if requests:
        template["spec"] = {"containers": [{"name": CONTAINER, "resources": {"requests": requests}}]}
    return {"spec": {"template": template}}


def arrival_document(arrival: Arrival, startup: str, *, is_bare: bool) -> Document:
    """A Job with the pod that arrives; or the pod itself, if nothing creates it again."""
    pod = pod_document(arrival.pod, arrival.lifetime_s)
    pod["metadata"]["annotations"] |= _start_annotations(startup)
    if is_bare:
        return {"apiVersion": "v1", "kind": "Pod", **pod}
    metadata = pod["metadata"]
    template = {"metadata": {"labels": metadata["labels"], "annotations": metadata["annotations"]}, "spec": pod["spec"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
        "spec": {"backoffLimit": JOB_RETRIES, "podFailurePolicy": {"rules": [EVICTED]}, "template": template},
    }


def pod_document(pod: Pod, lifetime_s: float) -> Document:
    """A pod as it is created: without status and owner, to run for `lifetime_s`."""
    plain = _plain(pod)
    metadata = {name: value for name, value in plain["metadata"].items() if name in ("name", "namespace")}
    metadata["labels"] = plain["metadata"].get("labels") or {}
    metadata["annotations"] = dict(plain["metadata"].get("annotations") or {})
    spec: Document = {**plain["spec"], "restartPolicy": "Never"}
    priority = spec.pop("priority", 0)
    if priority and not spec.get("priorityClassName"):
        spec["priorityClassName"] = priority_class_name(priority)
    spec["containers"] = [{"image": IMAGE, **container} for container in spec["containers"]]
    if lifetime_s != FOREVER_S:
        metadata["annotations"][RUN_FOR] = duration_text(lifetime_s)
    return {"metadata": metadata, "spec": spec}


def dump_documents(file: str, found: SimulationInput, *, has_arrival_model: bool) -> list[Document]:
    """The objects of a dump for `clone`, without the pods that arrive later.

    With an arrival model nothing else creates pods: their owners are left out, but for DaemonSets.
    """
    staying = {
        arrival.pod.key: arrival.lifetime_s
        for arrival in (*found.placed, *found.workload.arrivals)
        if is_of_dump(arrival)
    }
    documents = [cast(Document, plain) for _, plain in load_plain(file) if isinstance(plain.get("metadata"), dict)]
    kept: list[Document] = []
    for document in documents:
        if document.get("kind") == "Pod":
            metadata = document["metadata"]
            lifetime_s = staying.get(f"{metadata.get('namespace') or 'default'}/{metadata.get('name')}")
            if lifetime_s is not None:
                kept.append(document if lifetime_s == FOREVER_S else _ending(document, lifetime_s))
        elif not has_arrival_model or document.get("kind") not in _OWNERS:
            kept.append(document)
    return [*implied_objects(documents), *kept]


def is_of_dump(arrival: Arrival) -> bool:
    """Whether this pod is in a dump, and not one like it."""
    return bool(arrival.pod.metadata.uid)


def _ending(pod: Document, lifetime_s: float) -> Document:
    annotations = {**(pod["metadata"].get("annotations") or {}), RUN_FOR: duration_text(lifetime_s)}
    metadata = {**pod["metadata"], "annotations": annotations}
    return {**pod, "metadata": metadata, "spec": {**pod["spec"], "restartPolicy": "Never"}}


def priority_class_name(priority: int) -> str:
    return f"priority-{priority}" if priority >= 0 else f"priority-minus-{-priority}"


def namespaces(pods: Iterable[Pod]) -> list[Document]:
    found = {pod.metadata.namespace for pod in pods} - {NAMESPACE}
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in sorted(found)]


def priority_classes(pods: Iterable[Pod], groups: Iterable[PodTemplatePart]) -> list[Document]:
    """A class for each priority that comes without one."""
    found = {pod.spec.priority or 0 for pod in pods if not pod.spec.priority_class_name}
    found |= {group.priority for group in groups}
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return [
        {**kind, "metadata": {"name": priority_class_name(priority)}, "value": priority}
        for priority in sorted(found - {0})
    ]


def _container(cpu: str, memory: str) -> Document:
    return {"name": CONTAINER, "image": IMAGE, "resources": {"requests": {"cpu": cpu, "memory": memory}}}


def duration_text(length_s: float) -> str:
    return f"{length_s:.9f}s"


def _start_annotations(startup: str) -> dict[str, str]:
    """`startup` empty: as the stage set says."""
    if startup and not seconds(startup):
        return {STAGES_ANNOTATION: AT_ONCE}
    return {START_FOR: duration_text(seconds(startup))} if startup else {}


def _plain(view: Node | Pod) -> Document:
    document: Document = msgspec.json.decode(msgspec.json.encode(view))
    return document


# --- objects of a SimKube trace -------------------------------------------------------------------------------


_TEMPLATE_PATHS: Mapping[str, tuple[str, ...]] = {
    "Pod": (),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    **dict.fromkeys(("DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet"), ("spec", "template")),
}
"""Where objects have their pod template; a pod is its own."""
_RUN_TO_COMPLETION = ("CronJob", "Job", "Pod")
_OF_SERVER = ("finalizers", "ownerReferences")


def applied_object(trace: SimkubeTrace, document: Mapping[str, Any]) -> Document:
    """The object as it is applied. Raises what `SimkubeTrace.errors_of` expects."""
    body = clone_body(dict(document), {}, has_status=True)
    metadata = body["metadata"] = {name: value for name, value in body["metadata"].items() if name not in _OF_SERVER}
    if DEPLOYMENT_REVISION in (metadata.get("annotations") or {}):  # the Deployment controller's
        metadata["annotations"] = {
            name: value for name, value in metadata["annotations"].items() if name != DEPLOYMENT_REVISION
        }
    claims = [claim["metadata"]["name"] for claim in (body.get("spec") or {}).get("volumeClaimTemplates") or ()]
    if claims:
        body["spec"] = {name: value for name, value in body["spec"].items() if name != "volumeClaimTemplates"}
    template = _own_template(body)
    if template is not None:
        template["spec"] = _pod_spec(template["spec"], claims)
        if body["kind"] in _RUN_TO_COMPLETION:
            _end_after(template, trace, document)
    return body


def objects_implied(trace: SimkubeTrace) -> list[Document]:
    """What the objects of the trace need, and the trace does not have. Raises `ScenarioError`."""
    found: dict[tuple[object, ...], Document] = {}
    for event in trace.events():
        with trace.errors_of(event.number):
            for document in event.applied:
                metadata = {"name": document["metadata"]["name"], "namespace": document["metadata"].get("namespace")}
                head = {"apiVersion": document["apiVersion"], "kind": document["kind"], "metadata": metadata}
                if document["kind"] != "Namespace":  # also before the trace has it
                    found[identity(document)] = head
                template = _own_template(dict(document))
                if template is not None:
                    # A pod of its own name stands for those of the template.
                    pod = {"apiVersion": POD.api_version, "kind": POD.kind, "metadata": metadata}
                    found["template", *identity(document)] = {**pod, "spec": template["spec"]}
    return implied_objects(list(found.values()))


def _own_template(body: Document) -> Document | None:
    """The pod template of an object, in copies of what contains it."""
    if body["kind"] not in _TEMPLATE_PATHS:
        return None
    part = body
    for step in _TEMPLATE_PATHS[body["kind"]]:
        part[step] = dict(part[step])
        part = part[step]
    part["metadata"] = dict(part.get("metadata") or {})
    return part


def _pod_spec(spec: Mapping[str, Any], claims: list[str]) -> Document:
    """`claims`: the names of volumes that come from the claim templates of a StatefulSet."""
    found: Document = {name: value for name, value in spec.items() if name not in ("nodeName", "priority")}
    if spec.get("priority") and not spec.get("priorityClassName"):
        found["priorityClassName"] = priority_class_name(spec["priority"])
    volumes = [
        {"name": volume["name"], "emptyDir": {}} if any(source in volume for source in CLAIMS) else volume
        for volume in spec.get("volumes") or ()
    ]
    volumes += [{"name": name, "emptyDir": {}} for name in claims]
    if volumes:
        found["volumes"] = volumes
    return found


def _end_after(template: Document, trace: SimkubeTrace, document: Mapping[str, Any]) -> None:
    lengths_s = [length_s for _, length_s in trace.lifecycles(*identity(document)) if length_s != FOREVER_S]
    if lengths_s:
        annotations = {**(template["metadata"].get("annotations") or {}), RUN_FOR: duration_text(fmean(lengths_s))}
        template["metadata"]["annotations"] = annotations
        template["spec"]["restartPolicy"] = "Never"
