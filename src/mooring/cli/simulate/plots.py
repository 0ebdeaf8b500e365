"""Plots of `mooring simulate` and of benchmarks as SVG: lines or points, groups of bars, the map of nodes over time.

1. The same numbers give the same bytes.
2. A plot is self-contained, and follows the colour scheme of the reader (`prefers-color-scheme`). It is as readable in
   an HTML page as in a file of its own, and on a screen of 400 pixels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, floor, log10
from types import MappingProxyType
from typing import NamedTuple
from xml.sax.saxutils import escape

Point = tuple[float, float]

WIDTH, HEIGHT = 480, 300
LEFT, RIGHT, TOP, BOTTOM = 56, 14, 54, 42
BARS_WIDTH, PANEL_HEIGHT, PANEL_GAP = 720, 150, 70
TICKS = 5
LETTER_WIDTH = 8.0
"""Of the font, on average."""
LIGHT = ("#2563eb", "#d9480f", "#2b8a3e", "#862e9c", "#c2255c", "#0b7285", "#946200", "#495057")
DARK = ("#74a9ff", "#ff922b", "#69db7c", "#da77f2", "#faa2c1", "#3bc9db", "#ffd43b", "#ced4da")
FONTS = "system-ui, Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
"""With names of fonts, for programs that do not know the generic families."""
SHADES = 10
"""Colours of the map of nodes."""
EMPTY_SHADE, FULL_SHADE = (222, 235, 247), (8, 48, 107)


class Axis(NamedTuple):
    """One direction: the range of values, and its place in the plot."""

    low: float
    high: float
    start: float
    end: float
    is_logarithmic: bool = False
    """`low` and `high` are powers of ten."""

    def at(self, value: float) -> float:
        low, high = self.low, self.high
        if self.is_logarithmic:
            low, high, value = log10(low), log10(high), log10(value)
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> Iterator[float]:
        """Round values: multiples of 1, 2 or 5 times a power of ten; on a logarithmic axis the powers of ten."""
        if self.is_logarithmic:
            yield from (10.0**power for power in range(round(log10(self.low)), round(log10(self.high)) + 1))
            return
        rough = (self.high - self.low) / TICKS
        power = 10.0 ** floor(log10(rough))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
        for number in range(ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9) + 1):
            yield number * step


def line_plot(
    title: str,
    x_title: str,
    lines: Mapping[str, Sequence[Point]],
    *,
    is_scatter: bool = False,
    is_logarithmic: bool = False,
    marks: Mapping[str, Sequence[Point]] = MappingProxyType({}),
    y_low: float = 0.0,
) -> str:
    """A line for each name, or its points. `marks` are crosses beside the line of the same name.

    Logarithmic axes leave out what is not above zero, and mark the points of a line.
    """
    if is_logarithmic:
        lines = {name: [(x, y) for x, y in line if x > 0 and y > 0] for name, line in lines.items()}
    legend, top = _legend(list(lines))
    points = [point for line in lines.values() for point in line] or [(1.0, 1.0)]
    x_low, x_high = min(x for x, _ in points), max(x for x, _ in points)
    y_least, y_high = min(y for _, y in points), max(y for _, y in points)
    if is_logarithmic:
        x_axis = _logarithmic_axis(x_low, x_high, LEFT, WIDTH - 2 * RIGHT)  # room for half of the last number
        y_axis = _logarithmic_axis(y_least, y_high, HEIGHT - BOTTOM, top)
    else:
        x_axis = Axis(x_low, x_high if x_high > x_low else x_low + 1, LEFT, WIDTH - RIGHT)
        y_axis = Axis(y_low, y_low + 1.05 * (y_high - y_low) if y_high > y_low else y_low + 1, HEIGHT - BOTTOM, top)
    parts = [*legend, *_grid(x_axis, y_axis), _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x_title, anchor="middle")]
    for number, (name, line) in enumerate(lines.items()):
        colour = number % len(LIGHT)
        places = [(x_axis.at(x), y_axis.at(y)) for x, y in line]
        if is_scatter:
            parts += [f'<circle class="f{colour}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in places]
        else:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            parts.append(f'<polyline class="s{colour}" points="{path}"><title>{escape(name)}</title></polyline>')
        if is_logarithmic:
            for (x, y), values in zip(places, line):
                hint = f"{name}: {', '.join(map(_rounded, values))}"
                circle = f'<circle class="f{colour}" cx="{x:.1f}" cy="{y:.1f}" r="3">'
                parts.append(f"{circle}<title>{escape(hint)}</title></circle>")
        for x, y in marks.get(name, ()):
            cross = f"M{x_axis.at(x) - 4:.1f} {y_axis.at(y) - 4:.1f}l8 8m0 -8l-8 8"
            parts.append(f'<path class="s{colour}" d="{cross}"/>')
    return _document(title, parts)


def _logarithmic_axis(low: float, high: float, start: float, end: float) -> Axis:
    first, last = floor(log10(low)), ceil(log10(high))
    return Axis(10.0**first, 10.0 ** max(last, first + 1), start, end, is_logarithmic=True)


def bar_plot(title: str, groups: Sequence[str], panels: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Panels below each other by title: in each group a bar for each name, from 0."""
    names = list(dict.fromkeys(name for bars in panels.values() for name in bars))
    parts, top = _legend(names, BARS_WIDTH)
    for panel_title, bars in panels.items():
        parts += _panel(top, panel_title, groups, [(names.index(name), values) for name, values in bars.items()])
        top += PANEL_HEIGHT + PANEL_GAP
    return _document(title, parts, BARS_WIDTH, round(top))


def _panel(top: float, title: str, groups: Sequence[str], bars: Sequence[tuple[int, Sequence[float]]]) -> Iterator[str]:
    base, highest = top + PANEL_HEIGHT + 20, max((value for _, values in bars for value in values), default=1.0) or 1.0
    yield _text(20, top + 8, title, more=' font-weight="600"')
    group_width = (BARS_WIDTH - 40) / max(1, len(groups))
    width = group_width * 0.8 / max(1, len(bars))
    for place, group in enumerate(groups):
        left = 20 + place * group_width
        for number, (colour, values) in enumerate(bars):
            size, x = values[place] / highest * (PANEL_HEIGHT - 20), left + number * width
            place_and_size = f'x="{x:.1f}" y="{base - size:.1f}" width="{width - 2:.1f}" height="{size:.1f}"'
            yield f'<rect class="f{colour}" {place_and_size}/>'
            value = _rounded(values[place])
            yield _text(x + width / 2, base - size - 4, value, anchor="middle", more=' font-size="10"')
        yield _text(left + group_width * 0.4, base + 16, group, anchor="middle", more=' font-size="10"')


def node_map(title: str, maps: Sequence[Sequence[int]], begin: str, end: str) -> str:
    """A row for each node, a column for each sample; darker is fuller. Percent below 0: there is no node."""
    nodes = max((len(column) for column in maps), default=0)
    width, height = (WIDTH - LEFT - RIGHT) / max(len(maps), 1), (HEIGHT - TOP - BOTTOM) / max(nodes, 1)
    cells: dict[int, list[str]] = {}
    for node in range(nodes):
        column = 0
        while column < len(maps):
            shade = _shade(maps[column][node])
            first = column
            while column < len(maps) and _shade(maps[column][node]) == shade:
                column += 1
            x, y, run = LEFT + first * width, TOP + node * height, (column - first) * width
            if shade is not None:
                cells.setdefault(shade, []).append(f"M{x:.1f} {y:.2f}h{run:.1f}v{height:.2f}h-{run:.1f}z")
    parts = [
        f'<path fill="{_colour(shade)}" shape-rendering="crispEdges" d="{"".join(paths)}"/>'
        for shade, paths in sorted(cells.items())
    ]
    parts += [
        _text(LEFT - 8, TOP + 10, "nodes", anchor="end"),
        _text(LEFT, HEIGHT - BOTTOM + 18, begin),
        _text(WIDTH - RIGHT, HEIGHT - BOTTOM + 18, end, anchor="end"),
    ]
    for shade in range(SHADES + 1):
        x = LEFT + 64 + shade * 16
        parts.append(f'<rect x="{x}" y="34" width="16" height="12" fill="{_colour(shade)}"/>')
    parts += [
        _text(LEFT, 44, "empty"),
        _text(LEFT + 72 + (SHADES + 1) * 16, 44, "full"),
    ]
    return _document(title, parts)


def _shade(percent: int) -> int | None:
    return None if percent < 0 else ceil(percent * SHADES / 100)


def _colour(shade: int) -> str:
    parts = [round(a + (b - a) * shade / SHADES) for a, b in zip(EMPTY_SHADE, FULL_SHADE)]
    return "#" + "".join(f"{part:02x}" for part in parts)


def _document(title: str, parts: Sequence[str], width: int = WIDTH, height: int = HEIGHT) -> str:
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" class="plot"'
        f' font-family="{FONTS}" font-size="13">'
    )
    background = f'<rect class="paper" width="{width}" height="{height}"/>'
    heading = _text(12, 22, title, more=' font-size="15" font-weight="600"')
    return "\n".join([opening, f"<title>{escape(title)}</title>", _style(), background, heading, *parts, "</svg>", ""])


def _style() -> str:
    def rules(paper: str, ink: str, faint: str, colours: Sequence[str]) -> str:
        found = [f".plot .paper{{fill:{paper}}}", f".plot .ink{{fill:{ink}}}", f".plot .grid{{stroke:{faint}}}"]
        for number, colour in enumerate(colours):
            found.append(f".plot .s{number}{{stroke:{colour};fill:none;stroke-width:2}}")
            found.append(f".plot .f{number}{{fill:{colour}}}")
        return "".join(found)

    light, dark = rules("#fff", "#212529", "#e9ecef", LIGHT), rules("#16191d", "#dee2e6", "#343a40", DARK)
    return f"<style>{light}@media (prefers-color-scheme:dark){{{dark}}}</style>"


def _grid(x_axis: Axis, y_axis: Axis) -> Iterator[str]:
    for value in x_axis.ticks():
        x = x_axis.at(value)
        yield f'<line class="grid" x1="{x:.1f}" y1="{y_axis.start}" x2="{x:.1f}" y2="{y_axis.end}"/>'
        yield _text(x, y_axis.start + 16, _number(value), anchor="middle")
    for value in y_axis.ticks():
        y = y_axis.at(value)
        yield f'<line class="grid" x1="{x_axis.start}" y1="{y:.1f}" x2="{x_axis.end}" y2="{y:.1f}"/>'
        yield _text(x_axis.start - 8, y + 4, _number(value), anchor="end")


def _legend(names: Sequence[str], plot_width: int = WIDTH) -> tuple[list[str], float]:
    """The names with their colours, in as many lines as they need, and where the plot begins below them."""
    parts: list[str] = []
    x, y = float(LEFT), 34.0
    for number, name in enumerate(names):
        width = 14 + LETTER_WIDTH * len(name) + 12
        if x + width > plot_width and x > LEFT:
            x, y = float(LEFT), y + 16
        parts.append(f'<rect class="f{number % len(LIGHT)}" x="{x:.1f}" y="{y:.1f}" width="10" height="10"/>')
        parts.append(_text(x + 14, y + 10, name))
        x += width
    return parts, y + TOP - 34


def _text(x: float, y: float, text: str, *, anchor: str = "start", more: str = "") -> str:
    return f'<text class="ink" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(text)}</text>'


def _number(value: float) -> str:
    if abs(value) >= 10_000:
        return f"{value / 1_000:g}k" if abs(value) < 1_000_000 else f"{value / 1_000_000:g}M"
    return f"{value:.6g}"


def _rounded(value: float) -> str:
    """To three digits."""
    return _number(float(f"{value:.3g}"))
