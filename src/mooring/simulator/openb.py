"""The OpenB trace: nodes with GPUs, and pods that ask for GPUs or shares of one.

    nodes   sn,cpu_milli,memory_mib,gpu,model
    pods    name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec,…,creation_time,deletion_time,…]

GPU count, GPU thousandths and models become labels (`mooring.simulator.gpus`), because labels belong to the signature
of a pod. Columns are found by name; a missing one, a number that is none, and creation times that decrease are errors
with file and line.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from mooring.api.decode import convert_as
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.simulator.csv_lines import csv_lines
from mooring.simulator.go_random import GoRandom
from mooring.simulator.gpus import GPU_COUNT, GPU_MILLI, GPU_MODEL, GPU_MODELS, MILLI, models_label
from mooring.simulator.workload import FOREVER_S, Arrival, Arrivals, PodTypes, pod_view

PODS_PER_NODE = 1001
"""As in the simulator of the trace's authors."""
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
TIME_COLUMNS = ("creation_time", "deletion_time")


@dataclass(frozen=True, slots=True)
class TracePod:
    """A line of a pod list."""

    view: Pod
    gpu_milli: int
    """GPU thousandths in total."""
    one_gpu_milli: int
    created_s: float
    deleted_s: float


def read_nodes(path: Path) -> list[Node]:
    """The nodes of a list, in its order. Raises `ScenarioError`."""
    nodes: list[Node] = []
    seen: set[str] = set()
    for line in csv_lines(path, NODE_COLUMNS):
        name, count = line.text("sn"), line.integer("gpu")
        if name in seen:
            raise line.error(f"node {name} is there twice")
        seen.add(name)
        labels = {GPU_COUNT: str(count), GPU_MODEL: line.optional("model")} if count else {}
        allocatable = {
            "cpu": f"{line.integer('cpu_milli')}m",
            "memory": f"{line.integer('memory_mib')}Mi",
            "pods": str(PODS_PER_NODE),
        }
        document = {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": allocatable}}
        nodes.append(convert_as(Node, document))
    return nodes


def trace_random(seed: int) -> GoRandom:
    """The numbers of a seed, without the first one, which the simulator of the trace's authors writes to its log."""
    random = GoRandom(seed)
    random.int63()
    return random


def renamed(nodes: list[Node], random: GoRandom) -> list[Node]:
    """The nodes with a random number in front of their names, so that the order of names differs between seeds."""
    ordered = sorted(nodes, key=lambda node: node.metadata.name)
    return [
        replace(node, metadata=replace(node.metadata, name=f"{number:04}-{node.metadata.name}"))
        for node, number in zip(ordered, random.permutation(len(ordered)), strict=True)
    ]


def read_pods(path: Path, *, with_times: bool) -> list[TracePod]:
    """The pods of a list, in its order. Raises `ScenarioError`."""
    pods: list[TracePod] = []
    last_s = 0.0
    for line in csv_lines(path, (*POD_COLUMNS, *TIME_COLUMNS) if with_times else POD_COLUMNS):
        count, milli = line.integer("num_gpu"), line.integer("gpu_milli")
        if count and not 0 < milli <= MILLI:
            raise line.error(f"gpu_milli is {milli}; wanted 1 to {MILLI}")
        if count > 1 and milli != MILLI:
            raise line.error(f"{count} GPUs of {milli} thousandths; a share is of one GPU")
        labels = {GPU_COUNT: str(count), GPU_MILLI: str(milli)} if count else {}
        models = line.optional("gpu_spec")
        if models and count:
            labels[GPU_MODELS] = models_label(models.split("|"))
        requests = {"cpu": f"{line.integer('cpu_milli')}m", "memory": f"{line.integer('memory_mib')}Mi"}
        created_s = float(line.integer("creation_time")) if with_times else 0.0
        deleted_s = float(line.integer("deletion_time")) if with_times else FOREVER_S
        if created_s < last_s:
            raise line.error(f"creation_time decreases from {last_s:.0f} to {created_s:.0f}; sort the file by it")
        if deleted_s < created_s:
            raise line.error(f"deletion_time {deleted_s:.0f} is before creation_time {created_s:.0f}")
        last_s = created_s
        view = pod_view(line.text("name"), requests, labels=labels)
        pods.append(TracePod(view, count * milli, milli if count else 0, created_s, deleted_s))
    return pods


def replayed_workload(pods: list[TracePod]) -> Arrivals:
    """Pods arrive at their creation times and run as long as in the trace."""
    begin_s = pods[0].created_s if pods else 0.0
    arrivals = [
        Arrival(pod.created_s - begin_s, pod.view, pod.deleted_s - pod.created_s, demand=pod.gpu_milli) for pod in pods
    ]
    return Arrivals(arrivals, PodTypes(pod.view for pod in pods))


def inflated_workload(pods: list[TracePod], capacity_milli: int, demand: float, random: GoRandom) -> Arrivals:
    """Pods only arrive, one per second, until the demand for GPUs is `demand` times the capacity.

    The list in random order, and then pods drawn from it with replacement; of a longer list random pods are removed.
    Numbers are drawn in the order in which the simulator of the trace's authors draws them.
    """
    ordered = sorted(pods, key=lambda pod: pod.view.metadata.name)
    limit, total = demand * capacity_milli, sum(pod.gpu_milli for pod in ordered)
    chosen = [ordered[place] for place in random.shuffled(len(ordered))]
    while total > limit:
        total -= chosen.pop(random.below(len(chosen))).gpu_milli
    while 0 < total < limit:
        pod = ordered[random.below(len(ordered))]
        if total + pod.one_gpu_milli > limit:
            break
        metadata = replace(pod.view.metadata, name=f"{pod.view.metadata.name}-{len(chosen)}")
        chosen.append(dataclasses.replace(pod, view=replace(pod.view, metadata=metadata)))
        total += pod.gpu_milli
    arrivals = [Arrival(float(second), pod.view, demand=pod.gpu_milli) for second, pod in enumerate(chosen)]
    return Arrivals(arrivals, PodTypes(pod.view for pod in pods))
