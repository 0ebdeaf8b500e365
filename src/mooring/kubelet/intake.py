"""The intake: what the two watches tell, handed to the fleet.

Comes in   from reflectors: everything, then one change after the other
Goes out   to the fleet: which nodes and pods there are now, and which are gone

Of most changes of a pod a kubelet need not hear: that it came, before it has a node; and what the kubelet itself wrote.

After a break everything comes anew; who is missing then is gone. New pods are handed on the oldest first, so that those
who were there first find room.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mooring.api.views.node import Node
from mooring.client.interface import Change, WatchEvent
from mooring.kubelet.views import KubeletPod

ECHOES_MAX = 10_000

_HAS_NODE = b'"nodeName":"'
_UNKNOWN = object()


class Fleet(Protocol):
    """Who hears of nodes and pods."""

    def node_changed(self, name: str, view: Node | None) -> None: ...

    def known_node_names(self) -> Sequence[str]: ...

    def pod_changed(self, pod: KubeletPod) -> None: ...

    def pod_gone(self, pod: KubeletPod) -> None: ...

    def latest_pods(self) -> Sequence[KubeletPod]: ...


class Echoes:
    """The revisions of our own writes, until the watch tells them."""

    def __init__(self) -> None:
        self._revisions: dict[str, None] = {}

    def expect(self, revision: str) -> None:
        if len(self._revisions) >= ECHOES_MAX:
            del self._revisions[next(iter(self._revisions))]
        self._revisions[revision] = None

    def take(self, revision: str) -> bool:
        """Whether that was one of ours."""
        return self._revisions.pop(revision, _UNKNOWN) is None


class NodeIntake:
    """The sink of the watch of nodes."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def replace(self, views: Sequence[Node], revision: str) -> None:
        present = {view.metadata.name for view in views}
        for name in self._fleet.known_node_names():
            if name not in present:
                self._fleet.node_changed(name, None)
        for view in views:
            self._fleet.node_changed(view.metadata.name, view)

    def apply(self, change: Change, view: Node) -> None:
        self._fleet.node_changed(view.metadata.name, None if change is Change.DELETED else view)


class PodIntake:
    """The sink of the watch of pods."""

    def __init__(self, fleet: Fleet, echoes: Echoes) -> None:
        self._fleet = fleet
        self._echoes = echoes

    def is_wanted(self, event: WatchEvent) -> bool:
        """Not before it has a node, and not if it tells what we have just written: reading a pod costs more."""
        return not self._echoes.take(event.revision) and _HAS_NODE in event.raw

    def replace(self, views: Sequence[KubeletPod], revision: str) -> None:
        present = {view.metadata.uid for view in views}
        for pod in self._fleet.latest_pods():
            if pod.metadata.uid not in present:
                self._fleet.pod_gone(pod)
        for view in sorted(views, key=_age):
            if view.spec.node_name:
                self._fleet.pod_changed(view)

    def apply(self, change: Change, view: KubeletPod) -> None:
        if not view.spec.node_name:
            return
        if change is Change.DELETED:
            self._fleet.pod_gone(view)
        else:
            self._fleet.pod_changed(view)


def _age(pod: KubeletPod) -> tuple[str, str]:
    return (pod.metadata.creation_timestamp or "", pod.key)
