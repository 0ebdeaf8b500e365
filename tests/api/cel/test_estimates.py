"""What an expression can cost at most, as kube-apiserver v1.36.4 estimates it."""

from __future__ import annotations

import pytest

from mooring.api.cel import COST_MAX, types, worst_selector_cost
from mooring.api.cel.call_estimates import Span
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
    sizes = {("self",): Span(0, 10), ("self", "@items"): Span(0, 99)}
    assert worst_cost(tree, sizes.get) == 1 + 1 + 10 * (2 + 1 + 1 + 10)
    assert worst_cost(tree) > COST_MAX
