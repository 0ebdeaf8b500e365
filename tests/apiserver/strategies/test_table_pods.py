"""The table of the strategies of pods."""

from __future__ import annotations

from mooring.api.kinds import POD
from mooring.apiserver.strategies.table_pods import STRATEGIES


def test_each_strategy_can_be_made() -> None:
    made = {kind: strategy(kind) for kind, strategy in STRATEGIES.items()}
    assert set(made[POD].subresources) == {"status", "ephemeralcontainers", "resize"}
