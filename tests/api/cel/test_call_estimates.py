"""What the functions of the libraries can cost at most, as kube-apiserver v1.36.4 estimates it."""

from __future__ import annotations

import pytest

from mooring.api.cel import worst_selector_cost
from mooring.api.cel.call_estimates import MOST, NEVER, ONE, UNKNOWN, Span, exactly


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
        pytest.param(Span(1, 2).plus(Span(3, 4)), Span(4, 6), id="a sum"),
        pytest.param(UNKNOWN.plus(ONE), Span(1, MOST), id="a sum of what nobody knows"),
        pytest.param(Span(2, MOST).times(exactly(3)), Span(6, MOST), id="a product"),
        pytest.param(Span(0, MOST).times(exactly(0)), exactly(0), id="a product with nothing"),
        pytest.param(Span(1, 11).scaled(0.1), Span(1, 2), id="a share, rounded up"),
        pytest.param(UNKNOWN.scaled(2.0), UNKNOWN, id="twice what nobody knows"),
        pytest.param(Span(2, 3).joined(Span(1, 2)), Span(1, 3), id="both"),
        pytest.param(NEVER.joined(Span(1, 2)), Span(1, 2), id="both, one of them nothing yet"),
    ],
)
def test_spans_are_added_multiplied_and_joined(found: Span, wanted: Span) -> None:
    assert found == wanted
