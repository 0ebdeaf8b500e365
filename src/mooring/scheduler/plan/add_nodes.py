"""How many nodes of which types must be added so that all given pods get a node.

Every candidate is verified by placing the pods on the cluster with the new nodes, as the scheduler would.

1. The pods of DaemonSets that run on nodes of today are placed on a new node (`new_nodes`) first, if they fit there.
2. The search preempts nothing. Pods that fit on no type, even if the new node is empty, stay pending and do not count
   for the search.
3. With one type: the smallest number, by doubling and bisection. With several: the cheapest of the best mix found
   greedily and of the best number of each single type. The mix is a heuristic; `bound` says how good it is.
4. At most `NODES_MAX` nodes are added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from mooring.api.resources import node_allocatable
from mooring.api.views.pod import Pod
from mooring.scheduler.cache.pods import PodInfo, PodSignature
from mooring.scheduler.cache.resources import CPU, MEMORY
from mooring.scheduler.plan.bound import fewest_nodes
from mooring.scheduler.plan.new_objects import NewNode, daemon_pod_for, node_like
from mooring.scheduler.plan.place import (
    Placed,
    in_queue_order,
    place_pod,
    place_pods,
    without_preemption,
)
from mooring.scheduler.plan.request import Bound, NodesToAdd, NodeType, Placement
from mooring.scheduler.plan.slices import Slices, map_in_slices
from mooring.scheduler.plan.what_if import WhatIf

NODES_MAX = 1_000

Counts = Mapping[str, int]
"""By the name of a type: how many nodes are added."""


@dataclass(slots=True)
class Added:
    """The nodes to add, and the pods on the cluster with them."""

    nodes: list[NodesToAdd] = field(default_factory=list)
    placed: Placed = field(default_factory=Placed)
    bound: Bound | None = None


def add_nodes(
    what_if: WhatIf, pods: Sequence[PodInfo], types: Sequence[NodeType], *, wants_bound: bool
) -> Slices[Added]:
    """Add the numbers of nodes that are given, or the cheapest ones with which all pods fit."""
    search = _Search(what_if, types, (yield from daemon_pods(what_if)))
    is_search = any(node_type.count is None for node_type in types)
    if not is_search:
        counts: Counts = {node_type.name: node_type.count or 0 for node_type in types}
    else:
        engine = what_if.engine
        alike = yield from map_in_slices(lambda pod: without_preemption(engine, _view_of(pod)), pods)
        counts = yield from search.cheapest(alike)
    mark = what_if.mark()
    yield from search.add(counts)
    placed = yield from place_pods(what_if, pods)
    yield from what_if.undo_in_slices(mark)
    bound: Bound | None = None
    if wants_bound and is_search and not any(placement.victims for placement in placed.placements):
        has_node = {placement.pod for placement in placed.placements}
        bound = yield from search.bound([pod for pod in pods if pod.key in has_node])
    nodes = [
        NodesToAdd(node_type.name, counts[node_type.name], counts[node_type.name] * node_type.price)
        for node_type in types
        if counts.get(node_type.name)
    ]
    return Added(nodes, placed, bound)


def add_node(what_if: WhatIf, new: NewNode, daemons: Iterable[PodInfo]) -> Slices[None]:
    """Add a node, and the pods of these DaemonSets that fit there."""
    yield
    what_if.add_node(new)
    for daemon in daemons:
        yield
        decision = what_if.decide(daemon_pod_for(what_if.engine, daemon, new.node.metadata.name))
        if decision.node_name == new.node.metadata.name:
            what_if.place(decision)


def daemon_pods(what_if: WhatIf) -> Slices[list[PodInfo]]:
    """One pod of each DaemonSet."""
    found: dict[tuple[str, str], PodInfo] = {}
    for name in list(what_if.engine.columns.row_of):
        yield
        for pod in what_if.pods_on(name):
            owner = pod.signature.owner
            if owner is not None and owner.kind == "DaemonSet":
                found.setdefault((pod.namespace, owner.name), pod)
    return [found[key] for key in sorted(found)]


def place_all(what_if: WhatIf, pods: Sequence[PodInfo]) -> Slices[list[PodInfo]]:
    """Place the pods. Returns those that get no node."""
    unplaced: list[PodInfo] = []
    rejected: set[int] = set()
    for pod in in_queue_order(pods):
        if id(pod.signature) in rejected and not _has_claims(pod):
            unplaced.append(pod)  # nothing that was placed since can help an equal pod
            continue
        outcome = yield from place_pod(what_if, pod)
        if not isinstance(outcome, Placement):
            unplaced.append(pod)
            if not _needs_others(pod.signature):
                rejected.add(id(pod.signature))
    return unplaced


class _Search:
    def __init__(self, what_if: WhatIf, types: Sequence[NodeType], daemons: Sequence[PodInfo]) -> None:
        self._what_if = what_if
        self._types = {node_type.name: node_type for node_type in types}
        self._daemons = daemons
        self._added: Counter[str] = Counter()

    def add(self, counts: Counts) -> Slices[None]:
        """Add nodes with the pods of their DaemonSets."""
        for name, count in counts.items():
            for _ in range(count):
                yield
                self._added[name] += 1
                example = self._types[name]
                new = node_like(example.node, example.others, f"{name}-new-{self._added[name]}")
                yield from add_node(self._what_if, new, self._daemons)

    def cheapest(self, pods: Sequence[PodInfo]) -> Slices[Counts]:
        mark = self._mark()
        missing = yield from place_all(self._what_if, pods)
        yield from self._undo_to(mark)
        missing = yield from self._helped(missing)
        if not missing:
            return {}
        candidates: list[_NodeMix] = []
        for node_type in sorted(self._types.values(), key=lambda node_type: (node_type.price, node_type.name)):
            count_max = min(len(missing), NODES_MAX)
            if candidates and node_type.price > 0:
                count_max = min(count_max, int(min(candidates).price / node_type.price))
            count = yield from self._smallest(pods, node_type, count_max, missing)
            if count is not None:
                candidates.append(self._candidate({node_type.name: count}))
        if len(self._types) > 1:
            mix = yield from self._greedy_mix(pods, missing)
            if mix is not None:
                candidates.append(self._candidate(mix))
        return min(candidates).counts if candidates else {}

    def _candidate(self, counts: Counts) -> _NodeMix:
        price = sum(count * self._types[name].price for name, count in counts.items())
        return _NodeMix(price, sum(counts.values()), ",".join(sorted(counts)), counts)

    def bound(self, pods: Sequence[PodInfo]) -> Slices[Bound]:
        """The price that no choice of nodes can go below."""
        self._added.clear()
        mark = self._mark()
        yield from self.add(dict.fromkeys(self._types, 1))
        row_of = self._what_if.engine.columns.row_of
        added = {name: (row_of[f"{name}-new-1"], node_type.price) for name, node_type in self._types.items()}
        bound = fewest_nodes(self._what_if.engine, pods, added)
        yield from self._undo_to(mark)
        return bound

    def _helped(self, pods: Sequence[PodInfo]) -> Slices[list[PodInfo]]:
        """The pods that fit if there is a new node of each type."""
        what_if, mark = self._what_if, self._mark()
        yield from self.add(dict.fromkeys(self._types, 1))
        helped: dict[int, bool] = {}
        found: list[PodInfo] = []
        for pod in pods:
            key = id(pod) if _has_claims(pod) else id(pod.signature)
            if key not in helped:
                inner = what_if.mark()
                outcome = yield from place_pod(what_if, pod)
                helped[key] = isinstance(outcome, Placement)
                yield from what_if.undo_in_slices(inner)
            if helped[key]:
                found.append(pod)
        yield from self._undo_to(mark)
        return found

    def _smallest(
        self, pods: Sequence[PodInfo], node_type: NodeType, count_max: int, missing: Sequence[PodInfo]
    ) -> Slices[int | None]:
        """The smallest number of nodes of one type with which none of the pods is missing; None if too many."""
        missing_uids = {pod.uid for pod in missing}
        count, too_few = min(1, count_max), 0
        while not (yield from self._suffices(pods, {node_type.name: count}, missing_uids)):
            if count >= count_max:
                return None
            too_few, count = count, min(2 * count, count_max)
        while count - too_few > 1:
            middle = (count + too_few) // 2
            if (yield from self._suffices(pods, {node_type.name: middle}, missing_uids)):
                count = middle
            else:
                too_few = middle
        return count

    def _suffices(self, pods: Sequence[PodInfo], counts: Counts, missing_uids: set[str]) -> Slices[bool]:
        mark = self._mark()
        yield from self.add(counts)
        unplaced = yield from place_all(self._what_if, pods)
        yield from self._undo_to(mark)
        return not any(pod.uid in missing_uids for pod in unplaced)

    def _greedy_mix(self, pods: Sequence[PodInfo], missing: Sequence[PodInfo]) -> Slices[Counts | None]:
        """Add the node with the lowest price for what it takes, until no pod is missing; then drop needless ones.

        The fewer pods are left, the less a node takes: a type is tried again only if its last ratio is the lowest.
        Pods that need others, such as those that are spread, may fit later: then all types are tried again."""
        missing_uids = {pod.uid for pod in missing}
        counts: Counter[str] = Counter()
        mark = self._mark()
        left = yield from place_all(self._what_if, pods)
        left = [pod for pod in left if pod.uid in missing_uids]
        untried = [(0.0, name) for name in sorted(self._types)]
        ratios = untried.copy()
        needs_others = any(_needs_others(pod.signature) for pod in left)
        while left and ratios and sum(counts.values()) < NODES_MAX:
            _, name = heappop(ratios)
            inner = self._mark()
            yield from self.add({name: 1})
            still = yield from place_all(self._what_if, left)
            if len(still) == len(left):
                yield from self._undo_to(inner)
                continue
            missing_still = {pod.uid for pod in still}
            node_type = self._types[name]
            ratio = node_type.price / _weight([pod for pod in left if pod.uid not in missing_still], node_type)
            heappush(ratios, (ratio, name))
            if ratios[0] == (ratio, name):
                counts[name] += 1
                left = still
                if needs_others:
                    ratios = untried.copy()
            else:
                yield from self._undo_to(inner)
        yield from self._undo_to(mark)
        for name in sorted(counts, key=lambda name: -self._types[name].price):
            while counts[name] and (yield from self._suffices(pods, counts - Counter({name: 1}), missing_uids)):
                counts[name] -= 1
        is_enough = yield from self._suffices(pods, counts, missing_uids)
        return +counts if is_enough else None

    def _mark(self) -> _Mark:
        return _Mark(self._what_if.mark(), self._added.copy())

    def _undo_to(self, mark: _Mark) -> Slices[None]:
        yield from self._what_if.undo_in_slices(mark.step)
        self._added = mark.added.copy()


class _Mark(NamedTuple):
    step: int
    added: Counter[str]


class _NodeMix(NamedTuple):
    """Nodes with which all pods fit. The cheapest is the smallest."""

    price: float
    node_count: int
    names: str
    counts: Counts


def _weight(pods: Iterable[PodInfo], node_type: NodeType) -> float:
    """How many nodes of the type the pods would fill, by the resource that fills it first."""
    offered = node_allocatable(node_type.node)
    total: Counter[str] = Counter()
    count = 0
    for pod in pods:
        count += 1
        vector = pod.signature.request_vector
        total["cpu"] += int(vector[CPU])
        total["memory"] += int(vector[MEMORY])
    shares = [total[name] / offered[name] for name in ("cpu", "memory") if offered.get(name)]
    return max([*shares, count / max(offered.get("pods", 110), 1)])


def _view_of(pod: PodInfo) -> Pod:
    """The object of a pending pod."""
    assert pod.view is not None, f"{pod} is not pending"
    return pod.view


def _needs_others(signature: PodSignature) -> bool:
    """Whether a pod that was placed later may help a pod of this signature."""
    affinity = signature.spec.affinity
    return bool(signature.spec.topology_spread_constraints) or (
        affinity is not None and affinity.pod_affinity is not None
    )


def _has_claims(pod: PodInfo) -> bool:
    """Whether the pod may fit where another one of its signature does not."""
    return bool(pod.claims or _view_of(pod).spec.resource_claims)
