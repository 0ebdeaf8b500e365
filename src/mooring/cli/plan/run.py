"""One run of `mooring plan`: read the cluster and the manifests, build an engine, ask the planner.

Takes the options of the command and returns a `PlanResult`; notes about the input are passed to a callback.

 1. The pods of the manifests, and those of their workloads, are what is asked about. Pending pods of the cluster come
    before them if their priority is as high: they wait longer.
 2. A manifest may repeat an object of the cluster, and replaces it, as if it were applied.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from msgspec.structs import replace

from mooring.api.decode import decode_as
from mooring.api.errors import LabelSelectorError, ObjectError
from mooring.api.labels import parse_selector
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Deployment, ReplicaSet, ReplicationController, StatefulSet
from mooring.cli.cluster_source.assemble import (
    Note,
    SourceCluster,
    SourceOptions,
    assemble,
    build_engine,
    chosen_pod,
    in_queue_order,
    pending_pods,
    read_sources,
)
from mooring.cli.errors import InputError, Problem, input_error
from mooring.cli.manifests.kinds import WORKLOADS
from mooring.cli.manifests.read import ManifestObject, Manifests, find_sources
from mooring.cli.terminal import ProgressBar, counted
from mooring.kit.clock import Clock, SystemClock
from mooring.scheduler.engine import Engine
from mooring.scheduler.plan.fix import uncordoned
from mooring.scheduler.plan.new_objects import cluster_objects_of_nodes, objects_of_nodes
from mooring.scheduler.plan.planner import Planner
from mooring.scheduler.plan.request import PRICE_MAX, NodeType, PlanError, PlanRequest, PlanResult, Question

SCALABLE = (Deployment, ReplicaSet, ReplicationController, StatefulSet)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions(SourceOptions):
    """What is requested on the command line."""

    manifests: tuple[str, ...] = ()
    config: str | None = None
    plugins: tuple[str, ...] = ()
    replicas: int | None = None
    removed: tuple[str, ...] = ()
    selector: str = ""
    examples: tuple[str, ...] = ()
    """`NODE|FILE[=PRICE]`"""
    count: int | None = None
    fix_pod: str = ""
    is_capacity: bool = False
    ratio: tuple[int, ...] = ()
    is_defragment: bool = False
    for_pod: str = ""
    moves_max: int = 50
    uncordoned: tuple[str, ...] = ()
    """Nodes that are planned as if they were not cordoned."""

    @property
    def pod_files(self) -> tuple[str, ...]:
        """The files with the pods that are asked about."""
        return (*self.manifests, self.for_pod) if self.for_pod else self.manifests


def run_plan(options: PlanOptions, stdin: BinaryIO, note: Note, clock: Clock) -> PlanResult:
    """Reads, plans and returns the result. Raises `InputError`."""
    now_s = clock.wall_s()
    engine = build_engine(options.config, options.plugins, options.seed, now_s, note, best_nodes_max=1)
    dump = read_sources(find_sources(options.files, "--cluster"), stdin)
    manifests_of_pods = read_sources(find_sources(options.pod_files, "--for" if options.for_pod else "MANIFEST"), stdin)
    if options.replicas is not None:
        manifests_of_pods.objects = [_scaled(entry, options.replicas) for entry in manifests_of_pods.objects]
    source = assemble(
        _together(dump, manifests_of_pods),
        options,
        now_s=now_s,
        clock=clock,
        note=note,
        file_option="--cluster",
        other_files=options.pod_files,
    )
    pods = _requested_pods(source, manifests_of_pods)
    if options.pod_files and not pods:
        raise input_error("found no pods to plan: the manifests hold none, or all their pods have a node already")
    try:
        for view in (*source.cluster.objects, *source.cluster.placed):
            if isinstance(view, Node) and view.metadata.name in options.uncordoned:
                view = uncordoned(view)
            engine.put(view)
        return _plan(options, engine, source, pods)
    except (ObjectError, PlanError) as error:
        raise input_error(str(error)) from error


def _plan(options: PlanOptions, engine: Engine, source: SourceCluster, pods: Sequence[Pod]) -> PlanResult:
    requested_keys = {pod.key for pod in pods}
    pending = pending_pods(engine, (pod for pod in source.cluster.pending if pod.key not in requested_keys))
    request = _request(options, engine, source, pods)
    with ProgressBar("planning", max(len(pending) + len(pods), 1), SystemClock()) as progress:
        return Planner(engine, lambda: pending).plan(request, lambda: progress.advance(1))


def _request(options: PlanOptions, engine: Engine, source: SourceCluster, pods: Sequence[Pod]) -> PlanRequest:
    seed = options.seed
    if options.removed or options.selector:
        return PlanRequest(Question.REMOVE_NODES, seed, tuple(pods), nodes=_removed(options, engine))
    if options.examples:
        types = tuple(_node_type(text, options.count, engine) for text in options.examples)
        return PlanRequest(Question.ADD_NODES, seed, tuple(pods), node_types=types)
    if options.fix_pod:
        pod = chosen_pod(options.fix_pod, source.cluster, source.namespace)
        if pod.spec.node_name:
            raise input_error(f"pod {pod.key} is on node {pod.spec.node_name} already")
        return PlanRequest(Question.FIX, seed, (pod,))
    if options.is_capacity:
        pods = _pod_types(source, pods)
        if options.ratio and len(options.ratio) != len(pods):
            numbers, required = counted(len(options.ratio), "number"), counted(len(pods), "pod")
            raise input_error(f"--ratio has {numbers} for {required}; wanted one for each")
        return PlanRequest(Question.CAPACITY, seed, tuple(pods), ratio=options.ratio)
    if options.is_defragment:
        if len(pods) > 1:
            raise input_error(f"found {len(pods)} pods that are not placed; --for makes room for one", options.for_pod)
        return PlanRequest(Question.DEFRAGMENT, seed, tuple(pods), moves_max=options.moves_max)
    return PlanRequest(Question.PLACE, seed, tuple(pods))


def _pod_types(source: SourceCluster, pods: Sequence[Pod]) -> list[Pod]:
    """One pod for each workload, with its name, and the pods without one."""
    found: dict[str, Pod] = {}
    for pod in pods:
        workload = source.cluster.workload_of.get(pod.key)
        name = workload.rpartition("/")[2] if workload is not None else pod.metadata.name
        found.setdefault(workload or pod.key, replace(pod, metadata=replace(pod.metadata, name=name)))
    return list(found.values())


def _together(dump: Manifests, manifests_of_pods: Manifests) -> Manifests:
    return Manifests(
        objects=[*dump.objects, *manifests_of_pods.objects],
        skipped=dump.skipped + manifests_of_pods.skipped,
        kinds=dump.kinds | manifests_of_pods.kinds,
        policies=[*dump.policies, *manifests_of_pods.policies],
    )


def _requested_pods(source: SourceCluster, manifests_of_pods: Manifests) -> list[Pod]:
    """The pending pods of the manifests and of their workloads."""
    named = {
        (entry.view.kind, entry.view.metadata.namespace or "default", entry.view.metadata.name)
        for entry in manifests_of_pods.objects
    }
    workloads = {f"{kind} {namespace}/{name}" for kind, namespace, name in named}
    return [
        pod
        for pod in in_queue_order(source.cluster.pending)
        if (pod.kind, pod.metadata.namespace, pod.metadata.name) in named
        or source.cluster.workload_of.get(pod.key) in workloads
    ]


def _scaled(entry: ManifestObject, replicas: int) -> ManifestObject:
    view = entry.view
    if not isinstance(view, SCALABLE):
        if isinstance(view, WORKLOADS):
            raise InputError([Problem(entry.origin.at(), f"{view.kind} {view.metadata.name} has no replicas to set")])
        return entry
    plain: dict[str, Any] = msgspec.json.decode(view.raw)
    plain["spec"] = {**(plain.get("spec") or {}), "replicas": replicas}
    raw = msgspec.json.encode(plain)
    body = msgspec.Raw(raw) if entry.body is not None else None
    return ManifestObject(decode_as(type(view), raw), entry.origin, body)


def _removed(options: PlanOptions, engine: Engine) -> tuple[str, ...]:
    names = list(options.removed)
    if options.selector:
        try:
            matcher = parse_selector(options.selector)
        except LabelSelectorError as error:
            raise input_error(f"--selector: {error}") from error
        nodes = [node for node in engine.columns.nodes if node is not None]
        found = sorted(node.metadata.name for node in nodes if matcher.matches(node.metadata.labels))
        if not found:
            raise input_error(f"no node has the labels {options.selector}")
        names += found
    return tuple(dict.fromkeys(names))


def _node_type(text: str, count: int | None, engine: Engine) -> NodeType:
    """`NODE|FILE[=PRICE]`"""
    name, separator, price_text = text.rpartition("=")
    if not separator:
        name, price_text = text, "1"
    try:
        price = float(price_text)
    except ValueError:
        raise input_error(f"--add-node-like {text}: {price_text!r} is no price") from None
    if not 0 <= price <= PRICE_MAX:
        raise input_error(f"--add-node-like {text}: wanted a price from 0 to {PRICE_MAX:.0g}")
    row = engine.columns.row_of.get(name)
    node = engine.columns.nodes[row] if row is not None else None
    if node is not None:
        return NodeType(name, node, price, count, cluster_objects_of_nodes(engine.columns, [name])[name])
    if not Path(name).exists():
        raise input_error(f"--add-node-like {name}: the cluster has no such node, and there is no such file")
    views = [entry.view for entry in read_sources(find_sources([name], "--add-node-like"), io.BytesIO()).objects]
    nodes = [view for view in views if isinstance(view, Node)]
    if len(nodes) != 1:
        raise input_error(f"found {len(nodes)} nodes; wanted one Node as an example", name)
    like = nodes[0].metadata.name
    return NodeType(like, nodes[0], price, count, objects_of_nodes(views, [like])[like])
