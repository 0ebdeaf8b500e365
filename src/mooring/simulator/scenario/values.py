"""Durations, rates and seeds, as a scenario and the command line write them."""

from __future__ import annotations

import re

from mooring.api.durations import parse_duration

_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?)/(s|m|h|d)")
_RATE_UNIT_H = {"s": 3600.0, "m": 60.0, "h": 1.0, "d": 1 / 24}
_SEEDS = re.compile(r"([0-9]+)(?:\.\.([0-9]+))?")
SEEDS_MAX = 1000


def seconds(text: str) -> float:
    """A duration: as Go writes it, or in days (`2d`). Raises `ValueError`."""
    days, separator, rest = text.partition("d")
    if separator and days.isdecimal():
        return 86400.0 * int(days) + (seconds(rest) if rest else 0.0)
    return parse_duration(text)


def rate_per_h(text: str) -> float:
    """`60/h`, `1/m`. Raises `ValueError`."""
    match = _RATE.fullmatch(text)
    if match is None or float(match[1]) == 0:
        raise ValueError(f"{text!r} is no rate; wanted a number and a unit such as 60/h, 1/m or 200/d")
    return float(match[1]) * _RATE_UNIT_H[match[2]]


def seeds_of(text: str | int) -> list[int]:
    """`7`, `1..5`, or both with commas. Raises `ValueError`."""
    seeds: list[int] = []
    for part in str(text).split(","):
        match = _SEEDS.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{text!r} are no seeds; wanted numbers such as 7, 1..5 or 1,2,9")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first >= SEEDS_MAX:
            raise ValueError(f"{part} are no seeds; wanted 1 to {SEEDS_MAX} numbers in ascending order")
        seeds += range(first, last + 1)
    return list(dict.fromkeys(seeds))
