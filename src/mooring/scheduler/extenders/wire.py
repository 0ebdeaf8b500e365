"""The messages between a scheduler and its extenders, as JSON.

Comes in   pods, nodes and victims, as raw JSON or by name; the bytes of an answer
Goes out   the body of a request; an answer as a value, or `UnreadableAnswerError`

The names are those of `k8s.io/kube-scheduler/extender/v1`: Go's own, with capital letters, because the types there have
no tags.

 1. Whole objects go out as the bytes that came in: an extender sees every field that the API server knows.
 2. What comes in is read as Go would: the case of a field's name does not matter, unknown fields are ignored, and what
    is missing or null is empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec
from msgspec import Raw, Struct, field

Read = TypeVar("Read")

EXTENDER_PRIORITY_MAX = 10
"""The best score that an extender should give; more is not refused."""


class UnreadableAnswerError(ValueError):
    """An extender answered something else than was asked."""


# What is sent


class NodeList(Struct):
    items: Sequence[Raw]
    metadata: dict[str, str] = field(default_factory=dict)


class ExtenderArgs(Struct):
    """Which of these nodes, or how good are they: whole nodes, or names for extenders that know them already."""

    pod: Raw = field(name="Pod")
    nodes: NodeList | None = field(name="Nodes")
    node_names: Sequence[str] | None = field(name="NodeNames")


class SentVictims(Struct):
    pods: Sequence[Raw] = field(name="Pods")
    violations: int = field(name="NumPDBViolations")


class MetaPod(Struct):
    uid: str = field(name="UID")


class SentMetaVictims(Struct):
    pods: Sequence[MetaPod] = field(name="Pods")
    violations: int = field(name="NumPDBViolations")


class ExtenderPreemptionArgs(Struct):
    """Whom preemption would evict, by node: whole pods, or uids for extenders that know them already."""

    pod: Raw = field(name="Pod")
    victims: Mapping[str, SentVictims] | None = field(name="NodeNameToVictims")
    meta_victims: Mapping[str, SentMetaVictims] | None = field(name="NodeNameToMetaVictims")


class ExtenderBindingArgs(Struct):
    pod_name: str = field(name="PodName")
    pod_namespace: str = field(name="PodNamespace")
    pod_uid: str = field(name="PodUID")
    node: str = field(name="Node")


encode = msgspec.json.Encoder(order="deterministic").encode


# What comes back


class FilterResult(NamedTuple):
    node_names: tuple[str, ...] | None = None
    nodes: tuple[str, ...] | None = None
    """The names of whole nodes that came back."""
    failed: Mapping[str, str] = {}
    failed_for_good: Mapping[str, str] = {}
    error: str = ""


class HostPriority(NamedTuple):
    host: str
    score: int


class MetaVictims(NamedTuple):
    uids: tuple[str, ...]
    violations: int


class PreemptionResult(NamedTuple):
    victims: Mapping[str, MetaVictims]


class BindingResult(NamedTuple):
    error: str = ""


def read_filter_result(raw: bytes) -> FilterResult:
    fields = _fields(_json(raw))
    names, nodes = fields.get("nodenames"), fields.get("nodes")
    return FilterResult(
        tuple(map(_text, _list(names))) if names is not None else None,
        tuple(map(_name_of, _list(_fields(nodes).get("items")))) if nodes is not None else None,
        {name: _text(text) for name, text in _map(fields.get("failednodes")).items()},
        {name: _text(text) for name, text in _map(fields.get("failedandunresolvablenodes")).items()},
        _text(fields.get("error")),
    )


def read_host_priorities(raw: bytes) -> tuple[HostPriority, ...]:
    entries = map(_fields, _list(_json(raw)))
    return tuple(HostPriority(_text(entry.get("host")), _number(entry.get("score"))) for entry in entries)


def read_preemption_result(raw: bytes) -> PreemptionResult:
    by_node = _map(_fields(_json(raw)).get("nodenametometavictims"))
    return PreemptionResult({name: _meta_victims(_fields(victims)) for name, victims in by_node.items()})


def read_binding_result(raw: bytes) -> BindingResult:
    return BindingResult(_text(_fields(_json(raw)).get("error")))


def _meta_victims(fields: Mapping[str, object]) -> MetaVictims:
    uids = tuple(_text(_fields(pod).get("uid")) for pod in _list(fields.get("pods")))
    return MetaVictims(uids, _number(fields.get("numpdbviolations")))


def _name_of(node: object) -> str:
    return _text(_fields(_fields(node).get("metadata")).get("name"))


def _json(raw: bytes) -> object:
    try:
        found: object = msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        raise UnreadableAnswerError(str(error)) from error
    return found


def _fields(value: object) -> dict[str, object]:
    """The fields of an object by their names in small letters."""
    return {name.lower(): each for name, each in _map(value).items()}


def _map(value: object) -> dict[str, object]:
    return {} if value is None else _as(dict[str, object], value)


def _list(value: object) -> list[object]:
    return [] if value is None else _as(list[object], value)


def _text(value: object) -> str:
    return "" if value is None else _as(str, value)


def _number(value: object) -> int:
    return 0 if value is None else _as(int, value)


def _as(kind: type[Read], value: object) -> Read:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise UnreadableAnswerError(str(error)) from error
