"""Requests of the endpoint /plan as JSON.

    {"question": "place", "seed": 1, "pods": [POD…], "copies": [3…], "podNames": ["ns/name"…], "nodes": ["n1"…],
     "nodeTypes": [{"name": "large", "like": "n1" | "node": NODE, "price": 1.5, "count": 2}…],
     "ratio": [3, 1], "movesMax": 50}

1. Pods are objects as the API server would store them: defaulted, with their priority. `mooring plan` expands
   workloads; the endpoint does not. `copies` has a number for each of them: the copies are named NAME-0, NAME-1 and so
   on. `podNames` names pending pods of the cluster.
2. Unknown fields are errors. Everything that is wrong is a `PlanError` with the field in its message.
3. A step of a plan reads one pod or node at once, so each has at most `OBJECT_BYTES_MAX`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from mooring.scheduler.plan.new_nodes import known_objects_of_nodes
from mooring.scheduler.plan.place import view_of
from mooring.scheduler.plan.planner import NODE_TYPES_MAX, PlanError
from mooring.scheduler.plan.request import PODS_MAX, PRICE_MAX, NodeType, PlanRequest, Question
from mooring.scheduler.plan.slices import Slices, mapped

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

    A plan tells whether a pending pod exists, and whether the claims of a given pod do."""
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
        raise PlanError("ratio and movesMax: wanted numbers from 1 on")
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
    for index, each in enumerate(requested.node_types):
        yield
        node_types.append(_node_type(each, f"nodeTypes[{index}]", columns))
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
        raise PlanError(f"{path}: wanted a pod with metadata.name and metadata.namespace")
    # A pod that exists may be given as an example: the plan is about another one like it.
    metadata = replace(pod.metadata, uid=f"planned {pod.key}")
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=""), status=PodStatus())


def _copied(pods: Sequence[Pod], copies: Sequence[int]) -> Slices[list[Pod]]:
    if len(copies) != len(pods) or any(number < 1 for number in copies):
        raise PlanError(f"copies: found {len(copies)} numbers for {len(pods)} pods; wanted one from 1 on for each")
    numbered = ((pod, number) for pod, count in zip(pods, copies, strict=True) for number in range(count))
    return (yield from mapped(_copy, numbered))


def _copy(numbered: tuple[Pod, int]) -> Pod:
    pod, number = numbered
    name = f"{pod.metadata.name}-{number}"
    return replace(pod, metadata=replace(pod.metadata, name=name, uid=f"{pod.metadata.uid}-{number}"))


def _pending_pod(name: str, waiting: Mapping[str, PodInfo]) -> Pod:
    if name not in waiting:
        raise PlanError(f'podNames: found no pending pod "{name}"; wanted NAMESPACE/NAME')
    return view_of(waiting[name])


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
        raise PlanError(f"{path}: wanted a price from 0 to {PRICE_MAX:.0g} and a count from 1 on")
    others: tuple[ApiObject, ...] = ()
    if bytes(body.node) != b"null":
        node: Node | None = _node(body.node, f"{path}.node")
    else:
        row = columns.row_of.get(body.like)
        node = columns.nodes[row] if row is not None else None
        others = known_objects_of_nodes(columns, [body.like])[body.like]
    if node is None:
        raise PlanError(f'{path}: found no node "{body.like}"; wanted the name of a node in `like`, or a `node`')
    return NodeType(body.name or body.like or node.metadata.name, node, body.price, body.count, others)
