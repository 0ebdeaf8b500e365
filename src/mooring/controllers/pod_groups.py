"""Groups of pods: those of a namespace that no selector can tell apart.

Comes in   from the informer of pods: added, updated, deleted
Goes out   for a namespace: groups by labels and owner, with how many of their pods are healthy

A budget or a service over ten thousand pods is looked at with each change of one of them. Here a change moves one pod,
and finding out who is selected costs as much as there are templates, not pods.

 1. The groups say what a walk over the pods of the informer would say.
 2. A pod is healthy if it is ready and not going. One that has finished is counted too, as kube-controller-manager
    does, until somebody deletes it.
 3. A namespace is followed from the first question about it: most have neither a budget nor a service, and their pods
    cost nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias
from weakref import WeakKeyDictionary

from mooring.api.labels import NOTHING, LabelMatcher
from mooring.api.ownership import controller_of
from mooring.api.views.meta import OwnerReference
from mooring.api.views.pod import Pod
from mooring.client.cache.informer import Informer
from mooring.controllers.pods import is_ready

_GroupKey: TypeAlias = tuple[tuple[tuple[str, str], ...], OwnerReference | None]


class PodGroup:
    """Pods of one namespace with the same labels and the same owner."""

    __slots__ = ("healthy", "labels", "names", "owner")

    def __init__(self, labels: Mapping[str, str], owner: OwnerReference | None) -> None:
        self.labels = labels
        self.owner = owner
        self.names: dict[str, bool] = {}
        """Whether each is healthy."""
        self.healthy = 0


class PodGroups:
    """Listens to an informer; asked by namespace. Use `pod_groups`, so that all who ask share one."""

    def __init__(self, informer: Informer[Pod]) -> None:
        self._pods = informer.lister
        self._by_namespace: dict[str, dict[_GroupKey, PodGroup]] = {}
        # Before the controllers' own handlers, which are to see the groups after the change.
        informer.add_handler("pod groups", on_add=self._on_add, on_update=self._on_update, on_delete=self._take_out)

    def of(self, namespace: str) -> Iterable[PodGroup]:
        """The groups of a namespace. To be read at once: they change with the next event."""
        if namespace not in self._by_namespace:
            self._by_namespace[namespace] = {}
            for pod in self._pods.list(namespace):
                self._on_add(pod, False)
        return self._by_namespace[namespace].values()

    def selected(self, namespace: str, selector: LabelMatcher) -> list[PodGroup]:
        """Those whose pods a selector means."""
        if selector is NOTHING:
            return []
        return [group for group in self.of(namespace) if selector.matches(group.labels)]

    def statistics(self) -> dict[str, int]:
        groups = self._by_namespace.values()
        return {"namespaces": len(groups), "groups": sum(len(each) for each in groups)}

    def _on_add(self, pod: Pod, is_initial: bool) -> None:
        metadata = pod.metadata
        groups = self._by_namespace.get(metadata.namespace)
        if groups is None:
            return
        key = _group_of(pod)
        group = groups.get(key)
        if group is None:
            group = groups[key] = PodGroup(metadata.labels, key[1])
        is_healthy = is_healthy_pod(pod)
        group.names[metadata.name] = is_healthy
        group.healthy += is_healthy

    def _on_update(self, old: Pod, new: Pod) -> None:
        before, after = old.metadata, new.metadata
        if after.namespace not in self._by_namespace:
            return
        is_same_group = before.labels == after.labels and before.owner_references == after.owner_references
        if is_same_group and is_healthy_pod(old) == is_healthy_pod(new):
            return
        self._take_out(old)
        self._on_add(new, False)

    def _take_out(self, pod: Pod) -> None:
        groups = self._by_namespace.get(pod.metadata.namespace)
        if groups is None:
            return
        key = _group_of(pod)
        group = groups[key]
        group.healthy -= group.names.pop(pod.metadata.name)
        if not group.names:
            del groups[key]


_shared: WeakKeyDictionary[Informer[Pod], PodGroups] = WeakKeyDictionary()


def pod_groups(informer: Informer[Pod]) -> PodGroups:
    """The groups of an informer's pods. To be asked for before the controller's own handlers are registered."""
    groups = _shared.get(informer)
    if groups is None:
        groups = _shared[informer] = PodGroups(informer)
    return groups


def is_healthy_pod(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is None and is_ready(pod)


def _group_of(pod: Pod) -> _GroupKey:
    return tuple(pod.metadata.labels.items()), controller_of(pod.metadata)
