"""Shares of resources as bytes."""

from __future__ import annotations

import numpy as np
import pytest

from mooring.scheduler.console.nodes import shares


@pytest.mark.parametrize(
    ("used", "allocatable", "percent"),
    [
        (0, 100, 0),
        (50, 100, 50),
        (999, 1000, 99),
        (100, 100, 100),
        (150, 100, 150),
        (1000, 100, 255),
        (0, 0, 0),
        (1, 0, 255),
        (1 << 50, 1 << 51, 50),
    ],
)
def test_a_share_is_a_percentage_that_fits_into_a_byte(used: int, allocatable: int, percent: int) -> None:
    assert shares(np.array([used]), np.array([allocatable])).tolist() == [percent]
