"""NodeAffinity: the node selector and node affinity of a pod, and the affinity that a profile adds to all pods.

Input: the pod's node selector and node affinity, the profile's `addedAffinity`. Output: rejected nodes that do not
match; a score by the weights of the preferred terms that match.

A pod that fits only on named nodes returns their names from PreFilter, so that no plugin evaluates other nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mooring.api.errors import NodeSelectorError
from mooring.api.labels import Operator, Requirement
from mooring.api.nodeselector import (
    NAME_FIELD,
    NodeMatcher,
    PreferredTerm,
    RequiredNodeAffinity,
    Term,
    compile_preferred,
    compile_strict,
    preferred_node_affinity,
    required_node_affinity,
)
from mooring.api.views.meta import NodeSelector
from mooring.api.views.node import Node
from mooring.api.views.pod import PodSpec
from mooring.scheduler.cache.arrays import Int64s, ReasonBits, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PerSignature, PodInfo, PodSignature
from mooring.scheduler.config.types import NodeAffinityArgs
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource, QueueingHint, queue_if
from mooring.scheduler.framework.obstacle import ExplainContext, Obstacle, ObstacleKind
from mooring.scheduler.framework.plugin import (
    SKIP,
    Filter,
    PreFilter,
    PreScore,
    Proceed,
    Scope,
    Score,
    Skip,
    scaled_to_best,
)
from mooring.scheduler.framework.status import Code, Reason, Status

_ENFORCED = 1
_OWN = 2


class PreferredTerms(NamedTuple):
    """The preferred terms of the pod, then those of the profile."""

    terms: tuple[PreferredTerm, ...]


class NodeAffinity(
    PreFilter[RequiredNodeAffinity], Filter[RequiredNodeAffinity], PreScore[PreferredTerms], Score[PreferredTerms]
):
    name = "NodeAffinity"
    obstacle_kind = ObstacleKind.NODE_LABEL
    filter_scope = Scope.NODE
    filter_reasons = (
        Reason("node(s) didn't match scheduler-enforced node affinity", Code.UNRESOLVABLE),
        Reason("node(s) didn't match Pod's node affinity/selector", Code.UNRESOLVABLE),
    )
    score_scope = Scope.NODE
    normalizes = True

    def __init__(self, columns: Columns, arguments: NodeAffinityArgs) -> None:
        self._columns = columns
        self._nodes = columns.node_selection
        added = arguments.added_affinity
        required = added.required_during_scheduling_ignored_during_execution if added is not None else None
        self._added_required: NodeMatcher | None = compile_strict(required) if required is not None else None
        preferred = added.preferred_during_scheduling_ignored_during_execution if added is not None else ()
        self._added_preferred: tuple[PreferredTerm, ...] = compile_preferred(preferred)
        self._adds_preferences = bool(preferred)

    def pre_filter(self, pod: PodInfo) -> Proceed[RequiredNodeAffinity] | Skip | Status:
        required = _required_selector(pod.signature.spec)
        if required is None and self._added_required is None and not pod.signature.spec.node_selector:
            return SKIP
        state = required_node_affinity(pod.signature.view)
        names = named_nodes(required) if required is not None else None
        if names is not None and not names:
            return Status.unresolvable("pod affinity terms conflict")
        return Proceed(state, names)

    def filter(self, state: RequiredNodeAffinity, rows: Rows) -> ReasonBits:
        # Bytes of the booleans, multiplied: np.where with two constants takes eight times as long.
        bits = (~self._nodes.required(state, rows)).view(np.uint8) * np.uint8(_OWN)
        if self._added_required is not None:
            bits[~self._nodes.any_term(self._added_required, rows)] = _ENFORCED
        return bits

    def explain(self, state: RequiredNodeAffinity, row: int, bits: int, context: ExplainContext) -> Sequence[Obstacle]:
        labels, name = self._columns.labels.of(row), self._columns.node_names[row]
        failing = [
            _label_obstacle(requirement, labels)
            for requirement in state.labels.requirements
            if not requirement.matches(labels)
        ]
        if state.affinity is not None and not state.affinity.matches(labels, name):
            by_term = [_term_obstacles(term, labels, name) for term in state.affinity.terms]
            # Terms are alternatives: the one with the fewest obstacles is the easiest to satisfy.
            failing += sorted(by_term, key=len)[0] if by_term else []
        distinct = {obstacle.text: obstacle for obstacle in failing}
        return list(distinct.values()) or super().explain(state, row, bits, context)

    def pre_score(self, pod: PodInfo, feasible: Rows) -> PreferredTerms | Skip | Status:
        affinity = pod.signature.spec.affinity
        try:
            own = preferred_node_affinity(pod.signature.view)
        except NodeSelectorError as error:
            return Status.error(str(error))
        has_own = (
            affinity is not None
            and affinity.node_affinity is not None
            and bool(affinity.node_affinity.preferred_during_scheduling_ignored_during_execution)
        )
        if not has_own and not self._adds_preferences:
            return SKIP
        return PreferredTerms((*own, *self._added_preferred))

    def score(self, state: PreferredTerms, rows: Rows) -> Int64s:
        return self._nodes.preference(state.terms, rows)

    def normalize(self, state: PreferredTerms, scores: Int64s, rows: Rows) -> Int64s:
        return scaled_to_best(scores, reverse=False)

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (
            ClusterEventWithHint(
                EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL, self._matches_now, per_signature=True
            ),
        )

    def _matches_now(self, pod: PodInfo, old: Node | None, new: Node) -> QueueingHint:
        """Whether an added or changed node matches, and did not match before."""
        if self._added_required is not None and not _matches(self._added_required, new):
            return QueueingHint.SKIP
        required = _required_affinity(pod.signature)
        if not _matches(required, new):
            return queue_if(required.error_for(new.metadata.labels) != "")  # an invalid selector may match
        return queue_if(old is None or not _matches(required, old))


def named_nodes(required: NodeSelector) -> frozenset[str] | None:
    """The nodes that the terms name; None if a term names none."""
    if not required.node_selector_terms:
        return None
    names: set[str] = set()
    for term in required.node_selector_terms:
        named = [set(r.values) for r in term.match_fields if r.key == NAME_FIELD and r.operator == "In"]
        if not named:
            return None
        names |= set.intersection(*named)
    return frozenset(names)


def _required_selector(spec: PodSpec) -> NodeSelector | None:
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    return affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None


@PerSignature
def _required_affinity(signature: PodSignature) -> RequiredNodeAffinity:
    return required_node_affinity(signature.view)


def _matches(required: RequiredNodeAffinity | NodeMatcher, node: Node) -> bool:
    return required.matches(node.metadata.labels, node.metadata.name)


def _term_obstacles(term: Term, labels: Mapping[str, str], name: str) -> list[Obstacle]:
    if term.errors:
        return [Obstacle(NodeAffinity.name, ObstacleKind.NODE_LABEL, f"a selector that can be read: {term.errors[0]}")]
    failing = [_label_obstacle(requirement, labels) for requirement in term.labels if not requirement.matches(labels)]
    for field in term.fields:
        if not (field.matches_value(name) if field.key == NAME_FIELD else field.matches_absent):
            is_wanted = field.operator is Operator.IN
            text = f"needs the node {field.value}" if is_wanted else f"needs another node than {field.value}"
            failing.append(
                Obstacle(NodeAffinity.name, ObstacleKind.NODE_LABEL, text, {"needs": f"{field.key}={field.value}"})
            )
    return failing


def _label_obstacle(requirement: Requirement, labels: Mapping[str, str]) -> Obstacle:
    key, value = requirement.key, labels.get(requirement.key)
    # A key with a prefix is long, so it is written once.
    has = f"has no {key.rpartition('/')[2]}" if value is None else f"has {value if '/' in key else f'{key}={value}'}"
    match requirement.operator:
        case Operator.EXISTS:
            text = f"needs the label {key}"
        case Operator.DOES_NOT_EXIST:
            text = f"must not have the label {key}, {has}"
        case _:
            text = f"needs {requirement}, {has}"
    details = {"needs": str(requirement), "has": f"{key}={value}" if value is not None else ""}
    return Obstacle(NodeAffinity.name, ObstacleKind.NODE_LABEL, text, details)
