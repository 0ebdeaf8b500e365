"""Completion indexes of an indexed Job, as intervals. No I/O.

Inputs: text such as "1,3-5,7", indexes, annotations of pods. Outputs: `Intervals`, sorted and disjoint; text.

1. Two neighbours are written with a comma ("4,5"), three or more with a hyphen ("4-6").
2. Indexes beyond the completions are cut off, and invalid parts are skipped: a status may be older than the spec.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from mooring.api.labels import parse_int64
from mooring.api.views.pod import Pod
from mooring.api.well_known import JOB_COMPLETION_INDEX

UNKNOWN = -1

Intervals: TypeAlias = tuple[tuple[int, int], ...]
"""First and last index of each interval, both inclusive."""


def parse_indexes(text: str, completions: int) -> Intervals:
    found: list[tuple[int, int]] = []
    for part in text.split(",") if text else ():
        first_text, *rest = part.split("-")
        first = parse_int64(first_text)
        if first is None:
            continue
        if first >= completions:
            break
        last = parse_int64(rest[0]) if rest else first
        if last is None:
            continue
        last = min(last, completions - 1)
        if found and found[-1][1] == first - 1:
            found[-1] = (found[-1][0], last)
        else:
            found.append((first, last))
    return tuple(found)


def indexes_text(intervals: Intervals) -> str:
    parts = []
    for first, last in intervals:
        joint = "," if last == first + 1 else "-"
        parts.append(str(first) if last == first else f"{first}{joint}{last}")
    return ",".join(parts)


def merged(one: Intervals, other: Intervals) -> Intervals:
    """The union."""
    found: list[tuple[int, int]] = []
    for first, last in sorted((*one, *other)):
        if not found or first > found[-1][1] + 1:
            found.append((first, last))
        elif found[-1][1] < last:
            found[-1] = (found[-1][0], last)
    return tuple(found)


def with_indexes(intervals: Intervals, indexes: Iterable[int]) -> Intervals:
    return merged(intervals, tuple((index, index) for index in sorted(set(indexes))))


def count_indexes(intervals: Intervals) -> int:
    return sum(last - first + 1 for first, last in intervals)


def has_index(intervals: Intervals, index: int) -> bool:
    place = bisect_left(intervals, index, key=lambda interval: interval[1])
    return place < len(intervals) and intervals[place][0] <= index


def overlap(one: Intervals, other: Intervals) -> int:
    """The number of common indexes."""
    return sum(
        max(0, min(last, other_last) - max(first, other_first) + 1)
        for first, last in one
        for other_first, other_last in other
    )


def first_pending(taken: Intervals, count: int, completions: int) -> list[int]:
    """The lowest `count` indexes that are not taken."""
    pending: list[int] = []
    for index in _gaps(taken, completions):
        if len(pending) == count:
            break
        pending.append(index)
    return pending


def _gaps(taken: Intervals, completions: int) -> Iterator[int]:
    candidate = 0
    for first, last in taken:
        yield from range(candidate, min(first, completions))
        candidate = max(candidate, last + 1)
    yield from range(candidate, completions)


def completion_index(pod: Pod) -> int:
    """The completion index of a pod. `UNKNOWN` if the annotation is missing or invalid."""
    text = pod.metadata.annotations.get(JOB_COMPLETION_INDEX)
    index = parse_int64(text) if text is not None else None
    return index if index is not None and index >= 0 else UNKNOWN


def indexes_of(pods: Sequence[Pod]) -> set[int]:
    return {index for pod in pods if (index := completion_index(pod)) != UNKNOWN}
