"""Built-in kinds: defaults, validation, table columns and strategy of each, in one module per kind.

1. The row of a kind in `mooring.api.kinds` names the module. The module has the constant `STRATEGY`.
2. A kind with much code is a package. Its module `strategy` has `STRATEGY`.
3. Modules that belong to no single kind: `workloads` (kinds with a pod template), `scale`, `volume_sources`, `devices`.

Reading order: a small kind such as `priority_class`, then `config_map` and `workloads`, then `pod`.
"""

from __future__ import annotations

from importlib import import_module

from mooring.api.kinds import Kind
from mooring.apiserver.strategy import Strategy


def strategy_of(kind: Kind) -> Strategy:
    """The strategy of a built-in kind, from the module that its row names."""
    module = import_module(f"{__name__}.{kind.module_name}")
    if hasattr(module, "__path__"):
        module = import_module(f"{module.__name__}.strategy")
    strategy = module.STRATEGY(kind)
    assert isinstance(strategy, Strategy), f"STRATEGY of {module.__name__} is no Strategy"
    return strategy
