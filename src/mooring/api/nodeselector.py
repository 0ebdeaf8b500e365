"""Compile node selectors of pods, volumes and resource slices.

Input: `NodeSelector` views, preferred terms, pods with node affinity. Output: matchers for a node (`labels`, `name`),
whose requirements can also be evaluated for one label value.

 1. A selector matches if one of its terms matches. A term matches if all of its requirements hold. A term without
    requirements matches no node.
 2. An invalid term matches no node. Its errors are reported only if no other term matches, because a pod that can be
    placed is placed. Volumes, classes and configurations are strict instead and reject any error (`compile_strict`).
 3. Requirements on labels are those of `mooring.api.labels`. Requirements on fields have the same interface (`key`,
    `matches_value`, `matches_absent`), so that columns treat the name of a node as one more label.
 4. Compiled affinity is cached and shared by all pods with the same affinity.
 5. Only `metadata.name` is a field of a node. Any other has the value "", as in kube-scheduler v1.36.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mooring.api.caches import BoundedCache
from mooring.api.errors import NodeSelectorError
from mooring.api.field_errors import aggregated, invalid_value, unsupported_value
from mooring.api.labels import LabelMatcher, Operator, Requirement, is_sound, matcher_of_pairs, requirement_errors
from mooring.api.views.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm
from mooring.api.views.pod import Pod

NAME_FIELD = "metadata.name"

_LABEL_OPERATORS: Mapping[str, Operator] = {operator.value: operator for operator in Operator}
_FIELD_OPERATORS: Mapping[str, Operator] = {"In": Operator.IN, "NotIn": Operator.NOT_IN}


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """One requirement on a field of a node: equal or not equal to a value."""

    key: str
    operator: Operator
    value: str

    def matches_value(self, value: str) -> bool:
        return (value == self.value) is (self.operator is Operator.IN)

    @property
    def matches_absent(self) -> bool:
        return self.matches_value("")


@dataclass(frozen=True, slots=True)
class Term:
    """The requirements of one term; all must hold. A term with errors matches no node."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[FieldRequirement, ...] = ()
    errors: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        return (
            not self.errors
            and all(requirement.matches(labels) for requirement in self.labels)
            and (not name or all(self._field_holds(requirement, name) for requirement in self.fields))
        )

    @staticmethod
    def _field_holds(requirement: FieldRequirement, name: str) -> bool:
        return requirement.matches_value(name) if requirement.key == NAME_FIELD else requirement.matches_absent


@dataclass(frozen=True, slots=True)
class NodeMatcher:
    """A compiled node selector: one of its terms must hold."""

    terms: tuple[Term, ...]

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        return any(term.matches(labels, name) for term in self.terms)

    @property
    def error(self) -> str:
        """All errors in one text, for a node that no term matches; "" if there are none."""
        errors = [error for term in self.terms for error in term.errors]
        return aggregated(errors) if errors else ""


@dataclass(frozen=True, slots=True)
class PreferredTerm:
    """A preferred term and its weight."""

    term: Term
    weight: int


@dataclass(frozen=True, slots=True)
class RequiredNodeAffinity:
    """The `nodeSelector` and the required node affinity of a pod."""

    labels: LabelMatcher
    affinity: NodeMatcher | None

    @property
    def matches_everything(self) -> bool:
        return self.affinity is None and self.labels.matches_everything

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        return self.labels.matches(labels) and (self.affinity is None or self.affinity.matches(labels, name))

    def error_for(self, labels: Mapping[str, str]) -> str:
        """The errors of the affinity, for a node that matches the `nodeSelector` but no term; "" if there are none."""
        return self.affinity.error if self.affinity is not None and self.labels.matches(labels) else ""


AFFINITIES_REMEMBERED_MAX = 16_384

_demands: BoundedCache[tuple[tuple[tuple[str, str], ...], NodeSelector | None], RequiredNodeAffinity] = BoundedCache(
    AFFINITIES_REMEMBERED_MAX
)
_preferred_cache: BoundedCache[tuple[PreferredSchedulingTerm, ...], tuple[PreferredTerm, ...]] = BoundedCache(
    AFFINITIES_REMEMBERED_MAX
)


def required_node_affinity(pod: Pod) -> RequiredNodeAffinity:
    """The node requirements of a pod. Never raises: errors are reported for the nodes that they concern."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    question = (tuple(pod.spec.node_selector.items()), required)
    demands = _demands.get(question)
    if demands is not None:
        return demands
    return _demands.put(
        question,
        RequiredNodeAffinity(
            labels=matcher_of_pairs(pod.spec.node_selector),
            affinity=compile_lenient(required) if required is not None else None,
        ),
    )


def preferred_node_affinity(pod: Pod) -> tuple[PreferredTerm, ...]:
    """The preferred node affinity terms of a pod. Raises `NodeSelectorError`."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    if affinity is None or not affinity.preferred_during_scheduling_ignored_during_execution:
        return ()
    question = affinity.preferred_during_scheduling_ignored_during_execution
    preferred = _preferred_cache.get(question)
    return preferred if preferred is not None else _preferred_cache.put(question, compile_preferred(question))


def compile_lenient(selector: NodeSelector) -> NodeMatcher:
    """The matcher of a selector; invalid terms stay in it, and match nothing."""
    return NodeMatcher(
        tuple(
            _compile_term(term, f"nodeSelectorTerms[{index}]")
            for index, term in enumerate(selector.node_selector_terms)
            if not _is_empty(term)
        )
    )


def compile_strict(selector: NodeSelector) -> NodeMatcher:
    """The matcher of a selector. Raises `NodeSelectorError` if the selector has errors."""
    matcher = compile_lenient(selector)
    if matcher.error:
        raise NodeSelectorError(matcher.error)
    return matcher


def compile_preferred(terms: Sequence[PreferredSchedulingTerm]) -> tuple[PreferredTerm, ...]:
    """Preferred terms that can count: those with a weight and a requirement. Raises `NodeSelectorError`."""
    compiled = tuple(
        PreferredTerm(_compile_term(term.preference, f"[{index}]"), term.weight)
        for index, term in enumerate(terms)
        if term.weight and not _is_empty(term.preference)
    )
    errors = [error for preferred in compiled for error in preferred.term.errors]
    if errors:
        raise NodeSelectorError(aggregated(errors))
    return compiled


# --- compiling one term -----------------------------------------------------------------------------------------


def _is_empty(term: NodeSelectorTerm) -> bool:
    return not term.match_expressions and not term.match_fields


def _compile_term(term: NodeSelectorTerm, path: str) -> Term:
    errors: list[str] = []
    labels = []
    for index, expression in enumerate(term.match_expressions):
        operator = _LABEL_OPERATORS.get(expression.operator)
        if operator is not None and is_sound(expression.key, operator, expression.values):
            labels.append(Requirement(expression.key, operator, tuple(sorted(set(expression.values)))))
        else:
            errors += _label_errors(expression, operator, f"{path}.matchExpressions[{index}]")
    fields = [
        _field_requirement(expression, f"{path}.matchFields[{index}]", errors)
        for index, expression in enumerate(term.match_fields)
    ]
    if errors:
        return Term(errors=tuple(errors))
    return Term(tuple(labels), tuple(requirement for requirement in fields if requirement is not None))


def _label_errors(expression: NodeSelectorRequirement, operator: Operator | None, path: str) -> list[str]:
    if operator is None:
        return [unsupported_value(f"{path}.operator", expression.operator, _LABEL_OPERATORS)]
    return requirement_errors(expression.key, operator, expression.values, path)


def _field_requirement(expression: NodeSelectorRequirement, path: str, errors: list[str]) -> FieldRequirement | None:
    operator = _FIELD_OPERATORS.get(expression.operator)
    if operator is None:
        errors.append(unsupported_value(f"{path}.operator", expression.operator, _FIELD_OPERATORS))
        return None
    if len(expression.values) != 1:
        errors.append(invalid_value(f"{path}.values", expression.values, "must have one element"))
        return None
    return FieldRequirement(expression.key, operator, expression.values[0])
