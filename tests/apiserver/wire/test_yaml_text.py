"""YAML bodies are parsed with the messages of Go, and documents are written as YAML."""

from __future__ import annotations

import pytest

from mooring.apiserver.wire.json_text import BodySyntaxError
from mooring.apiserver.wire.yaml_text import parse_yaml, written_yaml


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("b: 1\na: {d: v, c: w}", {"a": {"c": "w", "d": "v"}, "b": 1}, id="keys are sorted"),
        pytest.param("", None, id="an empty document is null"),
        pytest.param("a: 1\n---\nb: 2", {"a": 1}, id="the first document counts"),
        pytest.param("1: a\ntrue: b", {"1": "a", "true": "b"}, id="keys are strings"),
    ],
)
def test_yaml_becomes_json(text: str, expected: object) -> None:
    value, errors = parse_yaml(text.encode())
    assert value == expected
    assert errors == []
    if isinstance(expected, dict) and isinstance(value, dict):
        assert list(value) == sorted(expected)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a: b: c", "yaml: mapping values are not allowed in this context"),
        ("a:\n\t- b", "yaml: line 2: found character that cannot start any token"),
        ("a: *x", "yaml: unknown anchor 'x' referenced"),
        ("metadata: [", "yaml: line 1: did not find expected node content"),
        ("metadata:\n  name: a\n bad: x", "yaml: line 2: did not find expected key"),
    ],
)
def test_invalid_yaml_has_the_message_of_go(text: str, error: str) -> None:
    with pytest.raises(BodySyntaxError) as raised:
        parse_yaml(text.encode())
    assert str(raised.value) == error


def test_repeated_keys_are_one_strict_error_and_the_last_counts() -> None:
    value, errors = parse_yaml(b"m:\n  a: 1\n  a: 2\nm: {d: 2020-01-01, 1: x}\n---\nother: 1\n")
    assert value == {"m": {"d": "2020-01-01", "1": "x"}}
    assert errors == [
        'yaml: unmarshal errors:\n  line 3: key "a" already set in map\n  line 4: key "m" already set in map'
    ]


def test_scalars_are_read_the_same_in_documents_with_repeated_keys() -> None:
    scalars = "[yes, 014, 1_000, 12:30, 2020-01-01, ~, '5', !!str 5, !!timestamp x]"
    value, errors = parse_yaml(f"a: 1\na: {scalars}\nb: {{<<: {{c: 1}}}}".encode())
    assert value == {"a": parse_yaml(scalars.encode())[0], "b": {"c": 1}}
    assert len(errors) == 1


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a: 1\na: 2\nb: " + "[" * 100_000, "yaml: nested deeper than 250 levels"),
        ("a: &x 1\na: *x", "yaml: keys are set twice in a document with aliases"),
        ("a: 1\na: 2\n!!int : 3", "yaml: cannot decode `` as a !!int"),
        ("a: 1\na: !!bool x", "yaml: cannot decode `x` as a !!bool"),
    ],
    ids=["brackets", "aliases", "an integer without digits", "a word that is no bool"],
)
def test_invalid_yaml_with_repeated_keys_is_an_error(text: str, error: str) -> None:
    with pytest.raises(BodySyntaxError) as raised:
        parse_yaml(text.encode())
    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b'{"a":"x\\ud800y"}', "yaml: found invalid Unicode character escape code", id="in JSON"),
        pytest.param(
            b'{"a":"\\uD83D\\uDE00"}', "yaml: found invalid Unicode character escape code", id="a surrogate pair"
        ),
        pytest.param(
            b'a: 1\nb: 2\nc: "\\ud800"\n',
            "yaml: line 3: found invalid Unicode character escape code",
            id="in a later line",
        ),
        pytest.param(b'a: "\\ud800"\0', "yaml: control characters are not allowed", id="with a zero byte"),
    ],
)
def test_escaped_surrogates_are_invalid_yaml(data: bytes, message: str) -> None:
    with pytest.raises(BodySyntaxError) as caught:
        parse_yaml(data)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param("web", "web", id="a string"),
        pytest.param("7", '"7"', id="a string of digits"),
        pytest.param("1e3", '"1e3"', id="a string that Go takes for a number"),
        pytest.param("", '""', id="an empty string"),
        pytest.param("y", '"y"', id="a string that YAML takes for a boolean"),
        pytest.param("null", '"null"', id="the string null"),
        pytest.param("2026-01-01T00:00:00Z", '"2026-01-01T00:00:00Z"', id="a time"),
        pytest.param("a: b", "'a: b'", id="a string with a colon"),
        pytest.param("a\nb\n", "|\n  a\n  b", id="lines"),
        pytest.param(7, "7", id="a number"),
        pytest.param(None, "null", id="null"),
        pytest.param([], "[]", id="an empty list"),
    ],
)
def test_written_yaml_quotes_values_like_go(value: object, text: str) -> None:
    assert written_yaml({"key": value}) == f"key: {text}\n".encode()


def test_a_value_in_two_places_is_written_twice_without_an_alias() -> None:
    shared = {"version": "v1"}
    assert written_yaml({"preferred": shared, "all": [shared]}) == b"all:\n- version: v1\npreferred:\n  version: v1\n"
