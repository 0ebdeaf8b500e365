"""Plots: lines on two logarithmic axes, as SVG.

1. Both axes have a line at each power of ten. Points at or below zero are left out.
2. The same points give the same bytes, so that a plot changes only with its numbers.
3. The file is self-contained, for light and dark pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor, log10
from typing import NamedTuple
from xml.sax.saxutils import escape

Point = tuple[float, float]

WIDTH, HEIGHT = 720, 440
LEFT, RIGHT, TOP, BOTTOM = 76, 150, 48, 56
COLOURS = ("#2563eb", "#d9480f", "#2b8a3e", "#862e9c", "#a61e4d")
GREY = "#868e96"


class Series(NamedTuple):
    """Points under one name."""

    name: str
    points: Sequence[Point]


class Bars(NamedTuple):
    """One bar in each group, of one colour."""

    name: str
    values: Sequence[float]


class Axis(NamedTuple):
    """One direction: from which to which power of ten, and where on the paper."""

    low: int
    high: int
    start: float
    end: float

    def at(self, value: float) -> float:
        share = (log10(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def powers(self) -> Iterator[tuple[float, float]]:
        """Each power of ten, and its place."""
        for power in range(self.low, self.high + 1):
            yield 10.0**power, self.at(10.0**power)


def line_plot(title: str, x_title: str, y_title: str, series: Sequence[Series]) -> str:
    """The whole file."""
    drawn = [one._replace(points=[(x, y) for x, y in one.points if x > 0 and y > 0]) for one in series]
    x_axis = _axis([x for one in drawn for x, _ in one.points], LEFT, WIDTH - RIGHT)
    y_axis = _axis([y for one in drawn for _, y in one.points], HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
        ' font-family="system-ui, sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        _text(LEFT, 24, title, size=15, weight="600"),
        *_grid(x_axis, y_axis),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, x_title, anchor="middle"),
        _text(LEFT - 60, TOP - 8, y_title),
    ]
    for number, one in enumerate(drawn):
        parts += _drawn(one, COLOURS[number % len(COLOURS)], x_axis, y_axis)
    parts += _names(drawn, x_axis, y_axis)
    return "\n".join([*parts, "</svg>", ""])


PANEL_HEIGHT, PANEL_GAP, BAR_TEXT = 150, 70, 10


def bar_plot(title: str, groups: Sequence[str], panels: Sequence[tuple[str, Sequence[Bars]]]) -> str:
    """Panels below each other, with a group of bars for each name; heights are linear, from 0."""
    height = TOP + len(panels) * (PANEL_HEIGHT + PANEL_GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
        ' font-family="system-ui, sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(20, 24, title, size=15, weight="600"),
    ]
    for number, (panel_title, bars) in enumerate(panels):
        top = TOP + number * (PANEL_HEIGHT + PANEL_GAP)
        parts += _panel(top, panel_title, groups, bars)
    return "\n".join([*parts, "</svg>", ""])


def _panel(top: float, title: str, groups: Sequence[str], bars: Sequence[Bars]) -> Iterator[str]:
    base, highest = top + PANEL_HEIGHT + 20, max((value for one in bars for value in one.values), default=1.0) or 1.0
    yield _text(20, top + 8, title, weight="600")
    for number, one in enumerate(bars):
        yield _text(WIDTH - 330 + number * 110, top + 8, one.name, fill=COLOURS[number % len(COLOURS)], weight="600")
    group_width = (WIDTH - 40) / max(1, len(groups))
    width = group_width * 0.8 / max(1, len(bars))
    for place, group in enumerate(groups):
        left = 20 + place * group_width
        for number, one in enumerate(bars):
            value = one.values[place]
            size, x = value / highest * (PANEL_HEIGHT - 20), left + number * width
            colour = COLOURS[number % len(COLOURS)]
            place_and_size = f'x="{x:.1f}" y="{base - size:.1f}" width="{width - 2:.1f}" height="{size:.1f}"'
            yield f'<rect {place_and_size} fill="{colour}"/>'
            yield _text(x + width / 2, base - size - 4, _number(value), anchor="middle", size=BAR_TEXT)
        yield _text(left + group_width * 0.4, base + 16, group, anchor="middle", fill=GREY, size=BAR_TEXT)


def _axis(values: Sequence[float], start: float, end: float) -> Axis:
    if not values:
        return Axis(0, 1, start, end)
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return Axis(low, max(high, low + 1), start, end)


def _grid(x_axis: Axis, y_axis: Axis) -> Iterator[str]:
    for value, x in x_axis.powers():
        yield _line(x, y_axis.start, x, y_axis.end, "#e9ecef")
        yield _text(x, y_axis.start + 18, _number(value), anchor="middle", fill=GREY)
    for value, y in y_axis.powers():
        yield _line(x_axis.start, y, x_axis.end, y, "#e9ecef")
        yield _text(x_axis.start - 8, y + 4, _number(value), anchor="end", fill=GREY)


def _drawn(series: Series, colour: str, x_axis: Axis, y_axis: Axis) -> Iterator[str]:
    places = [(x_axis.at(x), y_axis.at(y)) for x, y in series.points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for (x, y), (x_value, y_value) in zip(places, series.points):
        hint = f"{series.name}: {_number(x_value)}, {_number(y_value)}"
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"><title>{escape(hint)}</title></circle>'


def _names(series: Sequence[Series], x_axis: Axis, y_axis: Axis) -> Iterator[str]:
    """Names beside the last points, from the top down, pushed apart where they would overlap."""
    ends = [(y_axis.at(one.points[-1][1]), number, one) for number, one in enumerate(series) if one.points]
    lowest = 0.0
    for wanted_y, number, one in sorted(ends, key=lambda end: end[:2]):
        lowest = max(wanted_y + 4, lowest + 16)
        x = x_axis.at(one.points[-1][0]) + 10
        yield _text(x, lowest, one.name, fill=COLOURS[number % len(COLOURS)], weight="600")


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", fill: str = "#212529", size: int = 12, weight: str = "400"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}" font-size="{size}" font-weight="{weight}">'
        f"{escape(text)}</text>"
    )


def _number(value: float) -> str:
    """As short as it can be read: 100, 10,000, 1M."""
    if value >= 1_000_000:
        return f"{value / 1_000_000:g}M"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
