"""Shares of resources as bytes."""

from __future__ import annotations

import numpy as np
import pytest

from mooring.client.unavailable import UnavailableClient
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.scheduler.config import load_configuration
from mooring.scheduler.console_data import ConsoleData, shares
from mooring.scheduler.scheduler import Scheduler
from mooring.serving.pages import as_json
from tests.builders import node


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


def test_an_update_of_many_nodes_has_a_few_bytes_for_each() -> None:
    count = 5_000
    scheduler = Scheduler(UnavailableClient(), load_configuration(None), clock=VirtualClock(), entropy=Entropy(1))
    for number in range(count):
        scheduler.engine.put(node(f"node-{number}", cpu=4))
    data = ConsoleData(scheduler, VirtualClock())
    whole = data.nodes("")
    update = as_json(data.nodes(str(whole["facts"]))).body
    assert len(whole["names"]) == count  # type: ignore[arg-type]
    assert b"node-1" not in update
    assert len(update) <= 16 * count
