"""Every special kind of the table can be made, with its doors."""

from __future__ import annotations

from mooring.api.kinds import NAMESPACE
from mooring.apiserver.strategies.table_core import STRATEGIES


def test_every_strategy_can_be_made() -> None:
    for kind, made in STRATEGIES.items():
        found = made(kind)
        assert found.kind is kind
        assert ("status" in found.subresources) is kind.has_status
    assert set(STRATEGIES[NAMESPACE](NAMESPACE).subresources) == {"status", "finalize"}
