"""Values are validated against their schema, with the messages of kube-apiserver v1.36.4.

String formats accept the same strings as kube-apiserver v1.36.4.
"""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document, same_json
from mooring.apiserver.custom import value_rules
from mooring.apiserver.custom.formats import check_of, known_format
from mooring.apiserver.custom.schema import CorrelatedValue, json_identity, read_schema
from mooring.apiserver.custom.value_rules import (
    MESSAGE_BYTES_MAX,
    NumberRules,
    ValueRules,
    is_whole,
    number_text,
    validate_value,
)
from tests.apiserver.custom.definitions import fields


@pytest.mark.parametrize(
    ("raw", "type_name", "value", "message"),
    [
        pytest.param({"minimum": 1}, "integer", 0, ["a in body should be greater than or equal to 1"], id="too small"),
        pytest.param(
            {"minimum": 1, "exclusiveMinimum": True},
            "integer",
            1,
            ["a in body should be greater than 1"],
            id="not above",
        ),
        pytest.param({"maximum": 5}, "integer", 6, ["a in body should be less than or equal to 5"], id="too large"),
        pytest.param(
            {"maximum": 5, "exclusiveMaximum": True}, "integer", 5, ["a in body should be less than 5"], id="not below"
        ),
        pytest.param({"multipleOf": 2}, "integer", 3, ["a in body should be a multiple of 2"], id="no multiple"),
        pytest.param(
            {"multipleOf": 0.5},
            "number",
            1.7,
            ["a in body should be a multiple of 0.5"],
            id="no multiple of a fraction",
        ),
        pytest.param({"multipleOf": 0.1}, "number", 0.3, [], id="a multiple except for rounding"),
        pytest.param(
            {"maximum": 1000000.5},
            "number",
            2000000.5,
            ["a in body should be less than or equal to 1.0000005e+06"],
            id="large numbers",
        ),
        pytest.param(
            {}, "integer", 1.5, ["Checked value must be of type integer (default format) in a"], id="a fraction"
        ),
        pytest.param(
            {"maximum": 1.5},
            "integer",
            1,
            ["Maximum boundary value must be of type integer (default format) in a"],
            id="a bound that is no integer",
        ),
    ],
)
def test_number_rules_report_violations(raw: Document, type_name: str, value: float, message: list[str]) -> None:
    assert [found[0] for found in NumberRules(raw, type_name, "").findings(value, "a")] == message


def test_int32_values_are_limited_to_32_bits() -> None:
    found = list(NumberRules({}, "integer", "int32").findings(2**31, "a"))
    assert [message for message, _, _ in found] == ["Checked value must be of type integer with format int32 in a"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5, "5"),
        (0.0, "0"),
        (1.5, "1.5"),
        (1e6, "1e+06"),
        (123456.5, "123456.5"),
        (1234567.5, "1.2345675e+06"),
        (1e-5, "1e-05"),
    ],
    ids=str,
)
def test_number_text_formats_numbers_like_go(value: float, text: str) -> None:
    assert number_text(value) == text


def test_is_whole_is_true_for_integral_numbers_within_64_bits() -> None:
    assert [is_whole(number) for number in (3.0, 3.5, 1e30)] == [True, False, False]


NUMBER_OR_TEXT: Document = {"x-kubernetes-int-or-string": True}
ONLY_ONE = "must validate one and only one schema (oneOf)"
NEEDS_X_OR_Y = {"type": "object", "anyOf": [{"required": ["x"]}, {"required": ["y"]}]}


@pytest.mark.parametrize(
    ("held", "value", "messages"),
    [
        pytest.param(
            {"type": "integer"},
            "big",
            ['spec: Invalid value: "string": spec in body must be of type integer: "string"'],
            id="another type",
        ),
        pytest.param(
            {"type": "integer"},
            None,
            ['spec: Invalid value: "null": spec in body must be of type integer: "null"'],
            id="null",
        ),
        pytest.param({"type": "integer"}, 3.0, [], id="a whole number that is written as a fraction"),
        pytest.param({"type": "string", "nullable": True}, None, [], id="a null that is allowed"),
        pytest.param(
            {"type": "string", "format": "date"},
            5,
            ['spec: Invalid value: "int64": spec in body must be of type date: "int64"'],
            id="a format instead of a type",
        ),
        pytest.param(
            {"type": "string", "format": "date"},
            "noon",
            ['spec: Invalid value: "noon": spec in body must be of type date: "noon"'],
            id="not of a format",
        ),
        pytest.param({"type": "string", "format": "foo"}, "x", [], id="an unknown format"),
        pytest.param(
            {"type": "string", "maxLength": 2}, "äöü", ["spec: Too long: may not be more than 2 bytes"], id="too long"
        ),
        pytest.param(
            {"type": "string", "minLength": 2},
            "a",
            ['spec: Invalid value: "a": spec in body should be at least 2 chars long'],
            id="too short",
        ),
        pytest.param(
            {"type": "string", "pattern": "^a$"},
            "b",
            ["spec: Invalid value: \"b\": spec in body should match '^a$'"],
            id="a pattern",
        ),
        pytest.param(
            {"type": "string", "enum": ["a", "b"]},
            "c",
            ['spec: Unsupported value: "c": supported values: "a", "b"'],
            id="not in an enum",
        ),
        pytest.param(
            {"type": "integer", "enum": [1, 2]},
            3,
            ['spec: Unsupported value: 3: supported values: "1", "2"'],
            id="not in an enum of numbers",
        ),
        pytest.param(
            {"type": "array", "minItems": 1},
            [],
            ["spec: Invalid value: 0: spec in body should have at least 1 items"],
            id="too few items",
        ),
        pytest.param(
            {"type": "array", "maxItems": 1},
            [1, 2],
            ["spec: Too many: 2: must have at most 1 item"],
            id="too many items",
        ),
        pytest.param(
            {"type": "array", "items": {"type": "string"}},
            [1],
            ['spec[0]: Invalid value: "integer": spec[0] in body must be of type string: "integer"'],
            id="an item",
        ),
        pytest.param(
            {"type": "object", "minProperties": 1},
            {},
            ["spec: Invalid value: 0: spec in body should have at least 1 properties"],
            id="too few entries",
        ),
        pytest.param(
            {"type": "object", "maxProperties": 0},
            {"a": 1},
            ["spec: Too many: 1: must have at most 0 items"],
            id="too many entries",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": {"type": "string"}},
            {"k": 1},
            ['spec.k: Invalid value: "integer": spec.k in body must be of type string: "integer"'],
            id="an entry",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": False},
            {"k": 1},
            ['spec: Invalid value: "k": spec.k in body is a forbidden property'],
            id="nothing else",
        ),
        pytest.param({**fields(a={}), "required": ["a", "b"]}, {"a": 1}, ["spec.b: Required value"], id="required"),
        pytest.param(
            NUMBER_OR_TEXT,
            True,
            ['spec: Invalid value: "boolean": spec in body must be of type integer,string: "boolean"'],
            id="neither int nor string",
        ),
        pytest.param(NUMBER_OR_TEXT, "50%", [], id="int or string"),
        pytest.param(NEEDS_X_OR_Y, {"y": 1}, [], id="one of several"),
        pytest.param(
            NEEDS_X_OR_Y,
            {},
            ['<nil>: Invalid value: "": "spec" must validate at least one schema (anyOf)', "spec.x: Required value"],
            id="none of several",
        ),
        pytest.param(
            {"oneOf": [{"minimum": 1}, {"minimum": 2}]},
            3,
            [f'<nil>: Invalid value: "": "spec" {ONLY_ONE}. Found 2 valid alternatives'],
            id="too many of several",
        ),
        pytest.param(
            {"allOf": [{"minimum": 1}, {"maximum": 2}]},
            3,
            [
                "spec: Invalid value: 3: spec in body should be less than or equal to 2",
                '<nil>: Invalid value: "": "spec" must validate all the schemas (allOf)',
            ],
            id="not all of several",
        ),
        pytest.param(
            {"not": {"minimum": 1}},
            3,
            ['<nil>: Invalid value: "": "spec" must not validate the schema (not)'],
            id="a value that matches not",
        ),
    ],
)
def test_values_that_violate_their_schema_have_the_messages_of_kube_apiserver(
    held: Document, value: Any, messages: list[str]
) -> None:
    rules = ValueRules(fields(spec=held))
    assert [error.message for error in validate_value(rules, {"spec": value})] == messages


def test_errors_of_any_of_come_from_the_closest_alternative() -> None:
    near = {"required": ["a"], "properties": {"a": {"maximum": 1}}}
    rules = ValueRules({**fields(a={"type": "integer"}), "anyOf": [{"required": ["z"]}, near]})
    assert [error.message for error in validate_value(rules, {"a": 5})] == [
        '<nil>: Invalid value: "": "" must validate at least one schema (anyOf)',
        "a: Invalid value: 5: a in body should be less than or equal to 1",
    ]


def test_errors_have_the_path_of_the_validated_part() -> None:
    rules = ValueRules(fields(q={"type": "integer"}))
    errors = validate_value(rules, {"q": "x"}, "status")
    assert [error.message for error in errors] == [
        'status.q: Invalid value: "string": q in body must be of type integer: "string"'
    ]
    assert [error.field for error in validate_value(rules, 1, "status")] == ["status"]


@pytest.mark.parametrize(
    ("old", "new", "is_accepted"),
    [
        pytest.param({"a": "xx"}, {"a": "xx", "b": 1}, True, id="what did not change"),
        pytest.param({"a": "xx"}, {"a": "yy"}, False, id="what changed"),
        pytest.param({}, {"a": "xx"}, False, id="what is new"),
        pytest.param({"l": ["xx"]}, {"l": ["xx"], "b": 2}, True, id="a whole list"),
        pytest.param({"l": ["xx"]}, {"l": ["xx", "y"]}, False, id="an item of a list that changed"),
    ],
)
def test_unchanged_invalid_values_are_accepted_on_update(old: Document, new: Document, is_accepted: bool) -> None:
    short = {"type": "string", "maxLength": 1}
    raw = fields(a=short, b={"type": "integer"}, l={"type": "array", "items": short})
    assert (not validate_value(ValueRules(raw), new, "", CorrelatedValue(new, old, read_schema(raw)))) is is_accepted


@pytest.mark.parametrize("pattern", ["a*a*a*b", "a+b", "(a+)+b"])
def test_a_pattern_is_matched_in_linear_time(pattern: str) -> None:
    rules = ValueRules({"type": "string", "pattern": pattern})
    (error,) = validate_value(rules, "a" * 900_000)
    assert f"in body should match '{pattern}'" in error.detail


def test_the_work_for_the_patterns_of_one_object_is_limited() -> None:
    rules = ValueRules({"type": "array", "items": {"type": "string", "pattern": "a.{900}c"}})
    errors = validate_value(rules, ["ab" * 500] * 1_000)
    assert [error.detail for error in (errors[0], errors[-1])] == [
        "[0] in body should match 'a.{900}c'",
        "[999] in body is too long to be matched against 'a.{900}c'",
    ]


@pytest.mark.parametrize("one", [1, 1.0, True, "1", None, [1], [True], {"a": 1}, {"a": 1.0}, {"a": [{}]}, [], {}])
@pytest.mark.parametrize("other", [1, 1.0, True, "1", None, [1], [True], {"a": 1}, {"a": 1.0}, {"a": [{}]}, [], {}])
def test_json_identity_is_equal_exactly_for_equal_values(one: Any, other: Any) -> None:
    assert (json_identity(one) == json_identity(other)) is same_json(one, other)


def test_unique_items_are_checked_in_linear_time() -> None:
    comparisons = 0

    class Counted(str):
        def __eq__(self, other: object) -> bool:
            nonlocal comparisons
            comparisons += 1
            return str.__eq__(self, other) is True

        __hash__ = str.__hash__

    items = [Counted(number) for number in range(1_000)]
    rules = ValueRules({"type": "array", "uniqueItems": True})
    assert validate_value(rules, items, "spec") == []
    assert [error.detail for error in validate_value(rules, [*items, Counted(7)], "spec")]
    assert comparisons <= 2 * len(items)


def messages(schema: Document, value: Any) -> list[str]:
    return [error.message for error in validate_value(ValueRules(schema), value)]


SPENT = "too complex: not everything was validated"


def test_the_size_of_the_messages_about_one_object_is_limited() -> None:
    enum = ["x" * 50_000, "y" * 50_000]
    schema = {"type": "array", "items": {"type": "string", "enum": enum}}
    found = messages(schema, ["z"] * 1_000)
    assert sum(map(len, found)) < 3 * MESSAGE_BYTES_MAX
    assert SPENT in found[-1]


def test_messages_of_discarded_alternatives_do_not_count_for_the_limit() -> None:
    large = {"type": "string", "enum": ["x" * 100_000]}
    schema = {"type": "array", "items": {"anyOf": [large, {"type": "integer"}]}}
    assert messages(schema, list(range(200))) == []


def test_the_number_of_checks_of_one_object_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_rules, "CHECKS_MAX", 1_000)
    schema = {"type": "array", "items": {"anyOf": [{"type": "string"}] * 99 + [{"type": "integer"}]}}
    assert messages(schema, [1] * 9) == []
    found = messages(schema, [1] * 11)
    assert any(SPENT in text for text in found)


def test_errors_of_fields_come_in_the_order_of_the_schema() -> None:
    schema = fields(b={"type": "string"}, a={"type": "string"}, c={"type": "string"})
    found = messages(schema, {"a": 1, "c": 1, "b": 1})
    assert [text.partition(":")[0] for text in found] == ["b", "a", "c"]


def test_an_enum_may_mix_strings_numbers_and_other_values() -> None:
    schema = {"enum": ["a", 1, 2.5, None, True]}
    assert [bool(messages(schema, value)) for value in ("a", "b", 1, 2.5, 3, True, False)] == [
        *(False, True, False, False, True, False, True)
    ]


CASES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "date": (("2020-01-01", "2020-02-29"), ("2020-13-01", "x", "2021-02-29", "2020-1-1")),
    "date-time": (
        ("2020-01-01T00:00:00Z", "2020-01-01t00:00:00.5+01:00"),
        ("2020-01-01", "2020-01-01 00:00:00Z", "2020-01-01T25:00:00Z"),
    ),
    "duration": (("1h", "5 days", "1d"), ("x", "", "1")),
    "email": (("a@b.c", "a@b", "A <a@b>"), ("a", "")),
    "ipv4": (("1.2.3.4", "01.2.3.4"), ("1.2.3", "::1", "256.1.1.1")),
    "ipv6": (("::1",), ("1.2.3.4", "x")),
    "cidr": (("10.0.0.0/8", "::/0"), ("10.0.0.0", "10.0.0.1/33")),
    "hostname": (("a.bc", "a"), ("-a", "a_b", "a..b")),
    "uri": (("http://a/b", "/a", "a:b"), ("a", "", "http://[")),
    "uuid": (("123e4567-e89b-12d3-a456-426614174000", "123E4567e89b12d3a456426614174000"), ("x",)),
    "uuid4": (("123e4567-e89b-42d3-a456-426614174000",), ("123e4567-e89b-12d3-a456-426614174000",)),
    "byte": (("YQ==", "YWJj"), ("YQ=", "x", "")),
    "mac": (("01:23:45:67:89:ab", "0123.4567.89ab", "01-23-45-67-89-ab-cd-ef"), ("x", "01:23")),
    "password": (("anything",), ()),
    "k8s-short-name": (("a-b",), ("A", "-a", "", "a" * 64)),
    "k8s-long-name": (("a.b", "a"), ("a..b",)),
    "hexcolor": (("#fff", "fff"), ("#ffff",)),
    "rgbcolor": (("rgb(1, 2,255)",), ("rgb(1,2,256)",)),
    "isbn": (("0321751043", "978-0321751041"), ("123",)),
    "creditcard": (("4111111111111111", "4111-1111-1111-1111"), ("4111", "4111111111111112")),
    "ssn": (("123-45-6789",), ("123456789",)),
    "bsonobjectid": (("507f1f77bcf86cd799439011",), ("507f",)),
}


@pytest.mark.parametrize("name", CASES, ids=str)
def test_formats_accept_and_reject_strings_like_kube_apiserver(name: str) -> None:
    check = check_of(name)
    assert check is not None
    good, bad = CASES[name]
    assert [text for text in good if not check(text)] == []
    assert [text for text in bad if check(text)] == []


@pytest.mark.parametrize(
    ("name", "type_name", "known"),
    [
        pytest.param("date-time", "string", "date-time", id="of a string"),
        pytest.param("date-time", "", "date-time", id="of something that may be a string"),
        pytest.param("int32", "integer", "int32", id="of a whole number"),
        pytest.param("int16", "integer", "", id="of no whole number"),
        pytest.param("double", "number", "double", id="of a number"),
        pytest.param("date", "boolean", "", id="of nothing else"),
        pytest.param("foo", "string", "", id="an unknown one"),
    ],
)
def test_known_format_depends_on_the_type(name: str, type_name: str, known: str) -> None:
    assert known_format(name, type_name) == known
