"""What plugins read of nodes besides resources: labels, node selectors, taints and images.

`LabelColumns` has, for each requested key, a code for each row (`LabelColumn`). A column is created on first use of a
key. Nodes have keys that differ from node to node, and a column for each would make memory grow with the square of the
cluster.

1. Code 0 means that the label is absent. The code of a value is stable while any row has the value.
2. The code of an unused value may be reused for another value. `version` changes with the dictionary, so that cached
   evaluations are invalidated.
3. The columns update counts per domain (`selectors`) before a row moves from one code to another.

`NodeSelection` evaluates a requirement once for each distinct value of its key and gathers the results to rows: "zone
in (a, b)" over 5,000 nodes is two lookups and one gather.

4. Evaluated requirements are cached while the key's dictionary does not change, at most `EVALUATIONS_MAX` of them.
5. Nodes with the same taints share a number in `TaintColumns`. Set 0 is empty. Sets are never renumbered; a cluster has
   few. `timeAdded` is ignored.
6. The size of an image is the one that the first node reported, while any node has the image, as in kube-scheduler.
   `ImageColumns.version` changes with every change, because a score depends on how many nodes have the image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from mooring.api.labels import Operator, Requirement
from mooring.api.nodeselector import NAME_FIELD, NodeMatcher, PreferredTerm, RequiredNodeAffinity, Term
from mooring.api.views.node import ContainerImage, Taint
from mooring.scheduler.cache.arrays import Bools, Int64s, Rows, grown, length_of

ABSENT = 0
Scalar = TypeVar("Scalar", bound=np.generic)
EVALUATIONS_MAX = 4096
FEW_VALUES = 3


class LabelColumn:
    """One label key: the code of each row's value."""

    __slots__ = ("_code_of", "_free", "_row_counts", "_shared", "codes", "key", "values", "version")

    def __init__(self, key: str, capacity: int) -> None:
        self.key = key
        self.codes: Int64s = np.zeros(capacity, dtype=np.int64)
        self.values: list[str | None] = [None]
        self.version = 0
        self._code_of: dict[str, int] = {}
        self._row_counts: list[int] = [0]
        self._shared = 0
        """How many codes more than one row has."""
        self._free: list[int] = []

    @property
    def is_unique(self) -> bool:
        """Whether no two rows have the same value: then a domain is a row."""
        return not self._shared

    @property
    def codes_max(self) -> int:
        """One more than the largest code: the length of an array with one element per domain."""
        return len(self.values)

    def code_for(self, value: str) -> int | None:
        """The code of a value; None if no row has the value."""
        return self._code_of.get(value)

    def set(self, row: int, value: str | None) -> None:
        old = int(self.codes[row])
        if value == self.values[old]:
            return
        self.codes[row] = self._take(value) if value is not None else ABSENT
        if old != ABSENT:
            self._release(old)

    def evaluate(self, matches_value: Callable[[str], bool], matches_absent: bool) -> Bools:
        """Per code (not row): whether it satisfies an expression. Gather with `codes` to get rows."""
        matches = np.zeros(len(self.values), dtype=np.bool_)
        matches[ABSENT] = matches_absent
        for code, value in enumerate(self.values):
            if value is not None:
                matches[code] = matches_value(value)
        return matches

    def evaluate_in(self, values: Iterable[str], negated: bool) -> Bools:
        """As `evaluate` for In (or, negated, NotIn): one lookup per value."""
        matches = np.full(len(self.values), negated, dtype=np.bool_)
        for value in values:
            code = self._code_of.get(value)
            if code is not None:
                matches[code] = not negated
        return matches

    def has_any(self, values: Iterable[str], rows: Rows) -> Bools:
        """Per row: whether the label has one of a few values. Comparing codes is cheaper than gathering results."""
        codes = self.codes[rows]
        has_any = np.zeros(len(codes), dtype=np.bool_)
        for value in values:
            code = self._code_of.get(value)
            if code is not None:
                has_any |= codes == code
        return has_any

    def grow(self, capacity: int) -> None:
        self.codes = grown(self.codes, capacity)

    def _take(self, value: str) -> int:
        code = self._code_of.get(value)
        if code is None:
            self.version += 1
            if self._free:
                code = self._free.pop()
                self.values[code] = value
            else:
                code = len(self.values)
                self.values.append(value)
                self._row_counts.append(0)
            self._code_of[value] = code
        self._row_counts[code] += 1
        self._shared += self._row_counts[code] == 2
        return code

    def _release(self, code: int) -> None:
        self._row_counts[code] -= 1
        self._shared -= self._row_counts[code] == 1
        if self._row_counts[code] == 0:
            value = self.values[code]
            assert value is not None, f"label {self.key!r}: code {code} was released twice"
            del self._code_of[value]
            self.values[code] = None
            self._free.append(code)
            self.version += 1


class LabelColumns:
    """All label columns, created on first use."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._columns: dict[str, LabelColumn] = {}
        self._labels_of: dict[int, Mapping[str, str]] = {}

    def column(self, key: str) -> LabelColumn:
        column = self._columns.get(key)
        if column is None:
            column = LabelColumn(key, self._capacity)
            for row, labels in self._labels_of.items():
                value = labels.get(key)
                if value is not None:
                    column.set(row, value)
            self._columns[key] = column
        return column

    def __iter__(self) -> Iterator[LabelColumn]:
        return iter(self._columns.values())

    def of(self, row: int) -> Mapping[str, str]:
        return self._labels_of.get(row, {})

    def changed_columns(self, row: int, labels: Mapping[str, str]) -> list[LabelColumn]:
        """The columns whose value on this row would change, so that counts can be updated first."""
        return [c for c in self._columns.values() if c.values[c.codes[row]] != labels.get(c.key)]

    def set(self, row: int, labels: Mapping[str, str]) -> None:
        self._labels_of[row] = labels
        for column in self._columns.values():
            column.set(row, labels.get(column.key))

    def clear(self, row: int) -> None:
        self._labels_of.pop(row, None)
        for column in self._columns.values():
            column.set(row, None)

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        for column in self._columns.values():
            column.grow(capacity)


class TaintColumns:
    """The set of taints of each row, as a number."""

    def __init__(self, capacity: int) -> None:
        self.sets: list[tuple[Taint, ...]] = [()]
        self.set_of_row: Int64s = np.zeros(capacity, dtype=np.int64)
        self._number_of: dict[tuple[tuple[str, str, str], ...], int] = {(): 0}

    def set(self, row: int, taints: Sequence[Taint]) -> None:
        identity = tuple((taint.key, taint.value, taint.effect) for taint in taints)
        number = self._number_of.get(identity)
        if number is None:
            number = self._number_of[identity] = len(self.sets)
            self.sets.append(tuple(taints))
        self.set_of_row[row] = number

    def clear(self, row: int) -> None:
        self.set_of_row[row] = 0

    def evaluate(self, function: Callable[[tuple[Taint, ...]], int], dtype: type[Scalar]) -> npt.NDArray[Scalar]:
        """The value of the function for each distinct set, as an array to gather with `set_of_row`."""
        return np.array([function(taints) for taints in self.sets], dtype=dtype)

    def grow(self, capacity: int) -> None:
        self.set_of_row = grown(self.set_of_row, capacity)


class ImageHolders:
    """One image name: its size and the rows that have it."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.rows: dict[int, None] = {}


class ImageColumns:
    """All images, by name."""

    def __init__(self) -> None:
        self.holders: dict[str, ImageHolders] = {}
        self.version = 0
        self._names_of: dict[int, tuple[str, ...]] = {}
        self._images_of: dict[int, tuple[ContainerImage, ...]] = {}

    def set(self, row: int, images: Sequence[ContainerImage]) -> None:
        if self._images_of.get(row, ()) == tuple(images):
            return
        self.clear(row)
        names: dict[str, None] = {}
        for image in images:
            for name in image.names:
                holders = self.holders.get(name)
                if holders is None:
                    holders = self.holders[name] = ImageHolders(image.size_bytes)
                holders.rows[row] = None
                names[name] = None
        self._names_of[row] = tuple(names)
        self._images_of[row] = tuple(images)
        self.version += 1

    def clear(self, row: int) -> None:
        names = self._names_of.pop(row, ())
        self._images_of.pop(row, None)
        for name in names:
            holders = self.holders[name]
            del holders.rows[row]
            if not holders.rows:
                del self.holders[name]
        if names:
            self.version += 1


class NodeSelection:
    """Evaluates compiled node selectors on rows."""

    def __init__(self, labels: LabelColumns, row_of: Mapping[str, int]) -> None:
        self._labels = labels
        self._row_of = row_of
        self._evaluations: dict[Requirement, tuple[LabelColumn, int, Bools]] = {}

    def required(self, affinity: RequiredNodeAffinity, rows: Rows) -> Bools:
        matching = self.labelled(affinity.labels.requirements, rows)
        if affinity.affinity is not None:
            matching &= self.any_term(affinity.affinity, rows)
        return matching

    def any_term(self, matcher: NodeMatcher, rows: Rows) -> Bools:
        matching = np.zeros(length_of(rows), dtype=np.bool_)
        for term in matcher.terms:
            matching |= self.term(term, rows)
        return matching

    def term(self, term: Term, rows: Rows) -> Bools:
        if term.errors:
            return np.zeros(length_of(rows), dtype=np.bool_)
        matching = self.labelled(term.labels, rows)
        for requirement in term.fields:
            if requirement.key == NAME_FIELD:
                is_named = self.is_named(requirement.value, rows)
                matching &= is_named if requirement.operator is Operator.IN else ~is_named
            elif not requirement.matches_absent:
                matching[:] = False
        return matching

    def labelled(self, requirements: Iterable[Requirement], rows: Rows) -> Bools:
        """Per row: whether the node's labels satisfy all requirements."""
        matching: Bools | None = None
        for requirement in requirements:
            of_requirement = self._matching(requirement, rows)
            matching = of_requirement if matching is None else matching & of_requirement
        return matching if matching is not None else np.ones(length_of(rows), dtype=np.bool_)

    def preference(self, terms: Iterable[PreferredTerm], rows: Rows) -> Int64s:
        """Per row: the sum of the weights of the terms that match."""
        total = np.zeros(length_of(rows), dtype=np.int64)
        for preferred in terms:
            total += preferred.weight * self.term(preferred.term, rows)
        return total

    def _matching(self, requirement: Requirement, rows: Rows) -> Bools:
        """Per row: whether one requirement matches. Comparing a few values is cheaper than gathering."""
        is_in = requirement.operator is Operator.IN
        if (is_in or requirement.operator is Operator.NOT_IN) and len(requirement.values) <= FEW_VALUES:
            has_value = self._labels.column(requirement.key).has_any(requirement.values, rows)
            return has_value if is_in else ~has_value
        column, matches = self._evaluate(requirement)
        return matches.take(column.codes[rows])

    def _evaluate(self, requirement: Requirement) -> tuple[LabelColumn, Bools]:
        known = self._evaluations.get(requirement)
        if known is not None and known[0].version == known[1]:
            return known[0], known[2]
        column = self._labels.column(requirement.key)
        match requirement.operator:
            case Operator.IN:
                matches = column.evaluate_in(requirement.values, negated=False)
            case Operator.NOT_IN:
                matches = column.evaluate_in(requirement.values, negated=True)
            case _:
                matches = column.evaluate(requirement.matches_value, requirement.matches_absent)
        if len(self._evaluations) >= EVALUATIONS_MAX:
            self._evaluations.clear()
        self._evaluations[requirement] = (column, column.version, matches)
        return column, matches

    def is_named(self, name: str, rows: Rows) -> Bools:
        """Per row: whether the node has this name."""
        row = self._row_of.get(name)
        named = np.zeros(length_of(rows), dtype=np.bool_)
        if row is not None:
            if not isinstance(rows, slice):
                named[rows == row] = True
            elif row < rows.stop:
                named[row] = True
        return named
