"""Listers: read access to the cache of an informer.

Inputs: the views and indexes, which only the informer changes. Outputs: objects by name, namespace, labels or index.

1. A result is the present state. It may change whenever the reader awaits something.
2. Objects come in the order in which the informer first saw them.
3. An index is read by its name. An unknown index is a bug.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

from mooring.api.labels import LabelMatcher
from mooring.api.views.meta import ApiObject

AnyObject = TypeVar("AnyObject", bound=ApiObject)

IndexFunction: TypeAlias = Callable[[AnyObject], Iterable[str]]
"""The values of an object in an index."""

BY_NAMESPACE = "namespace"
BY_OWNER = "owner uid"


def namespace_of(view: ApiObject) -> Iterable[str]:
    """Index function: the namespace."""
    return (view.metadata.namespace,)


def owner_uids_of(view: ApiObject) -> Iterable[str]:
    """Index function: the uids of the owners."""
    return [owner.uid for owner in view.metadata.owner_references]


class Lister(Generic[AnyObject]):
    """A read-only view of the objects of one informer."""

    __slots__ = ("_indexes", "_views")

    def __init__(
        self, views: Mapping[str, AnyObject], indexes: Mapping[str, Mapping[str, Mapping[str, AnyObject]]]
    ) -> None:
        self._views = views
        self._indexes = indexes

    def get(self, namespace: str, name: str) -> AnyObject | None:
        """One object. The namespace is empty for a cluster-scoped kind."""
        return self._views.get(f"{namespace}/{name}" if namespace else name)

    def by_key(self, key: str) -> AnyObject | None:
        """One object by `namespace/name`, or by its name if the kind is cluster-scoped."""
        return self._views.get(key)

    def list(self, namespace: str = "", labels: LabelMatcher | None = None) -> Sequence[AnyObject]:
        """All objects, filtered by namespace and labels if they are given."""
        found: Iterable[AnyObject] = self._views.values() if not namespace else self._in_namespace(namespace)
        if labels is None:
            return [*found]
        return [view for view in found if labels.matches(view.metadata.labels)]

    def by_index(self, index: str, value: str) -> Sequence[AnyObject]:
        """The objects with a value in an index."""
        assert index in self._indexes, f"no index {index!r} was registered; there are {sorted(self._indexes)}"
        return [*self._indexes[index].get(value, {}).values()]

    def keys(self) -> Sequence[str]:
        return [*self._views]

    def __len__(self) -> int:
        return len(self._views)

    def __contains__(self, key: object) -> bool:
        return key in self._views

    def __iter__(self) -> Iterator[AnyObject]:
        return iter([*self._views.values()])

    def _in_namespace(self, namespace: str) -> Iterable[AnyObject]:
        index = self._indexes.get(BY_NAMESPACE)
        if index is not None:
            return index.get(namespace, {}).values()
        return (view for view in self._views.values() if view.metadata.namespace == namespace)
