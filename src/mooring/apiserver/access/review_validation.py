"""What an access review must look like.

Comes in   the spec and the metadata of a review
Goes out   nothing; or an `InvalidError` with every error, in Kubernetes' words and order

 1. The error names no kind: the original has forgotten it by then.
 2. An operator that nobody knows is no error here. It may come from a newer client, and leaving a requirement out only
    makes the question broader, and the answer stricter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from mooring.api.document import Document
from mooring.api.field_errors import aggregated, quoted
from mooring.api.label_syntax import label_key_errors, label_value_errors
from mooring.client.errors import Cause, InvalidError

AUTHORIZATION_GROUP = "authorization.k8s.io"

_METADATA_ORDER = ("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation")


def check_review(document: Document, *, is_about_others: bool) -> None:
    """A SubjectAccessReview (about others) or a SelfSubjectAccessReview."""
    errors = list(_validate_review_spec(document, is_about_others=is_about_others))
    errors += _validate_review_metadata(document, allowed=("managedFields",), rule="must be empty")
    _raise(errors)


def check_local_review(document: Document) -> None:
    """A LocalSubjectAccessReview, which stays in its namespace."""
    errors = list(_validate_review_spec(document, is_about_others=True))
    allowed = ("namespace", "managedFields")
    errors += _validate_review_metadata(document, allowed=allowed, rule="must be empty except for namespace")
    spec = document.get("spec") or {}
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    namespace = (document.get("metadata") or {}).get("namespace") or ""
    if resource is not None and (resource.get("namespace") or "") != namespace:
        found = quoted(resource.get("namespace") or "")
        errors.append(_invalid("spec.resourceAttributes.namespace", found, "must match metadata.namespace"))
    if path is not None:
        errors.append(
            _invalid("spec.nonResourceAttributes", _go_path_attributes(path), "disallowed on this kind of request")
        )
    _raise(errors)


def _validate_review_spec(document: Document, *, is_about_others: bool) -> Iterator[Cause]:
    spec = document.get("spec") or {}
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        rule = "cannot be specified in combination with resourceAttributes"
        yield _invalid("spec.nonResourceAttributes", _go_path_attributes(path), rule)
    if resource is None and path is None:
        rule = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        yield _invalid("spec.resourceAttributes", "null", rule)
    if is_about_others and not spec.get("user") and not spec.get("groups"):
        yield _invalid("spec.user", '""', "at least one of user or group must be specified")
    if resource is not None:
        for field in ("fieldSelector", "labelSelector"):
            if resource.get(field) is not None:
                yield from _validate_selector(resource[field], field, f"spec.resourceAttributes.{field}")


def _validate_selector(selector: Document, kind: str, path: str) -> Iterator[Cause]:
    raw, requirements = selector.get("rawSelector") or "", selector.get("requirements") or []
    if raw and requirements:
        yield _invalid(f"{path}.rawSelector", quoted(raw), "may not specified at the same time as requirements")
    if not raw and not requirements:
        rule = f"when {path} is specified, requirements or rawSelector is required"
        yield Cause("FieldValueRequired", f"Required value: {rule}", f"{path}.requirements")
    for index, requirement in enumerate(requirements):
        place = f"{path}.requirements[{index}]"
        if kind == "fieldSelector" and not requirement.get("key"):
            yield Cause("FieldValueRequired", "Required value: must be specified", f"{place}.key")
        yield from _validate_values(requirement, place)
        if kind == "labelSelector":
            yield from _validate_label(requirement, place)


def _validate_values(requirement: Document, place: str) -> Iterator[Cause]:
    operator, has_values = requirement.get("operator"), bool(requirement.get("values"))
    if operator in ("In", "NotIn") and not has_values:
        rule = "must be specified when `operator` is 'In' or 'NotIn'"
        yield Cause("FieldValueRequired", f"Required value: {rule}", f"{place}.values")
    if operator in ("Exists", "DoesNotExist") and has_values:
        rule = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        yield Cause("FieldValueForbidden", f"Forbidden: {rule}", f"{place}.values")


def _validate_label(requirement: Document, place: str) -> Iterator[Cause]:
    key = requirement.get("key") or ""
    for rule in label_key_errors(key):
        yield _invalid(f"{place}.key", quoted(key), rule)
    for index, value in enumerate(requirement.get("values") or ()):
        for rule in label_value_errors(value):
            yield _invalid(f"{place}.values[{index}]", quoted(value), rule)


def _validate_review_metadata(document: Document, *, allowed: tuple[str, ...], rule: str) -> list[Cause]:
    metadata = {key: value for key, value in (document.get("metadata") or {}).items() if value}
    if all(key in allowed for key in metadata):
        return []
    ordered = {key: metadata[key] for key in _METADATA_ORDER if key in metadata}
    text = json.dumps({**ordered, **metadata}, ensure_ascii=False, separators=(",", ":"))
    return [_invalid("metadata", text, rule)]


def _go_path_attributes(path: Document) -> str:
    # The original prints its internal form, whose fields have other names.
    found = {"Path": path.get("path") or "", "Verb": path.get("verb") or ""}
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def _invalid(field: str, found: str, rule: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {found}: {rule}", field)


def _raise(errors: list[Cause]) -> None:
    if errors:
        text = aggregated(f"{error.field}: {error.message}" for error in errors)
        raise InvalidError(
            f'.{AUTHORIZATION_GROUP} "" is invalid: {text}', causes=errors, details={"group": AUTHORIZATION_GROUP}
        )
