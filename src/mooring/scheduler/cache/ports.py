"""Host ports in use: the rows where a port is taken, by address.

The address 0.0.0.0 conflicts with every address, any other address with itself and 0.0.0.0.

1. A port is taken or free, not counted. Two pods with the same port on one node can only be bound by another component;
   then the first deletion frees the port, as in kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from mooring.scheduler.cache.arrays import Bools

ANY_ADDRESS = "0.0.0.0"


class HostPort(NamedTuple):
    protocol: str
    port: int
    address: str

    def conflicts_with(self, other: HostPort) -> bool:
        return self[:2] == other[:2] and _addresses_conflict(self.address, other.address)


class PortColumns:
    """The rows where each host port is taken."""

    __slots__ = ("_rows_of",)

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

    def conflicts(self, wanted: Iterable[HostPort], height: int) -> Bools:
        """Per row: whether one of the ports is taken."""
        taken = np.zeros(height, dtype=np.bool_)
        for port in wanted:
            for rows in self._conflicting_rows(port):
                taken[list(rows)] = True
        return taken

    def conflicts_at(self, wanted: Iterable[HostPort], row: int) -> bool:
        return any(row in rows for port in wanted for rows in self._conflicting_rows(port))

    def _conflicting_rows(self, port: HostPort) -> Iterator[set[int]]:
        for address, rows in self._rows_of.get((port.protocol, port.port), {}).items():
            if _addresses_conflict(port.address, address):
                yield rows


def _addresses_conflict(one: str, other: str) -> bool:
    return one == other or ANY_ADDRESS in (one, other)
