"""Validation of affinity, topology spread constraints and tolerations."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.api.label_syntax import label_value_faults
from mooring.api.quantity import INT64_MAX, INT64_MIN
from mooring.apiserver.kinds.pod.options import PodOptions
from mooring.apiserver.kinds.pod.resources import positive_faults
from mooring.apiserver.validation.fields import Fault, duplicate, forbidden, invalid, not_supported, required
from mooring.apiserver.validation.names import dns_label_faults, dns_subdomain_faults
from mooring.apiserver.validation.selectors import label_name_faults, label_selector_faults, label_values_faults

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATORS = ("Equal", "Exists")
_COMPARISONS = ("Lt", "Gt")

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT = "must be in the range 1-100"
_NO_SELECTOR = "must not be specified when labelSelector is not set"
_IN_SELECTOR = "exists in both matchLabelKeys and labelSelector"

_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES = ("Honor", "Ignore")


def tolerations_faults(tolerations: Sequence[Document], path: str, options: PodOptions) -> list[Fault]:
    faults: list[Fault] = []
    for index, toleration in enumerate(tolerations):
        here = f"{path}[{index}]"
        key, operator, effect = (toleration.get(field, "") for field in ("key", "operator", "effect"))
        if key:
            faults += label_name_faults(key, f"{here}.key")
        elif operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            faults.append(invalid(f"{here}.operator", operator, detail))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            faults.append(invalid(f"{here}.effect", effect, detail))
        faults += _toleration_value_faults(operator, toleration.get("value", ""), here, options)
        if effect and effect not in _EFFECTS:
            faults.append(not_supported(f"{here}.effect", effect, _EFFECTS))
    return faults


def added_tolerations_faults(
    tolerations: Sequence[Document], old: Sequence[Document], path: str, options: PodOptions
) -> list[Fault]:
    """What a pod tolerated it goes on tolerating; only for how long may change."""
    if tolerations != old:
        known = [_without_seconds(toleration) for toleration in tolerations]
        if any(_without_seconds(toleration) not in known for toleration in old):
            return [forbidden(path, "existing toleration can not be modified except its tolerationSeconds")]
    return tolerations_faults(tolerations, path, options)


def _without_seconds(toleration: Document) -> Document:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _toleration_value_faults(operator: str, value: str, path: str, options: PodOptions) -> list[Fault]:
    match operator:
        case "Equal" | "":
            texts = label_value_faults(value)
            return [invalid(f"{path}.operator", value, ";".join(texts))] if texts else []
        case "Exists":
            detail = "value must be empty when `operator` is 'Exists'"
            return [invalid(f"{path}.operator", value, detail)] if value else []
        case "Lt" | "Gt":
            if options.tolerates_comparing_tolerations:
                return _number_faults(value, f"{path}.value")
            return [not_supported(f"{path}.operator", operator, (*_OPERATORS, *_COMPARISONS))]
        case _:
            return [not_supported(f"{path}.operator", operator, _OPERATORS)]


def _number_faults(value: str, path: str) -> list[Fault]:
    digits = value.removeprefix("-")
    is_number = digits.isascii() and digits.isdigit()
    if is_number and INT64_MIN <= int(value) <= INT64_MAX:
        return []
    detail = "value out of range" if is_number else "invalid syntax"
    return [invalid(path, value, f'strconv.ParseInt: parsing "{value}": {detail}')]


def affinity_faults(affinity: Document | None, path: str, options: PodOptions) -> list[Fault]:
    """What is wrong with `affinity`."""
    if not affinity:
        return []
    faults: list[Fault] = []
    nodes = affinity.get("nodeAffinity")
    if nodes is not None:
        faults += _node_affinity_faults(nodes, f"{path}.nodeAffinity", options)
    for kind in ("podAffinity", "podAntiAffinity"):
        pods = affinity.get(kind)
        if pods is not None:
            faults += _pod_affinity_faults(pods, f"{path}.{kind}", options.tolerates_affinity_selectors)
    return faults


def node_selector_faults(selector: Document, path: str, tolerates_values: bool = False) -> list[Fault]:
    """What is wrong with a selector of nodes."""
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        return [required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    faults: list[Fault] = []
    for index, term in enumerate(terms):
        faults += node_selector_term_faults(term, f"{path}.nodeSelectorTerms[{index}]", tolerates_values)
    return faults


def node_selector_term_faults(term: Document, path: str, tolerates_values: bool) -> list[Fault]:
    faults: list[Fault] = []
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        faults += _node_label_faults(requirement, f"{path}.matchExpressions[{index}]", tolerates_values)
    for index, requirement in enumerate(term.get("matchFields") or ()):
        faults += _node_field_faults(requirement, f"{path}.matchFields[{index}]")
    return faults


def term_selectors_faults(term: Document, path: str, tolerates_values: bool = False) -> list[Fault]:
    """What is wrong with the selectors of a term of pod affinity."""
    faults = label_selector_faults(term.get("labelSelector"), f"{path}.labelSelector", tolerates_values)
    return faults + label_selector_faults(term.get("namespaceSelector"), f"{path}.namespaceSelector", tolerates_values)


def match_label_keys_faults(holder: Document, path: str) -> list[Fault]:
    """What is wrong with `matchLabelKeys` and `mismatchLabelKeys`. The selector already has the expressions that the
    server made of them, so a key that occurs twice there was also written by the user."""
    keys, others = holder.get("matchLabelKeys") or (), holder.get("mismatchLabelKeys") or ()
    if not keys and not others:
        return []
    selector = holder.get("labelSelector")
    faults = _label_keys_faults(keys, selector, f"{path}.matchLabelKeys")
    faults += _label_keys_faults(others, selector, f"{path}.mismatchLabelKeys")
    if selector is not None:
        positions = {key: index for index, key in enumerate(keys)}
        seen = set(selector.get("matchLabels") or ())
        for expression in selector.get("matchExpressions") or ():
            key = expression.get("key", "")
            if key in positions and key in seen:
                faults.append(invalid(f"{path}[{positions[key]}]", key, _IN_SELECTOR))
            seen.add(key)
    detail = "exists in both matchLabelKeys and mismatchLabelKeys"
    return faults + [
        invalid(f"{path}.matchLabelKeys[{index}]", key, detail) for index, key in enumerate(keys) if key in others
    ]


# --- nodes ------------------------------------------------------------------------------------------------------


def _node_affinity_faults(affinity: Document, path: str, options: PodOptions) -> list[Fault]:
    faults: list[Fault] = []
    wanted = affinity.get(_REQUIRED)
    if wanted is not None:
        faults += node_selector_faults(wanted, f"{path}.{_REQUIRED}", options.tolerates_node_affinity_values)
    for index, term in enumerate(affinity.get(_PREFERRED) or ()):
        here = f"{path}.{_PREFERRED}[{index}]"
        faults += _weight_faults(term, here)
        # A preference with a value that no label can have is useless, but harms nobody.
        faults += node_selector_term_faults(term.get("preference") or {}, f"{here}.preference", True)
    return faults


def _node_label_faults(requirement: Document, path: str, tolerates_values: bool) -> list[Fault]:
    faults: list[Fault] = []
    operator, values = requirement.get("operator", ""), requirement.get("values") or ()
    match operator:
        case "In" | "NotIn":
            if not values:
                faults.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        case "Exists" | "DoesNotExist":
            if values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                faults.append(forbidden(f"{path}.values", detail))
        case "Gt" | "Lt":
            if len(values) != 1:
                detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                faults.append(required(f"{path}.values", detail))
        case _:
            faults.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    faults += label_name_faults(requirement.get("key", ""), f"{path}.key")
    if not tolerates_values:
        faults += label_values_faults(values, f"{path}.values")
    return faults


def _node_field_faults(requirement: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    operator, key, values = (
        requirement.get("operator", ""),
        requirement.get("key", ""),
        requirement.get("values") or (),
    )
    if operator not in ("In", "NotIn"):
        faults.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        faults.append(required(f"{path}.values", detail))
    if key != "metadata.name":
        return [*faults, invalid(f"{path}.key", key, "not a valid field selector key")]
    return faults + [
        invalid(f"{path}.values[{index}]", value, text)
        for index, value in enumerate(values)
        for text in dns_subdomain_faults(value)
    ]


# --- pods -------------------------------------------------------------------------------------------------------


def _pod_affinity_faults(affinity: Document, path: str, tolerates_values: bool) -> list[Fault]:
    faults: list[Fault] = []
    for index, term in enumerate(affinity.get(_REQUIRED) or ()):
        faults += _term_faults(term, f"{path}.{_REQUIRED}[{index}]", tolerates_values)
    for index, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        here = f"{path}.{_PREFERRED}[{index}]"
        faults += _weight_faults(weighted, here)
        faults += _term_faults(weighted.get("podAffinityTerm") or {}, f"{here}.podAffinityTerm", tolerates_values)
    return faults


def _term_faults(term: Document, path: str, tolerates_values: bool) -> list[Fault]:
    faults = term_selectors_faults(term, path, tolerates_values)
    for name in term.get("namespaces") or ():
        faults += [invalid(f"{path}.namespace", name, text) for text in dns_label_faults(name)]
    faults += match_label_keys_faults(term, path)
    key = term.get("topologyKey", "")
    if not key:
        faults.append(required(f"{path}.topologyKey", "can not be empty"))
    return faults + label_name_faults(key, f"{path}.topologyKey")


def _weight_faults(weighted: Document, path: str) -> list[Fault]:
    weight = weighted.get("weight", 0)
    return [] if 1 <= weight <= 100 else [invalid(f"{path}.weight", weight, _WEIGHT)]


def _label_keys_faults(keys: Sequence[str], selector: Document | None, path: str) -> list[Fault]:
    if not keys:
        return []
    if selector is None:
        return [forbidden(path, _NO_SELECTOR)]
    faults: list[Fault] = []
    for index, key in enumerate(keys):
        faults += label_name_faults(key, f"{path}[{index}]")
    return faults


def spread_constraints_faults(constraints: Sequence[Document], path: str, options: PodOptions) -> list[Fault]:
    faults: list[Fault] = []
    for index, constraint in enumerate(constraints):
        here = f"{path}[{index}]"
        key, action = constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")
        faults += positive_faults(constraint.get("maxSkew", 0), f"{here}.maxSkew")
        if not key:
            faults.append(required(f"{here}.topologyKey", "can not be empty"))
        if action not in _ACTIONS:
            faults.append(not_supported(f"{here}.whenUnsatisfiable", action, _ACTIONS))
        if any(_is_same_constraint(constraint, other) for other in constraints[index + 1 :]):
            faults.append(duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
        faults += _domains_faults(constraint.get("minDomains"), action, f"{here}.minDomains")
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            policy = constraint.get(field)
            if policy is not None and policy not in _POLICIES:
                faults.append(not_supported(f"{here}.{field}", policy, _POLICIES))
        if options.tolerates_spread_label_keys:
            faults += _older_label_keys_faults(constraint, f"{here}.matchLabelKeys")
        else:
            faults += match_label_keys_faults({**constraint, "mismatchLabelKeys": None}, here)
        if not options.tolerates_spread_selectors:
            faults += label_selector_faults(constraint.get("labelSelector"), f"{here}.labelSelector")
    return faults


def _is_same_constraint(one: Document, other: Document) -> bool:
    return all(one.get(field, "") == other.get(field, "") for field in ("topologyKey", "whenUnsatisfiable"))


def _domains_faults(count: int | None, action: str, path: str) -> list[Fault]:
    if count is None:
        return []
    faults = positive_faults(count, path)
    if action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        faults.append(invalid(path, count, detail))
    return faults


def _older_label_keys_faults(constraint: Document, path: str) -> list[Fault]:
    """The rule before v1.34, when the server did not merge the keys into the selector."""
    keys, selector = constraint.get("matchLabelKeys") or (), constraint.get("labelSelector")
    faults: list[Fault] = []
    if keys and selector is None:
        faults.append(forbidden(path, "must not be specified when labelSelector is not set"))
    selector = selector or {}
    known = {*(selector.get("matchLabels") or ()), *(e.get("key") for e in selector.get("matchExpressions") or ())}
    for index, key in enumerate(keys):
        faults += label_name_faults(key, f"{path}[{index}]")
        if key in known:
            detail = "exists in both matchLabelKeys and labelSelector"
            faults.append(invalid(f"{path}[{index}]", key, detail))
    return faults
