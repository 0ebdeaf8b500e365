"""The indexes of a job as it writes them down: `1,3-5,7`.

Comes in   a text and how many indexes there are
Goes out   how many it names, or where two texts overlap; an `IndexesError` says what is wrong with it
"""

from __future__ import annotations

import re

from mooring.api.field_errors import quoted

_is_integer = re.compile("[+-]?[0-9]+").fullmatch


class IndexesError(ValueError):
    """A text of indexes that cannot be read."""


def count_indexes(text: str, completions: int) -> int:
    """How many indexes a text names. Raises `IndexesError`."""
    total = 0
    last: int | None = None
    for part in text.split(",") if text else ():
        first, final = _interval(part, completions)
        if last is not None and last >= first:
            raise IndexesError(f"non-increasing order, previous: {last}, current: {first}")
        total += final - first + 1
        last = final
    return total


def first_overlap(one: str, other: str, completions: int) -> int | None:
    """The first index that both texts name; parts that cannot be read are passed over."""
    ours, theirs = _readable(one, completions), _readable(other, completions)
    our, their = 0, 0
    while our < len(ours) and their < len(theirs):
        (start, end), (other_start, other_end) = ours[our], theirs[their]
        if start <= other_end and other_start <= end:
            return max(start, other_start)
        if start <= other_start:
            our += 1
        else:
            their += 1
    return None


def _readable(text: str, completions: int) -> list[tuple[int, int]]:
    intervals = []
    for part in text.split(",") if text else ():
        try:
            intervals.append(_interval(part, completions))
        except IndexesError:
            continue
    return intervals


def _interval(text: str, completions: int) -> tuple[int, int]:
    limits = text.split("-")
    if len(limits) > 2:
        raise IndexesError(
            f"the fragment {quoted(text)} violates the requirement that an index interval can have at most two parts "
            "separated by '-'"
        )
    numbers = [_index(limit, completions) for limit in limits]
    first, final = numbers[0], numbers[-1]
    if len(numbers) == 2 and first >= final:
        raise IndexesError(f"non-increasing order, previous: {first}, current: {final}")
    return first, final


def _index(text: str, completions: int) -> int:
    if not _is_integer(text):
        raise IndexesError(f"cannot convert string to integer for index: {quoted(text)}")
    number = int(text)
    if number >= completions:
        raise IndexesError(f"too large index: {quoted(text)}")
    return number
