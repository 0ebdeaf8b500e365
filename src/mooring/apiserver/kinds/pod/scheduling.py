"""Validation of affinity, topology spread constraints and tolerations."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.api.labels import label_value_errors
from mooring.api.quantity import INT64_MAX, INT64_MIN
from mooring.apiserver.kinds.pod.options import PodOptions
from mooring.apiserver.kinds.pod.resources import validate_positive
from mooring.apiserver.validation.fields import FieldError, duplicate, forbidden, invalid, not_supported, required
from mooring.apiserver.validation.names import dns_label_errors, dns_subdomain_errors
from mooring.apiserver.validation.schema_rules import enum_values, struct_rules, validate_enum
from mooring.apiserver.validation.selectors import (
    INVALID_OPERATOR,
    NUMERIC_OPERATORS,
    validate_label_name,
    validate_label_requirement,
    validate_label_selector,
)

_EFFECTS = enum_values("core", "TaintEffect")
_OPERATORS = ("Equal", "Exists")

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT = "must be in the range 1-100"
_NO_SELECTOR = "must not be specified when labelSelector is not set"
_IN_SELECTOR = "exists in both matchLabelKeys and labelSelector"

_SPREAD = struct_rules("core", "TopologySpreadConstraint")


def validate_tolerations(tolerations: Sequence[Document], path: str, options: PodOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, toleration in enumerate(tolerations):
        here = f"{path}[{index}]"
        key, operator, effect = (toleration.get(field, "") for field in ("key", "operator", "effect"))
        if key:
            errors += validate_label_name(key, f"{here}.key")
        elif operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            errors.append(invalid(f"{here}.operator", operator, detail))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errors.append(invalid(f"{here}.effect", effect, detail))
        errors += _validate_toleration_value(operator, toleration.get("value", ""), here, options)
        errors += validate_enum(effect or None, _EFFECTS, f"{here}.effect")
    return errors


def validate_added_tolerations(
    tolerations: Sequence[Document], old: Sequence[Document], path: str, options: PodOptions
) -> list[FieldError]:
    """Existing tolerations stay; only `tolerationSeconds` may change."""
    if tolerations != old:
        known = {_without_seconds(toleration) for toleration in tolerations}
        if any(_without_seconds(toleration) not in known for toleration in old):
            return [forbidden(path, "existing toleration can not be modified except its tolerationSeconds")]
    return validate_tolerations(tolerations, path, options)


def _without_seconds(toleration: Document) -> frozenset[tuple[str, object]]:
    return frozenset((key, value) for key, value in toleration.items() if key != "tolerationSeconds")


def _validate_toleration_value(operator: str, value: str, path: str, options: PodOptions) -> list[FieldError]:
    match operator:
        case "Equal" | "":
            texts = label_value_errors(value)
            return [invalid(f"{path}.operator", value, ";".join(texts))] if texts else []
        case "Exists":
            detail = "value must be empty when `operator` is 'Exists'"
            return [invalid(f"{path}.operator", value, detail)] if value else []
        case "Lt" | "Gt":
            if options.tolerates_comparing_tolerations:
                return _validate_number(value, f"{path}.value")
            return [not_supported(f"{path}.operator", operator, (*_OPERATORS, *NUMERIC_OPERATORS))]
        case _:
            return [not_supported(f"{path}.operator", operator, _OPERATORS)]


def _validate_number(value: str, path: str) -> list[FieldError]:
    digits = value.removeprefix("-")
    is_number = digits.isascii() and digits.isdigit()
    if is_number and INT64_MIN <= int(value) <= INT64_MAX:
        return []
    detail = "value out of range" if is_number else "invalid syntax"
    return [invalid(path, value, f'strconv.ParseInt: parsing "{value}": {detail}')]


def validate_affinity(affinity: Document | None, path: str, options: PodOptions) -> list[FieldError]:
    """Field errors of `affinity`."""
    if not affinity:
        return []
    errors: list[FieldError] = []
    nodes = affinity.get("nodeAffinity")
    if nodes is not None:
        errors += _validate_node_affinity(nodes, f"{path}.nodeAffinity", options)
    for kind in ("podAffinity", "podAntiAffinity"):
        pods = affinity.get(kind)
        if pods is not None:
            errors += _validate_pod_affinity(pods, f"{path}.{kind}", options.tolerates_affinity_selectors)
    return errors


def validate_node_selector(selector: Document, path: str, tolerates_values: bool = False) -> list[FieldError]:
    """Field errors of a selector of nodes."""
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        return [required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    errors: list[FieldError] = []
    for index, term in enumerate(terms):
        errors += validate_node_selector_term(term, f"{path}.nodeSelectorTerms[{index}]", tolerates_values)
    return errors


def validate_node_selector_term(term: Document, path: str, tolerates_values: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        here = f"{path}.matchExpressions[{index}]"
        errors += validate_label_requirement(requirement, here, tolerates_values, may_compare=True)
    for index, requirement in enumerate(term.get("matchFields") or ()):
        errors += _validate_node_field(requirement, f"{path}.matchFields[{index}]")
    return errors


def validate_term_selectors(term: Document, path: str, tolerates_values: bool = False) -> list[FieldError]:
    """Field errors of the selectors of a term of pod affinity."""
    errors = validate_label_selector(term.get("labelSelector"), f"{path}.labelSelector", tolerates_values)
    return errors + validate_label_selector(
        term.get("namespaceSelector"), f"{path}.namespaceSelector", tolerates_values
    )


def validate_match_label_keys(holder: Document, path: str) -> list[FieldError]:
    """Field errors of `matchLabelKeys` and `mismatchLabelKeys`. The selector already has the expressions that the
    server adds for them, so a key that occurs twice is in the request, too."""
    keys, others = holder.get("matchLabelKeys") or (), holder.get("mismatchLabelKeys") or ()
    if not keys and not others:
        return []
    selector = holder.get("labelSelector")
    errors = _validate_label_keys(keys, selector, f"{path}.matchLabelKeys")
    errors += _validate_label_keys(others, selector, f"{path}.mismatchLabelKeys")
    if selector is not None:
        positions = {key: index for index, key in enumerate(keys)}
        seen = set(selector.get("matchLabels") or ())
        for expression in selector.get("matchExpressions") or ():
            key = expression.get("key", "")
            if key in positions and key in seen:
                errors.append(invalid(f"{path}[{positions[key]}]", key, _IN_SELECTOR))
            seen.add(key)
    detail = "exists in both matchLabelKeys and mismatchLabelKeys"
    return errors + [
        invalid(f"{path}.matchLabelKeys[{index}]", key, detail) for index, key in enumerate(keys) if key in others
    ]


def required_node_selector(spec: Document) -> Document:
    """The selector of nodes that a pod requires."""
    selector: Document = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    return selector


def has_invalid_node_values(selector: Document) -> bool:
    """Whether a selector of nodes has invalid label values."""
    return any(
        label_value_errors(value)
        for term in selector.get("nodeSelectorTerms") or ()
        for expression in term.get("matchExpressions") or ()
        for value in expression.get("values") or ()
    )


# --- nodes ------------------------------------------------------------------------------------------------------


def _validate_node_affinity(affinity: Document, path: str, options: PodOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    required_terms = affinity.get(_REQUIRED)
    if required_terms is not None:
        errors += validate_node_selector(required_terms, f"{path}.{_REQUIRED}", options.tolerates_node_affinity_values)
    for index, term in enumerate(affinity.get(_PREFERRED) or ()):
        here = f"{path}.{_PREFERRED}[{index}]"
        errors += _validate_weight(term, here)
        # A preference with an invalid label value never matches and is harmless.
        errors += validate_node_selector_term(term.get("preference") or {}, f"{here}.preference", True)
    return errors


def _validate_node_field(requirement: Document, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    operator, key, values = (
        requirement.get("operator", ""),
        requirement.get("key", ""),
        requirement.get("values") or (),
    )
    if operator not in ("In", "NotIn"):
        errors.append(invalid(f"{path}.operator", operator, INVALID_OPERATOR))
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(required(f"{path}.values", detail))
    if key != "metadata.name":
        return [*errors, invalid(f"{path}.key", key, "not a valid field selector key")]
    return errors + [
        invalid(f"{path}.values[{index}]", value, text)
        for index, value in enumerate(values)
        for text in dns_subdomain_errors(value)
    ]


# --- pods -------------------------------------------------------------------------------------------------------


def _validate_pod_affinity(affinity: Document, path: str, tolerates_values: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, term in enumerate(affinity.get(_REQUIRED) or ()):
        errors += _validate_term(term, f"{path}.{_REQUIRED}[{index}]", tolerates_values)
    for index, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        here = f"{path}.{_PREFERRED}[{index}]"
        errors += _validate_weight(weighted, here)
        errors += _validate_term(weighted.get("podAffinityTerm") or {}, f"{here}.podAffinityTerm", tolerates_values)
    return errors


def _validate_term(term: Document, path: str, tolerates_values: bool) -> list[FieldError]:
    errors = validate_term_selectors(term, path, tolerates_values)
    for name in term.get("namespaces") or ():
        errors += [invalid(f"{path}.namespace", name, text) for text in dns_label_errors(name)]
    errors += validate_match_label_keys(term, path)
    key = term.get("topologyKey", "")
    if not key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    return errors + validate_label_name(key, f"{path}.topologyKey")


def _validate_weight(weighted: Document, path: str) -> list[FieldError]:
    weight = weighted.get("weight", 0)
    return [] if 1 <= weight <= 100 else [invalid(f"{path}.weight", weight, _WEIGHT)]


def _validate_label_keys(keys: Sequence[str], selector: Document | None, path: str) -> list[FieldError]:
    if not keys:
        return []
    if selector is None:
        return [forbidden(path, _NO_SELECTOR)]
    errors: list[FieldError] = []
    for index, key in enumerate(keys):
        errors += validate_label_name(key, f"{path}[{index}]")
    return errors


def validate_spread_constraints(constraints: Sequence[Document], path: str, options: PodOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    last = {_constraint_key(constraint): index for index, constraint in enumerate(constraints)}
    for index, constraint in enumerate(constraints):
        here = f"{path}[{index}]"
        key, action = constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")
        errors += validate_positive(constraint.get("maxSkew", 0), f"{here}.maxSkew")
        if not key:
            errors.append(required(f"{here}.topologyKey", "can not be empty"))
        errors += _SPREAD.validate(constraint, here, "whenUnsatisfiable")
        if last[_constraint_key(constraint)] != index:
            errors.append(duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
        errors += _validate_domains(constraint.get("minDomains"), action, f"{here}.minDomains")
        errors += _SPREAD.validate(constraint, here, "nodeAffinityPolicy", "nodeTaintsPolicy")
        if options.tolerates_spread_label_keys:
            errors += _validate_older_label_keys(constraint, f"{here}.matchLabelKeys")
        else:
            errors += validate_match_label_keys({**constraint, "mismatchLabelKeys": None}, here)
        if not options.tolerates_spread_selectors:
            errors += validate_label_selector(constraint.get("labelSelector"), f"{here}.labelSelector")
    return errors


def _constraint_key(constraint: Document) -> tuple[str, str]:
    return constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")


def _validate_domains(count: int | None, action: str, path: str) -> list[FieldError]:
    if count is None:
        return []
    errors = validate_positive(count, path)
    if action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        errors.append(invalid(path, count, detail))
    return errors


def _validate_older_label_keys(constraint: Document, path: str) -> list[FieldError]:
    """The rule before v1.34, when the server did not merge the keys into the selector."""
    keys, selector = constraint.get("matchLabelKeys") or (), constraint.get("labelSelector")
    errors: list[FieldError] = []
    if keys and selector is None:
        errors.append(forbidden(path, "must not be specified when labelSelector is not set"))
    selector = selector or {}
    known = {*(selector.get("matchLabels") or ()), *(e.get("key") for e in selector.get("matchExpressions") or ())}
    for index, key in enumerate(keys):
        errors += validate_label_name(key, f"{path}[{index}]")
        if key in known:
            detail = "exists in both matchLabelKeys and labelSelector"
            errors.append(invalid(f"{path}[{index}]", key, detail))
    return errors
