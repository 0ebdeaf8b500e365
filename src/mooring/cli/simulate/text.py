"""The results of `mooring simulate`: a table, JSON, CSV files and SVG plots."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean, pstdev
from xml.sax.saxutils import escape

from mooring.cli.errors import input_error
from mooring.simulator.simulation import SimulationResult

DECIMALS = 4
"""Of figures in JSON and CSV."""
COUNTS = ("placed", "pending", "running", "evictions", "preemptions")
"""Figures without decimals."""
ALWAYS_SHOWN = ("placed", "pending", "p50_wait_s", "p99_wait_s")
"""Other figures are left out of the table where they are 0 for all policies."""
PLOT_WIDTH, PLOT_HEIGHT, PLOT_MARGIN = 640, 320, 48
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f")
PLOTTED = ("allocation_percent", "fragmentation_percent", "pending", "nodes_used")


def as_json(results: Sequence[SimulationResult]) -> str:
    rows = [
        {
            "policy": result.policy,
            "seed": result.seed,
            **_rounded(result.figures),
        }
        for result in results
    ]
    return json.dumps(rows, indent=2) + "\n"


def as_lines(results: Sequence[SimulationResult]) -> list[str]:
    """One column for each policy: the mean, and the standard deviation over seeds if there are several."""
    policies = _policies(results)
    if not policies:
        return ["no simulation has finished"]
    seeds = len(dict.fromkeys(result.seed for result in results))
    rows = [["", *policies]]
    for name in _figure_names(results):
        cells = [_cell(_values(results, policy, name)) for policy in policies]
        if any(cell not in ("0", "") for cell in cells) or name in ALWAYS_SHOWN:
            rows.append([name, *cells])
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]).rstrip()
        for row in rows
    ]
    return [*lines, "", f"Means over {seeds} seeds ± standard deviation." if seeds > 1 else "One seed."]


def write_folder(results: Sequence[SimulationResult], folder: str) -> list[str]:
    """Writes results.csv, samples.csv and plots. Returns the names of the files."""
    target = Path(folder)
    files = {
        "results.csv": _as_csv(
            [{"policy": result.policy, "seed": result.seed, **_rounded(result.figures)} for result in results]
        ),
        "samples.csv": _as_csv(
            [
                {"policy": result.policy, "seed": result.seed, **_rounded(sample)}
                for result in results
                for sample in result.samples
            ]
        ),
    }
    for name in _sample_names(results):
        files[f"{name}.svg"] = as_svg(results, name)
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (target / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise input_error(f"cannot be written: {error.strerror or error}", folder) from error
    return [str(target / name) for name in files]


def as_svg(results: Sequence[SimulationResult], name: str) -> str:
    """A figure of the samples over time, or over demand: the mean over seeds, a line for each policy."""
    by_demand = all("demand_percent" in sample for result in results for sample in result.samples)
    across = "demand_percent" if by_demand else "time_s"
    lines = {policy: _line(results, policy, across, name) for policy in _policies(results)}
    points = [point for line in lines.values() for point in line]
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    top = max(max(y for _, y in points), 1e-9)

    def place(x: float, y: float) -> str:
        inner_width, inner_height = PLOT_WIDTH - 2 * PLOT_MARGIN, PLOT_HEIGHT - 2 * PLOT_MARGIN
        share = (x - left) / (right - left) if right > left else 0.0
        return f"{PLOT_MARGIN + inner_width * share:.1f},{PLOT_HEIGHT - PLOT_MARGIN - inner_height * y / top:.1f}"

    axis = "demand in % of the GPUs" if by_demand else "hours"
    scale = 1.0 if by_demand else 3600.0
    base = PLOT_HEIGHT - PLOT_MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {PLOT_WIDTH} {PLOT_HEIGHT}" font-family="sans-serif"'
        ' font-size="12">',
        f'<rect width="{PLOT_WIDTH}" height="{PLOT_HEIGHT}" fill="white"/>',
        f'<text x="{PLOT_MARGIN}" y="20">{escape(name)}</text>',
        f'<path d="M{PLOT_MARGIN} {PLOT_MARGIN}V{base}H{PLOT_WIDTH - PLOT_MARGIN}" stroke="black" fill="none"/>',
        f'<text x="4" y="{PLOT_MARGIN + 4}">{top:.4g}</text><text x="4" y="{base}">0</text>',
        f'<text x="{PLOT_MARGIN}" y="{base + 16}">{left / scale:.4g}</text>',
        f'<text x="{PLOT_WIDTH - PLOT_MARGIN}" y="{base + 16}" text-anchor="end">{right / scale:.4g} {axis}</text>',
    ]
    for number, (policy, line) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(place(x, y) for x, y in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        x = PLOT_MARGIN + 8 + number * 90
        parts.append(f'<text x="{x}" y="{PLOT_HEIGHT - 8}" fill="{colour}">{escape(policy)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _policies(results: Iterable[SimulationResult]) -> list[str]:
    return list(dict.fromkeys(result.policy for result in results))


def _figure_names(results: Iterable[SimulationResult]) -> list[str]:
    return list(dict.fromkeys(name for result in results for name in result.figures))


def _sample_names(results: Sequence[SimulationResult]) -> list[str]:
    names = dict.fromkeys(name for result in results for sample in result.samples for name in sample)
    return [name for name in names if name.endswith(PLOTTED)]


def _values(results: Iterable[SimulationResult], policy: str, name: str) -> list[float]:
    return [result.figures[name] for result in results if result.policy == policy and name in result.figures]


def _cell(values: Sequence[float]) -> str:
    if not values:
        return ""
    mean = _number(fmean(values))
    return f"{mean} ± {_number(pstdev(values))}" if len(values) > 1 and pstdev(values) else mean


def _number(value: float) -> str:
    return f"{value:.0f}" if value == round(value) or abs(value) >= 10_000 else f"{value:.2f}"


def _line(results: Iterable[SimulationResult], policy: str, across: str, name: str) -> list[tuple[float, float]]:
    found: dict[float, list[float]] = {}
    for result in results:
        for sample in result.samples:
            if result.policy == policy and name in sample:
                found.setdefault(sample[across], []).append(sample[name])
    return [(x, fmean(values)) for x, values in sorted(found.items())]


def _rounded(figures: dict[str, float]) -> dict[str, float]:
    return {name: int(value) if name in COUNTS else round(value, DECIMALS) for name, value in figures.items()}


def _as_csv(rows: Sequence[dict[str, float | str]]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
