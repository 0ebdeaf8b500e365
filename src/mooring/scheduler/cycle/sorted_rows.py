"""Distinct rows in ascending order, of which one is added or removed at a time.

A list would move all rows behind a new one: with a million rows this takes longer than a decision. `SortedRows` has a
list for each `1 << BLOCK_BITS` row numbers, and moves rows of one of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import overload

BLOCK_BITS = 12


class SortedRows(Sequence[int]):
    """Reads like a list."""

    def __init__(self, rows: list[int]) -> None:
        """`rows` are distinct and ascending."""
        self._blocks: list[list[int]] = []
        self._length = 0
        if len(rows) == 1:
            self.add(rows[0])
        elif rows:
            count = (rows[-1] >> BLOCK_BITS) + 1
            cuts = [*(bisect_left(rows, number << BLOCK_BITS) for number in range(count)), len(rows)]
            self._blocks = [rows[first:last] for first, last in pairwise(cuts)]
            self._length = len(rows)

    def add(self, row: int) -> None:
        number = row >> BLOCK_BITS
        if number >= len(self._blocks):
            self._blocks += [[] for _ in range(len(self._blocks), number + 1)]
        block = self._blocks[number]
        place = bisect_left(block, row)
        if place == len(block) or block[place] != row:
            block.insert(place, row)
            self._length += 1

    def discard(self, row: int) -> None:
        number = row >> BLOCK_BITS
        if number >= len(self._blocks):
            return
        block = self._blocks[number]
        place = bisect_left(block, row)
        if place < len(block) and block[place] == row:
            del block[place]
            self._length -= 1

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(self._blocks)

    @overload
    def __getitem__(self, place: int) -> int: ...

    @overload
    def __getitem__(self, place: slice) -> list[int]: ...

    def __getitem__(self, place: int | slice) -> int | list[int]:
        if isinstance(place, slice):
            return list(islice(self, *place.indices(self._length)))
        left = place if place >= 0 else place + self._length
        if left >= 0:
            for block in self._blocks:
                if left < len(block):
                    return block[left]
                left -= len(block)
        raise IndexError(f"place {place} of {self._length} rows")
