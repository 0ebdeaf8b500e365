"""The scheduling cycle with extenders: the same steps, with requests to extenders in between.

    PreFilter -> Filter -> extenders filter -> PreScore -> Score -> extenders score -> select
                    \\             \\
                     +-------------+-> PostFilter (preemption -> extenders filter the candidates) -> message

The cycle does not await: a decision with extenders is a generator (`Exchange`). It yields requests that may be sent at
the same time, is sent the responses in the same order, and returns its result.

1. Between a request and its response the columns do not change.
2. Filter and preempt requests go from extender to extender: each gets the nodes that the one before it left.
   Prioritize requests are sent at the same time.
3. Extenders are called only for nodes that every filter lets through, in the order in which they were found. For a
   pod with a nominated node they are called for that node first.
4. If only one node is left, no extender scores.
5. The failure of an extender ends the decision, unless the extender is ignorable. A failed prioritize request is
   always ignored.
6. `decide` calls no extender. Dry runs and explanations use it.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

import msgspec
import numpy as np

from mooring.kit.logs import fields
from mooring.scheduler.cache.arrays import Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config.types import SchedulerConfiguration
from mooring.scheduler.cycle.attempt import PodAttempt, diagnose
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.cycle.filter_nodes import Sampling, search_nodes
from mooring.scheduler.cycle.schedule_pod import (
    NowS,
    PostFilterOutcome,
    SchedulingCycle,
    TieBreak,
    failed_decision,
)
from mooring.scheduler.engine import CycleFactory, Engine
from mooring.scheduler.extenders.extender import (
    EXTENDER,
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
    extenders_of,
    read_filter_result,
    read_host_priorities,
    read_preemption_result,
)
from mooring.scheduler.framework.guard import PluginError
from mooring.scheduler.framework.post_filter import (
    Candidates,
    FailedAttempt,
    FindsCandidates,
    PostFilterResult,
    Victims,
    preemption_failed,
)
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.status import Code, Status

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
AnyResult = TypeVar("AnyResult", ExtenderFilterResult, ExtenderPreemptionResult)


class RawObjects(Protocol):
    """Objects as JSON, for extenders that are sent whole objects. Raises LookupError for an object that is gone."""

    def node(self, name: str) -> bytes: ...

    def pod(self, pod: PodInfo) -> bytes: ...


@dataclass(frozen=True, slots=True)
class NodesRequest:
    """A request with nodes: whole nodes, or names for extenders that are `nodeCacheCapable`."""

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
    """Requests the nodes that can take the pod."""

    @property
    def verb(self) -> str:
        return self.extender.settings.filter_verb

    def read(self, raw: bytes) -> ExtenderFilterResult:
        return read_filter_result(raw)


class PrioritizeRequest(NodesRequest):
    """Requests the scores of nodes."""

    @property
    def verb(self) -> str:
        return self.extender.settings.prioritize_verb

    def read(self, raw: bytes) -> tuple[HostPriority, ...]:
        return read_host_priorities(raw)


@dataclass(frozen=True, slots=True)
class PreemptRequest:
    """Requests the candidates of preemption that the extender accepts."""

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
            f"the response to {request} is {response}"
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


def cycle_factory(configuration: SchedulerConfiguration) -> CycleFactory:
    """Makes the cycles of an engine: cycles with extenders, if the configuration has some."""
    extenders = extenders_of(configuration)
    return partial(ExtenderCycle, extenders) if extenders else SchedulingCycle


def decide_with_extenders(engine: Engine, pod: PodInfo, *, in_full: bool = False) -> Exchange[Decision]:
    """As `Engine.decide`, with extenders. The engine must have been made with `cycle_factory`."""
    cycle = engine.prepare(pod)
    assert isinstance(cycle, ExtenderCycle), "this engine has no extenders: use Engine.decide"
    return cycle.decide_with_extenders(pod, in_full=in_full)


class ExtenderCycle(SchedulingCycle):
    """Schedules the pods of one profile with extenders."""

    def __init__(
        self,
        extenders: Sequence[Extender],
        profile: Profile,
        columns: Columns,
        tie_break: TieBreak,
        sampling: Sampling | None,
        now_s: NowS,
    ) -> None:
        super().__init__(profile, columns, tie_break, sampling, now_s)
        self._extenders = extenders

    def decide_with_extenders(self, pod: PodInfo, *, in_full: bool = False) -> Exchange[Decision]:
        """Run PreEnqueue, then schedule the pod."""
        try:
            gated = self._run_pre_enqueue(pod)
            return gated if gated is not None else (yield from self._decide_with_extenders(pod, in_full))
        except PluginError as error:
            return failed_decision(pod, error.status, error.step)

    def _decide_with_extenders(self, pod: PodInfo, in_full: bool) -> Exchange[Decision]:
        attempt = self._find_feasible_nodes(pod, in_full)
        if isinstance(attempt, Decision):
            return attempt
        if attempt.pre_filter_status is None:
            ended = yield from self._filter_with_extenders(attempt, in_full)
            if ended is not None:
                return ended
            if attempt.feasible_count:
                return (yield from self._score_with_extenders(attempt, in_full))
        return (yield from self._post_filter_with_extenders(attempt, in_full))

    def _filter_with_extenders(self, attempt: PodAttempt, in_full: bool) -> Exchange[Decision | None]:
        """Reduce the feasible nodes to those that extenders leave. Returns a decision if an extender fails."""
        if attempt.found is None:  # the nominated node fits, so no search has run
            fits = yield from self._filter_nominated_node(attempt)
            if fits:
                return None
            search_nodes(attempt, self._sampling)
            ended = self._decision_if_failed(attempt, in_full)
            if ended is not None:
                return ended
        assert attempt.found is not None, "a search records the order in which it found nodes"
        node_names = self._names(attempt.found)
        filtered = yield from filter_with_extenders(attempt.pod, node_names, self._extenders)
        if isinstance(filtered, ExtenderFailure):
            return failed_decision(attempt.pod, Status.error(filtered.text), "extender")
        if len(filtered.node_names) != len(node_names):
            attempt.other_plugins = (EXTENDER,)
        if filtered.node_names != node_names or filtered.node_to_status or attempt.extender_statuses:
            self._narrow(attempt, filtered)
        return None

    def _filter_nominated_node(self, attempt: PodAttempt) -> Exchange[bool]:
        filtered = yield from filter_with_extenders(attempt.pod, (attempt.pod.nominated_node,), self._extenders)
        if isinstance(filtered, ExtenderFailure):
            logger.warning(
                "pod %s could not be tried on its nominated node %s: %s",
                attempt.pod.key,
                attempt.pod.nominated_node,
                filtered.text,
                extra=fields(pod=attempt.pod.key, node=attempt.pod.nominated_node, reason=filtered.text),
            )
            return False
        if filtered.node_names:
            attempt.found = self._rows(filtered.node_names)
            return True
        attempt.extender_statuses = dict(filtered.node_to_status)
        return False

    def _narrow(self, attempt: PodAttempt, filtered: FilteredNodes) -> None:
        node_to_status = {**attempt.extender_statuses, **filtered.node_to_status}
        attempt.narrow(self._rows(filtered.node_names), node_to_status)

    def _score_with_extenders(self, attempt: PodAttempt, in_full: bool) -> Exchange[Decision]:
        assert attempt.found is not None
        if len(attempt.found) == 1:
            return self._score_and_select(attempt, in_full)
        added = yield from prioritize_with_extenders(attempt.pod, self._names(attempt.found), self._extenders)
        feasible = self._names(np.arange(self._columns.height)[attempt.feasible])
        extender_scores = {
            name: np.array([scores.get(node_name, 0) for node_name in feasible], dtype=np.int64)
            for name, scores in added.items()
        }
        return self._score_and_select(attempt, in_full, extender_scores)

    def _post_filter_with_extenders(self, attempt: PodAttempt, in_full: bool) -> Exchange[Decision]:
        diagnosis, outcome = diagnose(attempt), PostFilterOutcome()
        for plugin in self.profile.post_filters:
            if isinstance(plugin, FindsCandidates):
                result = yield from self._preempt_with_extenders(plugin, attempt)
            else:
                result = plugin.post_filter(attempt)
            if outcome.take(plugin, result):
                break
        return self._unschedulable(attempt, diagnosis, outcome, in_full)

    def _preempt_with_extenders(self, plugin: FindsCandidates, attempt: FailedAttempt) -> Exchange[PostFilterResult]:
        """Preemption, whose candidates extenders may remove or change."""
        candidates = plugin.find_candidates(attempt)
        if isinstance(candidates, PostFilterResult):
            return candidates
        left = yield from preempt_with_extenders(attempt.pod, candidates, self._extenders, self._columns)
        if isinstance(left, ExtenderFailure):
            return preemption_failed(Code.ERROR, left.text)
        if not left:
            return preemption_failed(Code.UNSCHEDULABLE, "no candidate node for preemption")
        return plugin.select_candidate(left)

    def _names(self, rows: Int64s) -> tuple[str, ...]:
        names = self._columns.node_names
        return tuple([names[row] for row in rows.tolist()])

    def _rows(self, names: Sequence[str]) -> Int64s:
        row_of = self._columns.row_of
        return np.array([row_of[name] for name in names], dtype=np.int64)
