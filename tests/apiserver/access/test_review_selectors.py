"""Selectors in reviews are understood, or left out and said so."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.access.reviews import FieldSelectorError, Selected, parse_field_equalities, selected


@pytest.mark.parametrize(
    ("text", "equalities"),
    [
        ("", ()),
        ("spec.nodeName=n1", (("spec.nodeName", "n1"),)),
        ("spec.nodeName==n1", (("spec.nodeName", "n1"),)),
        ("spec.nodeName!=n1", ()),
        ("a=1,b!=2,c=3", (("a", "1"), ("c", "3"))),
        (r"a=x\,y\=z\\", (("a", r"x,y=z" "\\"),)),
        ("a=", (("a", ""),)),
        ("a=1,", (("a", "1"),)),
    ],
)
def test_equalities_of_a_text(text: str, equalities: tuple[tuple[str, str], ...]) -> None:
    assert parse_field_equalities(text) == equalities


@pytest.mark.parametrize("text", ["a", "a=1,b", r"a=\x", "a=1=2", "a=\\"])
def test_invalid_selectors(text: str) -> None:
    with pytest.raises(FieldSelectorError, match="invalid"):
        parse_field_equalities(text)


FIELD, LABEL = "spec.resourceAttributes.fieldSelector", "spec.resourceAttributes.labelSelector"
IN = {"key": "spec.nodeName", "operator": "In", "values": ["n1"]}


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        pytest.param({}, Selected(), id="none"),
        pytest.param(
            {"fieldSelector": {"rawSelector": "spec.nodeName=n1"}}, Selected((("spec.nodeName", "n1"),)), id="a text"
        ),
        pytest.param(
            {"fieldSelector": {"rawSelector": "a"}},
            Selected((), f"{FIELD} ignored due to parse error"),
            id="a text that is none",
        ),
        pytest.param(
            {"fieldSelector": {"requirements": [IN]}}, Selected((("spec.nodeName", "n1"),)), id="a requirement"
        ),
        pytest.param(
            {"fieldSelector": {"requirements": [{**IN, "operator": "NotIn"}]}}, Selected(), id="an inequality"
        ),
        pytest.param(
            {"fieldSelector": {"requirements": [IN, {"key": "a", "operator": "Exists"}]}},
            Selected((("spec.nodeName", "n1"),), f"{FIELD} partially ignored due to parse error"),
            id="one of two",
        ),
        pytest.param(
            {"fieldSelector": {"requirements": [{**IN, "values": ["n1", "n2"]}]}},
            Selected((), f"{FIELD} ignored due to parse error"),
            id="two values",
        ),
        pytest.param({"labelSelector": {"rawSelector": "a=b,c"}}, Selected(), id="labels in a text"),
        pytest.param(
            {"labelSelector": {"rawSelector": "a=="}, "fieldSelector": {"rawSelector": "a"}},
            Selected((), f"{FIELD} ignored due to parse error"),
            id="an empty value is a value",
        ),
        pytest.param(
            {"labelSelector": {"rawSelector": "(("}, "fieldSelector": {"rawSelector": "a"}},
            Selected((), f"{FIELD} ignored due to parse error; {LABEL} ignored due to parse error"),
            id="neither",
        ),
        pytest.param(
            {"labelSelector": {"requirements": [{"key": "a", "operator": "Foo"}, {"key": "b", "operator": "Exists"}]}},
            Selected((), f"{LABEL} partially ignored due to parse error"),
            id="an operator from the future",
        ),
        pytest.param(
            {"labelSelector": {"requirements": [{"key": "b", "operator": "Exists"}]}}, Selected(), id="a label"
        ),
    ],
)
def test_selectors_of_a_review(attributes: Document, expected: Selected) -> None:
    assert selected(attributes) == expected
