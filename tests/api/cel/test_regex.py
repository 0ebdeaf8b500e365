"""Patterns: what they find, what is no pattern, and that no pattern takes forever."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.cel.regex import Regex, RegexError, _Machine, _Python
from mooring.api.cel.regex_syntax import parse_regex


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("a+", "xaay", "aa"),
        ("a+?", "xaay", "a"),
        ("(?i)AbC", "xabcx", "abc"),
        ("a.c", "a\nc", ""),
        ("(?s)a.c", "a\nc", "a\nc"),
        ("^b", "a\nb", ""),
        ("(?m)^b$", "a\nb\nc", "b"),
        ("a$", "a\n", ""),
        (r"\d{2,3}", "12345", "123"),
        (r"[^0-9\s]+", "12 ab 3", "ab"),
        ("[[:upper:]]+", "abCDe", "CD"),
        (r"\pL+", "12äöX3", "äöX"),
        (r"\p{Lu}", "äÖ", "Ö"),
        ("a|ab", "ab", "a"),
        ("(?P<name>a)(b)?", "ab", "ab"),
        (r"\Qa.b\E", "axb a.b", "a.b"),
        (r"\bfoo\b", "a foo b", "foo"),
        ("x{,2}", "x{,2}", "x{,2}"),
        ("(?U)a+", "aaa", "a"),
        ("(a*)*b", "aaab", "aaab"),
        ("(|a)*", "aa", ""),
        ("[]a]+", "x]a]", "]a]"),
        (r"\x41\x{42}\103", "ABC", "ABC"),
    ],
)
def test_the_first_match(pattern: str, text: str, found: str) -> None:
    assert Regex(pattern).first_in(text) == found


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("[", "missing closing ]: `[`"),
        ("(", "missing closing ): `(`"),
        ("a)", "unexpected ): `a)`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        ("\\", "trailing backslash at end of expression: ``"),
        ("[b-a]", "invalid character class range: `b-a`"),
        ("(?P<a", "invalid named capture: `(?P<a`"),
        (r"\pX", r"invalid character class range: `\pX`"),
    ],
)
def test_what_is_no_pattern(pattern: str, fault: str) -> None:
    with pytest.raises(RegexError) as raised:
        Regex(pattern)
    assert str(raised.value) == f"error parsing regexp: {fault}"


def test_matches_do_not_overlap() -> None:
    assert list(Regex("a*").all_in("baac", -1)) == ["", "aa", ""]
    assert list(Regex("[0-9]+").all_in("1 22 333", 2)) == ["1", "22"]


def test_no_pattern_takes_forever() -> None:
    assert not Regex("(a+)+$").is_found_in("a" * 5_000 + "b")
    assert not Regex("(a|a)*b").is_found_in("a" * 5_000)


_ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\d", "^", "$", r"\b", "c"])
_PATTERNS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{1,2}", "*?", "+?"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=5,
)


@given(_PATTERNS, st.text("aabc1\n ", max_size=7))
def test_both_engines_find_the_same(pattern: str, text: str) -> None:
    tree = parse_regex(pattern)
    assert _Machine(tree).span(text, 0) == _Python(tree).span(text, 0)
