"""Requests and results of plans: the data types of `mooring plan`, and the JSON of the endpoint /plan.

    {"question": "place", "seed": 1, "pods": [POD…], "copies": [3…], "podNames": ["ns/name"…], "nodes": ["n1"…],
     "nodeTypes": [{"name": "large", "like": "n1" | "node": NODE, "price": 1.5, "count": 2}…],
     "ratio": [3, 1], "movesMax": 50}

1. A request asks one question (`Question`). Its pods are objects as the API server would store them: workloads are
   expanded, defaults and priorities are set. `mooring plan` does so; the endpoint does not.
2. A result has the parts that belong to the question; the others are empty. Its JSON has documented, stable names
   (docs/plan.md): fields are only ever added.
3. The same cluster, seed and request give the same result, to the byte.
4. `copies` has a number for each pod: the copies are named NAME-0, NAME-1 and so on. `podNames` names pending pods of
   the cluster.
5. Unknown fields are errors. Everything that is wrong is a `PlanError` with the field in its message.
6. A step of a plan reads one pod or node at once, so each has at most `OBJECT_BYTES_MAX`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from mooring.api.decode import convert_as
from mooring.api.errors import DecodeError, ObjectError
from mooring.api.quantity import parse_quantity
from mooring.api.resources import node_accounting_requests
from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod, PodStatus
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.plan.new_objects import cluster_objects_of_nodes
from mooring.scheduler.plan.slices import Slices, map_in_slices

PODS_MAX = 10_000
"""Maximum number of pods in one request."""
CAPACITY_MAX = 20_000
"""Maximum number of pods that a capacity plan places."""

PRICE_MAX = 1e9
"""Maximum price of one node."""

NODE_TYPES_MAX = 100


class PlanError(Exception):
    """The request cannot be planned."""


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
    """The pods of the question. Empty for PLACE, ADD_NODES: all pending pods of the cluster. REMOVE_NODES places
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


class _CamelStruct(msgspec.Struct, frozen=True, rename="camel"):
    pass


class PlannedVictim(_CamelStruct, frozen=True):
    """A pod that would be evicted."""

    pod: str
    priority: int = 0
    budgets_violated: tuple[str, ...] = ()


class Placement(_CamelStruct, frozen=True):
    """A pod and the node that it would get."""

    pod: str
    node: str
    score: int | None = None
    """The sum of the weighted scores of the node; None if it was the only feasible one."""
    moved_from: str = ""
    """Removal of nodes: the node that the pod is on today."""
    victims: tuple[PlannedVictim, ...] = ()


class PendingPod(_CamelStruct, frozen=True):
    """A pod that would get no node, and why."""

    pod: str
    message: str
    reasons: Mapping[str, int] = msgspec.field(default_factory=dict)
    """How many nodes give each reason."""
    moved_from: str = ""


class DrainedNode(_CamelStruct, frozen=True):
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


class NodesToAdd(_CamelStruct, frozen=True):
    """How many nodes of one type are added."""

    type: str
    count: int
    price: float = 0.0
    """Of all of them."""


class Fix(_CamelStruct, frozen=True):
    """Changes that together make the pod fit, verified by deciding again."""

    changes: tuple[str, ...]
    node: str = ""
    """The node that the pod then gets."""


class CapacityAnswer(_CamelStruct, frozen=True):
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


class Move(_CamelStruct, frozen=True):
    """A pod that is evicted and gets another node."""

    pod: str
    from_node: str = msgspec.field(name="from")
    to_node: str = msgspec.field(name="to")


class Usage(_CamelStruct, frozen=True):
    """Nodes before or after a plan."""

    nodes: int
    empty_nodes: int
    """Nodes without pods, not counting those of DaemonSets and static pods."""
    pending: int = 0


class Bound(_CamelStruct, frozen=True):
    """What no placement can beat, from the linear relaxation."""

    text: str
    value: float | None = None


class PlanResult(_CamelStruct, frozen=True):
    """The result of a request."""

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


View = TypeVar("View", Pod, Node)

OBJECT_BYTES_MAX = 256 * 1024
"""Of one pod or node as JSON. Placing the most expensive pod of this size takes about 50 ms."""


class _NodeTypeBody(msgspec.Struct, forbid_unknown_fields=True):
    name: str = ""
    like: str = ""
    node: msgspec.Raw = msgspec.Raw(b"null")
    price: float = 1.0
    count: int | None = None


class RequestBody(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """A request as JSON. The kind Plan of the API server has the same fields (`api/schema/mooring.schema`)."""

    question: Question = Question.PLACE
    seed: int = 1
    pods: list[msgspec.Raw] = []
    copies: list[int] = []
    pod_names: list[str] = []
    nodes: list[str] = []
    node_types: list[_NodeTypeBody] = []
    ratio: list[int] = []
    moves_max: int = 50


class _PodName(msgspec.Struct, frozen=True):
    namespace: str = ""
    name: str = ""


class _NamedPod(msgspec.Struct, frozen=True):
    metadata: _PodName = _PodName()


class _Names(msgspec.Struct, rename="camel"):
    """The part of a request that names pods."""

    pods: list[_NamedPod] = []
    pod_names: list[str] = []


_names_decoder = msgspec.json.Decoder(_Names)
_decoder = msgspec.json.Decoder(RequestBody)


def pods_named(body: bytes) -> list[str]:
    """The pods that a request names, as keys. Raises `PlanError`.

    The result shows whether a pending pod exists, and whether the claims of a given pod do."""
    try:
        requested = _names_decoder.decode(body or b"{}")
    except msgspec.MsgspecError as error:
        raise PlanError(f"not a plan request: {error}") from None
    return [f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in requested.pods] + requested.pod_names


def decode_request(body: bytes, columns: Columns, pending: Callable[[], Sequence[PodInfo]]) -> Slices[PlanRequest]:
    """The request in a body. Raises `PlanError`."""
    yield
    try:
        requested = _decoder.decode(body or b"{}")
    except msgspec.MsgspecError as error:
        raise PlanError(f"not a plan request: {error}") from None
    if any(number < 1 for number in requested.ratio) or requested.moves_max < 1:
        raise PlanError("ratio and movesMax: expected numbers from 1 on")
    pods_requested = max(len(requested.pods), sum(requested.copies)) + len(requested.pod_names)
    if pods_requested > PODS_MAX:
        raise PlanError(f"found {pods_requested} pods; a plan takes at most {PODS_MAX}")
    if len(requested.node_types) > NODE_TYPES_MAX:
        raise PlanError(f"found {len(requested.node_types)} types of nodes; a plan takes at most {NODE_TYPES_MAX}")
    pods: list[Pod] = []
    for index, plain in enumerate(requested.pods):
        yield
        pods.append(_pod(plain, f"pods[{index}]"))
    if requested.copies:
        pods = yield from _copied(pods, requested.copies)
    if requested.pod_names:
        waiting = {pod.key: pod for pod in pending()}
        pods += [_pending_pod(name, waiting) for name in requested.pod_names]
    if requested.ratio and len(requested.ratio) != len(pods):
        raise PlanError(f"ratio: found {len(requested.ratio)} numbers for {len(pods)} pods")
    node_types: list[NodeType] = []
    for index, node_type in enumerate(requested.node_types):
        yield
        node_types.append(_node_type(node_type, f"nodeTypes[{index}]", columns))
    return PlanRequest(
        requested.question,
        requested.seed,
        tuple(pods),
        tuple(requested.nodes),
        tuple(node_types),
        tuple(requested.ratio),
        requested.moves_max,
        wants_bound=False,
    )


def _object(view: type[View], raw: msgspec.Raw, path: str) -> View:
    data = bytes(raw)
    if len(data) > OBJECT_BYTES_MAX:
        raise PlanError(f"{path}: found {len(data)} bytes; a plan takes at most {OBJECT_BYTES_MAX} for a pod or node")
    try:
        return convert_as(view, msgspec.json.decode(data, type=dict[str, Any]))
    except (DecodeError, msgspec.MsgspecError) as error:
        raise PlanError(f"{path}: {error}") from None


def _pod(raw: msgspec.Raw, path: str) -> Pod:
    pod = _object(Pod, raw, path)
    try:
        node_accounting_requests(pod)
    except ObjectError as error:
        raise PlanError(f"{path}: {error}") from None
    if not pod.metadata.name or not pod.metadata.namespace:
        raise PlanError(f"{path}: expected a pod with metadata.name and metadata.namespace")
    # A pod that exists may be given as an example: the plan is about another one like it.
    metadata = replace(pod.metadata, uid=f"planned {pod.key}")
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=""), status=PodStatus())


def _copied(pods: Sequence[Pod], copies: Sequence[int]) -> Slices[list[Pod]]:
    if len(copies) != len(pods) or any(number < 1 for number in copies):
        raise PlanError(f"copies: found {len(copies)} numbers for {len(pods)} pods; expected one from 1 on for each")
    numbered = ((pod, number) for pod, count in zip(pods, copies, strict=True) for number in range(count))
    return (yield from map_in_slices(_copy, numbered))


def _copy(numbered: tuple[Pod, int]) -> Pod:
    pod, number = numbered
    name = f"{pod.metadata.name}-{number}"
    return replace(pod, metadata=replace(pod.metadata, name=name, uid=f"{pod.metadata.uid}-{number}"))


def _pending_pod(name: str, waiting: Mapping[str, PodInfo]) -> Pod:
    if name not in waiting:
        raise PlanError(f'podNames: found no pending pod "{name}"; expected NAMESPACE/NAME')
    view = waiting[name].view
    assert view is not None, f"{name} is pending and has no view"
    return view


def _node(raw: msgspec.Raw, path: str) -> Node:
    node = _object(Node, raw, path)
    try:
        for amount in (*node.status.capacity.values(), *node.status.allocatable.values()):
            parse_quantity(amount)
    except ObjectError as error:
        raise PlanError(f"{path}: {error}") from None
    return node


def _node_type(body: _NodeTypeBody, path: str, columns: Columns) -> NodeType:
    if not 0 <= body.price <= PRICE_MAX or (body.count is not None and body.count < 1):
        raise PlanError(f"{path}: expected a price from 0 to {PRICE_MAX:.0g} and a count from 1 on")
    others: tuple[ApiObject, ...] = ()
    if bytes(body.node) != b"null":
        node: Node | None = _node(body.node, f"{path}.node")
    else:
        row = columns.row_of.get(body.like)
        node = columns.nodes[row] if row is not None else None
        others = cluster_objects_of_nodes(columns, [body.like])[body.like]
    if node is None:
        raise PlanError(f'{path}: found no node "{body.like}"; expected the name of a node in `like`, or a `node`')
    return NodeType(body.name or body.like or node.metadata.name, node, body.price, body.count, others)
