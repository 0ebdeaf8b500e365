"""What the cluster would look like if a configuration had placed its pods: the figures of `mooring compare`.

1. The pods are placed in one `WhatIf` for each seed, in the order in which they are given.
2. A free resource of a node is stranded if no pod type of the cluster fits there any more. Pod types are the
   signatures of all pods that a controller owns or that are placed.
3. The skew of a workload is the difference between the zones with the most and the fewest of its pods; the figure is
   the mean over all workloads with at least two pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, pstdev

import msgspec
import numpy as np

from mooring.api.well_known import ZONE
from mooring.scheduler.cache.arrays import Bools
from mooring.scheduler.cache.pods import PodInfo, PodSignature
from mooring.scheduler.cache.resources import CPU_NON_ZERO, MEMORY_NON_ZERO, PODS
from mooring.scheduler.engine import Engine
from mooring.scheduler.plan.new_objects import RemovalOutcome, removal_outcome, replacement_of
from mooring.scheduler.plan.place import place_pod
from mooring.scheduler.plan.request import Placement
from mooring.scheduler.plan.slices import Slices, run_to_end
from mooring.scheduler.plan.what_if import WhatIf

_NOT_COMPARED = (PODS, CPU_NON_ZERO, MEMORY_NON_ZERO)


class ConfigurationOutcome(msgspec.Struct, frozen=True, rename="camel"):
    """The cluster after placing all pods with one configuration and one seed."""

    placed: int
    pending: int
    pending_by_reason: Mapping[str, int]
    """Pods by the reason that most nodes gave."""
    nodes_used: int
    nodes_empty: int
    allocation_percent: Mapping[str, float]
    """By resource: the requested share of all nodes."""
    stranded_percent: Mapping[str, float]
    """By resource: the share of all nodes that is free where no pod type fits."""
    zone_skew: float
    moved: int
    """Pods that land on another node than today."""
    node_shares: Mapping[str, float]
    """By node: the requested share of its fullest resource, for plots."""


class Summary(msgspec.Struct, frozen=True, rename="camel"):
    """A figure over several seeds."""

    mean: float
    spread: float
    """The standard deviation."""

    @classmethod
    def of(cls, values: Sequence[float]) -> Summary:
        return cls(round(fmean(values), 4), round(pstdev(values), 4))


def place_all(
    engine: Engine,
    pods: Sequence[PodInfo],
    node_today: Mapping[str, str],
    seed: int,
    progress: Callable[[], None],
) -> ConfigurationOutcome:
    """Place pods, and measure. `node_today` maps keys of pods to their nodes."""
    with WhatIf(engine, seed) as what_if:
        return run_to_end(_place(what_if, pods, node_today), progress)


def _place(what_if: WhatIf, pods: Sequence[PodInfo], node_today: Mapping[str, str]) -> Slices[ConfigurationOutcome]:
    reasons: Counter[str] = Counter()
    placed: list[PodInfo] = []
    moved = 0
    for pod in pods:
        outcome = yield from place_pod(what_if, pod)
        if isinstance(outcome, Placement):
            placed.append(pod)
            moved += pod.key in node_today and node_today[pod.key] != outcome.node
        else:
            reasons[next(iter(outcome.reasons), outcome.message)] += 1
    engine = what_if.engine
    used = _used_rows(engine)
    return ConfigurationOutcome(
        placed=len(placed),
        pending=len(pods) - len(placed),
        pending_by_reason=dict(sorted(reasons.items())),
        nodes_used=len(used),
        nodes_empty=engine.columns.node_count - len(used),
        allocation_percent=_allocation(engine),
        stranded_percent=_stranded(engine, pods),
        zone_skew=_zone_skew(engine, placed),
        moved=moved,
        node_shares=_node_shares(engine),
    )


def _used_rows(engine: Engine) -> list[int]:
    columns = engine.columns
    return [
        row
        for row in columns.row_of.values()
        if any(removal_outcome(pod) is not RemovalOutcome.ENDS for pod in columns.pods_on[row].values())
    ]


def _allocation(engine: Engine) -> dict[str, float]:
    return _shares(engine, np.ones(engine.columns.height, dtype=np.bool_), is_free=False)


def _stranded(engine: Engine, pods: Iterable[PodInfo]) -> dict[str, float]:
    """Per resource: what is free on rows where no pod type fits, as a share of all nodes."""
    takes_none: Bools = engine.columns.alive[: engine.columns.height].copy()
    for pod in _pod_types(engine, pods):
        takes_none &= ~engine.feasible_rows(pod)
    return _shares(engine, takes_none, is_free=True)


def _pod_types(engine: Engine, pods: Iterable[PodInfo]) -> list[PodInfo]:
    """A pending pod of each signature, of the pods that are placed and of those that were there before."""
    found: dict[PodSignature, PodInfo] = {}
    for pod in pods:
        found.setdefault(pod.signature, pod)
    for pod in engine.columns.pods.values():
        if (
            pod.signature not in found
            and removal_outcome(pod) is RemovalOutcome.MOVES
            and engine.is_responsible_for(pod)
        ):
            found[pod.signature] = replacement_of(engine, pod)
    return list(found.values())


def _shares(engine: Engine, rows: Bools, *, is_free: bool) -> dict[str, float]:
    columns = engine.columns
    height, resources = columns.height, columns.resources
    alive = columns.alive[:height]
    shares: dict[str, float] = {}
    for index, name in enumerate(resources.names):
        offered = resources.allocatable[index, :height][alive]
        if index in _NOT_COMPARED or not offered.any():
            continue
        amounts = resources.used[index, :height]
        if is_free:
            amounts = np.maximum(resources.allocatable[index, :height] - amounts, 0)
        shares[name] = round(100 * float(amounts[alive & rows].sum()) / float(offered.sum()), 2)
    return shares


def _zone_skew(engine: Engine, placed: Iterable[PodInfo]) -> float:
    columns = engine.columns
    nodes = [node for node in columns.nodes if node is not None]
    zones = sorted({node.metadata.labels[ZONE] for node in nodes if ZONE in node.metadata.labels})
    by_workload: dict[tuple[str, str], Counter[str]] = {}
    for pod in placed:
        node, owner = columns.nodes[pod.row], pod.signature.owner
        if owner is not None and node is not None and ZONE in node.metadata.labels:
            counts = by_workload.setdefault((pod.namespace, owner.name), Counter())
            counts[node.metadata.labels[ZONE]] += 1
    skews = [
        max(counts[zone] for zone in zones) - min(counts[zone] for zone in zones)
        for counts in by_workload.values()
        if counts.total() > 1
    ]
    return round(fmean(skews), 3) if skews else 0.0


def _node_shares(engine: Engine) -> dict[str, float]:
    columns = engine.columns
    shares: dict[str, float] = {}
    for name, row in sorted(columns.row_of.items()):
        offered, used = columns.resources.at(row)
        parts = [
            used[index] / offered[index]
            for index in range(len(offered))
            if index not in _NOT_COMPARED and offered[index]
        ]
        shares[name] = round(max(parts, default=0.0), 4)
    return shares
