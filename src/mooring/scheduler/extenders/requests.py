"""Requests to extenders as values, and the conclusions from the responses.

The scheduling cycle never awaits. A decision with extenders is a generator (`Exchange`): it yields requests that may
be sent at the same time, is sent the responses in the same order, and returns its result.

1. Filter and preempt requests go from extender to extender: each gets the nodes that the one before it left.
   Prioritize requests are sent at the same time.
2. The failure of an extender ends the decision, unless the extender is ignorable. A failed prioritize request is
   always ignored.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

import msgspec

from mooring.kit.logs import fields
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.extenders.extender import (
    Extender,
    ExtenderArgs,
    ExtenderFailure,
    ExtenderFilterResult,
    ExtenderPreemptionArgs,
    ExtenderPreemptionResult,
    FilteredNodes,
    HostPriority,
    MetaPod,
    NodeList,
    SentMetaVictims,
    SentVictims,
    encode,
    read_filter_result,
    read_host_priorities,
    read_preemption_result,
)
from mooring.scheduler.framework.post_filter import Candidates, Victims
from mooring.scheduler.framework.status import Status

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
AnyResult = TypeVar("AnyResult", ExtenderFilterResult, ExtenderPreemptionResult)


class RawObjects(Protocol):
    """Objects as JSON, for extenders that are sent whole objects. Raises LookupError for an object that is gone."""

    def node(self, name: str) -> bytes: ...

    def pod(self, pod: PodInfo) -> bytes: ...


@dataclass(frozen=True, slots=True)
class NodesRequest:
    """A question about nodes: whole nodes, or names for extenders that are `nodeCacheCapable`."""

    extender: Extender
    pod: PodInfo
    node_names: tuple[str, ...]

    def body(self, objects: RawObjects) -> bytes:
        whole_pod = msgspec.Raw(objects.pod(self.pod))
        if self.extender.settings.node_cache_capable:
            return encode(ExtenderArgs(whole_pod, None, self.node_names))
        nodes = NodeList([msgspec.Raw(objects.node(name)) for name in self.node_names])
        return encode(ExtenderArgs(whole_pod, nodes, None))


class FilterRequest(NodesRequest):
    """Which of these nodes can take the pod?"""

    @property
    def verb(self) -> str:
        return self.extender.settings.filter_verb

    def read(self, raw: bytes) -> ExtenderFilterResult:
        return read_filter_result(raw)


class PrioritizeRequest(NodesRequest):
    """How good is each of these nodes?"""

    @property
    def verb(self) -> str:
        return self.extender.settings.prioritize_verb

    def read(self, raw: bytes) -> tuple[HostPriority, ...]:
        return read_host_priorities(raw)


@dataclass(frozen=True, slots=True)
class PreemptRequest:
    """On which of these nodes may these pods be evicted?"""

    extender: Extender
    pod: PodInfo
    victims: Candidates

    @property
    def verb(self) -> str:
        return self.extender.settings.preempt_verb

    def body(self, objects: RawObjects) -> bytes:
        pod = msgspec.Raw(objects.pod(self.pod))
        if self.extender.settings.node_cache_capable:
            by_uid = {
                name: SentMetaVictims([MetaPod(victim.uid) for victim in found.pods], found.violations)
                for name, found in self.victims.items()
            }
            return encode(ExtenderPreemptionArgs(pod, None, by_uid))
        whole = {
            name: SentVictims([msgspec.Raw(objects.pod(victim)) for victim in found.pods], found.violations)
            for name, found in self.victims.items()
        }
        return encode(ExtenderPreemptionArgs(pod, whole, None))

    def read(self, raw: bytes) -> ExtenderPreemptionResult:
        return read_preemption_result(raw)


ExtenderRequest: TypeAlias = FilterRequest | PrioritizeRequest | PreemptRequest
ExtenderResponse: TypeAlias = (
    ExtenderFilterResult | tuple[HostPriority, ...] | ExtenderPreemptionResult | ExtenderFailure
)
Exchange: TypeAlias = Generator[tuple[ExtenderRequest, ...], tuple[ExtenderResponse, ...], Result]
"""Yields requests that may be sent at the same time, is sent the responses, and returns a result."""


def filter_with_extenders(
    pod: PodInfo, node_names: tuple[str, ...], extenders: Sequence[Extender]
) -> Exchange[FilteredNodes | ExtenderFailure]:
    """The nodes that all extenders leave, in the order of the last response, and the statuses of the others."""
    node_to_status: dict[str, Status] = {}
    for extender in extenders:
        if not node_names:
            break
        if not extender.settings.filter_verb or not extender.is_interested(pod):
            continue
        (response,) = yield (FilterRequest(extender, pod, node_names),)
        result = _expected(response, ExtenderFilterResult)
        filtered = result if isinstance(result, ExtenderFailure) else extender.filtered(node_names, result)
        if isinstance(filtered, ExtenderFailure):
            if not extender.settings.ignorable:
                return filtered
            _ignore(extender, pod, filtered)
            continue
        node_to_status.update(filtered.node_to_status)
        node_names = filtered.node_names
    return FilteredNodes(node_names, node_to_status)


def prioritize_with_extenders(
    pod: PodInfo, node_names: tuple[str, ...], extenders: Sequence[Extender]
) -> Exchange[dict[str, dict[str, int]]]:
    """The scores that extenders add to nodes, by extender and node."""
    requests = tuple(
        PrioritizeRequest(extender, pod, node_names)
        for extender in extenders
        if extender.settings.prioritize_verb and extender.is_interested(pod)
    )
    if not requests:
        return {}
    responses = yield requests
    added: dict[str, dict[str, int]] = {}
    for request, response in zip(requests, responses, strict=True):
        if isinstance(response, ExtenderFailure):
            _ignore(request.extender, pod, response)
            continue
        assert not isinstance(response, ExtenderFilterResult | ExtenderPreemptionResult), (
            f"{request} was answered {response}"
        )
        scores = added.setdefault(request.extender.name, {})
        for name, score in request.extender.scores(response).items():
            scores[name] = scores.get(name, 0) + score
    return added


def preempt_with_extenders(
    pod: PodInfo, victims: Candidates, extenders: Sequence[Extender], columns: Columns
) -> Exchange[Candidates | ExtenderFailure]:
    """The candidates of preemption that all extenders leave, with their victims."""
    for extender in extenders:
        if not extender.settings.preempt_verb or not extender.is_interested(pod):
            continue
        (response,) = yield (PreemptRequest(extender, pod, victims),)
        result = _expected(response, ExtenderPreemptionResult)
        left = result if isinstance(result, ExtenderFailure) else _victims_of(extender, result, columns)
        if isinstance(left, ExtenderFailure):
            if not extender.settings.ignorable:
                return left
            _ignore(extender, pod, left)
            continue
        victimless = [name for name, found in left.items() if not found.pods]
        if victimless and not extender.settings.ignorable:
            return ExtenderFailure(f'expected at least one victim pod on node "{victimless[0]}"')
        # In the order in which preemption found them: the first of several equal candidates is selected.
        victims = {name: left[name] for name in (*victims, *sorted(left)) if name in left and name not in victimless}
        if not victims:
            break
    return victims


def _victims_of(
    extender: Extender, result: ExtenderPreemptionResult, columns: Columns
) -> dict[str, Victims] | ExtenderFailure:
    found: dict[str, Victims] = {}
    for name, meta in result.victims.items():
        row = columns.row_of.get(name)
        if row is None:
            return ExtenderFailure(f'nodeinfo not found for node name "{name}"')
        there = columns.pods_on[row]
        unknown = next((uid for uid in meta.uids if uid not in there), None)
        if unknown is not None:
            return ExtenderFailure(
                f"extender: {extender.name} claims to preempt pod (UID: &{{{unknown}}}) on node: {name}, but the pod "
                "is not found on that node"
            )
        found[name] = Victims(tuple(there[uid] for uid in meta.uids), meta.violations)
    return found


def _expected(response: ExtenderResponse, kind: type[AnyResult]) -> AnyResult | ExtenderFailure:
    assert isinstance(response, kind | ExtenderFailure), f"expected a {kind.__name__}, was sent {response!r}"
    return response


def _ignore(extender: Extender, pod: PodInfo, failure: ExtenderFailure) -> None:
    logger.info(
        "ignored the failure of extender %s for pod %s: %s",
        extender.name,
        pod.key,
        failure.text,
        extra=fields(pod=pod.key, reason=failure.text),
    )
