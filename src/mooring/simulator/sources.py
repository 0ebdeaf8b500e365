"""The cluster and the workload of a scenario, for one seed; and the nodes of pools, by number.

A dump has no history of pods that ended. Its arrival model takes the age of the pods of an owner for what it is in a
steady state: pods arrive at a constant rate, and run for times with an exponential distribution. Then the mean age of
the running pods is the mean lifetime, and the rate is their number divided by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from mooring.api.decode import convert_as
from mooring.api.errors import ObjectError
from mooring.api.load import load
from mooring.api.views.meta import ApiObject, controller_of
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod, PodStatus
from mooring.api.well_known import HOSTNAME, NODE_BOUND_OWNERS, TERMINAL_PHASES, ZONE
from mooring.kit.clock import TimestampError, parse_rfc3339
from mooring.kit.entropy import Entropy
from mooring.simulator.csv_traces import (
    dlrm_workload,
    inflated_workload,
    read_openb_nodes,
    read_openb_pods,
    renamed,
    replayed_workload,
    trace_random,
)
from mooring.simulator.errors import ScenarioError
from mooring.simulator.gpus import GPU_COUNT, MILLI
from mooring.simulator.scenario.fields import PodTemplatePart, Pool, Scenario, rate_per_h, seconds
from mooring.simulator.simkube import simkube_workload
from mooring.simulator.workload import (
    FOREVER_S,
    HOUR_S,
    Arrival,
    Arrivals,
    PodTypes,
    arrival_times,
    exponential,
    pod_view,
)

POOL = "mooring.dev/pool"
"""Label of the nodes of a pool."""


class NodePools:
    """Numbers the nodes that are added to pools."""

    def __init__(self, pools: Sequence[Pool]) -> None:
        self._pools = {pool.name: pool for pool in pools}
        self._created = {pool.name: pool.count for pool in pools}

    def add(self, pool: str, count: int) -> list[Node]:
        """The next nodes of a pool."""
        nodes = self.next_nodes(pool, count)
        self._created[pool] += count
        return nodes

    def next_nodes(self, pool: str, count: int) -> list[Node]:
        """The nodes that `add` would return."""
        first = self._created[pool]
        return [pool_node(self._pools[pool], number) for number in range(first, first + count)]

    def price_per_h(self, pools: Iterable[str]) -> float:
        """The price of nodes of these pools; an empty name is of no pool."""
        return sum(self._pools[pool].price for pool in pools if pool)


def pool_node(pool: Pool, number: int) -> Node:
    """The node with this number in a pool."""
    labels = {HOSTNAME: f"{pool.name}-{number}", POOL: pool.name, **pool.labels}
    if pool.zones:
        labels[ZONE] = f"zone-{number % pool.zones}"
    allocatable = {"cpu": pool.cpu, "memory": pool.memory, "pods": str(pool.pods), **pool.resources}
    metadata = {"name": f"{pool.name}-{number}", "labels": labels}
    return convert_as(Node, {"metadata": metadata, "status": {"allocatable": allocatable}})


# --- sources --------------------------------------------------------------------------------------------------


LIFETIME_S_MIN = 60.0
"""Shortest mean lifetime that is taken from a dump."""


@dataclass(slots=True)
class SimulationInput:
    """What a simulation starts with, and what arrives."""

    workload: Arrivals
    nodes: list[Node] = field(default_factory=list)
    objects: list[ApiObject] = field(default_factory=list)
    """Everything but nodes and pods."""
    placed: list[Arrival] = field(default_factory=list)
    """Pods that have a node at the start, with the time that is left to them."""


def read_input(scenario: Scenario, seed: int) -> SimulationInput:
    """Raises `ScenarioError`."""
    entropy, openb_random = Entropy(seed), trace_random(seed)
    cluster, workload = scenario.cluster, scenario.workload
    objects: list[ApiObject] = []
    pods: list[Pod] = []
    if cluster.openb is not None:
        nodes = read_openb_nodes(Path(cluster.openb.nodes))
    elif cluster.dump:
        nodes, pods, objects = _read_dump(cluster.dump)
    else:
        nodes = [pool_node(pool, number) for pool in cluster.pools for number in range(pool.count)]
    placed = [Arrival(0.0, pod) for pod in pods if pod.spec.node_name]
    pending = [Arrival(0.0, pod) for pod in pods if not pod.spec.node_name]
    if workload.openb is not None:
        demand = workload.openb.demand
        trace = read_openb_pods(Path(workload.openb.pods), with_times=demand is None)
        if demand is None:
            arrivals = replayed_workload(trace)
        else:
            arrivals = inflated_workload(trace, gpu_milli(nodes), demand, openb_random)
    elif workload.dlrm is not None:
        arrivals = dlrm_workload(Path(workload.dlrm.trace), workload.dlrm.role_label)
    elif workload.simkube is not None:
        arrivals = simkube_workload(Path(workload.simkube.trace), logs_others=scenario.level == "engine")
    elif workload.dump is not None:
        model = _sampled if workload.dump.arrivals == "sampled" else _replayed
        placed, arriving = model(placed, scenario.duration_s or 0.0, entropy.fork("arrivals"))
        arrivals = _in_order([*pending, *arriving], [arrival.pod for arrival in placed])
    else:
        arrivals = _in_order([*pending, *_from_groups(workload.pods, scenario.duration_s or 0.0, entropy)], [])
    if cluster.openb is not None and cluster.openb.shuffled:
        nodes = renamed(nodes, openb_random)
    return SimulationInput(arrivals, nodes, objects, placed)


def group_pod(group: PodTemplatePart, number: int) -> Pod:
    """The pod with this number of a group."""
    requests = {"cpu": group.cpu, "memory": group.memory}
    labels = {"app": group.name, **group.labels}
    owner = "" if group.bare else group.name
    return pod_view(f"{group.name}-{number}", requests, labels=labels, priority=group.priority, owner=owner)


def gpu_milli(nodes: Iterable[Node]) -> int:
    """GPU thousandths of nodes."""
    return MILLI * sum(int(node.metadata.labels.get(GPU_COUNT, "0")) for node in nodes)


def _from_groups(groups: Iterable[PodTemplatePart], duration_s: float, entropy: Entropy) -> list[Arrival]:
    found: list[Arrival] = []
    for group in groups:
        stream = entropy.fork(f"pods {group.name}")
        mean_s = seconds(group.lifetime) if group.lifetime else FOREVER_S
        times = [0.0] * (group.replicas or 0)
        if group.rate:
            times = list(arrival_times(rate_per_h(group.rate), duration_s, stream))
        template = group_pod(group, 0)
        for number, at_s in enumerate(times):
            pod = replace(template, metadata=replace(template.metadata, name=f"{group.name}-{number}"))
            lifetime_s = FOREVER_S if mean_s == FOREVER_S else exponential(mean_s, stream)
            found.append(Arrival(at_s, pod, lifetime_s, owner=group.name))
    return found


def _read_dump(file: str) -> tuple[list[Node], list[Pod], list[ApiObject]]:
    try:
        views = load(file)
    except ObjectError as error:
        raise ScenarioError("", str(error)) from error  # the text names the file
    except OSError as error:
        raise ScenarioError(file, f"cannot be read: {error.strerror or error}") from error
    nodes = [view for view in views if isinstance(view, Node)]
    if not nodes:
        raise ScenarioError(file, "has no nodes; wanted the output of kubectl get nodes,pods,… -A -o json")
    pods = [view for view in views if isinstance(view, Pod) and view.status.phase not in TERMINAL_PHASES]
    for pod in pods:
        try:
            if pod.metadata.creation_timestamp is not None:
                parse_rfc3339(pod.metadata.creation_timestamp)
        except TimestampError as error:
            raise ScenarioError(file, f"pod {pod.key}: creationTimestamp: {error}") from error
    others = [view for view in views if not isinstance(view, Node | Pod)]
    return nodes, pods, others


def _is_recreated(pod: Pod) -> bool:
    """Whether the arrival model has the pod: it has an owner, which creates pods again, and an age."""
    owner = controller_of(pod.metadata)
    is_owned = owner is not None and owner.kind not in NODE_BOUND_OWNERS
    return is_owned and pod.metadata.creation_timestamp is not None


def _owner_of(pod: Pod) -> str:
    owner = controller_of(pod.metadata)
    return f"{pod.metadata.namespace}/{owner.name}" if owner is not None else ""


def _created_s(pod: Pod) -> float:
    created = pod.metadata.creation_timestamp
    assert created is not None, f"{pod.key} is no pod of the arrival model"
    return parse_rfc3339(created)


def _pending(pod: Pod, name: str) -> Pod:
    metadata = replace(pod.metadata, name=name, uid="", resource_version="", creation_timestamp=None)
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=""), status=PodStatus())


def _sampled(placed: list[Arrival], duration_s: float, entropy: Entropy) -> tuple[list[Arrival], list[Arrival]]:
    """Running pods end, and pods of their owners arrive, as the arrival model says."""
    now_s = max((_created_s(arrival.pod) for arrival in placed if _is_recreated(arrival.pod)), default=0.0)
    by_owner: dict[str, list[Pod]] = {}
    staying: list[Arrival] = []
    for arrival in placed:
        if _is_recreated(arrival.pod):
            by_owner.setdefault(_owner_of(arrival.pod), []).append(arrival.pod)
        else:
            staying.append(arrival)
    arriving: list[Arrival] = []
    for owner, pods in sorted(by_owner.items()):
        stream = entropy.fork(f"owner {owner}")
        mean_s = max(sum(now_s - _created_s(pod) for pod in pods) / len(pods), LIFETIME_S_MIN)
        staying += [Arrival(0.0, pod, exponential(mean_s, stream), owner) for pod in pods]
        rate = len(pods) / mean_s * HOUR_S
        for number, at_s in enumerate(arrival_times(rate, duration_s, stream)):
            pod = _pending(stream.choose(pods), f"{pods[0].metadata.name}-{number}")
            arriving.append(Arrival(at_s, pod, exponential(mean_s, stream), owner))
    return staying, arriving


def _replayed(placed: list[Arrival], duration_s: float, entropy: Entropy) -> tuple[list[Arrival], list[Arrival]]:
    """Pods of owners arrive in the order and at the distances of their creation, and stay."""
    moving = [arrival.pod for arrival in placed if _is_recreated(arrival.pod)]
    staying = [arrival for arrival in placed if not _is_recreated(arrival.pod)]
    begin_s = min((_created_s(pod) for pod in moving), default=0.0)
    arriving = [
        Arrival(_created_s(pod) - begin_s, _pending(pod, pod.metadata.name), owner=_owner_of(pod)) for pod in moving
    ]
    return staying, arriving


def _in_order(arrivals: list[Arrival], others: list[Pod]) -> Arrivals:
    ordered = sorted(arrivals, key=lambda arrival: arrival.at_s)
    return Arrivals(ordered, PodTypes([*(arrival.pod for arrival in ordered), *others]))
