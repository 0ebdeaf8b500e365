"""The functions of expressions: expressions that are true, and the errors of expressions that fail."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.api.cel.builders import answer, runtime_error

OPERATORS = [
    "1 + 2 * 3 - 4 == 3",
    "-7 / 2 == -3 && -7 % 2 == -1 && 7 % -2 == 1",
    "7u / 2u == 3u && 7u % 2u == 1u",
    "1.0 / 0.0 == double('inf') && 0.0 / 0.0 != 0.0 / 0.0",
    "'a' + 'b' == 'ab' && b'a' + b'b' == b'ab' && [1] + [2] == [1, 2]",
    "'a' < 'b' && b'a' < b'b' && false < true && 1u < 2u && 1.5 <= 1.5",
    "1 in [1, 2] && !(3 in [1, 2]) && 'a' in {'a': 1}",
    "!(dyn(true) in [dyn(1)]) && dyn(1.0) in [1]",
    "dyn(9007199254740993) == 9007199254740992.0",
    "!(dyn({1: 'a'}) == {true: 'a'}) && {1: 'a'}[dyn(1u)] == 'a'",
    "dyn(1) != 'a' && dyn(null) != 1 && null == null",
    "size('äöü') == 3 && b'äöü'.size() == 6 && size([1]) == 1 && {}.size() == 0",
    "-(-3) == 3 && !!true && --3 == 3",
    "0xff == 255 && 1e3 == 1000.0 && r'\\n' == '\\\\n' && '\\x41\\u00e4\\101' == 'AäA'",
]
CONVERSIONS = [
    "int('-5') == -5 && int(3.9) == 3 && int(5u) == 5 && int(duration('1s')) == 1000000000",
    "uint('5') == 5u && uint(3.9) == 3u && double('1e3') == 1000.0 && double(3) == 3.0",
    "string(1) == '1' && string(1.5) == '1.5' && string(true) == 'true' && string(1u) == '1'",
    "string(1e21) == '1e+21' && string(1e20) == '100000000000000000000' && string(0.00001) == '1e-05'",
    "string(b'abc') == 'abc' && bytes('abc') == b'abc' && bool('TRUE') && !bool('0')",
    "string(duration('90m')) == '5400s' && duration('1h30m') == duration('5400s')",
    "string(timestamp('2026-03-01T12:00:00.5Z')) == '2026-03-01T12:00:00.5Z'",
    "timestamp(0) == timestamp('1970-01-01T00:00:00Z') && int(timestamp('1970-01-01T00:01:00Z')) == 60",
]
TIMES = [
    "timestamp('2026-03-01T12:34:56.789Z').getFullYear() == 2026",
    "timestamp('2026-03-01T12:34:56.789Z').getMonth() == 2 && timestamp('2026-03-01T12:34:56Z').getDate() == 1",
    "timestamp('2026-03-01T12:34:56.789Z').getMilliseconds() == 789",
    "timestamp('2026-03-01T12:34:56Z').getHours('+02:30') == 15",
    "timestamp('2026-03-01T12:34:56Z').getDayOfWeek() == 0 && timestamp('2026-03-01T12:34:56Z').getDayOfYear() == 59",
    "timestamp('2026-03-01T12:00:00Z') + duration('1h') == timestamp('2026-03-01T13:00:00Z')",
    "timestamp('2026-03-01T12:00:00Z') - timestamp('2026-03-01T11:00:00Z') == duration('1h')",
    "timestamp('2026-03-01T12:00:00+02:00') == timestamp('2026-03-01T10:00:00Z')",
    "duration('90m').getHours() == 1 && duration('90m').getMinutes() == 90 && duration('-1.5s').getSeconds() == -1",
]
STRINGS = [
    "'tacocat'.charAt(3) == 'o' && 'ab'.charAt(2) == ''",
    "'hello mellow'.indexOf('ello', 2) == 7 && 'a'.indexOf('') == 0 && 'a'.indexOf('b') == -1",
    "'hello mellow'.lastIndexOf('ello') == 7 && 'hello mellow'.lastIndexOf('ello', 6) == 1",
    "'TacoCÆt'.lowerAscii() == 'tacocÆt' && 'tacocæt'.upperAscii() == 'TACOCæT'",
    "'hello hello'.replace('he', 'we') == 'wello wello' && 'hello hello'.replace('he', 'we', 1) == 'wello hello'",
    "'ab'.replace('', '-') == '-a-b-' && 'aa'.replace('a', 'b', 0) == 'aa'",
    "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c'] && 'a'.split(',', 0) == []",
    "'abc'.split('') == ['a', 'b', 'c'] && 'abc'.split('', 2) == ['a', 'bc'] && ''.split(',') == ['']",
    "'tacocat'.substring(4) == 'cat' && 'tacocat'.substring(0, 4) == 'taco' && 'a'.substring(1) == ''",
    "'  \\ttrim\\n '.trim() == 'trim'",
    "['a', 'b'].join() == 'ab' && ['a', 'b'].join('-') == 'a-b' && [].join('-') == ''",
    "strings.quote('a\"b\\n') == '\"a\\\\\"b\\\\n\"'",
    "'abc 123'.find('[0-9]+') == '123' && 'abc'.find('[0-9]+') == ''",
    "'1 a 22'.findAll('[0-9]+') == ['1', '22'] && '1 a 22'.findAll('[0-9]+', 1) == ['1']",
    "'abc'.matches('^a.c$') && matches('xabcx', 'abc') && !'abc'.matches('^b')",
    "'%s %x %X %%'.format(['a', 'b', 'hi']) == 'a 62 6869 %' && '%d %o %b'.format([1, 8, 5]) == '1 10 101'",
    "'%.2f'.format([1234.567]) == '1,234.57' && '%s'.format([2.5]) == '2.5' && '%s'.format([null]) == 'null'",
    "'%s'.format([['a', 'b']]) == '[\"a\", \"b\"]' && '%s'.format([{'b': true}]) == '{\"b\":true}'",
]
COLLECTIONS = [
    "sets.contains([1, 2], [2]) && sets.equivalent([1, 1], [1]) && sets.intersects([1], [1, 2])",
    "!sets.contains([1], [1, 2]) && !sets.intersects([1], []) && sets.contains([1], [])",
    "[1, 2, 2].isSorted() && !['b', 'a'].isSorted() && [1, 2, 3].sum() == 6 && [0.5].sum() == 0.5",
    "[1, 3, 2].max() == 3 && ['b', 'a'].min() == 'a' && [duration('1s')].sum() == duration('1s')",
    "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(2) == -1",
    "[1, 2, 3].slice(1, 3) == [2, 3] && [[1], [2, 3]].flatten() == [1, 2, 3]",
    "[3, 1, 2].sort() == [1, 2, 3] && ['bb', 'a'].sortBy(x, x.size()) == ['a', 'bb']",
    "[1, 2, 1].distinct() == [1, 2] && [1, 2].reverse() == [2, 1] && lists.range(3) == [0, 1, 2]",
    "[1, 2].first() == optional.of(1) && [1, 2].last().value() == 2 && ![].first().hasValue()",
    "[optional.of(1), optional.none()].unwrapOpt() == [1] && optional.unwrap([optional.of(1)]) == [1]",
    "[1, 2, 3].map(x, x * 2) == [2, 4, 6] && [1, 2, 3].map(x, x > 1, x) == [2, 3]",
    "[1, 2].all(i, v, v == i + 1) && {'a': 1}.transformMap(k, v, v + 1) == {'a': 2}",
    "['x'].transformMapEntry(i, v, {v: i}) == {'x': 0} && {'a': 1}.transformList(k, v, k) == ['a']",
    "[1, 2, 2].exists_one(x, x == 1) && ![1, 1].existsOne(x, x == 1)",
    "[1, 0].exists(x, 1 / x == 1) && ![0, 2].all(x, 1 / x == 1)",
    "[?optional.of(1), ?optional.none()] == [1] && {?'a': optional.none()} == {}",
    "{'a': {'b': 1}}.?a.?b == optional.of(1) && !{'a': 1}.?b.hasValue() && [1][?1].orValue(7) == 7",
    "{'a': 1}.?a.optMap(x, x + 1).value() == 2 && optional.of(1).optFlatMap(x, optional.of(x)) == optional.of(1)",
    "optional.ofNonZeroValue('') == optional.none() && optional.ofNonZeroValue(1).hasValue()",
]
KUBERNETES = [
    "quantity('1Gi').add(quantity('1Gi')) == quantity('2Gi') && quantity('2').sub(1).asInteger() == 1",
    "quantity('1.5').asApproximateFloat() == 1.5 && !quantity('1500m').isInteger() && sign(quantity('-1')) == -1",
    "isQuantity('1Gi') && !isQuantity('1 Gi') && !isQuantity('') && quantity('1').isLessThan(quantity('1.1'))",
    "semver('1.2.3-rc.1').isLessThan(semver('1.2.3')) && semver('1.0.0-2').isLessThan(semver('1.0.0-11'))",
    "semver('1.0.0-1').isLessThan(semver('1.0.0-a')) && semver('1.0.0-a').isLessThan(semver('1.0.0-a.1'))",
    "semver('v01.2', true) == semver('1.2.0') && semver('1.2.3').minor() == 2 && !isSemver('v1.2.3')",
    "url('https://a.example:80/x%20y?k=v&k=w').getHost() == 'a.example:80' && isURL('/a') && !isURL('a b')",
    "url('https://a.example:80/x%20y?k=v&k=w').getQuery() == {'k': ['v', 'w']}",
    "url('https://[::1]:80/p').getHostname() == '::1' && url('https://[::1]:80/p').getPort() == '80'",
    "url('https://a.example/x%20y').getEscapedPath() == '/x%20y' && url('HTTPS://a').getScheme() == 'https'",
    "ip('10.0.0.1').family() == 4 && ip('::1').isLoopback() && isIP('fe80::1') && !isIP('010.0.0.1')",
    "ip.isCanonical('::1') && !ip.isCanonical('0::1') && ip('10.0.0.1').isGlobalUnicast()",
    "cidr('10.0.0.0/8').containsIP('10.1.2.3') && cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
    "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('10.0.0.0/8').prefixLength() == 8",
    "isCIDR('::/0') && !isCIDR('10.0.0.0')",
    "string(cidr('10.0.0.0/8').ip()) == '10.0.0.0' && string(cidr('10.0.0.0/8')) == '10.0.0.0/8'",
    "!format.dns1123Label().validate('my-name').hasValue() && format.named('uuid').value().validate('x').hasValue()",
    "!format.named('nothing').hasValue() && format.dns1123Label().validate('a.b').value() == ['must not contain dots']",
]


@pytest.mark.parametrize("sentence", [*OPERATORS, *CONVERSIONS, *TIMES, *STRINGS, *COLLECTIONS, *KUBERNETES])
def test_expressions_that_are_true(sentence: str) -> None:
    assert answer(sentence)


@pytest.mark.parametrize("sentence", [*OPERATORS, *CONVERSIONS, *TIMES, *STRINGS, *COLLECTIONS, *KUBERNETES])
def test_a_metered_expression_has_the_same_result(sentence: str) -> None:
    assert answer(f"{sentence} && [true].all(x, x)")


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("'a'.charAt(2) == ''", "index out of range: 2"),
        ("'a'.indexOf('b', -1) == 1", "index out of range: -1"),
        ("'abc'.substring(2, 1) == ''", "invalid substring range. start: 2, end: 1"),
        ("'abc'.substring(1, 9) == ''", "index out of range: 9"),
        ("[dyn('a'), dyn(1)].join() == ''", "join: invalid input: int"),
        ("[1, 2].slice(2, 1) == []", "cannot slice(2, 1), start index must be less than or equal to end index"),
        ("[1].slice(0, 5) == []", "cannot slice(0, 5), list is length 1"),
        ("[1].slice(-1, 5) == []", "cannot slice(-1, 5), negative indexes not supported"),
        ("[1].filter(x, x > 1).max() == 1", "max called on empty list"),
        ("[dyn(1), dyn('a')].sort() == []", "list elements must have the same type"),
        (
            "ip('x').family() == 4",
            'IP Address "x" parse error during conversion from string: ParseAddr("x"): unable to parse IP',
        ),
        ("ip('::ffff:1.2.3.4').family() == 4", 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed'),
        ("int([1e30][0]) == 1", "integer overflow"),
        ("0u - dyn(1u) == 0u", "unsigned integer overflow"),
        ("timestamp([99999999999999][0]) == timestamp(0)", "timestamp overflow"),
        ("string([b'\\xff'][0]) == ''", "invalid UTF-8 in bytes, cannot convert to string"),
        ("double('nan') < dyn(1.0)", "NaN values cannot be ordered"),
        ("timestamp(0).getHours('Nowhere/Land') == 1", "unknown time zone Nowhere/Land"),
        ("['a', 'a'].transformMapEntry(i, v, {v: i}) == {}", "insert failed: key a already exists"),
        ("'%s'.format(dyn([])) == ''", "index 0 out of range"),
        (f"int(['{'9' * 5000}'][0]) == 1", "type conversion error from 'string' to 'int'"),
        (f"int(['-{'9' * 5000}'][0]) == 1", "type conversion error from 'string' to 'int'"),
        (f"uint(['{'9' * 5000}'][0]) == 1u", "type conversion error from 'string' to 'uint'"),
        (
            f"duration(['{'9' * 5000}s'][0]) == duration('1s')",
            "type conversion error from 'string' to 'google.protobuf.Duration'",
        ),
        (f"timestamp(0).getHours('{'9' * 5000}:00') == 1", f"unknown time zone {'9' * 5000}:00"),
        ("timestamp('0001-01-01T00:00:00Z').getHours('-02:00') == 1", "timestamp overflow"),
        (
            f"semver('{'9' * 5000}.0.0') == semver('1.2.3')",
            'strconv.ParseUint: parsing "' + "9" * 5000 + '": value out of range',
        ),
        ("semver('1.2.3-') == semver('1.2.3')", "Prerelease is empty"),
        ("semver('1.x.3') == semver('1.2.3')", 'Invalid character(s) found in minor number "x"'),
        (
            "url('x').getHost() == ''",
            'URL parse error during conversion from string: parse "x": invalid URI for request',
        ),
    ],
)  # fmt: skip
def test_expressions_that_fail(expression: str, text: str) -> None:
    assert runtime_error(expression) == text


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_integer_arithmetic_is_exact_or_fails(left: int, right: int) -> None:
    expected = left + right
    sentence = f"dyn({left}) + {right} == {max(min(expected, 2**63 - 1), -(2**63))}"
    if -(2**63) <= expected < 2**63:
        assert answer(sentence)
    else:
        assert runtime_error(sentence) == "integer overflow"


@given(st.integers(-100, 100), st.integers(-100, 100).filter(bool))
def test_quotient_and_remainder_agree(left: int, right: int) -> None:
    assert answer(f"({left} / {right}) * {right} + {left} % {right} == {left}")


@given(st.lists(st.integers(0, 5), max_size=6), st.integers(0, 5))
def test_quantifiers_agree_with_python(elements: list[int], limit: int) -> None:
    assert answer(f"{elements}.all(x, x < {limit})") is all(element < limit for element in elements)
    assert answer(f"{elements}.exists(x, x < {limit})") is any(element < limit for element in elements)
    assert answer(f"{elements}.filter(x, x < {limit}).size() == {sum(element < limit for element in elements)}")
    assert answer(f"{elements}.exists_one(x, x == {limit})") is (elements.count(limit) == 1)
