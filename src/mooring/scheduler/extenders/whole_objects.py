"""Nodes and pending pods as they are, for extenders that want whole objects.

Comes in   the watch, beside the one that feeds the columns
Goes out   `RawObjects`: the JSON of a node or of a pending pod

 1. Kept only when there are extenders. Pods with a node are kept only if an extender is to be sent whole victims.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.whole import Whole
from mooring.client.interface import Change
from mooring.scheduler.cache.pods import PodInfo


class WholeNodes:
    """A sink: nodes by name."""

    def __init__(self) -> None:
        self.raw: dict[str, bytes] = {}

    def replace(self, views: Sequence[Whole], revision: str) -> None:
        self.raw = {view.metadata.name: view.raw for view in views}

    def apply(self, change: Change, view: Whole) -> None:
        if change is Change.DELETED:
            self.raw.pop(view.metadata.name, None)
        else:
            self.raw[view.metadata.name] = view.raw


class WholePods:
    """A sink: pods by uid, those without a node or all."""

    def __init__(self, keeps_placed: bool) -> None:
        self.raw: dict[str, bytes] = {}
        self._keeps_placed = keeps_placed

    def replace(self, views: Sequence[Whole], revision: str) -> None:
        self.raw = {view.metadata.uid: view.raw for view in views if self._keeps_placed or not view.node_name}

    def apply(self, change: Change, view: Whole) -> None:
        if change is Change.DELETED or (view.node_name and not self._keeps_placed):
            self.raw.pop(view.metadata.uid, None)
        else:
            self.raw[view.metadata.uid] = view.raw


class WholeObjects:
    """What extenders are sent."""

    def __init__(self, *, keeps_placed_pods: bool) -> None:
        self.nodes = WholeNodes()
        self.pods = WholePods(keeps_placed_pods)

    def node(self, name: str) -> bytes:
        found = self.nodes.raw.get(name)
        if found is None:
            raise LookupError(f"node {name} is gone")
        return found

    def pod(self, pod: PodInfo) -> bytes:
        found = self.pods.raw.get(pod.uid)
        if found is None:
            raise LookupError(f"pod {pod.key} is gone")
        return found
