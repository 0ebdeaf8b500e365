"""The objects of a SimKube trace as the API server of a simulation gets them.

1. An object loses what belongs to the cluster that was traced: uids, owners, finalizers, status, nodes of pods. Volumes
   with claims become empty ones, because the trace has no volumes.
2. Pods of Jobs and CronJobs, and pods without a controller, run as long as the pods of this owner that finished in the
   trace, on average; without such pods, until they are deleted.
3. Namespaces, priority classes and runtime classes that objects name exist from the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from mooring.api.document import Document
from mooring.api.kinds import POD
from mooring.api.well_known import DEPLOYMENT_REVISION
from mooring.cluster.clone import clone_body, implied_objects
from mooring.simulator.cluster_objects import RUN_FOR, duration_text, priority_class_name
from mooring.simulator.simkube.trace import CLAIMS, SimkubeTrace, identity
from mooring.simulator.workload import FOREVER_S

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
        {"name": each["name"], "emptyDir": {}} if any(source in each for source in CLAIMS) else each
        for each in spec.get("volumes") or ()
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
