"""Who selects a pod: the budgets, or the services, whose selectors mean its labels.

Comes in   an informer of objects with a selector; a pod's metadata
Goes out   the keys of those that select it

 1. The pods of a template share their labels, so the answer is remembered by them, until a selector changes.
 2. Where nobody selects anything, nobody looks at labels: that is so in most namespaces, and told without a question.
 3. A selector that cannot be read selects nobody: its own controller tells its owner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic

from mooring.api.errors import LabelSelectorError
from mooring.api.labels import NOTHING, LabelMatcher
from mooring.api.memory import Memory
from mooring.api.views.meta import ObjectMeta
from mooring.client.cache.informer import Informer
from mooring.client.cache.lister import BY_NAMESPACE, AnyObject, namespace_of

LABELS_REMEMBERED_MAX = 16_384


class Selecting(Generic[AnyObject]):
    """To be made before the controller's own handlers are registered."""

    def __init__(self, name: str, informer: Informer[AnyObject], selector: Callable[[AnyObject], LabelMatcher]) -> None:
        """`selector` may raise `LabelSelectorError`."""
        informer.add_index(BY_NAMESPACE, namespace_of)
        self._lister = informer.lister
        self._selector = selector
        self._known: Memory[tuple[str, tuple[tuple[str, str], ...]], tuple[str, ...]] = Memory(LABELS_REMEMBERED_MAX)
        self._matchers: dict[str, tuple[tuple[str, LabelMatcher], ...]] = {}
        informer.add_handler(
            f"{name}, its selectors",
            on_add=lambda added, is_initial: self._forget(),
            on_update=self._on_updated,
            on_delete=lambda gone: self._forget(),
        )

    def is_any_in(self, namespace: str) -> bool:
        """Whether somebody there selects pods at all."""
        matchers = self._matchers.get(namespace)
        return bool(matchers if matchers is not None else self._matchers_of(namespace))

    def keys(self, metadata: ObjectMeta) -> tuple[str, ...]:
        """The keys of those that select such a pod."""
        if not self.is_any_in(metadata.namespace):
            return ()
        question = (metadata.namespace, tuple(metadata.labels.items()))
        known = self._known.get(question)
        return known if known is not None else self._known.keep(question, self._find(metadata))

    def _find(self, metadata: ObjectMeta) -> tuple[str, ...]:
        matchers = self._matchers_of(metadata.namespace)
        return tuple(key for key, matcher in matchers if matcher.matches(metadata.labels))

    def _matchers_of(self, namespace: str) -> tuple[tuple[str, LabelMatcher], ...]:
        """Those of a namespace that can mean anybody, by key."""
        known = self._matchers.get(namespace)
        if known is None:
            each_with_its = ((each.key, self._matcher(each)) for each in self._lister.by_index(BY_NAMESPACE, namespace))
            known = self._matchers[namespace] = tuple(pair for pair in each_with_its if pair[1] is not NOTHING)
        return known

    def _on_updated(self, old: AnyObject, new: AnyObject) -> None:
        if self._matcher(old) != self._matcher(new):
            self._forget()

    def _forget(self) -> None:
        self._known.clear()
        self._matchers.clear()

    def _matcher(self, each: AnyObject) -> LabelMatcher:
        try:
            return self._selector(each)
        except LabelSelectorError:
            return NOTHING
