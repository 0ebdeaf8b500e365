"""Label selectors: matching, equality, validation, parsing."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.errors import LabelSelectorError
from mooring.api.labels import (
    EVERYTHING,
    NOTHING,
    LabelMatcher,
    Operator,
    Requirement,
    checked_requirement,
    compile_selector,
    label_key_errors,
    label_value_errors,
    matcher_of_pairs,
    parse_int64,
    parse_selector,
    requirements_with,
)
from mooring.api.views.meta import LabelSelector
from tests.api.builders import selector

WEB = {"app": "web", "stage": "test"}


@pytest.mark.parametrize(
    ("label_selector", "labels", "matches"),
    [
        (None, WEB, False),
        (selector(), WEB, True),
        (selector(), {}, True),
        (selector(app="web"), WEB, True),
        (selector(app="db"), WEB, False),
        (selector(app="web"), {}, False),
        (selector(app=""), {}, False),
        (selector(app=""), {"app": ""}, True),
        (selector(app="web", stage="beta"), WEB, False),
        (selector("app In web,db"), WEB, True),
        (selector("app In db"), WEB, False),
        (selector("app In db"), {}, False),
        (selector("app NotIn db"), WEB, True),
        (selector("app NotIn web,db"), WEB, False),
        (selector("app NotIn web"), {}, True),
        (selector("app Exists"), WEB, True),
        (selector("app Exists"), {}, False),
        (selector("app DoesNotExist"), WEB, False),
        (selector("app DoesNotExist"), {}, True),
        (selector("stage In test", app="web"), WEB, True),
        (selector("stage NotIn test", app="web"), WEB, False),
    ],
)
def test_what_a_selector_matches(
    label_selector: LabelSelector | None, labels: Mapping[str, str], matches: bool
) -> None:
    assert compile_selector(label_selector).matches(labels) is matches


def test_no_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert compile_selector(None) is NOTHING
    assert compile_selector(LabelSelector()) is EVERYTHING
    assert (NOTHING.matches_nothing, NOTHING.matches_everything) == (True, False)
    assert (EVERYTHING.matches_nothing, EVERYTHING.matches_everything) == (False, True)
    assert NOTHING != EVERYTHING


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (selector(a="1", b="2"), selector(b="2", a="1")),
        (selector("a In 1"), selector(a="1")),
        (selector("a In 1,2"), selector("a In 2,1,2")),
        (selector("a Exists", "b Exists"), selector("b Exists", "a Exists", "b Exists")),
    ],
    ids=["order of labels", "In with one value", "order of values", "order of expressions"],
)
def test_selectors_with_the_same_meaning_are_equal(one: LabelSelector, other: LabelSelector) -> None:
    assert compile_selector(one) == compile_selector(other)
    assert hash(compile_selector(one)) == hash(compile_selector(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (selector(a="1"), selector(a="2")),
        (selector("a In 1"), selector("a NotIn 1")),
        (selector("a Exists"), selector("b Exists")),
        (None, selector()),
    ],
)
def test_selectors_with_different_meanings_are_not_equal(one: LabelSelector | None, other: LabelSelector) -> None:
    assert compile_selector(one) != compile_selector(other)


def test_a_matcher_is_not_equal_to_anything_else() -> None:
    assert matcher_of_pairs({"a": "1"}) != "a=1"


def test_compiled_selectors_are_cached() -> None:
    assert compile_selector(selector("stage In x,y", app="web")) is compile_selector(
        selector("stage In x,y", app="web")
    )


def test_equality_pairs_name_the_only_value_of_a_key() -> None:
    matcher = compile_selector(selector("c In 3", "d In 4,5", "e NotIn 6", a="1", b="2"))
    assert matcher.equality_pairs == (("a", "1"), ("b", "2"), ("c", "3"))


@pytest.mark.parametrize(
    ("matcher", "text", "representation"),
    [
        (
            compile_selector(selector("b In 2,1", "c NotIn 3", "d NotIn 4,5", "e Exists", "f DoesNotExist", a="1")),
            "a=1,b in (1,2),c!=3,d notin (4,5),e,!f",
            "LabelMatcher(a=1,b in (1,2),c!=3,d notin (4,5),e,!f)",
        ),
        (EVERYTHING, "", "LabelMatcher(everything)"),
        (NOTHING, "", "LabelMatcher(nothing)"),
    ],
    ids=["some", "everything", "nothing"],
)
def test_the_text_of_a_matcher(matcher: LabelMatcher, text: str, representation: str) -> None:
    assert str(matcher) == text
    assert repr(matcher) == representation


def test_matcher_of_pairs_does_not_validate() -> None:
    assert matcher_of_pairs({"not a key": "!"}).matches({"not a key": "!"})
    assert matcher_of_pairs({}) == EVERYTHING


def test_requirements_with_adds_pairs() -> None:
    narrowed = requirements_with(compile_selector(selector("app Exists")), {"hash": "x1"})
    assert narrowed.matches({"app": "web", "hash": "x1"})
    assert not narrowed.matches({"app": "web", "hash": "x2"})
    assert not narrowed.matches({"hash": "x1"})


def test_requirements_with_keeps_nothing_and_everything() -> None:
    assert requirements_with(NOTHING, {"a": "1"}) is NOTHING
    assert requirements_with(EVERYTHING, {}) is EVERYTHING
    assert requirements_with(EVERYTHING, {"a": "1"}) == matcher_of_pairs({"a": "1"})


@pytest.mark.parametrize(
    ("faulty", "text"),
    [
        (selector("app Bogus web"), '"Bogus" is not a valid label selector operator'),
        (selector("app Gt 3"), '"Gt" is not a valid label selector operator'),
        (selector("app In"), "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"),
        (
            selector("app Exists web"),
            'values: Invalid value: ["web"]: values set must be empty for exists and does not exist',
        ),
    ],
)
def test_invalid_selectors_are_rejected_with_the_message_of_kubernetes(faulty: LabelSelector, text: str) -> None:
    with pytest.raises(LabelSelectorError) as raised:
        compile_selector(faulty)
    assert str(raised.value) == text


@pytest.mark.parametrize(
    ("key", "operator", "values", "beginnings"),
    [
        ("-", Operator.EXISTS, (), ['key: Invalid value: "-": name part must consist of']),
        ("a", Operator.IN, ("ok", "-"), ['values[1][a]: Invalid value: "-": a valid label must be']),
        ("a", Operator.LESS_THAN, (), ["values: Invalid value: null: for 'Gt', 'Lt' operators, exactly one value is"]),
        (
            "a",
            Operator.GREATER_THAN,
            ("x",),
            ["values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer"],
        ),
        (
            "-",
            Operator.IN,
            (),
            ['[key: Invalid value: "-": name part', "values: Invalid value: null: for 'in', 'notin' operators"],
        ),
    ],
    ids=["key", "value", "too few", "no integer", "two faults"],
)
def test_errors_of_requirements(key: str, operator: Operator, values: tuple[str, ...], beginnings: list[str]) -> None:
    with pytest.raises(LabelSelectorError) as raised:
        checked_requirement(key, operator, values)
    text = str(raised.value)
    assert text.startswith(beginnings[0])
    assert all(f", {more}" in text for more in beginnings[1:])


@pytest.mark.parametrize(
    ("operator", "bound", "value", "matches"),
    [
        (Operator.GREATER_THAN, "4", "5", True),
        (Operator.GREATER_THAN, "4", "4", False),
        (Operator.GREATER_THAN, "4", "10", True),
        (Operator.LESS_THAN, "4", "3", True),
        (Operator.LESS_THAN, "4", "-3", True),
        (Operator.LESS_THAN, "4", "five", False),
        (Operator.GREATER_THAN, "4", "9223372036854775808", False),
        (Operator.GREATER_THAN, "4", "5.0", False),
    ],
)
def test_numbers_are_compared_as_numbers(operator: Operator, bound: str, value: str, matches: bool) -> None:
    requirement = Requirement("cores", operator, (bound,))
    assert requirement.matches_value(value) is matches
    assert requirement.matches_absent is False
    assert str(requirement) == f"cores{'>' if operator is Operator.GREATER_THAN else '<'}4"


@pytest.mark.parametrize(
    ("text", "number"),
    [("7", 7), ("+7", 7), ("-7", -7), ("007", 7), ("", None), ("7 ", None), ("1_0", None), ("٣", None), ("0x7", None)],
)
def test_texts_that_are_numbers(text: str, number: int | None) -> None:
    assert parse_int64(text) == number


keys = st.sampled_from(["a", "b", "c"])
values = st.sampled_from(["1", "2", "3"])
label_sets = st.dictionaries(keys, values)
requirements = st.builds(
    Requirement,
    keys,
    st.sampled_from([Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST]),
    st.lists(values, min_size=1, unique=True).map(lambda chosen: tuple(sorted(chosen))),
)


@given(requirement=requirements, labels=label_sets)
def test_matches_agrees_with_matches_value_and_matches_absent(requirement: Requirement, labels: dict[str, str]) -> None:
    has_label = requirement.key in labels
    one_by_one = requirement.matches_value(labels[requirement.key]) if has_label else requirement.matches_absent
    assert requirement.matches(labels) is one_by_one


@given(some=st.lists(requirements, max_size=4), labels=label_sets)
def test_a_matcher_is_the_conjunction_of_its_requirements(some: list[Requirement], labels: dict[str, str]) -> None:
    assert LabelMatcher(some).matches(labels) is all(requirement.matches(labels) for requirement in some)
    assert LabelMatcher(some) == LabelMatcher(reversed(some))


@given(requirement=st.builds(Requirement, keys, st.sampled_from([Operator.IN, Operator.EXISTS])), labels=label_sets)
def test_negated_operators_have_the_opposite_result(requirement: Requirement, labels: dict[str, str]) -> None:
    opposites = {Operator.IN: Operator.NOT_IN, Operator.EXISTS: Operator.DOES_NOT_EXIST}
    opposite = Requirement(requirement.key, opposites[requirement.operator], requirement.values)
    assert requirement.matches(labels) is not opposite.matches(labels)


# --- What labels may look like ---------------------------------------------------------------------------------------


NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
OPTIONAL_PREFIX = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
PREFIX_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize("key", ["a", "A-b_c.9", "example.com/tier", "x" * 63, f"{'a.' * 126}a/name"])
def test_valid_keys(key: str) -> None:
    assert label_key_errors(key) == []


@pytest.mark.parametrize(
    ("key", "faults"),
    [
        ("", ["name part must be non-empty", f"name part {NAME_RULE}"]),
        ("-a", [f"name part {NAME_RULE}"]),
        ("a\n", [f"name part {NAME_RULE}"]),
        ("ä", [f"name part {NAME_RULE}"]),
        ("x" * 64, ["name part must be no more than 63 bytes"]),
        ("ä" * 32, ["name part must be no more than 63 bytes", f"name part {NAME_RULE}"]),
        ("/a", ["prefix part must be non-empty"]),
        ("Example.com/a", [f"prefix part {PREFIX_RULE}"]),
        ("a" * 254 + "/a", ["prefix part must be no more than 253 bytes"]),
        ("a/", ["name part must be non-empty", f"name part {NAME_RULE}"]),
        (
            "a/b/c",
            [f"a valid label key {NAME_RULE} {OPTIONAL_PREFIX}"],
        ),
    ],
)
def test_errors_of_keys(key: str, faults: list[str]) -> None:
    assert label_key_errors(key) == faults


@pytest.mark.parametrize("value", ["", "a", "v1.2_3-x", "x" * 63])
def test_valid_values(value: str) -> None:
    assert label_value_errors(value) == []


@pytest.mark.parametrize(
    ("value", "faults"),
    [
        ("a b", [VALUE_RULE]),
        (".", [VALUE_RULE]),
        ("x" * 64, ["must be no more than 63 bytes"]),
        ("-" * 64, ["must be no more than 63 bytes", VALUE_RULE]),
    ],
)
def test_errors_of_values(value: str, faults: list[str]) -> None:
    assert label_value_errors(value) == faults


@pytest.mark.parametrize(
    ("typed", "canonical"),
    [
        ("a=b", "a=b"),
        ("a==b", "a=b"),
        ("a != b", "a!=b"),
        ("a", "a"),
        ("!a", "!a"),
        ("! a", "!a"),
        ("a=", "a="),
        ("a=,b", "a=,b"),
        ("a in (c, b)", "a in (b,c)"),
        ("a in (b)", "a=b"),
        ("a notin (b,c)", "a notin (b,c)"),
        ("a in (b,,c)", "a in (,b,c)"),
        ("a in (,b)", "a in (,b)"),
        ("a in (b,)", "a in (,b)"),
        ("a in ()", "a="),
        ("a>1", "a>1"),
        ("a < 2", "a<2"),
        ("in=notin", "in=notin"),
        ("in in (in)", "in=in"),
        (" z , example.com/y=1,\tx!=2\n", "example.com/y=1,x!=2,z"),
        ("a=b,c in (d,e),!f,g>1", "a=b,c in (d,e),!f,g>1"),
    ],
)
def test_parse_selector(typed: str, canonical: str) -> None:
    assert str(parse_selector(typed)) == canonical


def test_an_empty_selector_text_selects_everything() -> None:
    assert parse_selector("") == EVERYTHING
    assert parse_selector("  ") == EVERYTHING


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("=b", "found '=', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!!a", "unable to parse requirement: found '!', expected: identifier"),
        ("a==(", "unable to parse requirement: found '(', expected: identifier"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("a in (b=c)", "unable to parse requirement: found '=', expected: ',' or ')'"),
        (
            "a>b",
            "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, "
            "the value must be an integer",
        ),
    ],
)
def test_syntax_errors_of_selectors_name_what_was_expected(typed: str, text: str) -> None:
    with pytest.raises(LabelSelectorError) as raised:
        parse_selector(typed)
    assert str(raised.value) == text


def test_an_invalid_key_is_an_error() -> None:
    with pytest.raises(
        LabelSelectorError, match=r'^unable to parse requirement: <nil>: Invalid value: "-a": name part'
    ):
        parse_selector("-a=b")


words = st.sampled_from(["in", "notin", "x", "y.z", "example.com/a"])
text_values = st.sampled_from(["", "in", "x", "y-1"])
text_requirements = st.one_of(
    st.builds(Requirement, words, st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])),
    st.builds(
        Requirement,
        words,
        st.sampled_from([Operator.IN, Operator.NOT_IN]),
        st.lists(text_values, min_size=1, unique=True).map(lambda chosen: tuple(sorted(chosen))),
    ),
    st.builds(
        Requirement,
        words,
        st.sampled_from([Operator.GREATER_THAN, Operator.LESS_THAN]),
        st.integers(0, 99).map(lambda number: (str(number),)),
    ),
)


@given(st.lists(text_requirements, max_size=5))
def test_the_text_of_a_matcher_parses_to_an_equal_matcher(some: list[Requirement]) -> None:
    matcher = LabelMatcher(some)
    assert parse_selector(str(matcher)) == matcher
