"""Nominated pods: who has been promised room on which node, but is not there yet.

Comes in   promises from preemption, and nominations found in pods' status
Goes out   for a node, the pods nominated to it

 1. A pod is nominated to at most one node; the node need not exist.
 2. The order within a node is that of nomination.
"""

from __future__ import annotations

from collections.abc import Iterable

from mooring.scheduler.cache.pods import PodInfo


class Nominations:
    """Promised places, by node name."""

    __slots__ = ("_by_node", "_node_of")

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._node_of: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._node_of)

    def add(self, pod: PodInfo, node_name: str) -> None:
        self.remove(pod)
        self._by_node.setdefault(node_name, {})[pod.uid] = pod
        self._node_of[pod.uid] = node_name

    def remove(self, pod: PodInfo) -> str | None:
        """Withdraws a nomination; returns the node that it was for."""
        node_name = self._node_of.pop(pod.uid, None)
        if node_name is not None:
            pods = self._by_node[node_name]
            del pods[pod.uid]
            if not pods:
                del self._by_node[node_name]
        return node_name

    def on(self, node_name: str) -> Iterable[PodInfo]:
        return self._by_node.get(node_name, {}).values()

    def node_of(self, pod: PodInfo) -> str | None:
        return self._node_of.get(pod.uid)

    def get(self, uid: str) -> PodInfo | None:
        node_name = self._node_of.get(uid)
        return self._by_node[node_name][uid] if node_name is not None else None

    def nodes(self) -> Iterable[str]:
        return self._by_node
