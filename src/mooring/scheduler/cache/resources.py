"""Resources and host ports as columns: the allocatable amounts of each node, and what its pods request.

`ResourceColumns` has two tables, `allocatable` and `used`, with one line for each resource and one column for each row.
A resource gets an index on first use. The first six indexes are fixed. The two non-zero indexes are cpu and memory with
kube-scheduler's defaults for containers without requests: scores read them, filters read the real requests. They are in
the same table, so that placing a pod is one addition.

1. `used[index, row]` is the sum over the pods of the row. The one of `PODS` counts them.
2. Amounts are int64: cpu in milli, everything else in units, rounded as in kube-scheduler.

`PortColumns` has the rows where a host port is taken, by address. The address 0.0.0.0 conflicts with every address, any
other address with itself and 0.0.0.0.

3. A port is taken or free, not counted. Two pods with the same port on one node can only be bound by another component;
   then the first deletion frees the port, as in kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mooring.scheduler.cache.arrays import Bools, Float64s, Int64s, Rows, grown

CPU = 0
MEMORY = 1
EPHEMERAL_STORAGE = 2
PODS = 3
CPU_NON_ZERO = 4
MEMORY_NON_ZERO = 5

ROWS_AT_ONCE_MIN = 64
"""Fewer additions are made one by one, which costs less than one operation on the whole table."""

_FIXED_NAMES = ("cpu", "memory", "ephemeral-storage", "pods", "cpu (non-zero)", "memory (non-zero)")


class ResourceColumns:
    """The tables of allocatable and used amounts."""

    def __init__(self, capacity: int) -> None:
        self.names: list[str] = list(_FIXED_NAMES)
        self._indexes = {name: index for index, name in enumerate(_FIXED_NAMES[:4])}
        self.allocatable: Int64s = np.zeros((len(_FIXED_NAMES), capacity), dtype=np.int64)
        self.used: Int64s = np.zeros((len(_FIXED_NAMES), capacity), dtype=np.int64)
        self._bounds: dict[int, tuple[int, int]] = {}
        self._divisors: dict[int, Float64s] = {}
        self._last_row: tuple[int, list[int], list[int]] = (-1, [], [])

    def index_of(self, name: str) -> int:
        """The line of a resource, created on first use."""
        index = self._indexes.get(name)
        if index is None:
            index = self._indexes[name] = len(self.names)
            self.names.append(name)
            line = np.zeros((1, self.used.shape[1]), dtype=np.int64)
            self.allocatable = np.concatenate([self.allocatable, line])
            self.used = np.concatenate([self.used, line])
            self._last_row = (-1, [], [])
        return index

    def vector(self, requests: Mapping[str, int], cpu_non_zero_milli: int, memory_non_zero: int) -> Int64s:
        """What one pod adds to `used`: a number for each index up to the last one that is not zero."""
        amounts = {self.index_of(name): amount for name, amount in requests.items()}
        amounts |= {PODS: 1, CPU_NON_ZERO: cpu_non_zero_milli, MEMORY_NON_ZERO: memory_non_zero}
        vector = np.zeros(max(amounts) + 1, dtype=np.int64)
        for index, amount in amounts.items():
            vector[index] = amount
        return vector

    def bounds(self, index: int, live_rows: Rows) -> tuple[int, int]:
        """The smallest and largest allocatable amount of a resource; computed again after a node changed."""
        known = self._bounds.get(index)
        if known is None:
            offered = self.allocatable[index, live_rows]
            known = self._bounds[index] = (int(offered.min()), int(offered.max())) if len(offered) else (0, 0)
        return known

    def divisors(self, index: int) -> Float64s:
        """Per row: the allocatable amount of a resource, at least 1, as a float; computed again after a node changed.

        Dividing int64 by float64 takes half the time of dividing by int64, and has the same result.
        """
        known = self._divisors.get(index)
        if known is None:
            known = self._divisors[index] = np.maximum(self.allocatable[index], 1).astype(np.float64)
        return known

    def at(self, row: int) -> tuple[list[int], list[int]]:
        """The allocatable and used amounts of one row as lists. Three plugins read the same row in turn."""
        if self._last_row[0] != row:
            self._last_row = (row, self.allocatable[:, row].tolist(), self.used[:, row].tolist())
        return self._last_row[1], self._last_row[2]

    def add(self, row: int, vector: Int64s) -> None:
        self._last_row = (-1, [], [])
        used = self.used[: len(vector), row]
        np.add(used, vector, out=used)  # not `+=`, which would also write the sum back to where it is

    def add_all(self, rows: Sequence[int], vector: Int64s) -> None:
        """`add` for each of the rows, which may repeat."""
        if len(rows) < ROWS_AT_ONCE_MIN:
            for row in rows:
                self.add(row, vector)
            return
        self._last_row = (-1, [], [])
        counts = np.bincount(rows, minlength=self.used.shape[1])
        self.used[: len(vector)] += vector[:, np.newaxis] * counts

    def take(self, row: int, vector: Int64s) -> None:
        self._last_row = (-1, [], [])
        used = self.used[: len(vector), row]
        np.subtract(used, vector, out=used)

    def set_allocatable(self, row: int, amounts: Mapping[str, int]) -> None:
        indexes = {self.index_of(name): amount for name, amount in amounts.items()}
        self._bounds.clear()
        self._divisors.clear()
        self._last_row = (-1, [], [])
        self.allocatable[:, row] = 0
        for index, amount in indexes.items():
            self.allocatable[index, row] = amount
        # The non-zero indexes have the same allocatable amounts as cpu and memory.
        self.allocatable[CPU_NON_ZERO, row] = self.allocatable[CPU, row]
        self.allocatable[MEMORY_NON_ZERO, row] = self.allocatable[MEMORY, row]

    def clear(self, row: int) -> None:
        self._bounds.clear()
        self._divisors.clear()
        self._last_row = (-1, [], [])
        self.allocatable[:, row] = 0
        self.used[:, row] = 0

    def grow(self, capacity: int) -> None:
        self._divisors.clear()
        self.allocatable = grown(self.allocatable, capacity)
        self.used = grown(self.used, capacity)


ANY_ADDRESS = "0.0.0.0"


class HostPort(NamedTuple):
    protocol: str
    port: int
    address: str

    def conflicts_with(self, other: HostPort) -> bool:
        return self[:2] == other[:2] and _addresses_conflict(self.address, other.address)


class PortColumns:
    """The rows where each host port is taken."""

    def __init__(self) -> None:
        self._rows_of: dict[tuple[str, int], dict[str, set[int]]] = {}

    def take(self, row: int, ports: Iterable[HostPort]) -> None:
        for port in ports:
            addresses = self._rows_of.setdefault((port.protocol, port.port), {})
            addresses.setdefault(port.address, set()).add(row)

    def free(self, row: int, ports: Iterable[HostPort]) -> None:
        for port in ports:
            addresses = self._rows_of.get((port.protocol, port.port))
            if addresses is None or port.address not in addresses:
                continue
            addresses[port.address].discard(row)
            if not addresses[port.address]:
                del addresses[port.address]
                if not addresses:
                    del self._rows_of[port.protocol, port.port]

    def taken_of(self, row: int, ports: Iterable[HostPort]) -> tuple[HostPort, ...]:
        """Which of these ports are taken on the row. A transaction restores them."""
        return tuple(
            port for port in ports if row in self._rows_of.get((port.protocol, port.port), {}).get(port.address, ())
        )

    def conflicts(self, ports: Iterable[HostPort], height: int) -> Bools:
        """Per row: whether one of the ports is taken."""
        taken = np.zeros(height, dtype=np.bool_)
        for port in ports:
            for rows in self._conflicting_rows(port):
                taken[list(rows)] = True
        return taken

    def conflicts_at(self, ports: Iterable[HostPort], row: int) -> bool:
        return any(row in rows for port in ports for rows in self._conflicting_rows(port))

    def _conflicting_rows(self, port: HostPort) -> Iterator[set[int]]:
        for address, rows in self._rows_of.get((port.protocol, port.port), {}).items():
            if _addresses_conflict(port.address, address):
                yield rows


def _addresses_conflict(one: str, other: str) -> bool:
    return one == other or ANY_ADDRESS in (one, other)
