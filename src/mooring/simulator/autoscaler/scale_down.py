"""Which nodes are unneeded.

1. The utilization of a node is the larger of the requested shares of its cpu and memory; on a node with GPUs, the share
   of these. Pods of DaemonSets count.
2. A node is unneeded if all of its pods fit on other nodes without preemption, have a controller, and no budget blocks
   their eviction. Each unneeded node is gone for the next ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.scheduler.cache.resources import CPU, MEMORY
from mooring.scheduler.engine import Engine
from mooring.scheduler.plan.drain import cordon, drain_node
from mooring.scheduler.plan.new_objects import RemovalOutcome, removal_outcome
from mooring.scheduler.plan.place import eviction_budgets
from mooring.scheduler.plan.slices import Slices
from mooring.scheduler.plan.what_if import WhatIf

GPU_SUFFIX = "/gpu"
"""How the names of resources end that are GPUs."""


def utilization(engine: Engine, name: str) -> float:
    """The requested share of a node."""
    resources, row = engine.columns.resources, engine.columns.row_of[name]
    gpus = [slot for slot, resource in enumerate(resources.names) if resource.endswith(GPU_SUFFIX)]
    slots = [slot for slot in gpus if resources.allocatable[slot, row]] or [CPU, MEMORY]
    offered = [(slot, int(resources.allocatable[slot, row])) for slot in slots]
    return max((int(resources.used[slot, row]) / amount for slot, amount in offered if amount), default=0.0)


def has_pods(engine: Engine, name: str) -> bool:
    """Whether a node has pods that do not end with it."""
    row = engine.columns.row_of.get(name)
    return row is not None and any(
        removal_outcome(pod) is not RemovalOutcome.ENDS for pod in engine.columns.pods_on[row].values()
    )


def unneeded_nodes(what_if: WhatIf, candidates: Sequence[str]) -> Slices[list[str]]:
    """The candidates that can be removed together, the first ones with preference."""
    unneeded: list[str] = []
    budgets = eviction_budgets(what_if)
    for name in candidates:
        mark = what_if.mark()
        cordon(what_if, name)
        outcome = yield from drain_node(what_if, name, budgets)
        if outcome.node.is_safe and not any(placement.victims for placement in outcome.placed.placements):
            unneeded.append(name)
        else:
            yield from outcome.undo(what_if, mark, budgets)
    return unneeded
