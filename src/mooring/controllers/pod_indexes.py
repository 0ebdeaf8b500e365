"""Indexes over pods that are updated with each event, for owners and selectors of many pods.

Inputs: events of the informers of pods, services and budgets. Outputs: counts by owner (`PodCountIndex`), groups by
labels and owner (`PodGroupIndex`), the objects that select a pod (`SelectorIndex`).

An owner of ten thousand pods gets forty thousand events while they start. Reading all pods at each event would be
quadratic.

1. The indexes return what reading all pods would return. Property tests check it.
2. Labels are part of the keys because selectors match them. The pods of a template share their labels, so there are
   few keys. The order of labels does not matter.
3. A healthy pod is ready and not terminating. A finished pod counts as a member until it is deleted, as in
   kube-controller-manager.
4. `PodGroupIndex` tracks a namespace from the first read on. Most have neither a budget nor a service.
5. An invalid selector matches nothing. The controller of its object reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeAlias

from mooring.api.caches import BoundedCache
from mooring.api.errors import LabelSelectorError
from mooring.api.labels import NOTHING, LabelMatcher
from mooring.api.views.meta import ObjectMeta, OwnerReference, controller_of
from mooring.api.views.pod import Pod
from mooring.api.well_known import TERMINAL_PHASES
from mooring.client.informer import BY_NAMESPACE, AnyObject, Informer, namespace_of
from mooring.controllers.pods import is_ready

LabelsKey: TypeAlias = tuple[tuple[str, str], ...]
_GroupKey: TypeAlias = tuple[tuple[tuple[str, str], ...], OwnerReference | None]
LABELS_REMEMBERED_MAX = 16_384


def labels_key(labels: Mapping[str, str]) -> LabelsKey:
    """Labels as a key that does not depend on their order."""
    return tuple(sorted(labels.items()))


@dataclass(slots=True)
class StateCounts:
    """Counts of pods with the same owner and labels."""

    all: int = 0
    active: int = 0
    ready: int = 0
    """Active and ready."""
    terminating: int = 0


class PodCountIndex:
    """Counts pods by owner, labels and state."""

    def __init__(self, informer: Informer[Pod]) -> None:
        self._by_owner: dict[str, dict[LabelsKey, StateCounts]] = {}
        # Registered before the handlers of controllers, which must see the counts after the change.
        informer.add_handler("pod counts", on_add=self._on_add, on_update=self._on_update, on_delete=self._on_delete)

    def of(self, owner_uid: str) -> Mapping[LabelsKey, StateCounts]:
        """The counts of an owner's pods, by labels. Valid until the next event."""
        return self._by_owner.get(owner_uid, {})

    def _on_add(self, pod: Pod) -> None:
        self._count(pod, 1)

    def _on_update(self, old: Pod, new: Pod) -> None:
        if (
            is_ready(old) == is_ready(new)
            and (old.status.phase in TERMINAL_PHASES) == (new.status.phase in TERMINAL_PHASES)
            and old.metadata.labels == new.metadata.labels
            and old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
            and old.metadata.owner_references == new.metadata.owner_references
        ):
            return  # for example, the pod was bound
        self._count(old, -1)
        self._count(new, 1)

    def _on_delete(self, pod: Pod) -> None:
        self._count(pod, -1)

    def _count(self, pod: Pod, step: int) -> None:
        metadata = pod.metadata
        owner = controller_of(metadata)
        if owner is None:
            return
        by_labels = self._by_owner.get(owner.uid)
        if by_labels is None:
            by_labels = self._by_owner[owner.uid] = {}
        labels = labels_key(metadata.labels)
        counts = by_labels.get(labels)
        if counts is None:
            counts = by_labels[labels] = StateCounts()
        counts.all += step
        if pod.status.phase not in TERMINAL_PHASES:
            if metadata.deletion_timestamp is not None:
                counts.terminating += step
            else:
                counts.active += step
                if is_ready(pod):
                    counts.ready += step
        if not counts.all:
            del by_labels[labels]
            if not by_labels:
                del self._by_owner[owner.uid]


@dataclass(slots=True, eq=False)
class PodGroup:
    """Pods of one namespace with the same labels and the same owner."""

    labels: Mapping[str, str]
    owner: OwnerReference | None
    names: dict[str, bool] = field(default_factory=dict)
    """Whether each pod is healthy, by name."""
    healthy: int = 0


class PodGroupIndex:
    """Groups pods by namespace, labels and owner."""

    def __init__(self, informer: Informer[Pod]) -> None:
        self._pods = informer.lister
        self._by_namespace: dict[str, dict[_GroupKey, PodGroup]] = {}
        # Registered before the handlers of controllers, which must see the groups after the change.
        informer.add_handler("pod groups", on_add=self._on_add, on_update=self._on_update, on_delete=self._remove)

    def of(self, namespace: str) -> Iterable[PodGroup]:
        """The groups of a namespace. Valid until the next event."""
        if namespace not in self._by_namespace:
            self._by_namespace[namespace] = {}
            for pod in self._pods.list(namespace):
                self._on_add(pod)
        return self._by_namespace[namespace].values()

    def selected(self, namespace: str, selector: LabelMatcher) -> list[PodGroup]:
        """The groups that a selector matches."""
        if selector is NOTHING:
            return []
        return [group for group in self.of(namespace) if selector.matches(group.labels)]

    def statistics(self) -> dict[str, int]:
        groups = self._by_namespace.values()
        return {"namespaces": len(groups), "groups": sum(len(by_key) for by_key in groups)}

    def _on_add(self, pod: Pod) -> None:
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
        self._remove(old)
        self._on_add(new)

    def _remove(self, pod: Pod) -> None:
        groups = self._by_namespace.get(pod.metadata.namespace)
        if groups is None:
            return
        key = _group_of(pod)
        group = groups[key]
        group.healthy -= group.names.pop(pod.metadata.name)
        if not group.names:
            del groups[key]


def is_healthy_pod(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is None and is_ready(pod)


def _group_of(pod: Pod) -> _GroupKey:
    return labels_key(pod.metadata.labels), controller_of(pod.metadata)


class SelectorIndex(Generic[AnyObject]):
    """Finds the objects whose selector matches a pod. Create it before the controller's own handlers."""

    def __init__(self, name: str, informer: Informer[AnyObject], selector: Callable[[AnyObject], LabelMatcher]) -> None:
        """`selector` may raise `LabelSelectorError`."""
        informer.add_index(BY_NAMESPACE, namespace_of)
        self._lister = informer.lister
        self._selector = selector
        self._known: BoundedCache[tuple[str, tuple[tuple[str, str], ...]], tuple[str, ...]] = BoundedCache(
            LABELS_REMEMBERED_MAX
        )
        self._matchers: dict[str, tuple[tuple[str, LabelMatcher], ...]] = {}
        informer.add_handler(
            f"{name}, its selectors",
            on_add=lambda added: self._forget(),
            on_update=self._on_updated,
            on_delete=lambda gone: self._forget(),
        )

    def is_any_in(self, namespace: str) -> bool:
        """Whether any object of a namespace selects pods."""
        matchers = self._matchers.get(namespace)
        return bool(matchers if matchers is not None else self._matchers_of(namespace))

    def keys(self, metadata: ObjectMeta) -> tuple[str, ...]:
        """The keys of the objects that select a pod."""
        if not self.is_any_in(metadata.namespace):
            return ()
        question = (metadata.namespace, labels_key(metadata.labels))
        known = self._known.get(question)
        return known if known is not None else self._known.put(question, self._find(metadata))

    def _find(self, metadata: ObjectMeta) -> tuple[str, ...]:
        matchers = self._matchers_of(metadata.namespace)
        return tuple(key for key, matcher in matchers if matcher.matches(metadata.labels))

    def _matchers_of(self, namespace: str) -> tuple[tuple[str, LabelMatcher], ...]:
        """The selectors of a namespace that can match something, by key."""
        known = self._matchers.get(namespace)
        if known is None:
            each_with_its = ((view.key, self._matcher(view)) for view in self._lister.by_index(BY_NAMESPACE, namespace))
            known = self._matchers[namespace] = tuple(pair for pair in each_with_its if pair[1] is not NOTHING)
        return known

    def _on_updated(self, old: AnyObject, new: AnyObject) -> None:
        if self._matcher(old) != self._matcher(new):
            self._forget()

    def _forget(self) -> None:
        self._known.clear()
        self._matchers.clear()

    def _matcher(self, view: AnyObject) -> LabelMatcher:
        try:
            return self._selector(view)
        except LabelSelectorError:
            return NOTHING
