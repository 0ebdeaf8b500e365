"""Access reviews and token reviews: SubjectAccessReview and its variants, SelfSubjectReview, TokenReview.

Input: a review, and its author. Output: the review with its status; or `InvalidError` with every field error, in
kube-apiserver's order. Nothing is stored.

1. A review answers for the user that it describes. The server has no list of users.
2. `metadata` and `spec` are returned unchanged. Reviews of the author other than SelfSubjectAccessReview are returned
   with the status only, as in kube-apiserver.
3. A denied request is no error of the review: `allowed` is false, and `reason` says why.

A review may have selectors: may this user list the pods of this node? Authorizers get the fields that must equal a
value.

1. A requirement that cannot be parsed is ignored and reported: the question gets broader, so that it never allows
   more.
2. Of label selectors only the errors count, because no authorizer here reads labels.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from mooring.api.document import Document
from mooring.api.errors import LabelSelectorError
from mooring.api.field_errors import aggregated
from mooring.api.labels import LABEL_SELECTOR_OPERATORS, is_sound, parse_selector
from mooring.apiserver.access.authentication import Authenticator
from mooring.apiserver.access.authorization import Attributes, Authorizer, document_of, path_attributes
from mooring.apiserver.access.service_account_tokens import InvalidTokenError
from mooring.apiserver.errors import invalid_object
from mooring.apiserver.validation.fields import FieldError, Verbatim, invalid, required
from mooring.apiserver.validation.selectors import (
    SET_OPERATORS,
    validate_label_name,
    validate_label_values,
    validate_set_operator,
)
from mooring.client.errors import BadRequestError
from mooring.kit.clock import Clock, format_rfc3339
from mooring.serving.users import User

AUTHORIZATION_GROUP = "authorization.k8s.io"

_METADATA_ORDER = ("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation")


def check_review(document: Document, *, is_about_others: bool) -> None:
    """Raises for an invalid SubjectAccessReview or SelfSubjectAccessReview."""
    errors = list(_validate_review_spec(document, is_about_others=is_about_others))
    errors += _validate_review_metadata(document, allowed=("managedFields",), rule="must be empty")
    _raise(errors)


def check_local_review(document: Document) -> None:
    """Raises for an invalid LocalSubjectAccessReview: its namespace must be that of the request."""
    errors = list(_validate_review_spec(document, is_about_others=True))
    allowed = ("namespace", "managedFields")
    errors += _validate_review_metadata(document, allowed=allowed, rule="must be empty except for namespace")
    spec = document.get("spec") or {}
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    namespace = (document.get("metadata") or {}).get("namespace") or ""
    if resource is not None and (resource.get("namespace") or "") != namespace:
        found = resource.get("namespace") or ""
        errors.append(invalid("spec.resourceAttributes.namespace", found, "must match metadata.namespace"))
    if path is not None:
        errors.append(
            invalid("spec.nonResourceAttributes", _go_path_attributes(path), "disallowed on this kind of request")
        )
    _raise(errors)


def _validate_review_spec(document: Document, *, is_about_others: bool) -> Iterator[FieldError]:
    spec = document.get("spec") or {}
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        rule = "cannot be specified in combination with resourceAttributes"
        yield invalid("spec.nonResourceAttributes", _go_path_attributes(path), rule)
    if resource is None and path is None:
        rule = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        yield invalid("spec.resourceAttributes", None, rule)
    if is_about_others and not spec.get("user") and not spec.get("groups"):
        yield invalid("spec.user", "", "at least one of user or group must be specified")
    if resource is not None:
        for field in ("fieldSelector", "labelSelector"):
            if resource.get(field) is not None:
                yield from _validate_selector(resource[field], field, f"spec.resourceAttributes.{field}")


def _validate_selector(selector: Document, kind: str, path: str) -> Iterator[FieldError]:
    raw, requirements = selector.get("rawSelector") or "", selector.get("requirements") or []
    if raw and requirements:
        yield invalid(f"{path}.rawSelector", raw, "may not specified at the same time as requirements")
    if not raw and not requirements:
        rule = f"when {path} is specified, requirements or rawSelector is required"
        yield required(f"{path}.requirements", rule)
    for index, requirement in enumerate(requirements):
        place = f"{path}.requirements[{index}]"
        if kind == "fieldSelector" and not requirement.get("key"):
            yield required(f"{place}.key", "must be specified")
        operator, values = requirement.get("operator"), requirement.get("values") or ()
        if operator in SET_OPERATORS:
            yield from validate_set_operator(operator, values, place)
        if kind == "labelSelector":
            yield from validate_label_name(requirement.get("key") or "", f"{place}.key")
            yield from validate_label_values(values, f"{place}.values")


def _validate_review_metadata(document: Document, *, allowed: tuple[str, ...], rule: str) -> list[FieldError]:
    metadata = {key: value for key, value in (document.get("metadata") or {}).items() if value}
    if all(key in allowed for key in metadata):
        return []
    ordered = {key: metadata[key] for key in _METADATA_ORDER if key in metadata}
    text = json.dumps({**ordered, **metadata}, ensure_ascii=False, separators=(",", ":"))
    return [invalid("metadata", Verbatim(text), rule)]


def _go_path_attributes(path: Document) -> Verbatim:
    # kube-apiserver prints its internal type, whose fields have other names.
    found = {"Path": path.get("path") or "", "Verb": path.get("verb") or ""}
    return Verbatim(json.dumps(found, ensure_ascii=False, separators=(",", ":")))


def _raise(errors: list[FieldError]) -> None:
    if errors:
        raise invalid_object("", AUTHORIZATION_GROUP, "", errors)


_AUTHENTICATION_VERSION = "authentication.k8s.io/v1"


def subject_access_review(review: Document, authorizer: Authorizer) -> Document:
    """SubjectAccessReview: whether a user may make a request."""
    check_review(review, is_about_others=True)
    return _reviewed(review, _described_user(review["spec"]), authorizer)


def local_subject_access_review(review: Document, namespace: str, authorizer: Authorizer) -> Document:
    """LocalSubjectAccessReview: whether a user may make a request in this namespace."""
    check_local_review(review)
    if not namespace:
        raise BadRequestError("namespace is required on this type: ")
    if (review.get("metadata") or {}).get("namespace") != namespace:
        raise BadRequestError(f"spec.resourceAttributes.namespace must match namespace: {namespace}")
    return _reviewed(review, _described_user(review["spec"]), authorizer)


def self_subject_access_review(review: Document, user: User, authorizer: Authorizer) -> Document:
    """SelfSubjectAccessReview: whether the user of the request may make another one."""
    check_review(review, is_about_others=False)
    return _reviewed(review, user, authorizer)


def self_subject_rules_review(review: Document, user: User, authorizer: Authorizer) -> Document:
    """SelfSubjectRulesReview: the rules of the user of the request in a namespace."""
    namespace = (review.get("spec") or {}).get("namespace")
    if not namespace:
        raise BadRequestError("no namespace on request")
    held = authorizer.rules_for(user, namespace)
    status: Document = {"resourceRules": [], "nonResourceRules": [], "incomplete": held.is_incomplete}
    for rule in held.rules:
        written = document_of(rule)
        urls = written.pop("nonResourceURLs", None)
        if rule.resources:
            status["resourceRules"].append(written)
        if urls:
            status["nonResourceRules"].append({"verbs": written["verbs"], "nonResourceURLs": urls})
    if held.errors:
        status["evaluationError"] = aggregated(held.errors)
    return {
        "kind": "SelfSubjectRulesReview",
        "apiVersion": f"{AUTHORIZATION_GROUP}/v1",
        "metadata": {},
        "spec": {},
        "status": status,
    }


def self_subject_review(user: User, clock: Clock) -> Document:
    """SelfSubjectReview: the user of the request."""
    return {
        "kind": "SelfSubjectReview",
        "apiVersion": _AUTHENTICATION_VERSION,
        "metadata": {"creationTimestamp": format_rfc3339(clock.wall_s())},
        "status": {"userInfo": user_info(user)},
    }


def token_review(review: Document, authenticator: Authenticator) -> Document:
    """TokenReview: the user of a token."""
    spec = review.get("spec") or {}
    token = spec.get("token")
    if not token:
        raise BadRequestError("token is required for TokenReview in authentication")
    try:
        proof = authenticator.authenticate_token(token, spec.get("audiences") or authenticator.audiences)
    except InvalidTokenError as error:
        return {**review, "status": {"user": {}, "error": str(error)}}
    status = {"authenticated": True, "user": user_info(proof.user), "audiences": list(proof.audiences)}
    return {**review, "status": status}


def user_info(user: User) -> Document:
    """A user as `UserInfo` of a review."""
    info: Document = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info


def _described_user(spec: Document) -> User:
    extra = {key: tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
    return User(spec.get("user") or "", spec.get("uid") or "", tuple(spec.get("groups") or ()), extra)


def _reviewed(review: Document, user: User, authorizer: Authorizer) -> Document:
    spec = review["spec"]
    resource = spec.get("resourceAttributes")
    evaluation_error = ""
    if resource is not None:
        fields_equal, evaluation_error = selected(resource)
        attributes = _resource_attributes(user, resource, fields_equal)
    else:
        path = spec["nonResourceAttributes"]
        attributes = path_attributes(user, path.get("verb") or "", path.get("path") or "")
    decision = authorizer.authorize(attributes)
    status: Document = {"allowed": decision.is_allowed}
    if decision.reason:
        status["reason"] = decision.reason
    if evaluation_error:
        status["evaluationError"] = evaluation_error
    return {**review, "status": status}


def _resource_attributes(user: User, raw: Document, fields_equal: tuple[tuple[str, str], ...]) -> Attributes:
    return Attributes(
        user,
        raw.get("verb") or "",
        namespace=raw.get("namespace") or "",
        api_group=raw.get("group") or "",
        api_version=raw.get("version") or "*",
        resource=raw.get("resource") or "",
        subresource=raw.get("subresource") or "",
        name=raw.get("name") or "",
        fields_equal=fields_equal,
    )


# --- selectors ------------------------------------------------------------------------------------------------


class FieldSelectorError(ValueError):
    """A field selector's text is no selector."""


class FieldSelectorAttributes(NamedTuple):
    fields_equal: tuple[tuple[str, str], ...] = ()
    evaluation_error: str = ""


def selected(resource_attributes: Document) -> FieldSelectorAttributes:
    """What the selectors of a review mean."""
    errors = []
    fields_equal: tuple[tuple[str, str], ...] = ()
    if resource_attributes.get("fieldSelector"):
        fields_equal, error = _fields(resource_attributes["fieldSelector"])
        if error:
            errors.append(f"spec.resourceAttributes.fieldSelector {error}")
    if resource_attributes.get("labelSelector"):
        error = _labels_error(resource_attributes["labelSelector"])
        if error:
            errors.append(f"spec.resourceAttributes.labelSelector {error}")
    return FieldSelectorAttributes(fields_equal, "; ".join(errors))


def parse_field_equalities(text: str) -> tuple[tuple[str, str], ...]:
    """The equalities of a field selector's text. Inequalities are read, and left out. Raises `FieldSelectorError`."""
    return tuple((field, value) for field, is_equal, value in _terms(text) if is_equal)


def _fields(selector: Document) -> tuple[tuple[tuple[str, str], ...], str]:
    requirements = selector.get("requirements")
    if not requirements:
        try:
            return parse_field_equalities(selector.get("rawSelector") or ""), ""
        except FieldSelectorError:
            return (), "ignored due to parse error"
    kept = [term for term in requirements if term.get("operator") in ("In", "NotIn") and len(term["values"]) == 1]
    equal = tuple((term["key"], term["values"][0]) for term in kept if term["operator"] == "In")
    return equal, _error(len(kept), len(requirements))


def _labels_error(selector: Document) -> str:
    requirements = selector.get("requirements")
    if not requirements:
        try:
            parse_selector(selector.get("rawSelector") or "")
        except LabelSelectorError:
            return "ignored due to parse error"
        return ""
    understood = 0
    for term in requirements:
        operator = LABEL_SELECTOR_OPERATORS.get(term.get("operator") or "")
        understood += operator is not None and is_sound(term.get("key") or "", operator, term.get("values") or ())
    return _error(understood, len(requirements))


def _error(understood: int, total: int) -> str:
    if understood == total:
        return ""
    return "partially ignored due to parse error" if understood else "ignored due to parse error"


def _terms(text: str) -> Iterator[tuple[str, bool, str]]:
    for term in _split(text):
        for index in range(len(term)):
            if term.startswith("!=", index):
                yield term[:index], False, _unescaped(term[index + 2 :])
                break
            if term[index] == "=":
                width = 2 if term.startswith("==", index) else 1
                yield term[:index], True, _unescaped(term[index + width :])
                break
        else:
            if term:
                raise FieldSelectorError(f"invalid selector: '{text}'; can't understand '{term}'")


def _split(text: str) -> list[str]:
    """The terms between commas; a comma after a backslash separates nothing."""
    terms, start, is_escaped = [], 0, False
    for index, character in enumerate(text):
        if is_escaped:
            is_escaped = False
        elif character == "\\":
            is_escaped = True
        elif character == ",":
            terms.append(text[start:index])
            start = index + 1
    terms.append(text[start:])
    return terms


def _unescaped(value: str) -> str:
    if "\\" not in value and "," not in value and "=" not in value:
        return value
    found, rest = [], iter(value)
    for character in rest:
        if character == "\\":
            character = next(rest, "")
            if character not in ("\\", ",", "=") or not character:
                raise FieldSelectorError(f"invalid field selector: invalid escape sequence: \\{character}")
        elif character in ",=":
            raise FieldSelectorError(f"invalid field selector: unescaped character in value: {character}")
        found.append(character)
    return "".join(found)
