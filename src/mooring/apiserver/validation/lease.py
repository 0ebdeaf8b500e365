"""What is wrong with a lease.

Comes in   a lease's spec
Goes out   faults

 1. The strategy's faults name `strategy` twice in their path: so does kube-apiserver.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.validation.fields import Fault, forbidden, invalid, not_supported
from mooring.apiserver.validation.names import qualified_name_faults

_STRATEGIES = ("OldestEmulationVersion",)


def lease_faults(spec: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    duration_s, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration_s is not None and duration_s <= 0:
        faults.append(invalid(f"{path}.leaseDurationSeconds", duration_s, "must be greater than 0"))
    if transitions is not None and transitions < 0:
        faults.append(invalid(f"{path}.leaseTransitions", transitions, "must be greater than or equal to 0"))
    strategy = spec.get("strategy")
    if strategy is not None:
        faults += _strategy_faults(strategy, f"{path}.strategy.strategy")
    if spec.get("preferredHolder") and not strategy:
        faults.append(forbidden(f"{path}.preferredHolder", "may only be specified if `strategy` is defined"))
    return faults


def _strategy_faults(strategy: str, path: str) -> list[Fault]:
    if "/" in strategy:
        return [invalid(path, strategy, text) for text in qualified_name_faults(strategy)]
    return [] if strategy in _STRATEGIES else [not_supported(path, strategy, _STRATEGIES)]
