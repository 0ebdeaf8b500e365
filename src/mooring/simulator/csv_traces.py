"""Traces as CSV files: OpenB and Alibaba DLRM.

Columns are found by name; others are allowed. An error names file and line.

OpenB has nodes with GPUs, and pods that ask for GPUs or shares of one:

    nodes   sn,cpu_milli,memory_mib,gpu,model
    pods    name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec,…,creation_time,deletion_time,…]

1. GPU count, GPU thousandths and models become labels (`mooring.simulator.gpus`), because labels belong to the
   signature of a pod.
2. A missing column, a number that is none, and creation times that decrease are errors.

The DLRM trace of 2025 is a month of inference services on CPU nodes and on GPU nodes. It lists no nodes:

    instance_sn,role,app_name,cpu_request,…,gpu_request,…,rdma_request,…,memory_request,…,disk_request,…,
    max_instance_per_node,creation_time,scheduled_time,deletion_time

3. CPU is in cores, memory and disk are in GiB, RDMA in percent of a network card, times in seconds since the start. An
   instance without a creation time was there before, and one without a deletion time stays.
4. GPUs and shares of network cards are extended resources; nodes must offer them.
5. The application becomes the label `app`, the role (CN or HN) the label `role`, and the largest number of instances of
   an application per node a label, for a plugin: Kubernetes has no field for it.
6. The file is not in order of time; arrivals are.
"""

from __future__ import annotations

import csv
import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from mooring.api.decode import convert_as
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.simulator.errors import ScenarioError
from mooring.simulator.go_random import GoRandom
from mooring.simulator.gpus import GPU_COUNT, GPU_MILLI, GPU_MODEL, GPU_MODELS, MILLI, models_label
from mooring.simulator.workload import FOREVER_S, Arrival, Arrivals, PodTypes, pod_view


class CsvLine:
    """One line."""

    def __init__(self, path: Path, number: int, cells: Mapping[str, str]) -> None:
        self._path = path
        self._number = number
        self._cells = cells

    def text(self, column: str) -> str:
        """A text that is there."""
        value = self._cells[column]
        if not value:
            raise self.error(f"{column} is empty")
        return value

    def optional(self, column: str) -> str:
        """A text that may be empty, in a column that may be missing."""
        return self._cells.get(column) or ""

    def number(self, column: str, *, least: float = 0.0) -> float:
        text = self._cells[column]
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise self.error(f"{column} is {text!r}; wanted a number")
        if number < least:
            raise self.error(f"{column} is {text}; wanted {least:g} or more")
        return number

    def integer(self, column: str, *, least: int = 0) -> int:
        return int(self.number(column, least=least))

    def optional_number(self, column: str) -> float | None:
        """A number; None for an empty cell or NaN."""
        return None if self._cells[column].lower() in ("", "nan") else self.number(column)

    def error(self, text: str) -> ScenarioError:
        return ScenarioError(f"{self._path}:{self._number}", text)


def csv_lines(path: Path, columns: tuple[str, ...]) -> Iterator[CsvLine]:
    """The lines after the header, which must have these columns. Raises `ScenarioError`."""
    number = 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, None)
            if header is None:
                raise ScenarioError(f"{path}:1", f"is empty; wanted the columns {', '.join(columns)}")
            missing = [column for column in columns if column not in header]
            if missing:
                raise ScenarioError(f"{path}:1", f"has no column {', '.join(missing)}; found {', '.join(header)}")
            for cells in reader:
                number = reader.line_num
                if not cells:
                    continue
                if len(cells) != len(header):
                    raise ScenarioError(f"{path}:{number}", f"has {len(cells)} cells; wanted {len(header)}")
                yield CsvLine(path, number, dict(zip(header, cells, strict=True)))
    except csv.Error as error:
        raise ScenarioError(f"{path}:{number + 1}", f"is no line of CSV: {error}") from error
    except (OSError, UnicodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise ScenarioError(str(path), f"cannot be read: {what}") from error


# --- OpenB ----------------------------------------------------------------------------------------------------


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


def read_openb_nodes(path: Path) -> list[Node]:
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


def read_openb_pods(path: Path, *, with_times: bool) -> list[TracePod]:
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


# --- DLRM -----------------------------------------------------------------------------------------------------


GPU = "nvidia.com/gpu"
RDMA_PERCENT = "mooring.dev/rdma-percent"
MAX_PER_NODE = "mooring.dev/max-per-node"
"""Label: how many pods of the application a node may have."""
ROLES = ("CN", "HN")
COLUMNS = (
    "instance_sn",
    "role",
    "app_name",
    "cpu_request",
    "gpu_request",
    "rdma_request",
    "memory_request",
    "disk_request",
    "max_instance_per_node",
    "creation_time",
    "scheduled_time",
    "deletion_time",
)


def dlrm_workload(path: Path, role_label: str) -> Arrivals:
    """Raises `ScenarioError`. With `role_label`, a pod runs only on nodes whose label of that name is its role."""
    arrivals: list[Arrival] = []
    seen: set[str] = set()
    for line in csv_lines(path, COLUMNS):
        name = line.text("instance_sn").replace("_", "-")
        if name in seen:
            raise line.error(f"{line.text('instance_sn')} is there twice")
        seen.add(name)
        created_s, lifetime_s = _dlrm_times(line)
        app = line.text("app_name").replace("_", "-")
        arrivals.append(Arrival(created_s, _dlrm_pod(line, name, app, role_label), lifetime_s, owner=app))
    arrivals.sort(key=lambda arrival: arrival.at_s)
    return Arrivals(arrivals, PodTypes(arrival.pod for arrival in arrivals))


def _dlrm_times(line: CsvLine) -> tuple[float, float]:
    """When an instance is created, and how long it runs after it was scheduled."""
    created_s, scheduled_s, deleted_s = (
        line.optional_number(column) for column in ("creation_time", "scheduled_time", "deletion_time")
    )
    begin_s = created_s if created_s is not None else 0.0
    placed_s = scheduled_s if scheduled_s is not None else begin_s
    if placed_s < begin_s:
        raise line.error(f"scheduled_time {placed_s:g} is before creation_time {begin_s:g}")
    if deleted_s is not None and deleted_s < placed_s:
        raise line.error(f"deletion_time {deleted_s:g} is before {placed_s:g}, when the instance was scheduled")
    return begin_s, deleted_s - placed_s if deleted_s is not None else FOREVER_S


def _dlrm_pod(line: CsvLine, name: str, app: str, role_label: str) -> Pod:
    role = line.text("role")
    if role not in ROLES:
        raise line.error(f"role is {role!r}; wanted {' or '.join(ROLES)}")
    most = line.integer("max_instance_per_node", least=-1)
    labels = {"app": app, "role": role}
    if most > 0:
        labels[MAX_PER_NODE] = str(most)
    requests = {
        "cpu": f"{round(1000 * line.number('cpu_request'))}m",
        "memory": f"{round(1024 * line.number('memory_request'))}Mi",
        "ephemeral-storage": f"{round(1024 * line.number('disk_request'))}Mi",
    }
    for resource, column in ((GPU, "gpu_request"), (RDMA_PERCENT, "rdma_request")):
        amount = line.integer(column)
        if amount:
            requests[resource] = str(amount)
    selector = {role_label: role} if role_label else None
    return pod_view(name, requests, labels=labels, owner=app, node_selector=selector)
