"""What the events of a scenario do: each is a generator of commands, which a level carries out.

    for command in event_steps(event, nodes, entropy): ...

1. A generator decides and does nothing; the level does and decides nothing. After `Pause` the level resumes the
   generator when the time has passed, after `DrainNodes` when the nodes are empty or the timeout is over.
2. The nodes that an event chooses depend on the seed, the number of the event and the nodes that exist.
3. Random failures are a Poisson process: each node of the pool fails once in `mtbf` on average. The rate follows the
   number of nodes within `REDRAW_S`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from mooring.api.views.node import Node
from mooring.kit.entropy import Entropy
from mooring.simulator.errors import ScenarioError
from mooring.simulator.scenario.fields import (
    DrainPart,
    FailPart,
    NodesPart,
    RolloutPart,
    ScalePart,
    ScenarioEvent,
    UpgradePart,
    seconds,
)
from mooring.simulator.sources import NodePools
from mooring.simulator.workload import FOREVER_S, exponential

REDRAW_S = 600.0
EVICTION_RETRY_S = 5.0
DRAIN_CHECK_S = 1.0
"""As kubectl drain: time until an eviction that a budget forbids is tried again, and between two looks at pods that are
terminating."""


@dataclass(frozen=True, slots=True)
class Pause:
    delay_s: float


@dataclass(frozen=True, slots=True)
class AddNodes:
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class RemoveNode:
    name: str


@dataclass(frozen=True, slots=True)
class FailNode:
    name: str


@dataclass(frozen=True, slots=True)
class RecoverNode:
    name: str


@dataclass(frozen=True, slots=True)
class CordonNode:
    name: str
    is_cordoned: bool


@dataclass(frozen=True, slots=True)
class DrainNodes:
    """Evict the pods of cordoned nodes, all nodes at once, as budgets allow."""

    names: tuple[str, ...]
    timeout_s: float = FOREVER_S


@dataclass(frozen=True, slots=True)
class Fork:
    """Carry out other steps at the same time."""

    steps: Steps


Command: TypeAlias = (
    Pause | AddNodes | RemoveNode | FailNode | RecoverNode | CordonNode | DrainNodes | Fork | ScalePart | RolloutPart
)
Steps: TypeAlias = Iterator[Command]


class EventNodes(Protocol):
    """The nodes of a running simulation."""

    @property
    def pools(self) -> NodePools: ...

    def now_s(self) -> float: ...

    def has_node(self, name: str) -> bool:
        """Whether a node exists, failed or not."""
        ...

    def pool_nodes(self, pool: str) -> list[str]:
        """The nodes of a pool that have not failed, in order of their names."""
        ...


def event_steps(event: ScenarioEvent, nodes: EventNodes, entropy: Entropy) -> Steps:
    """What an event does, from its time on. Raises `ScenarioError` when it names a node that does not exist."""
    found = event.change()
    assert found is not None, "the scenario was validated"
    match found:
        case (_, ScalePart() | RolloutPart() as change):
            yield change
        case (_, UpgradePart() as change):
            yield from _upgrade(change, nodes)
        case (_, DrainPart() as change):
            yield from _drain(change, _chosen(change, nodes, entropy), nodes)
        case ("add", NodesPart() as change):
            yield _new_nodes(change.pool, change.count or 0, nodes)
        case (_, FailPart() as change) if change.mtbf:
            yield from _random_failures(change, nodes, entropy)
        case (_, FailPart() as change):
            yield from _failure(change, _chosen(change, nodes, entropy))
        case ("remove", NodesPart() as change):
            yield from [RemoveNode(name) for name in _chosen(change, nodes, entropy)]
        case (name, NodesPart() as change):
            chosen = _chosen(change, nodes, entropy)
            yield from [CordonNode(node_name, name == "cordon") for node_name in chosen]
            if change.duration:
                yield Pause(seconds(change.duration))
                yield from _uncordoned(chosen, nodes)


def _chosen(change: NodesPart, nodes: EventNodes, entropy: Entropy) -> list[str]:
    """The nodes of a change: those named, or some of the pool, by the seed."""
    unknown = [name for name in change.nodes if not nodes.has_node(name)]
    if unknown:
        text = f"an event at {nodes.now_s():.0f} s names {', '.join(unknown)}, which does not exist"
        raise ScenarioError("", text)
    if change.nodes:
        return change.nodes
    names = nodes.pool_nodes(change.pool)
    chosen: list[str] = []
    for _ in range(len(names) if change.count is None else min(change.count, len(names))):
        chosen.append(entropy.choose(names))
        names.remove(chosen[-1])
    return chosen


def _failure(change: NodesPart, chosen: Sequence[str]) -> Steps:
    yield from [FailNode(name) for name in chosen]
    if change.duration:
        yield Pause(seconds(change.duration))
        yield from [RecoverNode(name) for name in chosen]


def _random_failures(change: FailPart, nodes: EventNodes, entropy: Entropy) -> Steps:
    mean_s = seconds(change.mtbf)
    while True:
        count = len(nodes.pool_nodes(change.pool))
        delay_s = exponential(mean_s / count, entropy) if count else REDRAW_S
        # An exponential distribution has no memory: what is left of a long delay is drawn again.
        yield Pause(min(delay_s, REDRAW_S))
        names = nodes.pool_nodes(change.pool)
        if delay_s < REDRAW_S and names:
            yield Fork(_failure(change, [entropy.choose(names)]))


def _drain(change: DrainPart, chosen: Sequence[str], nodes: EventNodes) -> Steps:
    """One node after the other; all are cordoned first."""
    yield from [CordonNode(name, True) for name in chosen]
    for name in chosen:
        yield DrainNodes((name,), _timeout_s(change.timeout))
    if change.duration:
        yield Fork(_later_uncordoned(seconds(change.duration), chosen, nodes))


def _later_uncordoned(delay_s: float, names: Sequence[str], nodes: EventNodes) -> Steps:
    yield Pause(delay_s)
    yield from _uncordoned(names, nodes)


def _uncordoned(names: Sequence[str], nodes: EventNodes) -> Steps:
    for name in names:
        if nodes.has_node(name):  # it may have been removed meanwhile
            yield CordonNode(name, False)


def _upgrade(change: UpgradePart, nodes: EventNodes) -> Steps:
    """Replace the nodes of a pool, `surge` at a time; without a surge one by one, and the old one goes first."""
    old, size = nodes.pool_nodes(change.pool), max(change.surge, 1)
    for first in range(0, len(old), size):
        batch = old[first : first + size]
        if change.surge:
            yield from _delayed_nodes(change, len(batch), nodes)
        batch = [name for name in batch if nodes.has_node(name)]
        yield from [CordonNode(name, True) for name in batch]
        yield DrainNodes(tuple(batch), _timeout_s(change.timeout))
        yield from [RemoveNode(name) for name in batch if nodes.has_node(name)]
        if not change.surge:
            yield from _delayed_nodes(change, 1, nodes)


def _delayed_nodes(change: UpgradePart, count: int, nodes: EventNodes) -> Steps:
    if change.delay:
        yield Pause(seconds(change.delay))
    yield _new_nodes(change.pool, count, nodes)


def _new_nodes(pool: str, count: int, nodes: EventNodes) -> AddNodes:
    return AddNodes(tuple(nodes.pools.add(pool, count)))


def _timeout_s(text: str) -> float:
    return seconds(text) if text else FOREVER_S
