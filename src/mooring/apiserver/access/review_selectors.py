"""Selectors in access reviews: may this user list the pods of this node?

Input: `fieldSelector` and `labelSelector` of a review's resource attributes. Output: the fields that must equal a
value, for authorizers; and errors.

1. A requirement that cannot be parsed is ignored and reported: the question gets broader, so that it never allows
   more.
2. Of label selectors only the errors count, because no authorizer here reads labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mooring.api.document import Document
from mooring.api.errors import LabelSelectorError
from mooring.api.labels import LABEL_SELECTOR_OPERATORS, is_sound, parse_selector


class FieldSelectorError(ValueError):
    """A field selector's text is no selector."""


class Selected(NamedTuple):
    fields_equal: tuple[tuple[str, str], ...] = ()
    evaluation_error: str = ""


def selected(resource_attributes: Document) -> Selected:
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
    return Selected(fields_equal, "; ".join(errors))


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
    kept = [each for each in requirements if each.get("operator") in ("In", "NotIn") and len(each["values"]) == 1]
    equal = tuple((each["key"], each["values"][0]) for each in kept if each["operator"] == "In")
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
    for each in requirements:
        operator = LABEL_SELECTOR_OPERATORS.get(each.get("operator") or "")
        understood += operator is not None and is_sound(each.get("key") or "", operator, each.get("values") or ())
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
