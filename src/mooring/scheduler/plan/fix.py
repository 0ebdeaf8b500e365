"""The smallest changes that make a pending pod fit, ranked and verified.

An obstacle says what keeps a pod from a node (`framework.obstacle`). For each kind there is at most one change of the
pod and one of the node that removes it:

    obstacle        the pod                         the node
    resource        requests less                   pods are evicted
    podSlot                                         pods are evicted
    taint           tolerates it                    loses it
    cordon                                          is uncordoned
    nodeLabel       does not require the label      gets the label
    hostPort        does not use the port           the pod that uses it is evicted
    spread          without the constraints
    affinity        without required affinity
    antiAffinity    without required anti-affinity

1. For each of the nearest nodes, every obstacle is removed by one change, of the pod or of the node: once with changes
   of the pod where possible, once with changes of the node. Where only evictions help (resources, pod slots, host
   ports, anti-affinity), the fewest pods of the node are evicted. A new node like one of today is one change, too.
2. Every fix is applied in a `WhatIf`, and the pod is decided again. Only fixes with which it gets a node are listed.
3. A fix that only requests less than a listed one, for another node, is left out. So is a new node that differs from a
   listed one only in its zone and region.
4. Fewer changes come first; then changes of the pod, of a node, evictions, a new node; then those of nearer nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from mooring.api.quantity import parse_quantity, quantity_nano
from mooring.api.views.meta import NodeSelectorRequirement
from mooring.api.views.node import Node
from mooring.api.views.pod import Container, Pod, Toleration
from mooring.api.well_known import REGION, TAINT_UNSCHEDULABLE, ZONE
from mooring.scheduler.cache.disruption_budgets import BudgetCount
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cache.resources import CPU
from mooring.scheduler.cycle.explain import explain
from mooring.scheduler.framework.obstacle import Details, Obstacle, ObstacleKind
from mooring.scheduler.plan.new_objects import (
    NewNode,
    RemovalOutcome,
    cluster_objects_of_nodes,
    node_like,
    removal_outcome,
)
from mooring.scheduler.plan.place import eviction_budgets, without_preemption
from mooring.scheduler.plan.request import Fix
from mooring.scheduler.plan.slices import Slices
from mooring.scheduler.plan.what_if import WhatIf

NODES_TRIED_MAX = 20
"""How many of the nearest nodes are examined."""
FIXES_MAX = 10
"""How many fixes are returned."""
FIXES_OF_RANK_MAX = 3
"""How many of them have the same rank: changes of the pod, of a node, evictions, a new node."""
VERIFIED_MAX = 40
"""How many candidates are verified."""
NEW_NODE = "new-node"
EVICTIONS_MAX = 8
"""How many evictions a fix may need."""
_BY_EVICTION = (
    ObstacleKind.RESOURCE,
    ObstacleKind.POD_SLOT,
    ObstacleKind.HOST_PORT,
    ObstacleKind.ANTI_AFFINITY,
)
_RANK_POD, _RANK_NODE, _RANK_EVICTION, _RANK_NEW_NODE = range(4)


@dataclass(frozen=True, slots=True)
class PodChange:
    """A change of the pod."""

    text: str
    pod: Pod


@dataclass(frozen=True, slots=True)
class NodeChange:
    """A change of the node."""

    text: str
    node: Node


def change_pod(pod: Pod, obstacle: Obstacle) -> PodChange | None:
    """The pod without the obstacle; None if no change of a pod removes it."""
    details, spec = obstacle.details, pod.spec
    match obstacle.kind:
        case ObstacleKind.RESOURCE:
            return _request_less(pod, details)
        case ObstacleKind.TAINT:
            toleration = Toleration(
                key=str(details["key"]),
                operator="Equal",
                value=str(details["value"]),
                effect=str(details["effect"]),
            )
            text = f"tolerate {_taint_text(details)}"
            return PodChange(text, replace(pod, spec=replace(spec, tolerations=(*spec.tolerations, toleration))))
        case ObstacleKind.NODE_LABEL:
            return _require_less(pod, details)
        case ObstacleKind.HOST_PORT:
            port = int(details["port"])
            containers = tuple(_without_port(container, port) for container in spec.containers)
            return PodChange(f"do not use host port {port}", replace(pod, spec=replace(spec, containers=containers)))
        case ObstacleKind.SPREAD:
            soft = tuple(
                constraint
                for constraint in spec.topology_spread_constraints
                if constraint.when_unsatisfiable != "DoNotSchedule"
            )
            if len(soft) == len(spec.topology_spread_constraints):
                return None
            text = "drop the topology spread constraints with DoNotSchedule"
            return PodChange(text, replace(pod, spec=replace(spec, topology_spread_constraints=soft)))
        case ObstacleKind.AFFINITY:
            if spec.affinity is None or spec.affinity.pod_affinity is None:
                return None
            preferred = replace(spec.affinity.pod_affinity, required_during_scheduling_ignored_during_execution=())
            affinity = replace(spec.affinity, pod_affinity=preferred)
            return PodChange("drop the required pod affinity", replace(pod, spec=replace(spec, affinity=affinity)))
        case ObstacleKind.ANTI_AFFINITY:
            if spec.affinity is None or spec.affinity.pod_anti_affinity is None:
                return None
            anti = replace(spec.affinity.pod_anti_affinity, required_during_scheduling_ignored_during_execution=())
            affinity = replace(spec.affinity, pod_anti_affinity=anti)
            return PodChange("drop the required pod anti-affinity", replace(pod, spec=replace(spec, affinity=affinity)))
        case _:
            return None


def change_node(node: Node, obstacle: Obstacle) -> NodeChange | None:
    """The node without the obstacle; None if no change of its object removes it."""
    details, name = obstacle.details, node.metadata.name
    match obstacle.kind:
        case ObstacleKind.CORDON:
            return NodeChange(f"uncordon node {name}", uncordoned(node))
        case ObstacleKind.TAINT:
            taints = tuple(
                taint
                for taint in node.spec.taints
                if (taint.key, taint.effect) != (str(details["key"]), str(details["effect"]))
            )
            text = f"remove the taint {_taint_text(details)} from node {name}"
            return NodeChange(text, replace(node, spec=replace(node.spec, taints=taints)))
        case ObstacleKind.NODE_LABEL:
            key, separator, value = str(details.get("needs", "")).partition("=")
            if not separator or not key or "(" in key or key.endswith("!") or key.startswith("metadata."):
                return None
            labels = {**node.metadata.labels, key: value}
            text = f"label node {name} with {key}={value}"
            return NodeChange(text, replace(node, metadata=replace(node.metadata, labels=labels)))
        case _:
            return None


def uncordoned(node: Node) -> Node:
    taints = tuple(taint for taint in node.spec.taints if taint.key != TAINT_UNSCHEDULABLE)
    return replace(node, spec=replace(node.spec, unschedulable=False, taints=taints))


def _taint_text(details: Details) -> str:
    value = f"={details['value']}" if details["value"] else ""
    return f"{details['key']}{value}:{details['effect']}"


def _request_less(pod: Pod, details: Details) -> PodChange | None:
    """The container that requests most of the resource requests less, by what is missing."""
    resource, missing = str(details["resource"]), quantity_nano(str(details["missing"]))
    containers = list(pod.spec.containers)

    def requested(container: Container) -> int:
        return quantity_nano(container.resources.requests.get(resource, "0"))

    if not containers:
        return None
    largest = max(range(len(containers)), key=lambda index: requested(containers[index]))
    before = requested(containers[largest])
    if before <= missing:
        return None
    amount = str(
        parse_quantity(containers[largest].resources.requests[resource]) - parse_quantity(str(details["missing"]))
    )
    requests = {**containers[largest].resources.requests, resource: amount}
    resources = replace(containers[largest].resources, requests=requests)
    containers[largest] = replace(containers[largest], resources=resources)
    text = f"request {amount} {resource} "
    text += f"in container {containers[largest].name}" if len(containers) > 1 else f"instead of {details['wanted']}"
    return PodChange(text, replace(pod, spec=replace(pod.spec, containers=tuple(containers))))


def _require_less(pod: Pod, details: Details) -> PodChange | None:
    """Without the node selector, or the requirement of node affinity, that the node does not meet."""
    needs, spec = str(details.get("needs", "")), pod.spec
    key = needs.partition("=")[0].partition(" ")[0].removeprefix("!").rstrip("!")
    if key in spec.node_selector:
        selector: Mapping[str, str] = {name: value for name, value in spec.node_selector.items() if name != key}
        text = f"drop the node selector {key}={spec.node_selector[key]}"
        return PodChange(text, replace(pod, spec=replace(spec, node_selector=selector)))
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    if spec.affinity is None or affinity is None or required is None:
        return None

    def others(requirements: tuple[NodeSelectorRequirement, ...]) -> tuple[NodeSelectorRequirement, ...]:
        return tuple(requirement for requirement in requirements if requirement.key != key)

    terms = tuple(
        replace(term, match_expressions=others(term.match_expressions), match_fields=others(term.match_fields))
        for term in required.node_selector_terms
    )
    if terms == required.node_selector_terms:
        return None
    is_empty = any(not term.match_expressions and not term.match_fields for term in terms)
    changed = None if is_empty else replace(required, node_selector_terms=terms)
    node_affinity = replace(affinity, required_during_scheduling_ignored_during_execution=changed)
    spec = replace(spec, affinity=replace(spec.affinity, node_affinity=node_affinity))
    return PodChange(f"do not require the node label {key}", replace(pod, spec=spec))


def _without_port(container: Container, port: int) -> Container:
    ports = tuple(
        replace(container_port, host_port=0) if container_port.host_port == port else container_port
        for container_port in container.ports
    )
    return replace(container, ports=ports)


@dataclass(frozen=True, slots=True)
class _FixCandidate:
    """Changes that may make the pod fit."""

    texts: tuple[str, ...]
    rank: int
    place: int
    """Nearer nodes come first; of new nodes the smaller ones."""
    node_name: str
    pod: Pod | None = None
    """The changed pod."""
    node: Node | None = None
    """The changed node."""
    new_node: NewNode | None = None
    evicted: tuple[PodInfo, ...] = ()
    other_texts: frozenset[str] = frozenset()
    """The changes that do not lower a request of the pod."""

    @property
    def order(self) -> tuple[int, int, int, tuple[str, ...], str]:
        return len(self.texts), self.rank, self.place, self.texts, self.node_name


def fixes_for(what_if: WhatIf, pod: PodInfo, view: Pod) -> Slices[list[Fix]]:
    """The smallest changes that make the pod fit, best first; nothing if it fits already."""
    yield
    if what_if.decide(pod).node_name is not None:
        return []
    engine = what_if.engine
    pod = without_preemption(engine, view)  # a fix that needs a preemption is none
    yield
    found = explain(engine.cycle_for(pod).profile, engine.columns, pod, nearest_max=NODES_TRIED_MAX)
    obstacles_on = {name: found.at(name) for name in found.nearest}
    candidates = yield from _candidates(what_if, view, found.everywhere, obstacles_on)
    smallest: dict[tuple[str, ...], _FixCandidate] = {}
    for candidate in sorted(candidates, key=lambda candidate: candidate.order):
        smallest.setdefault(candidate.texts, candidate)
    fixes: list[Fix] = []
    listed: list[_FixCandidate] = []
    of_rank: Counter[int] = Counter()
    for texts, candidate in list(smallest.items())[:VERIFIED_MAX]:
        yield
        if of_rank[candidate.rank] == FIXES_OF_RANK_MAX:
            continue
        if any(_changes_more(what_if, candidate, other) or _is_alike(candidate, other) for other in listed):
            continue
        node_name = yield from _verify(what_if, pod, candidate)
        if node_name is not None:
            fixes.append(Fix(texts, node_name))
            listed.append(candidate)
            of_rank[candidate.rank] += 1
        if len(fixes) == FIXES_MAX:
            break
    return fixes


def _changes_more(what_if: WhatIf, candidate: _FixCandidate, other: _FixCandidate) -> bool:
    """Whether a fix makes all changes of another one that fits, and requests at most as much."""
    if candidate.pod is None or other.pod is None or not other.other_texts <= candidate.other_texts:
        return False
    requests, enough = (
        _changed_pod(what_if, pod_change).signature.request_vector for pod_change in (candidate.pod, other.pod)
    )
    return bool((requests <= enough).all())


def _is_alike(candidate: _FixCandidate, other: _FixCandidate) -> bool:
    """Whether both are new nodes that differ in nothing but where they are."""
    if candidate.rank != _RANK_NEW_NODE or other.rank != _RANK_NEW_NODE:
        return False
    assert candidate.new_node is not None, f"{candidate} has no node"
    assert other.new_node is not None, f"{other} has no node"
    return _anywhere(candidate.new_node) == _anywhere(other.new_node)


def _anywhere(new: NewNode) -> NewNode:
    labels = {key: value for key, value in new.node.metadata.labels.items() if key not in (ZONE, REGION)}
    return NewNode(replace(new.node, metadata=replace(new.node.metadata, labels=labels)), new.others)


def _candidates(
    what_if: WhatIf, view: Pod, everywhere: Sequence[Obstacle], obstacles_on: Mapping[str, Sequence[Obstacle]]
) -> Slices[list[_FixCandidate]]:
    """`obstacles_on` has the nearest nodes, nearest first."""
    if any(change_pod(view, obstacle) is None for obstacle in everywhere):
        return []  # something is missing that no change of a pod or node brings, such as a claim
    candidates: list[_FixCandidate] = []
    for place, (name, obstacles) in enumerate(obstacles_on.items()):
        for prefers_pod in (True, False):
            yield
            node = what_if.node(name)
            candidate = yield from _without_obstacles(what_if, view, node, place, obstacles, prefers_pod)
            if candidate is not None:
                candidates.append(candidate)
    return candidates + _by_new_node(what_if, obstacles_on)


def _without_obstacles(
    what_if: WhatIf, view: Pod, node: Node, place: int, obstacles: Sequence[Obstacle], prefers_pod: bool
) -> Slices[_FixCandidate | None]:
    """Every obstacle is removed by a change of the pod or of the node, whichever is preferred, or else by evictions."""
    name, changed_view, changed_node = node.metadata.name, view, node
    texts: list[str] = []
    lowered: set[str] = set()
    needs_eviction = False
    for obstacle in obstacles:
        by_pod, by_node = change_pod(changed_view, obstacle), change_node(changed_node, obstacle)
        if by_pod is not None and obstacle.kind in _BY_EVICTION and not prefers_pod:
            by_pod = None
        if by_pod is not None and (prefers_pod or by_node is None):
            changed_view = by_pod.pod
            texts.append(by_pod.text)
            if obstacle.kind is ObstacleKind.RESOURCE:
                lowered.add(by_pod.text)
        elif by_node is not None:
            changed_node = by_node.node
            texts.append(by_node.text)
        elif obstacle.kind in _BY_EVICTION:
            needs_eviction = True
        else:
            return None
    evicted: tuple[PodInfo, ...] = ()
    if needs_eviction:
        evicted = yield from _to_evict(what_if, _changed_pod(what_if, changed_view), changed_node, name)
        if not evicted:
            return None
        budgets = eviction_budgets(what_if)
        texts += [_eviction_text(victim, name, budgets) for victim in evicted]
    rank = _RANK_EVICTION if evicted else _RANK_NODE if changed_node is not node else _RANK_POD
    return _FixCandidate(
        tuple(dict.fromkeys(texts)),
        rank,
        place,
        name,
        pod=changed_view if changed_view is not view else None,
        node=changed_node if changed_node is not node else None,
        evicted=evicted,
        other_texts=frozenset(texts) - lowered,
    )


def _eviction_text(pod: PodInfo, node_name: str, budgets: BudgetCount) -> str:
    violated = ", ".join(budgets.take(pod))
    return f"evict {pod.key} from node {node_name}" + (f" (violates budget {violated})" if violated else "")


def _changed_pod(what_if: WhatIf, view: Pod) -> PodInfo:
    """The changed pod: another pod than the one that is pending."""
    metadata = replace(view.metadata, uid=f"{view.metadata.uid or view.key} changed")
    return without_preemption(what_if.engine, replace(view, metadata=metadata))


def _to_evict(what_if: WhatIf, pod: PodInfo, changed: Node, name: str) -> Slices[tuple[PodInfo, ...]]:
    """The fewest pods whose eviction makes the pod fit on the node; nothing if more than the limit are needed.

    Pods of lower priority go first, then those that free most of what is missing. Pods that end with the node stay.
    """
    mark = what_if.mark()
    what_if.put_node(changed)
    pods = [candidate for candidate in what_if.pods_on(name) if removal_outcome(candidate) is not RemovalOutcome.ENDS]
    pods.sort(
        key=lambda candidate: (
            candidate.priority,
            tuple(-int(amount) for amount in candidate.signature.request_vector[:2]),
            candidate.key,
        )
    )
    evicted: list[PodInfo] = []
    for victim in pods[:EVICTIONS_MAX]:
        yield
        what_if.evict(victim)
        evicted.append(victim)
        if what_if.decide(pod).node_name is not None:
            break
    else:
        evicted.clear()
    yield from what_if.undo_in_slices(mark)
    for victim in list(evicted):
        fewer = [other for other in evicted if other is not victim]
        yield
        what_if.put_node(changed)
        for other in fewer:
            yield
            what_if.evict(other)
        if fewer and what_if.decide(pod).node_name is not None:
            evicted = fewer
        yield from what_if.undo_in_slices(mark)
    return tuple(evicted)


def _by_new_node(what_if: WhatIf, names: Collection[str]) -> list[_FixCandidate]:
    """A new node like one of these; one for nodes that are alike."""
    candidates: list[_FixCandidate] = []
    columns = what_if.engine.columns
    for name, others in cluster_objects_of_nodes(columns, names).items():
        new = node_like(what_if.node(name), others, NEW_NODE)
        if all(new != candidate.new_node for candidate in candidates):
            size = columns.resources.at(what_if.row_of(name))[0][CPU]
            texts = (f"add a node like {name}",)
            candidates.append(_FixCandidate(texts, _RANK_NEW_NODE, size, NEW_NODE, new_node=new))
    return candidates


def _verify(what_if: WhatIf, pod: PodInfo, candidate: _FixCandidate) -> Slices[str | None]:
    """The node that the pod gets with the changes; None if it gets none."""
    mark = what_if.mark()
    if candidate.node is not None:
        what_if.put_node(candidate.node)
    if candidate.new_node is not None:
        what_if.add_node(candidate.new_node)
    for victim in candidate.evicted:
        yield
        what_if.evict(victim)
    changed = pod
    if candidate.pod is not None:
        changed = _changed_pod(what_if, candidate.pod)
    decision = what_if.decide(changed)
    yield from what_if.undo_in_slices(mark)
    return decision.node_name
