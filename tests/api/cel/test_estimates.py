"""What an expression can cost at most, as kube-apiserver v1.36.4 estimates it."""

from __future__ import annotations

import pytest

from mooring.api.cel import COST_MAX, types, worst_selector_cost
from mooring.api.cel.call_estimates import MOST, NEVER, ONE, UNKNOWN, CostRange, exactly
from mooring.api.cel.checker import check
from mooring.api.cel.environment import FUNCTIONS, Environment
from mooring.api.cel.errors import CelSource
from mooring.api.cel.estimates import worst_cost
from mooring.api.cel.parser import parse


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
def test_the_worst_cost(expression: str, cost: int) -> None:
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
def test_what_is_too_dear(expression: str, is_cheap: bool) -> None:
    assert (worst_selector_cost(expression) <= COST_MAX) is is_cheap


def test_sizes_of_other_variables_can_be_told() -> None:
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
def test_the_worst_cost_of_a_call(expression: str, cost: int) -> None:
    assert worst_selector_cost(expression) == cost


@pytest.mark.parametrize(
    ("found", "wanted"),
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
def test_spans_are_added_multiplied_and_joined(found: CostRange, wanted: CostRange) -> None:
    assert found == wanted
