"""Node labels as dictionary-encoded columns: for each requested key, a code for each row.

Input: labels of nodes; keys from selectors and topologies. Output: `LabelColumn`, with the codes of the rows and the
dictionary from value to code.

A column is created on first use of a key. Nodes have keys that differ from node to node, and a column for each would
make memory grow with the square of the cluster.

1. Code 0 means that the label is absent. The code of a value is stable while any row has the value.
2. The code of an unused value may be reused for another value. `version` changes with the dictionary, so that cached
   evaluations are invalidated.
3. The columns update counts per domain (`selectors`, `terms`) before a row moves from one code to another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from mooring.scheduler.cache.arrays import Bools, Int64s, Rows, grown

ABSENT = 0


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
