"""Pods counted by selector: for each selector in use, the number of matching pods on each row.

Comes in   pods as they come and go (by their label class), selectors from spreading and affinity
Goes out   `Counter`: matching pods for each row, and for each domain of a topology

Pods with the same namespace and labels form a label class. A selector is matched against classes, once, not against
pods; after that a pod that comes or goes adds one at its row for each counter of its class. So a constraint over
5,000 nodes is a gather, and a pod costs the same whatever the size of the cluster.

 1. `counter.rows[row]` equals the number of pods on the row whose class matches (terminating ones only if the
    counter wants them); `counter.domains(column)[code]` equals the sum of `rows` over the rows with that code.
 2. A class knows the counters and the carried terms that match it; both are found through one of their required
    label pairs, so that a new class is not compared with every selector in the cluster.
 3. Counters that were not used for long are retired when they take more than `COUNTERS_BYTES_MAX`; a retired counter
    that is asked again is counted anew from the classes.
"""

from __future__ import annotations

from collections import Counter as CountOf
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from mooring.api.labels import LabelMatcher
from mooring.scheduler.cache.arrays import Int64s, grown
from mooring.scheduler.cache.labels import LabelColumn

if TYPE_CHECKING:
    from mooring.scheduler.cache.terms import CarriedTerm

COUNTERS_BYTES_MAX = 128 << 20
Watcher: TypeAlias = "Counter | CarriedTerm"
"""What is looked up by label class."""
Pair: TypeAlias = tuple[str, str]
Key = TypeVar("Key")
Item = TypeVar("Item")


class LabelClass:
    """All pods with one namespace and one set of labels."""

    __slots__ = ("counters", "labels", "namespace", "rows", "rows_terminating", "terms")

    def __init__(self, namespace: str, labels: Mapping[str, str]) -> None:
        self.namespace = namespace
        self.labels = labels
        self.rows: dict[int, int] = {}
        self.rows_terminating: dict[int, int] = {}
        self.counters: list[Counter] = []
        self.terms: list[CarriedTerm] = []

    def add(self, watcher: Watcher) -> None:
        """Register a counter or a term that matches the class."""
        if isinstance(watcher, Counter):
            self.counters.append(watcher)
        else:
            self.terms.append(watcher)

    def remove(self, watcher: Watcher) -> None:
        watchers: list[Any] = self.counters if isinstance(watcher, Counter) else self.terms
        if watcher in watchers:
            watchers.remove(watcher)


class Part:
    """One condition on a pod: it lives in one of these namespaces (None: any), and its labels match."""

    __slots__ = ("key", "namespaces", "selector")

    def __init__(self, namespaces: frozenset[str] | None, selector: LabelMatcher) -> None:
        self.namespaces = namespaces
        self.selector = selector
        self.key = (tuple(sorted(namespaces)) if namespaces is not None else None, selector)

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return (self.namespaces is None or namespace in self.namespaces) and self.selector.matches(labels)


class Counter:
    """How many pods match all parts, for each row and for each domain of the topologies that were asked about."""

    __slots__ = ("_domains", "key", "parts", "registered", "required_pair", "rows", "used_at", "wants_terminating")

    def __init__(self, parts: tuple[Part, ...], wants_terminating: bool) -> None:
        self.parts = parts
        self.wants_terminating = wants_terminating
        self.key = (tuple(part.key for part in parts), wants_terminating)
        self.required_pair: Pair | None = next((pair for part in parts for pair in part.selector.equality_pairs), None)
        self.rows: Int64s = np.zeros(0, dtype=np.int64)
        self._domains: dict[LabelColumn, Int64s] = {}
        self.registered = False
        self.used_at = 0

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return all(part.matches(namespace, labels) for part in self.parts)

    def domains(self, column: LabelColumn, height: int) -> Int64s:
        """Matching pods for each code of a label column (place 0: rows without the label)."""
        counts = self._domains.get(column)
        if counts is None or len(counts) < column.codes_max:
            summed = np.bincount(column.codes[:height], weights=self.rows[:height], minlength=column.codes_max)
            counts = self._domains[column] = grown(summed.astype(np.int64), column.codes_max)
        return counts

    def add(self, row: int, count: int) -> None:
        self.rows[row] += count
        for column, counts in self._domains.items():
            code = column.codes[row]
            if code < len(counts):
                counts[code] += count

    def move(self, column: LabelColumn, row: int, sign: int) -> None:
        """Takes the row's pods out of their domain (-1) before its label changes, and puts them back (+1) after."""
        counts = self._domains.get(column)
        if counts is not None and column.codes[row] < len(counts):
            counts[column.codes[row]] += sign * int(self.rows[row])

    def reset(self, capacity: int) -> None:
        self.rows = np.zeros(capacity, dtype=np.int64)
        self._domains = {}

    def forget(self) -> None:
        self.rows = np.zeros(0, dtype=np.int64)
        self._domains = {}

    @property
    def size_bytes(self) -> int:
        return self.rows.nbytes + sum(counts.nbytes for counts in self._domains.values())


class SelectorColumns:
    """Label classes, the counters over them, and the index that brings the two together."""

    __slots__ = ("_by_namespace", "_by_pair", "_capacity", "_classes", "_clock", "_counters", "_watchers")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._clock = 0
        self._classes: dict[tuple[str, frozenset[Pair]], LabelClass] = {}
        self._by_pair: dict[Pair, dict[LabelClass, None]] = {}
        self._by_namespace: dict[str, dict[LabelClass, None]] = {}
        self._counters: dict[object, Counter] = {}
        self._watchers: dict[Pair | None, dict[Watcher, None]] = {}

    def label_class(self, namespace: str, labels: Mapping[str, str]) -> LabelClass:
        key = (namespace, frozenset(labels.items()))
        found = self._classes.get(key)
        if found is None:
            found = self._classes[key] = LabelClass(namespace, labels)
            self._by_namespace.setdefault(namespace, {})[found] = None
            for pair in labels.items():
                self._by_pair.setdefault(pair, {})[found] = None
            for watcher in self._candidates_for(labels):
                if watcher.matches(namespace, labels):
                    found.add(watcher)
        return found

    def forget_class(self, label_class: LabelClass) -> None:
        """Drops a class that has no pods and no signature any more."""
        key = (label_class.namespace, frozenset(label_class.labels.items()))
        if label_class.rows or self._classes.get(key) is not label_class:
            return
        del self._classes[key]
        _drop(self._by_namespace, label_class.namespace, label_class)
        for pair in label_class.labels.items():
            _drop(self._by_pair, pair, label_class)

    def counter(self, parts: tuple[Part, ...], wants_terminating: bool) -> Counter:
        """The counter for these conditions, shared by all who ask for the same."""
        wanted = Counter(parts, wants_terminating)
        return self.fresh(self._counters.setdefault(wanted.key, wanted))

    def fresh(self, counter: Counter) -> Counter:
        """The counter with current counts; counted again if it was retired."""
        self._clock += 1
        counter.used_at = self._clock
        if not counter.registered:
            counter = self._counters.setdefault(counter.key, counter)
            if not counter.registered:
                self._register_counter(counter)
        return counter

    def watch(self, watcher: Watcher) -> None:
        """From now on, every class that matches knows this watcher."""
        self._watchers.setdefault(watcher.required_pair, {})[watcher] = None
        for label_class in self._classes_for(watcher):
            if watcher.matches(label_class.namespace, label_class.labels):
                label_class.add(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        _drop(self._watchers, watcher.required_pair, watcher)
        for label_class in self._classes_for(watcher):
            label_class.remove(watcher)

    def rematch_namespace(self, namespace: str) -> None:
        """A namespace's labels changed: terms that select namespaces may match its classes now, or no longer."""
        for label_class in self._by_namespace.get(namespace, ()):
            label_class.terms = [
                watcher
                for watcher in self._candidates_for(label_class.labels)
                if not isinstance(watcher, Counter) and watcher.matches(namespace, label_class.labels)
            ]

    def place(self, label_class: LabelClass, row: int, count: int, terminating: bool) -> None:
        """Adds (+1) or takes away (-1) one pod of a class on a row."""
        _tally(label_class.rows, row, count)
        if terminating:
            _tally(label_class.rows_terminating, row, count)
        for counter in label_class.counters:
            if counter.wants_terminating or not terminating:
                counter.add(row, count)

    def place_all(self, label_class: LabelClass, rows: Iterable[int]) -> None:
        """Adds one pod of a class, which is not being deleted, on each of the rows."""
        for row, count in CountOf(rows).items():
            _tally(label_class.rows, row, count)
            for counter in label_class.counters:
                counter.add(row, count)

    def moving(self, columns: Iterable[LabelColumn], row: int, sign: int) -> None:
        for column in columns:
            for counter in self._counters.values():
                counter.move(column, row, sign)

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        for counter in self._counters.values():
            counter.rows = grown(counter.rows, capacity)

    @property
    def counters(self) -> Iterable[Counter]:
        return self._counters.values()

    @property
    def classes(self) -> Iterable[LabelClass]:
        return self._classes.values()

    def _register_counter(self, counter: Counter) -> None:
        self._retire_stale()
        counter.reset(self._capacity)
        counter.registered = True
        self.watch(counter)
        for label_class in self._classes_for(counter):
            if counter in label_class.counters:
                _count_class(counter, label_class)

    def _retire_stale(self) -> None:
        if self._capacity * 4 * len(self._counters) < COUNTERS_BYTES_MAX:
            return
        live = sorted((c for c in self._counters.values() if c.registered), key=lambda c: c.used_at)
        size_bytes = sum(counter.size_bytes for counter in live)
        for counter in live:
            if size_bytes < COUNTERS_BYTES_MAX // 2:
                break
            size_bytes -= counter.size_bytes
            self.unwatch(counter)
            counter.registered = False
            counter.forget()
            del self._counters[counter.key]

    def _candidates_for(self, labels: Mapping[str, str]) -> Iterator[Watcher]:
        yield from self._watchers.get(None, ())
        for pair in labels.items():
            yield from self._watchers.get(pair, ())

    def _classes_for(self, watcher: Watcher) -> list[LabelClass]:
        if watcher.required_pair is not None:
            return list(self._by_pair.get(watcher.required_pair, ()))
        return list(self._classes.values())


def _count_class(counter: Counter, label_class: LabelClass) -> None:
    for row, count in label_class.rows.items():
        counter.rows[row] += count
    if not counter.wants_terminating:
        for row, count in label_class.rows_terminating.items():
            counter.rows[row] -= count


def _tally(counts: dict[int, int], row: int, count: int) -> None:
    left = counts.get(row, 0) + count
    if left:
        counts[row] = left
    else:
        counts.pop(row, None)


def _drop(index: dict[Key, dict[Item, None]], key: Key, item: Item) -> None:
    items = index.get(key)
    if items is not None:
        items.pop(item, None)
        if not items:
            del index[key]
