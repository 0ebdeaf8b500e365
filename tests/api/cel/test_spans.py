"""Spans never wrap around."""

from __future__ import annotations

import pytest

from mooring.api.cel.call_estimates import MOST, NEVER, ONE, UNKNOWN, Span, exactly


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
