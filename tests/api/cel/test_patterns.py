"""User-supplied patterns: matches, syntax errors, limits."""

from __future__ import annotations

import re
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.cel.patterns import (
    CACHE_BYTES_MAX,
    MEMORY_BUDGETS,
    PATTERN_BYTES_MAX,
    UNICODE_CLASSES_MAX,
    WORK_MAX,
    Pattern,
    PatternBudget,
    PatternError,
    PatternWorkExceeded,
    _cache,
    compile_pattern,
)


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
        (r"\p{Greek}+", "aβγd", "βγ"),
        (r"[\x{100}-\x{10ffff}]+", "aβγd", "βγ"),
        ("(?<name>a+)", "baa", "aa"),
        (r"a\z", "ba", "a"),
        ("[äß]+.", "xäß😀y", "äß😀"),
        ("(?i)straSSe", "STRASSE", "STRASSE"),
        ("(?i)k", "\u212a", "\u212a"),
    ],
)
def test_first_match(pattern: str, text: str, found: str) -> None:
    assert Pattern(pattern).first_in(text) == found


@pytest.mark.parametrize(
    ("pattern", "reason"),
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
        (r"a\C", r"invalid escape sequence: `\C`"),
        (r"\Z", r"invalid escape sequence: `\Z`"),
        ("(?P<ä>a)", "invalid named capture: `(?P<ä>`"),
        ("(((a|b){100}){100}){100}", "invalid repeat count: `{100}`"),
        ("a{1000}" * 21, f"expression too large: `{'a{1000}' * 21}`"),
        ("a{99999999}", "invalid repeat count: `{99999999}`"),
        ("(a{100}){11}", "invalid repeat count: `{11}`"),
        (r"\pL{1000}", r"expression too large: `\pL{1000}`"),
        (
            r"\pL" * (UNICODE_CLASSES_MAX + 1),
            rf"expression too large: `{chr(92)}pL" + r"\pL" * UNICODE_CLASSES_MAX + "`",
        ),
        ("a" * (PATTERN_BYTES_MAX + 1), f"expression too large: `{'a' * 64}…`"),
    ],
)
def test_syntax_errors_have_the_text_of_go(pattern: str, reason: str) -> None:
    with pytest.raises(PatternError) as raised:
        Pattern(pattern)
    assert str(raised.value) == f"error parsing regexp: {reason}"


def test_matches_do_not_overlap() -> None:
    assert Pattern("a*").all_in("baac", -1) == ["", "aa", ""]
    assert Pattern("[0-9]+").all_in("1 22 333", 2) == ["1", "22"]
    assert Pattern("ä*").all_in("öääß😀", -1) == ["", "ää", "", ""]
    assert Pattern("^a").all_in("aaa", -1) == ["a"]
    assert Pattern(r"\b").all_in("ab c", -1) == [""] * 4


def test_a_quoted_c_is_no_escape() -> None:
    assert Pattern(r"\Q\C\E").first_in(r"a\C") == r"\C"
    assert Pattern(r"\\C").first_in(r"a\C") == r"\C"


def test_an_unpaired_surrogate_is_the_replacement_character() -> None:
    assert Pattern("a.b").is_found_in("a\ud800b")
    assert Pattern("a\ud800b").first_in("a\ufffdb") == "a\ufffdb"


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("a*a*a*b", "a" * 1_500),
        ("a*a*a*b", "a" * 900_000),
        ("a+b", "a" * 100_000),
        ("(a+)+$", "a" * 100_000 + "b"),
        ("(a|a)*b", "a" * 100_000),
    ],
)
def test_patterns_that_backtrack_elsewhere_take_linear_time(pattern: str, text: str) -> None:
    assert not Pattern(pattern).is_found_in(text)


def test_nested_repeats_are_refused_with_bounded_memory() -> None:
    tracemalloc.start()
    with pytest.raises(PatternError):
        compile_pattern("(((a|b){100}){100}){100}")
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 100_000


def test_the_work_of_a_match_is_limited() -> None:
    pattern = Pattern("a.{900}c")
    assert not pattern.is_found_in("ab" * 1_000)
    with pytest.raises(PatternWorkExceeded):
        pattern.is_found_in("ab" * 10_000)
    with pytest.raises(PatternWorkExceeded):
        pattern.first_in("ab" * 10_000)
    with pytest.raises(PatternWorkExceeded):  # each of these searches reads to the end of the text
        Pattern("a.*b|a").all_in("a" * 10_000, -1)


def test_a_class_counts_as_one_instruction_wherever_it_is() -> None:
    one, four = (Pattern(r"(?i)" + r"\pL" * count).instruction_count for count in (1, 4))
    assert four - one == 3


def test_the_patterns_of_an_object_share_a_budget() -> None:
    budget = PatternBudget()
    budget.spend(WORK_MAX)
    budget.spend(WORK_MAX)
    with pytest.raises(PatternWorkExceeded):
        budget.spend(1)


def test_the_cache_is_bounded_in_bytes() -> None:
    for number in range(CACHE_BYTES_MAX // MEMORY_BUDGETS[0] + 1):
        compile_pattern(str(number))
        assert sum(pattern.memory_bytes for pattern in _cache.entries.values()) < _cache.size <= CACHE_BYTES_MAX
    size = _cache.size
    compile_pattern("a.{900}c")
    assert _cache.size - size > MEMORY_BUDGETS[-1]
    assert compile_pattern("a.{900}c") is compile_pattern("a.{900}c")


_ATOMS = st.sampled_from(["a", "b", "ä", ".", "[ab]", "[^a]", r"\d", "^", "$", r"\b", "c"])
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


@given(_PATTERNS, st.text("aabcä1\n ", max_size=7))
def test_matches_agree_with_python(pattern: str, text: str) -> None:
    """Python agrees on whether there is a match and where it starts, but an empty iteration of a loop may end it."""
    expected = re.search(pattern.replace("$", r"\Z"), text, re.ASCII)
    assert Pattern(pattern).is_found_in(text) is (expected is not None)
