"""What a plan is asked, and the answer: the data types of `mooring plan` and of the endpoint /plan.

1. A request asks one question (`Question`). Its pods are complete: workloads are expanded and admitted before.
2. A result has the parts that belong to the question; the others are empty. Its JSON has documented, stable names
   (docs/plan.md): fields are only ever added.
3. The same cluster, seed and request give the same result, to the byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod

PODS_MAX = 10_000
"""Maximum number of pods in one request."""
CAPACITY_MAX = 20_000
"""Maximum number of pods that a capacity plan places."""

PRICE_MAX = 1e9
"""Maximum price of one node."""


class Question(StrEnum):
    PLACE = "place"
    REMOVE_NODES = "removeNodes"
    ADD_NODES = "addNodes"
    FIX = "fix"
    CAPACITY = "capacity"
    DEFRAGMENT = "defragment"


@dataclass(frozen=True, slots=True)
class NodeType:
    """A kind of node that can be added: a node as an example, and what one costs."""

    name: str
    node: Node
    price: float = 1.0
    count: int | None = None
    """How many to add; None: as few as possible."""
    others: tuple[ApiObject, ...] = ()
    """The ResourceSlices and the CSINode of the example."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """One question."""

    question: Question
    seed: int = 1
    pods: tuple[Pod, ...] = ()
    """The pods that are asked about. Empty for PLACE, ADD_NODES: all pending pods of the cluster. REMOVE_NODES places
    them after the nodes are gone."""
    nodes: tuple[str, ...] = ()
    """REMOVE_NODES: the names of the nodes."""
    node_types: tuple[NodeType, ...] = ()
    """ADD_NODES: the candidates."""
    ratio: tuple[int, ...] = ()
    """CAPACITY: how many of each pod make one group. Empty: one of each."""
    moves_max: int = 50
    """DEFRAGMENT."""
    wants_bound: bool = True
    """Solve the linear relaxation. The running scheduler does not: it would block for too long."""


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    pass


class PlannedVictim(_Part, frozen=True):
    """A pod that would be evicted."""

    pod: str
    priority: int = 0
    budgets_violated: tuple[str, ...] = ()


class Placement(_Part, frozen=True):
    """A pod and the node that it would get."""

    pod: str
    node: str
    score: int | None = None
    """The sum of the weighted scores of the node; None if it was the only feasible one."""
    moved_from: str = ""
    """Removal of nodes: the node that the pod is on today."""
    victims: tuple[PlannedVictim, ...] = ()


class PendingPod(_Part, frozen=True):
    """A pod that would get no node, and why."""

    pod: str
    message: str
    reasons: Mapping[str, int] = msgspec.field(default_factory=dict)
    """How many nodes give each reason."""
    moved_from: str = ""


class DrainedNode(_Part, frozen=True):
    """A node that is removed, in the order of a safe drain."""

    node: str
    is_safe: bool = True
    """All its pods find another node, and no disruption budget blocks an eviction."""
    pods: int = 0
    """Pods that are evicted."""
    ends: tuple[str, ...] = ()
    """Pods that end with the node: of DaemonSets, and static pods."""
    lost: tuple[str, ...] = ()
    """Pods without a controller: nothing creates them again."""
    blocked: tuple[str, ...] = ()
    """`PodDisruptionBudget ns/name blocks ns/pod`."""


class NodesToAdd(_Part, frozen=True):
    """How many nodes of one type are added."""

    type: str
    count: int
    price: float = 0.0
    """Of all of them."""


class Fix(_Part, frozen=True):
    """Changes that together make the pod fit, verified by deciding again."""

    changes: tuple[str, ...]
    node: str = ""
    """The node that the pod then gets."""


class CapacityAnswer(_Part, frozen=True):
    """How many more pods fit."""

    groups: int
    """How many times the given pods fit, in their ratio."""
    pods: Mapping[str, int]
    """Per pod of the request: how many more of it."""
    is_limit_reached: bool = False
    """More would fit: the plan ended at its limit."""
    limited_by: str = ""
    """The reason that most nodes give for the first pod that does not fit."""
    reasons: Mapping[str, int] = msgspec.field(default_factory=dict)
    """How many nodes give each reason."""


class Move(_Part, frozen=True):
    """A pod that is evicted and gets another node."""

    pod: str
    from_node: str = msgspec.field(name="from")
    to_node: str = msgspec.field(name="to")


class Usage(_Part, frozen=True):
    """Nodes before or after a plan."""

    nodes: int
    empty_nodes: int
    """Nodes without pods, not counting those of DaemonSets and static pods."""
    pending: int = 0


class Bound(_Part, frozen=True):
    """What no placement can beat, from the linear relaxation."""

    text: str
    value: float | None = None


class PlanResult(_Part, frozen=True):
    """The answer."""

    question: Question
    seed: int
    node_count: int
    placements: tuple[Placement, ...] = ()
    pending: tuple[PendingPod, ...] = ()
    drained: tuple[DrainedNode, ...] = ()
    nodes_to_add: tuple[NodesToAdd, ...] = ()
    fixes: tuple[Fix, ...] = ()
    capacity: CapacityAnswer | None = None
    moves: tuple[Move, ...] = ()
    cordoned: tuple[str, ...] = ()
    """Nodes that must be cordoned before the moves."""
    before: Usage | None = None
    after: Usage | None = None
    bound: Bound | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_anything_pending(self) -> bool:
        return bool(self.pending)
