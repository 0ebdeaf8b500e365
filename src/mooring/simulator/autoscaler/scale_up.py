"""Which pools can take the unschedulable pods with new nodes, and which of them grows.

1. The pods are first placed on the cluster with the nodes that were requested before. If pods are left, each pool is
   tried on its own: it gets nodes until these take no more pods, or the pool is full.
2. The expander compares the pools: `price` the price of the new nodes for what their pods request, `least-waste` the
   cpu and memory that would stay idle, `most-pods` the number of pods. A random choice breaks ties.
3. Nothing is preempted for a pod.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mooring.api.resources import node_allocatable
from mooring.api.views.node import Node
from mooring.kit.entropy import Entropy
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cache.resources import CPU, MEMORY
from mooring.scheduler.plan.add_nodes import add_node, daemon_pods, place_all
from mooring.scheduler.plan.new_objects import NewNode
from mooring.scheduler.plan.slices import Slices
from mooring.scheduler.plan.what_if import WhatIf
from mooring.simulator.scenario.fields import Pool

MILLI_OF_CORE = 1_000
BYTES_OF_CORE = 7.5 * 2**30
"""Memory that costs as much as a core, roughly as in the price lists of clouds."""


@dataclass(frozen=True, slots=True)
class ScaleUpOption:
    """New nodes of a pool, and the unschedulable pods that they take."""

    pool: Pool
    nodes: Sequence[Node]
    pods: Sequence[PodInfo]

    def requested(self, slot: int) -> int:
        return sum(int(pod.signature.request_vector[slot]) for pod in self.pods)

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
