"""The pods of a SimKube trace, for the engine level.

1. Pods of a kind with replicas (Deployment, ReplicaSet, StatefulSet, and custom kinds with `podSpecTemplatePaths`)
   arrive when the object is applied or scaled up, and end when it is scaled down, newest first, or deleted. A new
   template replaces all of them.
2. Pods of a Job or CronJob, and pods without an owner, arrive and end as their lifecycles say. Without lifecycles a
   Job has `parallelism` pods from its creation on, and a CronJob has none.
3. DaemonSets, and kinds without a pod template, have no pods here; the log names them.
4. Claims are dropped from pods: the trace has no volumes. So is what binds a pod to a node of the traced cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from mooring.api.decode import convert_as
from mooring.api.views.pod import Pod
from mooring.simulator.simkube.trace import CLAIMS, SimkubeTrace, identity, log_left_out
from mooring.simulator.workload import FOREVER_S, Arrival, Arrivals, PodTypes

REPLICAS_MAX = 1_000_000
"""Pods of one object."""
SCALED_KINDS = ("Deployment", "ReplicaSet", "StatefulSet")
RUN_TO_COMPLETION = ("Job", "CronJob")
POD_GVK = "v1.Pod"
TEMPLATE = "/spec/template"
CRON_JOB_TEMPLATE = "/spec/jobTemplate/spec/template"


@dataclass(slots=True)
class _RunningPod:
    at_s: float
    pod: Pod


@dataclass(slots=True)
class _Workload:
    """An applied object with pods."""

    owner: str
    """What creates its pods again; empty for a pod of its own."""
    templates: tuple[object, ...] = ()
    created: int = 0
    running: list[_RunningPod] = field(default_factory=list)


def simkube_workload(path: Path, *, logs_others: bool = True) -> Arrivals:
    """`logs_others`: log which objects have no pods here. Raises `ScenarioError`."""
    reader = _SimkubeReader(SimkubeTrace(path))
    arrivals = reader.arrivals()
    if logs_others:
        log_left_out(path, reader.left_out, "objects without pods here")
    return Arrivals(arrivals, PodTypes(arrival.pod for arrival in arrivals))


class _SimkubeReader:
    def __init__(self, trace: SimkubeTrace) -> None:
        self._trace = trace
        self._workloads: dict[tuple[str, str], _Workload] = {}
        self._arrivals: list[Arrival] = []
        self.left_out: dict[str, int] = {}

    def arrivals(self) -> list[Arrival]:
        for event in self._trace.events():
            with self._trace.errors_of(event.number):
                for document in event.applied:
                    self._apply(document, event.at_s)
                for document in event.deleted:
                    self._delete(document, event.at_s)
        for workload in self._workloads.values():
            for pod in workload.running:
                self._arrivals.append(Arrival(pod.at_s, pod.pod, owner=workload.owner))
        self._arrivals.sort(key=lambda arrival: arrival.at_s)
        return self._arrivals

    def _apply(self, document: Mapping[str, Any], at_s: float) -> None:
        gvk, key = identity(document)
        kind, spec = document["kind"], document.get("spec") or {}
        lifecycles = self._trace.lifecycles(gvk, key)
        known = self._workloads.get((gvk, key))
        if kind == "Pod":
            if known is None:
                template = {"metadata": {"labels": document["metadata"].get("labels")}, "spec": spec}
                self._from_lifecycles(gvk, key, template, lifecycles or [(at_s, FOREVER_S)])
            return
        templates = [found for path in self._template_paths(gvk, kind) for found in _at(document, path.split("/")[1:])]
        if not templates:
            if known is None:
                self.left_out[kind] = self.left_out.get(kind, 0) + 1
            return
        if kind in RUN_TO_COMPLETION:
            if known is None:
                parallel = int(spec.get("parallelism") or 1) if kind == "Job" else 0
                self._from_lifecycles(gvk, key, templates[0], lifecycles or [(at_s, FOREVER_S)] * parallel)
            return
        replicas = spec.get("replicas")
        self._scale(gvk, key, templates, 1 if replicas is None else int(replicas), at_s)

    def _template_paths(self, gvk: str, kind: str) -> list[str]:
        if kind == "CronJob":
            return [CRON_JOB_TEMPLATE]
        if kind in SCALED_KINDS or kind == "Job":
            return [TEMPLATE]
        return [] if kind == "DaemonSet" else self._trace.tracked_templates(gvk)

    def _from_lifecycles(self, gvk: str, key: str, template: Any, lifecycles: Sequence[tuple[float, float]]) -> None:
        """One pod for each lifecycle. Those without an end live until the object is deleted."""
        workload = self._workloads[gvk, key] = _Workload(key if gvk != POD_GVK else "")
        is_owned = gvk != POD_GVK
        first = _pod(template, key, is_owned=is_owned)
        for at_s, lifetime_s in lifecycles:
            pod = _numbered(first, workload.created) if is_owned else first
            workload.created += 1
            if lifetime_s == FOREVER_S:
                workload.running.append(_RunningPod(at_s, pod))
            else:
                self._arrivals.append(Arrival(at_s, pod, lifetime_s, owner=workload.owner))

    def _scale(self, gvk: str, key: str, templates: list[Any], replicas: int, at_s: float) -> None:
        if not 0 <= replicas <= REPLICAS_MAX:
            raise ValueError(f"{key} has {replicas} replicas; at most {REPLICAS_MAX}")
        workload = self._workloads.setdefault((gvk, key), _Workload(key))
        content = tuple(msgspec.json.encode(template) for template in templates)
        if workload.templates != content:
            self._end(workload, len(workload.running), at_s)
            workload.templates = content
        wanted = replicas * len(templates)
        self._end(workload, len(workload.running) - wanted, at_s)
        firsts = [_pod(template, key, is_owned=True) for template in templates]
        while len(workload.running) < wanted:
            pod = _numbered(firsts[len(workload.running) % len(firsts)], workload.created)
            workload.running.append(_RunningPod(at_s, pod))
            workload.created += 1

    def _end(self, workload: _Workload, count: int, at_s: float) -> None:
        for _ in range(count):
            pod = workload.running.pop()
            self._arrivals.append(Arrival(pod.at_s, pod.pod, owner=workload.owner, deleted_s=at_s))

    def _delete(self, document: Mapping[str, Any], at_s: float) -> None:
        gvk, key = identity(document)
        workload = self._workloads.pop((gvk, key), None)
        if workload is not None:
            self._end(workload, len(workload.running), at_s)


def _at(document: Any, steps: Sequence[str]) -> Iterator[Any]:
    """What is at a path; `*` stands for all items of a list."""
    if not steps:
        yield document
    elif steps[0] == "*" and isinstance(document, list):
        for item in document:
            yield from _at(item, steps[1:])
    elif isinstance(document, Mapping) and steps[0] in document:
        yield from _at(document[steps[0]], steps[1:])


def _pod(template: Mapping[str, Any], key: str, *, is_owned: bool) -> Pod:
    """A pending pod of an object, or the object itself."""
    namespace, _, name = key.rpartition("/")
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace or "default",
        "labels": (template.get("metadata") or {}).get("labels") or {},
    }
    if is_owned:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": key, "controller": True}
        metadata["ownerReferences"] = [owner]
    spec = {field: value for field, value in template["spec"].items() if field != "nodeName"}
    spec["volumes"] = [each for each in spec.get("volumes") or () if not any(source in each for source in CLAIMS)]
    return convert_as(Pod, {"metadata": metadata, "spec": spec})


def _numbered(pod: Pod, number: int) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, name=f"{pod.metadata.name}-{number}"))
