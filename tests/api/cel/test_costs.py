"""The cost of an evaluation and its limit; the maximum cost of an expression, as kube-apiserver estimates it."""

from __future__ import annotations

import pytest

from mooring.api.cel import COST_MAX, SelectorEvaluationError, compile_device_selector, types, worst_selector_cost
from mooring.api.cel.call_estimates import MOST, NEVER, ONE, UNKNOWN, CostRange, exactly
from mooring.api.cel.checker import check
from mooring.api.cel.compiler import compile_tree
from mooring.api.cel.costs import Meter, needs_meter
from mooring.api.cel.environment import DEVICE_ENVIRONMENT, FUNCTIONS, Environment
from mooring.api.cel.errors import CelSource, CostExceeded
from mooring.api.cel.estimates import worst_cost
from mooring.api.cel.parser import parse
from mooring.api.cel.runtime import METER_SLOT
from tests.api.cel.builders import amount, device, version

A_GPU = device("dra.example.com", name=True, size=1, label="fish", v=version("1.0.0"), memory=amount("1Mi"))
ATTRIBUTES = 'device.attributes["dra.example.com"]'


def cost(expression: str) -> int:
    source = CelSource(expression)
    tree = parse(source)
    check(tree, source, DEVICE_ENVIRONMENT)
    assert not source.errors, source.error_report()
    program = compile_tree(tree, DEVICE_ENVIRONMENT, is_metered=True)
    meter = Meter()
    frame: list[object] = [None] * program.slot_count
    frame[0], frame[METER_SLOT] = A_GPU.fields, meter
    program.run(frame)
    return meter.spent


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("true", 0),
        ('"no-such-domain" in device.attributes', 3),
        ('device.driver == "dra.example.com"', 4),
        (f"{ATTRIBUTES}.name", 4),
        (f'{ATTRIBUTES}["name"]', 4),
        (f"{ATTRIBUTES}.size > 0", 5),
        (f'{ATTRIBUTES}.label == "fish"', 5),
        (f'{ATTRIBUTES}.v.isGreaterThan(semver("0.0.1"))', 6),
        ('device.capacity["dra.example.com"].memory.isGreaterThan(quantity("1Ki"))', 6),
        (f"{ATTRIBUTES}.name && {ATTRIBUTES}.name && {ATTRIBUTES}.name", 12),
        ("device.allowMultipleAllocations == true", 3),
        (f"has({ATTRIBUTES}.name)", 3),
        ("1 in [1, 2, 3]", 0),
        ("[1, 2].all(x, x > 0)", 11),
        (f'"x" + {ATTRIBUTES}.label == "xfish"', 6),
    ],
)
def test_cost_of_an_evaluation(expression: str, expected: int) -> None:
    assert cost(expression) == expected


@pytest.mark.parametrize(
    ("expression", "needs"),
    [
        (f"{ATTRIBUTES}.size > 0 && {ATTRIBUTES}.size + 1 < 3 || true", False),
        (f"{ATTRIBUTES}.name", False),
        ("1 + 2 == 3", False),
        ('"a" + "b" == "c"', True),
        ("[1].all(x, x > 0)", True),
        ("cel.bind(a, 1, a == 1)", False),
        ('"a".replace("a", "b") == "b"', True),
    ],
)
def test_which_expressions_are_metered(expression: str, needs: bool) -> None:
    source = CelSource(expression)
    tree = parse(source)
    check(tree, source, DEVICE_ENVIRONMENT)
    assert needs_meter(tree, len(expression)) is needs


def chained(first: str, step: str, count: int) -> str:
    """`[first].map(a, step).map(a, step)…`: each step works on the result of the one before."""
    return f"[{first}]" + f".map(a, {step})" * count


@pytest.mark.parametrize(
    "expression",
    [
        # a text of 1 GB and more
        "'aaaaaaaaaa'" + ".replace('a', 'aaaaaaaaaa')" * 9 + " == ''",
        "'aaaaaaaaaa'" + ".replace('a', 'aaaaaaaaaa', 1000000000)" * 9 + " == ''",
        "'aaaaaaaaaa'" + ".replace('', 'aaaaaaaaaa')" * 9 + " == ''",
        chained("'aaaaaaaaaa'", "a + a", 30) + " == []",
        chained("dyn('aaaaaaaaaa')", "a + a", 30) + " == []",
        chained("b'aaaaaaaaaa'", "a + a", 30) + " == []",
        chained("'aaaaaaaaaa'", "[a, a, a, a, a, a, a, a].join(a)", 12) + " == []",
        chained("'aaaaaaaaaa'", "'%s%s%s%s%s%s'.format([a, a, a, a, a, a])", 12) + " == []",
        "strings.quote(" * 60 + "'\"'" + ")" * 60 + " == ''",
        "'%.1000000000f'.format([1.5]) == ''",
        "'%." + "9" * 5_000 + "f'.format([1.5]) == ''",
        # a list or map with more elements than memory has room for, or that takes too long to walk
        chained("[1, 2, 3]", "a + a", 30) + " == []",
        chained("[1, 2, 3]", "[a, a, a, a, a, a]", 30) + ".flatten(40) == []",
        chained("[1, 2, 3]", "[a, a, a, a, a, a]", 30) + " == " + chained("[1, 2, 3]", "[a, a, a, a, a, a]", 30),
        "dyn([1]) in " + chained("[1, 2, 3]", "[a, a, a, a, a, a]", 30),
        "'%s'.format([" + chained("[1, 2, 3]", "[a, a, a, a, a, a]", 30) + "]) == ''",
        "'%s'.format([" + chained("{'a': 1}", "{'a': a, 'b': a, 'c': a}", 30) + "]) == ''",
        "sets.contains(lists.range(2000), lists.range(2000))",
        "lists.range(2000).distinct() == []",
        "lists.range(2000).sort() == []",
        "lists.range(100000000) == []",
        "lists.range(100000).all(i, lists.range(10000).exists(j, true))",
        # a pattern that is small and expensive
        "lists.range(10000).all(i, !('ab'" + ".replace('b', 'bbbbbbbbbb')" * 3 + ").matches('b.{900}c'))",
        "('a'" + ".replace('a', 'aaaaaaaaaa')" * 5 + ").findAll('a.*b|a') == []",
    ],
)
def test_an_evaluation_ends_before_it_takes_too_much_memory_or_time(expression: str) -> None:
    with pytest.raises(SelectorEvaluationError, match="operation cancelled: actual cost limit exceeded"):
        compile_device_selector(expression).matches(A_GPU)


def test_a_large_map_is_built_and_read_in_linear_time() -> None:
    entries = "lists.range(30000).transformMap(i, v, i)"
    assert compile_device_selector(f"{entries}.size() == 30000").matches(A_GPU)


def test_keys_that_are_equal_in_python_are_different() -> None:
    assert compile_device_selector("!(dyn(true) in {1: 2}) && !(dyn(0) in {dyn(false): 2})").matches(A_GPU)
    assert compile_device_selector("1 in {1: 2} && true in {true: 2} && dyn(1.0) in {1: 2}").matches(A_GPU)


def test_a_meter_stops_at_the_limit() -> None:
    meter = Meter()
    meter.charge(COST_MAX)
    with pytest.raises(CostExceeded, match="operation cancelled: actual cost limit exceeded"):
        meter.charge(1)


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        pytest.param("true", 0, id="a constant"),
        pytest.param("device.driver == 'a'", 3, id="texts are compared up to the shorter one"),
        pytest.param("device.driver == device.attributes['a'].b", 13, id="attributes are 64 letters at most"),
        pytest.param("device.attributes['a']['b'] == 1", 5, id="an attribute by index"),
        pytest.param("has(device.attributes.a)", 2, id="asking is free, going there is not"),
        pytest.param("device.driver.matches('abcd')", 9, id="a pattern"),
        pytest.param("device.driver == 'a' || device.driver == 'b'", 6, id="the worst case looks at both"),
        pytest.param("true ? device.driver == 'a' : device.driver.matches('abcd')", 9, id="of two ways the dearer one"),
        pytest.param("[1, 2].all(x, x > 0)", 21, id="a loop over a list"),
        pytest.param("device.attributes.all(d, d == 'a')", 163, id="a loop over domains"),
        pytest.param("device.attributes['a'].all(k, v, v == 'x')", 164, id="a loop over attributes"),
        pytest.param("cel.bind(x, device.driver, x == 'a')", 14, id="a name for something"),
        pytest.param("{'a': 'bb'}['a'] == 'x'", 32, id="a map that is written down"),
        pytest.param("device.driver.split('.', 2).size() == 2", 17, id="parts of a text"),
        pytest.param("device.capacity['a'].b == quantity('1')", 6, id="amounts are compared at once"),
        pytest.param("(device.driver + 'x').startsWith('y')", 10, id="texts put together"),
        pytest.param("lists.range(10).all(x, x >= 0)", 72, id="a range"),
        pytest.param("dyn(device.driver) == 'a'", 4, id="types do not matter"),
    ],
)
def test_worst_selector_cost(expression: str, cost: int) -> None:
    assert worst_selector_cost(expression) == cost


@pytest.mark.parametrize(
    ("expression", "is_cheap"),
    [
        pytest.param("device.attributes['a'].b.matches('x')", True, id="an attribute of a domain in brackets"),
        pytest.param("device.attributes.a.b.matches('x')", False, id="a domain as a name is not understood"),
        pytest.param("device.attributes.a.b == 'x'", True, id="but the other side is short"),
        pytest.param("lists.range(device.driver.size()).size() > 0", False, id="a range of any length"),
        pytest.param("'%s'.format([device.driver]).matches('x')", False, id="a text of any length"),
        pytest.param("['a', 'b'].max() == 'a'", False, id="texts in a list"),
    ],
)
def test_expressions_above_the_maximum_cost(expression: str, is_cheap: bool) -> None:
    assert (worst_selector_cost(expression) <= COST_MAX) is is_cheap


def test_worst_cost_uses_the_sizes_of_variables() -> None:
    source = CelSource("self.all(x, x.matches('ab'))")
    tree = parse(source)
    check(tree, source, Environment(FUNCTIONS, {"self": types.list_of(types.STRING)}, {}, {}))
    assert not source.errors
    sizes = {("self",): CostRange(0, 10), ("self", "@items"): CostRange(0, 99)}
    assert worst_cost(tree, sizes.get) == 1 + 1 + 10 * (2 + 1 + 1 + 10)
    assert worst_cost(tree) > COST_MAX


# --- What the functions of the libraries can cost at most, as kube-apiserver v1.36.4 estimates it --------------------


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        pytest.param("device.driver.lowerAscii() == 'a'", 10, id="a changed text"),
        pytest.param("device.driver.replace('a', 'bcd') == 'x'", 16, id="a longer text"),
        pytest.param("device.driver.replace('', 'b') == 'x'", 16, id="letters put between"),
        pytest.param("device.driver.find('ab') == 'a'", 10, id="something found"),
        pytest.param("[3, 1].sort() == [1, 3]", 40, id="sorted numbers"),
        pytest.param("[[1], [2]].flatten() == [1, 2]", 54, id="flattened lists"),
        pytest.param("[1, 2, 3].slice(0, 2) == [1, 2]", 34, id="a slice"),
        pytest.param("[1, 1].distinct() == [1]", 40, id="distinct numbers"),
        pytest.param("[1, 2].max() == 2", 13, id="the largest"),
        pytest.param("'abc'.indexOf('c') == 2", 2, id="a position in a text"),
        pytest.param("sets.contains([1, 2], [1])", 23, id="sets"),
        pytest.param("sets.equivalent([1, 2], [1])", 25, id="equal sets"),
        pytest.param("isQuantity(device.driver)", 9, id="an amount that is read"),
        pytest.param("semver('1.0.0').major() == 1", 3, id="a version that is read"),
        pytest.param("cidr('10.0.0.0/8').containsIP('10.1.1.1')", 6, id="an address in a network"),
        pytest.param("cidr('10.0.0.0/8').containsCIDR(cidr('10.0.0.0/9'))", 9, id="a network in a network"),
        pytest.param("ip.isCanonical(device.driver)", 15, id="an address and back"),
        pytest.param("url('a') == url('b')", 3, id="addresses"),
        pytest.param("format.uuid().validate(device.driver).hasValue()", 228, id="a format"),
    ],
)
def test_worst_cost_of_a_call(expression: str, cost: int) -> None:
    assert worst_selector_cost(expression) == cost


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(CostRange(1, 2).plus(CostRange(3, 4)), CostRange(4, 6), id="a sum"),
        pytest.param(UNKNOWN.plus(ONE), CostRange(1, MOST), id="a sum of what nobody knows"),
        pytest.param(CostRange(2, MOST).times(exactly(3)), CostRange(6, MOST), id="a product"),
        pytest.param(CostRange(0, MOST).times(exactly(0)), exactly(0), id="a product with nothing"),
        pytest.param(CostRange(1, 11).scaled(0.1), CostRange(1, 2), id="a share, rounded up"),
        pytest.param(UNKNOWN.scaled(2.0), UNKNOWN, id="twice what nobody knows"),
        pytest.param(CostRange(2, 3).joined(CostRange(1, 2)), CostRange(1, 3), id="both"),
        pytest.param(NEVER.joined(CostRange(1, 2)), CostRange(1, 2), id="both, one of them nothing yet"),
    ],
)
def test_cost_ranges_are_added_multiplied_and_joined(found: CostRange, expected: CostRange) -> None:
    assert found == expected
