"""The pools of a scenario: their nodes, by number, and what these cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mooring.api.decode import convert_as
from mooring.api.views.node import Node
from mooring.api.well_known import HOSTNAME, ZONE
from mooring.simulator.scenario.fields import Pool

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
