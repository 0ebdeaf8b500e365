"""Selectors as people type them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.errors import LabelSelectorError
from mooring.api.labels import EVERYTHING, LabelMatcher, Operator, Requirement
from mooring.api.selector_text import parse_selector


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
def test_what_is_typed_is_understood(typed: str, canonical: str) -> None:
    assert str(parse_selector(typed)) == canonical


def test_nothing_typed_selects_everything() -> None:
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
def test_what_is_not_understood_is_told_with_what_was_expected(typed: str, text: str) -> None:
    with pytest.raises(LabelSelectorError) as raised:
        parse_selector(typed)
    assert str(raised.value) == text


def test_a_faulty_key_is_told() -> None:
    with pytest.raises(
        LabelSelectorError, match=r'^unable to parse requirement: <nil>: Invalid value: "-a": name part'
    ):
        parse_selector("-a=b")


words = st.sampled_from(["in", "notin", "x", "y.z", "example.com/a"])
values = st.sampled_from(["", "in", "x", "y-1"])
requirements = st.one_of(
    st.builds(Requirement, words, st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])),
    st.builds(
        Requirement,
        words,
        st.sampled_from([Operator.IN, Operator.NOT_IN]),
        st.lists(values, min_size=1, unique=True).map(lambda chosen: tuple(sorted(chosen))),
    ),
    st.builds(
        Requirement,
        words,
        st.sampled_from([Operator.GREATER_THAN, Operator.LESS_THAN]),
        st.integers(0, 99).map(lambda number: (str(number),)),
    ),
)


@given(st.lists(requirements, max_size=5))
def test_what_a_matcher_prints_is_understood_as_the_same(some: list[Requirement]) -> None:
    matcher = LabelMatcher(some)
    assert parse_selector(str(matcher)) == matcher
