"""Plots: well-formed, alone, and the same every time."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

import pytest

from bench.plots import Axis, Series, line_plot

SVG = "{http://www.w3.org/2000/svg}"
LINES = [Series("plain", [(100, 30.0), (1_000, 60.0), (100_000, 900.0)]), Series("them", [(5_000, 2_200.0)], True)]


def drawn(series: list[Series]) -> ElementTree.Element:
    return ElementTree.fromstring(line_plot("Cost & more", "nodes", "µs", series))


def texts(root: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in root.iter(f"{SVG}text")]


def test_a_plot_has_its_titles_its_names_and_its_powers_of_ten() -> None:
    assert {"Cost & more", "nodes", "µs", "plain", "them", "100", "1,000", "100,000"} <= set(texts(drawn(LINES)))


def test_a_line_goes_through_its_points_and_a_mark_has_no_line() -> None:
    root = drawn(LINES)
    assert len(list(root.iter(f"{SVG}circle"))) == 3
    assert len(list(root.iter(f"{SVG}polyline"))) == 1
    assert len(list(root.iter(f"{SVG}path"))) == 1


def test_the_same_points_give_the_same_bytes() -> None:
    assert line_plot("t", "x", "y", LINES) == line_plot("t", "x", "y", LINES)


@pytest.mark.parametrize(
    ("points", "count"),
    [
        pytest.param([(0, 5.0), (10, 5.0)], 1, id="zero has no place on a logarithmic axis"),
        pytest.param([(10, 0.0), (10, 5.0)], 1, id="neither across nor up"),
        pytest.param([(10, 10.0)], 1, id="one point is enough"),
        pytest.param([], 0, id="and none is no error"),
    ],
)
def test_points_that_can_be_drawn(points: list[tuple[float, float]], count: int) -> None:
    assert len(list(drawn([Series("s", points)]).iter(f"{SVG}circle"))) == count


def test_names_of_lines_that_end_together_do_not_overlap() -> None:
    root = drawn([Series(name, [(10, 100.0), (100, 100.0)]) for name in ("one", "two", "three")])
    heights = sorted(float(t.get("y", "0")) for t in root.iter(f"{SVG}text") if t.text in ("one", "two", "three"))
    assert all(below - above >= 12 for above, below in pairwise(heights))


@pytest.mark.parametrize(("value", "place"), [(1, 0.0), (10, 50.0), (100, 100.0)])
def test_places_on_an_axis(value: float, place: float) -> None:
    assert Axis(0, 2, 0.0, 100.0).at(value) == pytest.approx(place)
