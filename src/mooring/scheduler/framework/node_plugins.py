"""The plugin interface for users: a filter and a score that are called for one node at a time.

    class QuietNodes(FilterPlugin):
        name = "QuietNodes"

        def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
            if node_info.labels.get("noise") == "loud":
                return Status.unschedulable("node(s) were noisy")
            return None

A class inherits from `FilterPlugin`, `ScorePlugin` or both. The registry constructs it with the services that its
constructor names, calls `configure`, and wraps it in an adapter (`adapter.py`) that calls it for each feasible node.

 1. A `NodeInfo` reads the live columns. Inside a transaction it shows the state of the transaction.
 2. Results are not cached: `filter` and `score` may read anything of the pod, including its name and annotations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from mooring.api.views.node import Node, Taint
from mooring.api.views.pod import Pod
from mooring.api.well_known import ZONE
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cache.resources import CPU_NON_ZERO, MEMORY_NON_ZERO, PODS, ResourceColumns
from mooring.scheduler.framework.plugin import Plugin
from mooring.scheduler.framework.status import Status

__all__ = ["FilterPlugin", "NodeInfo", "NodePlugin", "ScorePlugin", "Status"]


class NodePlugin(Plugin):
    """The common base of `FilterPlugin` and `ScorePlugin`."""

    def configure(self, arguments: Mapping[str, object]) -> None:
        """Reads the plugin's `args` from the configuration. Raises ValueError with a message if they are invalid."""
        if arguments:
            raise ValueError(f"takes no arguments, but was given {', '.join(sorted(arguments))}")

    def applies_to(self, pod: Pod) -> bool:
        """Whether the plugin has anything to check for this pod. If not, it is skipped for the whole cycle."""
        return True


class FilterPlugin(NodePlugin, ABC):
    """Rejects nodes that cannot run a pod."""

    @abstractmethod
    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        """Whether the pod fits on the node: None or `Status.success()` if it does."""


class ScorePlugin(NodePlugin, ABC):
    """Ranks the nodes that can run a pod."""

    normalizes: bool = False
    """`score` returns any integer, and the scores of all feasible nodes are scaled to 0 to 100."""

    @abstractmethod
    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        """How good the node is for the pod, from 0 to 100. The highest total wins."""


class NodeInfo:
    """One node and its pods, as the scheduler's cache has them now. Read-only; each property is computed when read."""

    __slots__ = ("_columns", "_row")

    def __init__(self, columns: Columns, row: int) -> None:
        self._columns = columns
        self._row = row

    @property
    def name(self) -> str:
        return self._columns.node_names[self._row]

    @property
    def node(self) -> Node:
        """The Node object."""
        node = self._columns.nodes[self._row]
        assert node is not None, f"row {self._row} has no node"
        return node

    @property
    def labels(self) -> Mapping[str, str]:
        return self.node.metadata.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.node.metadata.annotations

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self.node.spec.taints

    @property
    def zone(self) -> str | None:
        return self.labels.get(ZONE)

    @property
    def allocatable(self) -> ResourceAmounts:
        """The node's allocatable resources: cpu in millicores, everything else in units (memory in bytes)."""
        return ResourceAmounts(self._columns.resources, self._row, _allocatable)

    @property
    def requested(self) -> ResourceAmounts:
        """The sum of the requests of the node's pods; `requested["pods"]` is their number."""
        return ResourceAmounts(self._columns.resources, self._row, _requested)

    @property
    def free(self) -> ResourceAmounts:
        """`allocatable` minus `requested`; negative on an overcommitted node."""
        return ResourceAmounts(self._columns.resources, self._row, _free)

    @property
    def pods(self) -> tuple[PodInfo, ...]:
        """The pods on the node, assumed pods included."""
        return tuple(self._columns.pods_on[self._row].values())

    @property
    def pod_count(self) -> int:
        """`len(node_info.pods)`, without building the tuple."""
        return _requested(self._columns.resources, PODS, self._row)

    def __repr__(self) -> str:
        return f"NodeInfo({self.name})"


class ResourceAmounts(Mapping[str, int]):
    """Amounts by resource name. Iterates over the resources that the node has; any other resource is 0."""

    def __init__(
        self, resources: ResourceColumns, row: int, amount: Callable[[ResourceColumns, int, int], int]
    ) -> None:
        self._resources = resources
        self._row = row
        self._amount = amount

    def __getitem__(self, resource: str) -> int:
        try:
            line = self._resources.names.index(resource)
        except ValueError:
            return 0  # `ResourceColumns.index_of` would allocate a line for every name that a plugin looks up
        return self._amount(self._resources, line, self._row)

    def __contains__(self, resource: object) -> bool:
        return resource in tuple(self)

    def __iter__(self) -> Iterator[str]:
        in_use = (self._resources.allocatable[:, self._row] != 0) | (self._resources.used[:, self._row] != 0)
        for line in np.flatnonzero(in_use).tolist():
            if line not in (CPU_NON_ZERO, MEMORY_NON_ZERO):
                yield self._resources.names[line]

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"ResourceAmounts({dict(self)})"


def _allocatable(resources: ResourceColumns, line: int, row: int) -> int:
    return resources.allocatable.item(line, row)


def _requested(resources: ResourceColumns, line: int, row: int) -> int:
    return resources.used.item(line, row)


def _free(resources: ResourceColumns, line: int, row: int) -> int:
    return _allocatable(resources, line, row) - _requested(resources, line, row)
