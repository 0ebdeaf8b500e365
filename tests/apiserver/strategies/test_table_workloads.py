"""Every kind in the table has a strategy that can be made."""

from __future__ import annotations

import pytest

from mooring.api.kinds import Kind
from mooring.apiserver.strategies.table_workloads import STRATEGIES


@pytest.mark.parametrize("kind", STRATEGIES, ids=str)
def test_a_status_has_a_strategy_of_its_own(kind: Kind) -> None:
    strategy = STRATEGIES[kind](kind)
    assert ("status" in strategy.subresources) is kind.has_status
    for status in strategy.subresources.values():
        assert status.ignored_fields[0] == ("spec",)
        assert status.allows_unconditional_update is strategy.allows_unconditional_update
