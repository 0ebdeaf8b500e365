"""Which kinds are special, and how: all tables of strategies together."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.kinds import Kind
from mooring.apiserver.strategies import table_core, table_custom, table_pods, table_storage, table_workloads
from mooring.apiserver.strategy import Strategy

STRATEGIES: Mapping[Kind, type[Strategy]] = {
    **table_core.STRATEGIES,
    **table_custom.STRATEGIES,
    **table_pods.STRATEGIES,
    **table_storage.STRATEGIES,
    **table_workloads.STRATEGIES,
}
