"""One extender: its settings, the messages of its protocol, and the meaning of its responses.

The messages are those of `k8s.io/kube-scheduler/extender/v1`, as JSON. Their fields have Go's names, with capital
letters, because the types there have no tags.

1. Whole objects are sent as the bytes that were received: an extender sees every field that the API server knows.
2. Responses are read as Go reads them: field names in any case, unknown fields ignored, missing and null fields
   empty.
3. An extender with managed resources gets requests only for pods that request one of these resources.
4. Ignorable extenders are called after all others.
5. An extender can only remove nodes. If its response has a node that was not in the request, the request has failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from mooring.api.field_errors import quoted
from mooring.api.views.pod import Container
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config import types as config
from mooring.scheduler.framework.plugin import SCORE_MAX
from mooring.scheduler.framework.status import Code, Status

Read = TypeVar("Read")

EXTENDER_PRIORITY_MAX = 10
"""The highest score that an extender should return. Higher scores are not rejected."""


class InvalidResponseError(ValueError):
    """The response of an extender is not the JSON that the request expects."""


# Requests


class NodeList(Struct):
    items: Sequence[Raw]
    metadata: dict[str, str] = field(default_factory=dict)


class ExtenderArgs(Struct):
    """The nodes to filter or score: whole nodes, or names for extenders that are `nodeCacheCapable`."""

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
    """The victims by node: whole pods, or uids for extenders that are `nodeCacheCapable`."""

    pod: Raw = field(name="Pod")
    victims: Mapping[str, SentVictims] | None = field(name="NodeNameToVictims")
    meta_victims: Mapping[str, SentMetaVictims] | None = field(name="NodeNameToMetaVictims")


class ExtenderBindingArgs(Struct):
    pod_name: str = field(name="PodName")
    pod_namespace: str = field(name="PodNamespace")
    pod_uid: str = field(name="PodUID")
    node: str = field(name="Node")


encode = msgspec.json.Encoder(order="deterministic").encode


# Responses


class ExtenderFilterResult(NamedTuple):
    node_names: tuple[str, ...] | None = None
    nodes: tuple[str, ...] | None = None
    """The names of the whole nodes in the response."""
    failed: Mapping[str, str] = {}
    failed_and_unresolvable: Mapping[str, str] = {}
    error: str = ""


class HostPriority(NamedTuple):
    host: str
    score: int


class MetaVictims(NamedTuple):
    uids: tuple[str, ...]
    violations: int


class ExtenderPreemptionResult(NamedTuple):
    victims: Mapping[str, MetaVictims]


class ExtenderBindingResult(NamedTuple):
    error: str = ""


def read_filter_result(raw: bytes) -> ExtenderFilterResult:
    fields = _lowercase_fields(_json(raw))
    names, nodes = fields.get("nodenames"), fields.get("nodes")
    return ExtenderFilterResult(
        tuple(map(_text, _list(names))) if names is not None else None,
        tuple(map(_name_of, _list(_lowercase_fields(nodes).get("items")))) if nodes is not None else None,
        {name: _text(text) for name, text in _mapping(fields.get("failednodes")).items()},
        {name: _text(text) for name, text in _mapping(fields.get("failedandunresolvablenodes")).items()},
        _text(fields.get("error")),
    )


def read_host_priorities(raw: bytes) -> tuple[HostPriority, ...]:
    entries = map(_lowercase_fields, _list(_json(raw)))
    return tuple(HostPriority(_text(entry.get("host")), _number(entry.get("score"))) for entry in entries)


def read_preemption_result(raw: bytes) -> ExtenderPreemptionResult:
    by_node = _mapping(_lowercase_fields(_json(raw)).get("nodenametometavictims"))
    return ExtenderPreemptionResult(
        {name: _meta_victims(_lowercase_fields(victims)) for name, victims in by_node.items()}
    )


def read_binding_result(raw: bytes) -> ExtenderBindingResult:
    return ExtenderBindingResult(_text(_lowercase_fields(_json(raw)).get("error")))


def _meta_victims(fields: Mapping[str, object]) -> MetaVictims:
    uids = tuple(_text(_lowercase_fields(pod).get("uid")) for pod in _list(fields.get("pods")))
    return MetaVictims(uids, _number(fields.get("numpdbviolations")))


def _name_of(node: object) -> str:
    return _text(_lowercase_fields(_lowercase_fields(node).get("metadata")).get("name"))


def _json(raw: bytes) -> object:
    try:
        found: object = msgspec.json.decode(raw)
    except (msgspec.DecodeError, ValueError) as error:
        raise InvalidResponseError(str(error)) from error
    except RecursionError as error:
        raise InvalidResponseError("it is nested too deeply") from error
    return found


def _lowercase_fields(value: object) -> dict[str, object]:
    """The fields of an object by their names in lower case."""
    return {name.lower(): field for name, field in _mapping(value).items()}


def _mapping(value: object) -> dict[str, object]:
    return {} if value is None else _convert(dict[str, object], value)


def _list(value: object) -> list[object]:
    return [] if value is None else _convert(list[object], value)


def _text(value: object) -> str:
    return "" if value is None else _convert(str, value)


def _number(value: object) -> int:
    return 0 if value is None else _convert(int, value)


def _convert(kind: type[Read], value: object) -> Read:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InvalidResponseError(str(error)) from error


EXTENDER = "Extender"
"""The name of extenders among the unschedulable plugins. No plugin has it, so every event may help the pod."""


class ExtenderFailure(NamedTuple):
    """A request failed, or its response is invalid."""

    text: str


class FilteredNodes(NamedTuple):
    """The nodes that extenders leave, and the statuses of those that they removed."""

    node_names: tuple[str, ...]
    node_to_status: Mapping[str, Status]


class Extender:
    """The settings of one extender, and the meaning of its responses."""

    def __init__(self, settings: config.ExtenderConfiguration) -> None:
        self.settings = settings
        self._managed = frozenset(resource.name for resource in settings.managed_resources)

    def __repr__(self) -> str:
        return f"Extender({self.name})"

    @property
    def name(self) -> str:
        return self.settings.url_prefix

    def url(self, verb: str) -> str:
        return f"{self.settings.url_prefix.rstrip('/')}/{verb}"

    def is_interested(self, pod: PodInfo) -> bool:
        if not self._managed:
            return True
        spec = pod.signature.spec
        return self._is_managed(spec.containers) or self._is_managed(spec.init_containers)

    def filtered(self, node_names: Sequence[str], result: ExtenderFilterResult) -> FilteredNodes | ExtenderFailure:
        """The nodes of the request that are left, and the statuses of the others."""
        if result.error:
            return ExtenderFailure(result.error)
        left = result.node_names if self.settings.node_cache_capable and result.node_names is not None else result.nodes
        known = frozenset(node_names)
        for name in left or ():
            if name not in known:
                return ExtenderFailure(
                    f"extender {quoted(self.name)} claims a filtered node {quoted(name)} which is not found in the "
                    "input node list"
                )
        node_to_status = {name: Status(Code.UNSCHEDULABLE, (text,)) for name, text in result.failed.items()}
        node_to_status |= {
            name: Status(Code.UNRESOLVABLE, (text,)) for name, text in result.failed_and_unresolvable.items()
        }
        return FilteredNodes(tuple(dict.fromkeys(left or ())), node_to_status)

    def scores(self, priorities: Iterable[HostPriority]) -> dict[str, int]:
        """The score that the extender adds to the total of each node."""
        factor = self.settings.weight * (SCORE_MAX // EXTENDER_PRIORITY_MAX)
        added: dict[str, int] = {}
        for host, score in priorities:
            added[host] = _wrap_int64(added.get(host, 0) + score * factor)
        return added

    def _is_managed(self, containers: Iterable[Container]) -> bool:
        return any(
            not self._managed.isdisjoint(container.resources.requests)
            or not self._managed.isdisjoint(container.resources.limits)
            for container in containers
        )


def extenders_of(configuration: config.SchedulerConfiguration) -> tuple[Extender, ...]:
    """All extenders, in the order in which they are called."""
    ordered = sorted(configuration.extenders, key=lambda settings: settings.ignorable)
    return tuple(Extender(settings) for settings in ordered)


def _wrap_int64(number: int) -> int:
    """Wrap around as Go's int64 does: the scores of an extender are not limited."""
    return (number + 2**63) % 2**64 - 2**63


class ExtenderError(OSError):
    """A request to an extender failed. A later one may succeed."""


class Transport(Protocol):
    """Sends requests to extenders."""

    async def send(self, extender: Extender, verb: str, body: bytes) -> bytes: ...

    async def close(self) -> None: ...
