"""The time of `make fuzz` is bounded, and shared by its parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.__main__ import START_S, WEIGHTS, part_of, share_s
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("seconds", [200, 600, 6_000])
def test_the_parts_share_the_time(seconds: int) -> None:
    names, left_s = list(WEIGHTS), float(seconds)
    while names:
        left_s -= share_s(names, left_s) + START_S
        names.pop(0)
    assert 0.0 <= left_s <= len(WEIGHTS)


def test_without_time_each_part_has_a_second() -> None:
    assert share_s(list(WEIGHTS), 0.0) == 1


def test_a_part_is_repeated_by_its_command(tmp_path: Path) -> None:
    options = ["--seed", "7", "--seconds", "9", "--findings", str(tmp_path)]
    assert part_of("cel", 7, 9, tmp_path).command == ["-m", "tests.fuzz.coverage", "cel", *options]
    assert part_of("openapi", 7, 9, tmp_path).command == ["-m", "tests.fuzz.openapi", *options]
    assert TARGETS.keys() < WEIGHTS.keys()
