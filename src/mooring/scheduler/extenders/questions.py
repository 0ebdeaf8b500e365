"""Questions to extenders, as values: what a decision needs to know from outside before it can go on.

Comes in   a pod, nodes that can take it, or the victims that preemption found
Goes out   questions, to whoever can ask; conclusions from the answers, to the cycle

The scheduling cycle never waits. A decision that depends on extenders is a generator: it yields questions that may be
asked at the same time, is sent their answers in the same order, and ends with its result.

 1. Filtering and preempting go from extender to extender: each is asked about what the one before it left. Scores are
    asked for at the same time.
 2. The failure of an extender ends the decision, unless its failures may be ignored. Scores are never missed.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec

from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.attempt import Attempt
from mooring.scheduler.cycle.victims import Victims
from mooring.scheduler.extenders import wire
from mooring.scheduler.extenders.extender import Extender, ExtenderFailure, Narrowed
from mooring.scheduler.framework.plugin import PostFilterResult
from mooring.scheduler.framework.status import Status

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
Verdict = TypeVar("Verdict", wire.FilterResult, wire.PreemptionResult)


class RawObjects(Protocol):
    """Whole objects as JSON, for extenders that do not know them already. Raises LookupError for one that is gone."""

    def node(self, name: str) -> bytes: ...

    def pod(self, pod: PodInfo) -> bytes: ...


@dataclass(frozen=True, slots=True)
class FilterQuestion:
    """Which of these nodes can take the pod?"""

    extender: Extender
    pod: PodInfo
    node_names: tuple[str, ...]

    @property
    def verb(self) -> str:
        return self.extender.settings.filter_verb

    def body(self, objects: RawObjects) -> bytes:
        return _nodes_body(self.extender, self.pod, self.node_names, objects)

    def read(self, raw: bytes) -> wire.FilterResult:
        return wire.read_filter_result(raw)


@dataclass(frozen=True, slots=True)
class PrioritizeQuestion:
    """How good is each of these nodes?"""

    extender: Extender
    pod: PodInfo
    node_names: tuple[str, ...]

    @property
    def verb(self) -> str:
        return self.extender.settings.prioritize_verb

    def body(self, objects: RawObjects) -> bytes:
        return _nodes_body(self.extender, self.pod, self.node_names, objects)

    def read(self, raw: bytes) -> tuple[wire.HostPriority, ...]:
        return wire.read_host_priorities(raw)


@dataclass(frozen=True, slots=True)
class PreemptQuestion:
    """On which of these nodes may these pods be evicted?"""

    extender: Extender
    pod: PodInfo
    victims: Mapping[str, Victims]

    @property
    def verb(self) -> str:
        return self.extender.settings.preempt_verb

    def body(self, objects: RawObjects) -> bytes:
        pod = msgspec.Raw(objects.pod(self.pod))
        if self.extender.settings.node_cache_capable:
            by_uid = {
                name: wire.SentMetaVictims([wire.MetaPod(victim.uid) for victim in found.pods], found.violations)
                for name, found in self.victims.items()
            }
            return wire.encode(wire.ExtenderPreemptionArgs(pod, None, by_uid))
        whole = {
            name: wire.SentVictims([msgspec.Raw(objects.pod(victim)) for victim in found.pods], found.violations)
            for name, found in self.victims.items()
        }
        return wire.encode(wire.ExtenderPreemptionArgs(pod, whole, None))

    def read(self, raw: bytes) -> wire.PreemptionResult:
        return wire.read_preemption_result(raw)


Question: TypeAlias = FilterQuestion | PrioritizeQuestion | PreemptQuestion
Answer: TypeAlias = wire.FilterResult | tuple[wire.HostPriority, ...] | wire.PreemptionResult | ExtenderFailure
Consultation: TypeAlias = Generator[tuple[Question, ...], tuple[Answer, ...], Result]
"""Yields questions that may be asked at the same time, is sent their answers, and returns a result."""


@runtime_checkable
class ConsultsExtenders(Protocol):
    """A PostFilter that asks extenders before it settles on victims."""

    def post_filter_with_questions(
        self, attempt: Attempt, extenders: Sequence[Extender]
    ) -> Consultation[PostFilterResult]: ...


def consult_filters(
    pod: PodInfo, node_names: tuple[str, ...], extenders: Sequence[Extender]
) -> Consultation[Narrowed | ExtenderFailure]:
    """Which nodes all extenders leave, in the order of the last that was asked, and what they said of the others."""
    node_to_status: dict[str, Status] = {}
    for extender in extenders:
        if not node_names:
            break
        if not extender.filters or not extender.is_interested(pod):
            continue
        (answer,) = yield (FilterQuestion(extender, pod, node_names),)
        verdict = _expected(answer, wire.FilterResult)
        narrowed = verdict if isinstance(verdict, ExtenderFailure) else extender.narrowed(node_names, verdict)
        if isinstance(narrowed, ExtenderFailure):
            if not extender.is_ignorable:
                return narrowed
            _pass_over(extender, pod, narrowed)
            continue
        node_to_status.update(narrowed.node_to_status)
        node_names = narrowed.node_names
    return Narrowed(node_names, node_to_status)


def consult_scores(
    pod: PodInfo, node_names: tuple[str, ...], extenders: Sequence[Extender]
) -> Consultation[dict[str, dict[str, int]]]:
    """What each extender adds to the scores of nodes, by extender and node."""
    questions = tuple(
        PrioritizeQuestion(extender, pod, node_names)
        for extender in extenders
        if extender.prioritizes and extender.is_interested(pod)
    )
    if not questions:
        return {}
    answers = yield questions
    added: dict[str, dict[str, int]] = {}
    for question, answer in zip(questions, answers, strict=True):
        if isinstance(answer, ExtenderFailure):
            _pass_over(question.extender, pod, answer)
            continue
        assert not isinstance(answer, wire.FilterResult | wire.PreemptionResult), f"{question} was answered {answer}"
        scores = added.setdefault(question.extender.name, {})
        for name, score in question.extender.scores(answer).items():
            scores[name] = scores.get(name, 0) + score
    return added


def consult_about_victims(
    pod: PodInfo, victims: Mapping[str, Victims], extenders: Sequence[Extender], columns: Columns
) -> Consultation[Mapping[str, Victims] | ExtenderFailure]:
    """The candidates of preemption that all extenders leave, with the victims that they want."""
    for extender in extenders:
        if not extender.supports_preemption or not extender.is_interested(pod):
            continue
        (answer,) = yield (PreemptQuestion(extender, pod, victims),)
        verdict = _expected(answer, wire.PreemptionResult)
        left = verdict if isinstance(verdict, ExtenderFailure) else _victims_of(extender, verdict, columns)
        if isinstance(left, ExtenderFailure):
            if not extender.is_ignorable:
                return left
            _pass_over(extender, pod, left)
            continue
        victimless = [name for name, found in left.items() if not found.pods]
        if victimless and not extender.is_ignorable:
            return ExtenderFailure(f'expected at least one victim pod on node "{victimless[0]}"')
        # In the order in which preemption found them: of equals, the first is chosen.
        victims = {name: left[name] for name in (*victims, *sorted(left)) if name in left and name not in victimless}
        if not victims:
            break
    return victims


def _victims_of(
    extender: Extender, result: wire.PreemptionResult, columns: Columns
) -> dict[str, Victims] | ExtenderFailure:
    found: dict[str, Victims] = {}
    for name, meta in result.victims.items():
        row = columns.row_of.get(name)
        if row is None:
            return ExtenderFailure(f'nodeinfo not found for node name "{name}"')
        there = columns.pods_on[row]
        stranger = next((uid for uid in meta.uids if uid not in there), None)
        if stranger is not None:
            return ExtenderFailure(
                f"extender: {extender.name} claims to preempt pod (UID: &{{{stranger}}}) on node: {name}, but the pod "
                "is not found on that node"
            )
        found[name] = Victims(tuple(there[uid] for uid in meta.uids), meta.violations)
    return found


def _nodes_body(extender: Extender, pod: PodInfo, node_names: tuple[str, ...], objects: RawObjects) -> bytes:
    whole_pod = msgspec.Raw(objects.pod(pod))
    if extender.settings.node_cache_capable:
        return wire.encode(wire.ExtenderArgs(whole_pod, None, node_names))
    nodes = wire.NodeList([msgspec.Raw(objects.node(name)) for name in node_names])
    return wire.encode(wire.ExtenderArgs(whole_pod, nodes, None))


def _expected(answer: Answer, kind: type[Verdict]) -> Verdict | ExtenderFailure:
    assert isinstance(answer, kind | ExtenderFailure), f"expected a {kind.__name__}, was sent {answer!r}"
    return answer


def _pass_over(extender: Extender, pod: PodInfo, failure: ExtenderFailure) -> None:
    logger.info("extender %s failed for pod %s and is passed over: %s", extender.name, pod.key, failure.text)
