"""The node autoscaler of simulations: a generator of commands, like an event.

It follows Cluster Autoscaler, with its terms and defaults. A scan asks the engine by plans, which are undone.
Either level carries out the commands.

Scale-up:

1. The pods are first placed on the cluster with the nodes that were requested before. If pods are left, each pool is
   tried on its own: it gets nodes until these take no more pods, or the pool is full. Nothing is preempted for a pod.
2. The expander compares the pools: `price` the price of the new nodes for what their pods request, `least-waste` the
   cpu and memory that would stay idle, `most-pods` the number of pods. A random choice breaks ties.
3. Nodes of one pool are requested. They are there after `delay`, and count from the request on.

Scale-down:

4. The utilization of a node is the larger of the requested shares of its cpu and memory; on a node with GPUs, the share
   of these. Pods of DaemonSets count.
5. A node is unneeded if all of its pods fit on other nodes without preemption, have a controller, and no budget blocks
   their eviction. Each unneeded node is gone for the next ones.
6. A node that was unneeded in all scans of `scaleDownUnneededTime` is cordoned, drained and removed: nodes without pods
   `EMPTY_NODES_MAX` at a time, others one after the other. No removal begins within `scaleDownDelayAfterAdd` of a
   request for nodes.
7. If a budget holds up a drain for `EVICTION_S_MAX`, the node is uncordoned and stays.
8. A failed node counts as a node of its pool, until it is removed after `UNREADY_S`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mooring.api.resources import node_allocatable
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.kit.entropy import Entropy
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cache.resources import CPU, MEMORY
from mooring.scheduler.engine import Engine
from mooring.scheduler.plan.add_nodes import add_node, daemon_pods, place_all
from mooring.scheduler.plan.drain import cordon, drain_node
from mooring.scheduler.plan.new_objects import NewNode, RemovalOutcome, removal_outcome
from mooring.scheduler.plan.place import eviction_budgets, without_preemption
from mooring.scheduler.plan.slices import Slices, run_to_end
from mooring.scheduler.plan.what_if import WhatIf
from mooring.simulator.events import (
    AddNodes,
    CordonNode,
    DrainNodes,
    EventNodes,
    Fork,
    Pause,
    RemoveNode,
    Steps,
)
from mooring.simulator.scenario.fields import AutoscalePart, Pool, Scenario, seconds

# --- scale-down -----------------------------------------------------------------------------------------------


GPU_SUFFIX = "/gpu"
"""How the names of resources end that are GPUs."""


def utilization(engine: Engine, name: str) -> float:
    """The requested share of a node."""
    resources, row = engine.columns.resources, engine.columns.row_of[name]
    gpus = [index for index, resource in enumerate(resources.names) if resource.endswith(GPU_SUFFIX)]
    indexes = [index for index in gpus if resources.allocatable[index, row]] or [CPU, MEMORY]
    offered = [(index, int(resources.allocatable[index, row])) for index in indexes]
    return max((int(resources.used[index, row]) / amount for index, amount in offered if amount), default=0.0)


def has_pods(engine: Engine, name: str) -> bool:
    """Whether a node has pods that do not end with it."""
    row = engine.columns.row_of.get(name)
    return row is not None and any(
        removal_outcome(pod) is not RemovalOutcome.ENDS for pod in engine.columns.pods_on[row].values()
    )


def unneeded_nodes(what_if: WhatIf, candidates: Sequence[str]) -> Slices[list[str]]:
    """The candidates that can be removed together, the first ones with preference."""
    unneeded: list[str] = []
    budgets = eviction_budgets(what_if)
    for name in candidates:
        mark = what_if.mark()
        cordon(what_if, name)
        outcome = yield from drain_node(what_if, name, budgets)
        if outcome.node.is_safe and not any(placement.victims for placement in outcome.placed.placements):
            unneeded.append(name)
        else:
            yield from outcome.undo(what_if, mark, budgets)
    return unneeded


# --- scale-up -------------------------------------------------------------------------------------------------


MILLI_OF_CORE = 1_000
BYTES_OF_CORE = 7.5 * 2**30
"""Memory that costs as much as a core, roughly as in the price lists of clouds."""


@dataclass(frozen=True, slots=True)
class ScaleUpOption:
    """New nodes of a pool, and the unschedulable pods that they take."""

    pool: Pool
    nodes: Sequence[Node]
    pods: Sequence[PodInfo]

    def requested(self, index: int) -> int:
        return sum(int(pod.signature.request_vector[index]) for pod in self.pods)

    def offered(self, resource: str) -> int:
        return sum(node_allocatable(node).get(resource, 0) for node in self.nodes)


def scale_up_options(
    what_if: WhatIf,
    pods: Sequence[PodInfo],
    requested: Sequence[Node],
    new_nodes: Mapping[str, Sequence[Node]],
    pools: Mapping[str, Pool],
) -> Slices[list[ScaleUpOption]]:
    """`new_nodes`: the nodes that each pool may get, in order."""
    daemons = yield from daemon_pods(what_if)
    for node in requested:
        yield from add_node(what_if, NewNode(node), daemons)
    left = yield from place_all(what_if, pods)
    options: list[ScaleUpOption] = []
    for name, nodes in new_nodes.items():
        option = yield from _option(what_if, pools[name], nodes, left, daemons)
        if option.pods:
            options.append(option)
    return options


def choose_option(options: Sequence[ScaleUpOption], expander: str, entropy: Entropy) -> ScaleUpOption:
    """The pool that grows. Without a name: by price if pools have prices, otherwise with the least waste."""
    name = expander or ("price" if any(option.pool.price for option in options) else "least-waste")
    values = [_EXPANDERS[name](option) for option in options]
    best = [option for option, value in zip(options, values, strict=True) if value == min(values)]
    return best[0] if len(best) == 1 else entropy.choose(best)


def _option(
    what_if: WhatIf, pool: Pool, nodes: Sequence[Node], pods: list[PodInfo], daemons: Sequence[PodInfo]
) -> Slices[ScaleUpOption]:
    """Nodes until they take no more pods. Zones come in turn, so a node may be the first one of several that helps."""
    mark, left, count, helpful = what_if.mark(), pods, 0, 0
    while left and count < min(len(nodes), helpful + max(pool.zones, 1)):
        yield from add_node(what_if, NewNode(nodes[count]), daemons)
        count += 1
        still = yield from place_all(what_if, left)
        if len(still) < len(left):
            left, helpful = still, count
    yield from what_if.undo_in_slices(mark)
    missing = {id(pod) for pod in left}
    return ScaleUpOption(pool, nodes[:helpful], [pod for pod in pods if id(pod) not in missing])


def _price(option: ScaleUpOption) -> float:
    demand = option.requested(CPU) / MILLI_OF_CORE + option.requested(MEMORY) / BYTES_OF_CORE
    return option.pool.price * len(option.nodes) / max(demand, 1e-9)


def _waste(option: ScaleUpOption) -> float:
    shares = ((option.requested(CPU), option.offered("cpu")), (option.requested(MEMORY), option.offered("memory")))
    return sum(1 - requested / offered for requested, offered in shares if offered)


def _pod_count(option: ScaleUpOption) -> float:
    return -float(len(option.pods))


_EXPANDERS: Mapping[str, Callable[[ScaleUpOption], float]] = {
    # The pool with the lowest value grows.
    "price": _price,
    "least-waste": _waste,
    "most-pods": _pod_count,
    "random": lambda option: 0.0,
}


# --- the autoscaler -------------------------------------------------------------------------------------------


EXPENDABLE_BELOW = -10
"""`--expendable-pods-priority-cutoff`: pods of lower priority do not cause a scale-up."""
NODES_PER_SCALE_UP_MAX = 1_000
"""`--max-nodes-per-scaleup`."""
EMPTY_NODES_MAX = 10
"""`--max-empty-bulk-delete`."""
CANDIDATES_MAX = 30
"""`--scale-down-non-empty-candidates-count`."""
RECHECK_S = 300.0
"""`--unremovable-node-recheck-timeout`. A node whose drain has failed waits as long."""
EVICTION_S_MAX = 120.0
"""`--max-pod-eviction-time`: how long a drain may take."""
FAILURE_DELAY_S = 180.0
"""`--scale-down-delay-after-failure`."""
UNREADY_S = 1_200.0
"""`--scale-down-unready-time`."""


class AutoscaledCluster(EventNodes, Protocol):
    """What the autoscaler reads of a running simulation."""

    @property
    def engine(self) -> Engine: ...

    def unschedulable_pods(self) -> Sequence[Pod]:
        """The pods that the scheduler has rejected."""
        ...

    def failed_nodes(self, pool: str) -> Sequence[str]: ...


@dataclass(slots=True)
class _RequestedNode:
    node: Node
    pool: str
    is_there: bool = False


class Autoscaler:
    """The autoscaler of one simulation."""

    def __init__(self, scenario: Scenario, seed: int, cluster: AutoscaledCluster) -> None:
        self._settings = scenario.autoscaler
        self._seed = seed
        self._entropy = Entropy(seed).fork("autoscaler")
        self._cluster = cluster
        self._pools: dict[str, Pool] = {}
        self._limits: dict[str, AutoscalePart] = {}
        for pool in scenario.cluster.pools:
            if pool.autoscale is not None:
                self._pools[pool.name], self._limits[pool.name] = pool, pool.autoscale
        self._pool_of: dict[str, str] = {}
        """The nodes of the pools, failed or not, at the last scan."""
        self._requested: dict[str, _RequestedNode] = {}
        """Nodes that the scheduler does not know yet, by name."""
        self._removing: dict[str, bool] = {}
        """Nodes whose removal has begun, and whether they had pods."""
        self._unneeded_since_s: dict[str, float] = {}
        self._recheck_s: dict[str, float] = {}
        """When nodes are considered again that could not be removed."""
        self._failed_since_s: dict[str, float] = {}
        self._removals_from_s = 0.0
        self._pods: dict[str, tuple[Pod, PodInfo]] = {}
        """The unschedulable pods of the last scan, by key."""
        self.nodes_added = 0
        self.nodes_removed = 0

    def steps(self) -> Steps:
        scan_s = seconds(self._settings.scan_interval)
        while True:
            yield Pause(scan_s)
            self._update_nodes()
            yield from self._scale_up()
            yield from self._scale_down()

    def figures(self) -> dict[str, float]:
        """How many nodes were added and removed; empty if no pool has `autoscale`."""
        if not self._pools:
            return {}
        return {"nodes_added": float(self.nodes_added), "nodes_removed": float(self.nodes_removed)}

    def _update_nodes(self) -> None:
        """Read the nodes of the pools. A requested node that the scheduler knows is no longer a requested one."""
        cluster, row_of = self._cluster, self._cluster.engine.columns.row_of
        self._pool_of = {
            name: pool for pool in self._pools for name in (*cluster.pool_nodes(pool), *cluster.failed_nodes(pool))
        }
        for name, requested in list(self._requested.items()):
            if name in row_of or (requested.is_there and not cluster.has_node(name)):
                del self._requested[name]

    # Scale-up

    def _scale_up(self) -> Steps:
        pods = self._unschedulable()
        new_nodes = {pool: self._new_nodes(pool, len(pods)) for pool in self._pools} if pods else {}
        if not any(new_nodes.values()):
            return
        requested = [requested_node.node for requested_node in self._requested.values()]
        with WhatIf(self._cluster.engine, self._seed) as what_if:
            options = run_to_end(scale_up_options(what_if, pods, requested, new_nodes, self._pools))
        if options:
            chosen = choose_option(options, self._settings.expander, self._entropy)
            pool = chosen.pool.name
            nodes = self._cluster.pools.add(pool, len(chosen.nodes))
            self._requested |= {node.metadata.name: _RequestedNode(node, pool) for node in nodes}
            self._delay_removals(seconds(self._settings.scale_down_delay_after_add))
            yield Fork(self._provision(nodes, seconds(self._limits[pool].delay)))

    def _provision(self, nodes: Sequence[Node], delay_s: float) -> Steps:
        yield Pause(delay_s)
        yield AddNodes(tuple(nodes))
        self.nodes_added += len(nodes)
        for node in nodes:
            if node.metadata.name in self._requested:
                self._requested[node.metadata.name].is_there = True

    def _unschedulable(self) -> list[PodInfo]:
        """The pods that count. A nominated pod gets a node when its victims are gone."""
        found: dict[str, tuple[Pod, PodInfo]] = {}
        for view in self._cluster.unschedulable_pods():
            if (view.spec.priority or 0) >= EXPENDABLE_BELOW and not view.status.nominated_node_name:
                last = self._pods.get(view.key)
                is_known = last is not None and last[0] is view
                info = last[1] if last is not None and is_known else without_preemption(self._cluster.engine, view)
                found[view.key] = (view, info)
        self._pods = found
        return [info for _, info in found.values()]

    def _new_nodes(self, pool: str, pods: int) -> list[Node]:
        """As many nodes as a pool may get for this number of pods, each of which may need the next zone."""
        exist = {name for name, of in self._pool_of.items() if of == pool}
        exist |= {name for name, requested in self._requested.items() if requested.pool == pool}
        count = min(self._limits[pool].max - len(exist), NODES_PER_SCALE_UP_MAX, pods * max(self._pools[pool].zones, 1))
        return self._cluster.pools.next_nodes(pool, max(count, 0))

    # Scale-down

    def _scale_down(self) -> Steps:
        now_s = self._cluster.now_s()
        since_s = self._unneeded_since_s
        self._unneeded_since_s = {name: since_s.get(name, now_s) for name in self._unneeded(now_s)}
        since_s = self._failed_since_s
        failed = [name for pool in self._pools for name in self._cluster.failed_nodes(pool)]
        self._failed_since_s = {name: since_s.get(name, now_s) for name in failed}
        if now_s < self._removals_from_s:
            return
        unneeded_s = seconds(self._settings.scale_down_unneeded_time)
        yield from self._remove_all(_of_age(self._failed_since_s, now_s - UNREADY_S), is_failed=True)
        yield from self._remove_all(_of_age(self._unneeded_since_s, now_s - unneeded_s))

    def _unneeded(self, now_s: float) -> list[str]:
        """The nodes that this scan finds unneeded."""
        engine, threshold = self._cluster.engine, self._settings.scale_down_utilization_threshold
        self._recheck_s = {name: at_s for name, at_s in self._recheck_s.items() if at_s > now_s}
        empty: list[str] = []
        others: list[str] = []
        for pool in self._pools:
            for name in self._cluster.pool_nodes(pool) if self._spare(pool) > 0 else ():
                is_known = name in engine.columns.row_of and name not in self._removing
                if is_known and name not in self._recheck_s and utilization(engine, name) < threshold:
                    (others if has_pods(engine, name) else empty).append(name)
        others.sort(key=lambda name: (self._unneeded_since_s.get(name, now_s), name))
        candidates = [*empty, *others[:CANDIDATES_MAX]]
        if not candidates:
            return []
        with WhatIf(engine, self._seed) as what_if:
            found = run_to_end(unneeded_nodes(what_if, candidates))
        self._recheck_s |= {name: now_s + RECHECK_S for name in candidates if name not in found}
        return found

    def _remove_all(self, names: Iterable[str], *, is_failed: bool = False) -> Steps:
        """Begin to remove nodes, as far as pools have more than they must have."""
        count = 0
        for name in names:
            is_drain = not is_failed and has_pods(self._cluster.engine, name)
            is_full = any(self._removing.values()) if is_drain else count == EMPTY_NODES_MAX
            if is_full or self._spare(self._pool_of[name]) <= 0:
                continue
            count += not is_drain
            self._removing[name] = is_drain
            yield Fork(self._remove(name, is_failed))

    def _remove(self, name: str, is_failed: bool) -> Steps:
        began_s = self._cluster.now_s()
        if not is_failed:  # a failed node has no kubelet that stops its pods
            yield CordonNode(name, True)
            yield DrainNodes((name,), EVICTION_S_MAX)
        now_s = self._cluster.now_s()
        if now_s >= began_s + EVICTION_S_MAX:
            self._recheck_s[name] = now_s + RECHECK_S
            self._delay_removals(FAILURE_DELAY_S)
            yield CordonNode(name, False)
        elif self._cluster.has_node(name):
            yield RemoveNode(name)
            self.nodes_removed += 1
            self._pool_of.pop(name, None)
        del self._removing[name]

    def _spare(self, pool: str) -> int:
        """How many more nodes of the pool may be removed."""
        count = sum(of == pool and name not in self._removing for name, of in self._pool_of.items())
        return count - self._limits[pool].min

    def _delay_removals(self, delay_s: float) -> None:
        self._removals_from_s = max(self._removals_from_s, self._cluster.now_s() + delay_s)


def _of_age(since_s: Mapping[str, float], until_s: float) -> list[str]:
    return [name for name, at_s in since_s.items() if at_s <= until_s]
