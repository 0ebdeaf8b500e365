"""SimKube's traces (`.sktrace`, version 2): objects that were applied and deleted, and the life cycles of pods.

The file is msgpack:

    {"version": 2, "config": {"trackedObjects": …}, "events": [{"ts", "applied_objs", "deleted_objs"}, …],
     "index": …, "pod_lifecycles": {(owner's GVK, owner's namespaced name): {pod hash: [lifecycle, …]}}}

A lifecycle is `{"Finished": [start, end]}`, `{"Running": start}` or `"Empty"`. Times are Unix seconds; here they are
seconds since the first event. Events are decoded one by one from the mapped file. An error has the number of the event.

The pods of a trace, for the engine level:

1. Pods of a kind with replicas (Deployment, ReplicaSet, StatefulSet, and custom kinds with `podSpecTemplatePaths`)
   arrive when the object is applied or scaled up, and end when it is scaled down, newest first, or deleted. A new
   template replaces all of them.
2. Pods of a Job or CronJob, and pods without an owner, arrive and end as their lifecycles say. Without lifecycles a
   Job has `parallelism` pods from its creation on, and a CronJob has none.
3. DaemonSets, and kinds without a pod template, have no pods here; the log names them.
4. Claims are dropped from pods: the trace has no volumes. So is what binds a pod to a node of the traced cluster.
"""

from __future__ import annotations

import logging
import mmap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from mooring.api.decode import convert_as
from mooring.api.views.pod import Pod
from mooring.simulator.errors import ScenarioError
from mooring.simulator.workload import FOREVER_S, Arrival, Arrivals, PodTypes

logger = logging.getLogger(__name__)

VERSION = 2
CLAIMS = ("persistentVolumeClaim", "ephemeral")
"""Sources of volumes that need a claim."""


class _TrackedObject(msgspec.Struct, rename="camel"):
    pod_spec_template_paths: list[str] | None = None


class _TracerConfig(msgspec.Struct, rename="camel"):
    tracked_objects: dict[str, _TrackedObject] = {}


class _TraceFile(msgspec.Struct):
    version: int
    events: list[msgspec.Raw]
    config: _TracerConfig = msgspec.field(default_factory=_TracerConfig)
    pod_lifecycles: dict[tuple[str, str], dict[int, list[dict[str, Any] | str]]] = {}


class _RawEvent(msgspec.Struct):
    ts: int
    applied_objs: list[dict[str, Any]] = []
    deleted_objs: list[dict[str, Any]] = []


class SimkubeEvent(NamedTuple):
    number: int
    at_s: float
    applied: Sequence[Mapping[str, Any]]
    deleted: Sequence[Mapping[str, Any]]


class SimkubeTrace:
    """A trace, read again for each iteration over its events."""

    def __init__(self, path: Path) -> None:
        """Raises `ScenarioError`."""
        self.path = path
        try:
            with path.open("rb") as file:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # closed when the last event is gone
        except (OSError, ValueError) as error:  # mmap raises ValueError for an empty file
            text = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise ScenarioError(str(path), f"cannot be read: {text}") from error
        self._file = _decoded(path, data)
        first = next(self._raw_events(), None)
        self.begin_s = first[1].ts if first is not None else 0
        """The time of the first event."""

    def events(self) -> Iterator[SimkubeEvent]:
        """Raises `ScenarioError`."""
        last_s = self.begin_s
        for number, event in self._raw_events():
            if event.ts < last_s:
                raise ScenarioError(f"{self.path}: event {number}", f"ts decreases from {last_s} to {event.ts}")
            last_s = event.ts
            yield SimkubeEvent(number, float(event.ts - self.begin_s), event.applied_objs, event.deleted_objs)

    def _raw_events(self) -> Iterator[tuple[int, _RawEvent]]:
        decoder = msgspec.msgpack.Decoder(_RawEvent)
        for number, raw in enumerate(self._file.events, 1):
            try:
                yield number, decoder.decode(raw)
            except (msgspec.DecodeError, UnicodeError) as error:
                raise ScenarioError(f"{self.path}: event {number}", f"cannot be read: {error}") from error

    @contextmanager
    def errors_of(self, number: int) -> Iterator[None]:
        """Objects that are not as they should be are an error of their event."""
        where = f"{self.path}: event {number}"
        try:
            yield
        except KeyError as error:
            raise ScenarioError(where, f"an object has no {error.args[0]}") from error
        except (TypeError, AttributeError, ValueError) as error:
            raise ScenarioError(where, f"an object cannot be read: {error}") from error

    def tracked_templates(self, gvk: str) -> list[str]:
        """Where objects of a custom kind have their pod templates."""
        tracked = self._file.config.tracked_objects.get(gvk)
        return (tracked.pod_spec_template_paths if tracked is not None else None) or []

    def lifecycles(self, gvk: str, key: str) -> list[tuple[float, float]]:
        """When each pod of an owner started, and how long it ran."""
        found: list[tuple[float, float]] = []
        begin_s = self.begin_s
        for lifecycles in self._file.pod_lifecycles.get((gvk, key), {}).values():
            for lifecycle in lifecycles:
                match lifecycle:
                    case {"Finished": [int() as start_s, int() as end_s]}:
                        found.append((max(float(start_s - begin_s), 0.0), float(max(end_s - start_s, 0))))
                    case {"Running": int() as start_s}:
                        found.append((max(float(start_s - begin_s), 0.0), FOREVER_S))
                    case "Empty":
                        continue
                    case _:
                        raise ValueError(f"the lifecycle {lifecycle!r} of {key} is none")
        return sorted(found)


def _decoded(path: Path, data: mmap.mmap) -> _TraceFile:
    try:
        trace = msgspec.msgpack.decode(data, type=_TraceFile)
    except (msgspec.DecodeError, UnicodeError) as error:
        text = f"is no SimKube trace: {error}; wanted version {VERSION} of .sktrace, which is msgpack"
        raise ScenarioError(str(path), text) from error
    if trace.version != VERSION:
        raise ScenarioError(str(path), f"has version {trace.version}; wanted {VERSION}")
    return trace


def identity(document: Mapping[str, Any]) -> tuple[str, str]:
    """Group, version and kind as SimKube writes them, and the namespaced name."""
    metadata = document["metadata"]
    namespace = metadata.get("namespace") or ""
    return f"{document['apiVersion']}.{document['kind']}", f"{namespace}/{metadata['name']}".lstrip("/")


def log_left_out(path: Path, kinds: Mapping[str, int], reason: str) -> None:
    if kinds:
        _log_once(path, reason, ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())))


@cache
def _log_once(path: Path, reason: str, kinds: str) -> None:
    """Once in a process, which reads the trace for each policy and seed."""
    logger.warning("%s: %s: %s", path, reason, kinds)


# --- pods of a trace ------------------------------------------------------------------------------------------


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
    spec["volumes"] = [volume for volume in spec.get("volumes") or () if not any(source in volume for source in CLAIMS)]
    return convert_as(Pod, {"metadata": metadata, "spec": spec})


def _numbered(pod: Pod, number: int) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, name=f"{pod.metadata.name}-{number}"))
