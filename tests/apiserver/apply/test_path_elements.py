"""Path elements of field sets: canonical text, order, and how messages show them."""

from __future__ import annotations

import pytest

from mooring.apiserver.apply.field_set import (
    ElementError,
    in_order,
    key_element,
    parsed_element,
    shown,
    value_element,
)


@pytest.mark.parametrize(
    ("element", "text"),
    [
        pytest.param(key_element(["name"], ["web"]), 'k:{"name":"web"}', id="one key"),
        pytest.param(
            key_element(["containerPort", "protocol"], [80, "TCP"]),
            'k:{"containerPort":80,"protocol":"TCP"}',
            id="two keys",
        ),
        pytest.param(
            key_element(["name"], ['a"b<c>&']), 'k:{"name":"a\\"b\\u003cc\\u003e\\u0026"}', id="escaped as by Go"
        ),
        pytest.param(value_element("x"), 'v:"x"', id="a string of a set"),
        pytest.param(value_element(5), "v:5", id="a number of a set"),
        pytest.param(value_element(True), "v:true", id="a boolean of a set"),
        pytest.param(value_element("größe"), 'v:"größe"', id="non-ASCII characters are kept"),
    ],
)
def test_key_and_value_elements_are_canonical(element: str, text: str) -> None:
    assert element == text


@pytest.mark.parametrize(
    ("text", "element"),
    [
        pytest.param("f:data", "f:data", id="a field"),
        pytest.param("f:a:b", "f:a:b", id="a colon belongs to the name"),
        pytest.param('k:{"b":1, "a":"x"}', 'k:{"a":"x","b":1}', id="keys are sorted"),
        pytest.param('v: "x"', 'v:"x"', id="spaces are removed"),
        pytest.param("i:03", "i:3", id="an index"),
        pytest.param("x:data", None, id="an unknown type of element"),
    ],
)
def test_parsed_element_makes_elements_canonical(text: str, element: str | None) -> None:
    assert parsed_element(text) == element


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("f", "key must be 2 characters long:", id="too short"),
        pytest.param("data", "missing colon: data", id="no colon"),
        pytest.param("k:{", "truncated", id="no JSON"),
        pytest.param("k:[1]", "Expected `object`", id="keys are an object"),
        pytest.param("i:x", "invalid literal", id="an index is a number"),
    ],
)
def test_invalid_path_elements_are_rejected(text: str, problem: str) -> None:
    with pytest.raises(ElementError, match=problem):
        parsed_element(text)


@pytest.mark.parametrize(
    "elements",
    [
        pytest.param([".", "f:a", "f:a.b", "f:b"], id="the dot, then fields by name"),
        pytest.param(['k:{"port":9}', 'k:{"port":80}', 'k:{"port":443}'], id="ports are numbers"),
        pytest.param(['k:{"name":"a"}', 'k:{"name":"a b"}', 'k:{"name":"a-b"}'], id="strings by characters"),
        pytest.param(["v:1", 'v:"0"', "v:true"], id="numbers, strings, booleans"),
        pytest.param(["f:z", 'k:{"a":1}', "v:1", "i:0"], id="fields, keys, values, indices"),
        pytest.param(['k:{"a":1}', 'k:{"a":1,"b":1}', 'k:{"b":0}'], id="fewer keys first"),
    ],
)
def test_path_elements_are_sorted(elements: list[str]) -> None:
    assert in_order(elements[::-1]) == elements


@pytest.mark.parametrize(
    ("element", "text"),
    [
        ("f:data", ".data"),
        ('k:{"containerPort":80,"protocol":"TCP"}', '[containerPort=80,protocol="TCP"]'),
        ('v:"x"', '[="x"]'),
        ("v:true", "[=true]"),
        ("v:null", "[=null]"),
        ("i:3", "[3]"),
    ],
)
def test_shown_formats_path_elements_for_messages(element: str, text: str) -> None:
    assert shown(element) == text
