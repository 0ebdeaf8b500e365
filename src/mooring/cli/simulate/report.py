"""The folder of `--output`: tables as CSV and Parquet, plots as SVG and PNG, and a report in one HTML file.

1. SVG plots are written here and need no library. PNG files are the same plots, drawn by resvg, and Parquet files have
   the same rows as the CSV files; both need the extra `report`.
2. The report contains everything: no script, and nothing that a browser loads from elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path

import numpy as np

from mooring import __version__
from mooring.cli.errors import input_error
from mooring.cli.simulate.plots import FONTS, Point, line_plot, node_map
from mooring.cli.simulate.run import (
    PlacementDifference,
    Row,
    as_csv,
    difference_lines,
    difference_rows,
    figure_table,
    policies_of,
    result_rows,
    sample_rows,
    seeds_line,
)
from mooring.simulator.simulation import SimulationResult
from mooring.simulator.workload import HOUR_S

EXTRA = "report"
PNG_WIDTH = 960
DIFFERENCES_IN_REPORT = 100
OVER_TIME = ("allocation_percent", "fragmentation_percent", "pending", "nodes", "nodes_used", "zone_skew")
"""Sampled figures whose name ends so have a plot."""
_TEXT_SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 50 20"><text y="15" {more}>M</text></svg>'


def write_folder(
    results: Sequence[SimulationResult],
    folder: str,
    scenario: str,
    diff: tuple[str, str] | None = None,
    differences: tuple[Sequence[PlacementDifference], int] = ((), 0),
) -> tuple[list[str], list[str]]:
    """Returns the names of the files, and notes about files that could not be written. Raises `InputError`."""
    target = Path(folder)
    tables = {"results": result_rows(results), "samples": sample_rows(results)}
    plots = plots_of(results)
    sections: list[tuple[str, Sequence[str]]] = []
    if diff is not None:
        found, compared = differences
        tables["differences"] = difference_rows(found, diff)
        sections.append(("Differences in placements", _difference_table(found, compared, diff)))
    files: dict[str, bytes] = {}
    notes: list[str] = []
    for name, rows in tables.items():
        files[f"{name}.csv"] = as_csv(rows).encode()
    for name, svg in plots.items():
        files[f"{name}.svg"] = svg.encode()
    files["report.html"] = as_html(results, scenario, plots, sections).encode()
    try:
        for name, rows in tables.items():
            if rows:
                files[f"{name}.parquet"] = _as_parquet(rows)
        drawn = _png_drawer()
        for name, svg in plots.items():
            files[f"{name}.png"] = drawn(svg)
    except ImportError:
        notes.append(f"no Parquet and PNG files; pip install 'mooring[{EXTRA}]' adds them")
    except LookupError as error:
        notes.append(f"no PNG files: {error}")
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (target / name).write_bytes(content)
    except OSError as error:
        raise input_error(f"cannot be written: {error.strerror or error}", folder) from error
    return list(files), notes


def plots_of(results: Sequence[SimulationResult]) -> dict[str, str]:
    """SVG plots by name."""
    samples = [sample for result in results for sample in result.samples]
    names = list(dict.fromkeys(name for sample in samples for name in sample))
    by_demand = any("demand_percent" in sample for sample in samples)
    across, x_title = ("demand_percent", "demand in % of the GPUs") if by_demand else ("time_s", "hours")
    plots: dict[str, str] = {}
    allocation = "gpu_allocation_percent" if by_demand else "cpu_allocation_percent"
    if allocation in names and (by_demand or "load_percent" in names):
        # Load rises and falls with time, and each sample is a point; demand only rises.
        lines = _mean_lines(results, across, allocation) if by_demand else _points(results, "load_percent", allocation)
        load = x_title if by_demand else "cpu requested by running and pending pods, in % of the cluster"
        title = f"{allocation.partition('_')[0]} allocation (%) over load"
        plots["allocation_over_load"] = line_plot(title, load, lines, is_scatter=not by_demand)
    if any(result.wait_percentiles_s for result in results):
        plots["waiting_times"] = _waiting_times(results)
    for name in names:
        if name.endswith(OVER_TIME) and not (by_demand and name == allocation):
            title = name.removesuffix("_percent").replace("_", " ") + (" (%)" if name.endswith("_percent") else "")
            plots[name] = line_plot(title, x_title, _mean_lines(results, across, name))
    for policy in policies_of(results):
        first = next(result for result in results if result.policy == policy)
        if any(first.node_maps):
            last = first.samples[-1][across] / (1 if by_demand else HOUR_S)
            end = f"{last:.4g} {'% demand' if by_demand else 'h'}"
            title = f"nodes over time: {policy}, seed {first.seed}"
            plots[f"nodes_{_file_name(policy)}"] = node_map(title, first.node_maps, "0", end)
    return plots


def as_html(
    results: Sequence[SimulationResult],
    scenario: str,
    plots: Mapping[str, str],
    sections: Sequence[tuple[str, Sequence[str]]],
) -> str:
    """The report: a page without scripts, readable on narrow screens and in dark mode."""
    seeds = ", ".join(str(seed) for seed in dict.fromkeys(result.seed for result in results))
    table = _html_table(figure_table(results))
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(scenario)}: mooring simulate</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(scenario)}</h1><p>mooring simulate {escape(__version__)}. Seeds: {escape(seeds)}.</p>",
        f"<h2>Figures</h2>{table}<p>{escape(seeds_line(results))}</p>",
        "<h2>Plots</h2>",
        f"<p>{escape('Means over seeds. ' if ',' in seeds else '')}Maps of nodes show the first seed.</p>",
        '<div class="plots">',
        *(f"<figure>{svg}</figure>" for svg in plots.values()),
        "</div>",
        *(f"<h2>{escape(title)}</h2>{''.join(parts)}" for title, parts in sections),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


_STYLE = (
    ":root{color-scheme:light dark;--paper:#fff;--ink:#212529;--line:#dee2e6}"
    "@media (prefers-color-scheme:dark){:root{--paper:#16191d;--ink:#dee2e6;--line:#343a40}}"
    "body{background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif;max-width:1200px;"
    "margin:0 auto;padding:16px}h1{font-size:1.4rem;overflow-wrap:anywhere}h2{font-size:1.1rem;margin-top:2rem}"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "th,td{padding:4px 12px 4px 0;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}"
    "th:first-child,td:first-child{text-align:left;position:sticky;left:0;background:var(--paper)}"
    ".plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));gap:16px}"
    "@media (max-width:600px){body{font-size:14px;padding:12px}td,th{white-space:normal;padding-right:8px}}"
    "figure{margin:0;border:1px solid var(--line)}svg{display:block;width:100%;height:auto}"
)


def _html_table(rows: Sequence[Sequence[str]]) -> str:
    def cells(tag: str, row: Sequence[str]) -> str:
        """Long names may be broken after an underscore."""
        return "".join(f"<{tag}>{escape(cell).replace('_', '_<wbr>')}</{tag}>" for cell in row)

    head, body = cells("th", rows[0]), "".join(f"<tr>{cells('td', row)}</tr>" for row in rows[1:])
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _difference_table(found: Sequence[PlacementDifference], compared: int, policies: tuple[str, str]) -> list[str]:
    first, second = policies
    parts = [f"<p>{escape(difference_lines(found, compared, policies)[0])}</p>"]
    if found:
        rows = [["pod", first, second, "seed"]]
        rows += [
            [difference.pod, *(node or "–" for node in difference.nodes), str(difference.seed)]
            for difference in found[:DIFFERENCES_IN_REPORT]
        ]
        shown = min(len(found), DIFFERENCES_IN_REPORT)
        parts.append(f"<details><summary>The first {shown} of them</summary>{_html_table(rows)}</details>")
    if len(found) > DIFFERENCES_IN_REPORT:
        parts.append("<p>differences.csv has all of them.</p>")
    return parts


def _waiting_times(results: Sequence[SimulationResult]) -> str:
    highest_s = max(max(result.wait_percentiles_s, default=0.0) for result in results)
    unit, unit_s = ("h", HOUR_S) if highest_s >= 2 * HOUR_S else ("min", 60.0) if highest_s >= 120 else ("s", 1.0)
    lines = {}
    for policy in policies_of(results):
        waits = [
            result.wait_percentiles_s for result in results if result.policy == policy and result.wait_percentiles_s
        ]
        means = np.mean(waits, axis=0) / unit_s if waits else ()
        lines[policy] = [(float(percent), float(wait)) for percent, wait in enumerate(means)]
    return line_plot(f"waiting time ({unit}) by percentile of pods", "percentile", lines)


def _mean_lines(results: Sequence[SimulationResult], across: str, name: str) -> dict[str, list[Point]]:
    """For each policy the mean over seeds, at the places of the first seed."""
    scale = HOUR_S if across == "time_s" else 1.0
    lines: dict[str, list[Point]] = {}
    for policy, seeds in _points_by_seed(results, across, name).items():
        places = [x for x, _ in seeds[0]]
        values = [np.interp(places, [x for x, _ in seed], [y for _, y in seed]) for seed in seeds]
        lines[policy] = [(x / scale, float(y)) for x, y in zip(places, np.mean(values, axis=0))]
    return lines


def _points(results: Sequence[SimulationResult], across: str, name: str) -> dict[str, list[Point]]:
    found = _points_by_seed(results, across, name)
    return {policy: [point for seed in seeds for point in seed] for policy, seeds in found.items()}


def _points_by_seed(results: Sequence[SimulationResult], across: str, name: str) -> dict[str, list[list[Point]]]:
    found: dict[str, list[list[Point]]] = {}
    for result in results:
        points = [(sample[across], sample[name]) for sample in result.samples if across in sample and name in sample]
        if points:
            found.setdefault(result.policy, []).append(points)
    return found


def _as_parquet(rows: Sequence[Row]) -> bytes:
    """Raises `ImportError` without pyarrow."""
    import pyarrow
    import pyarrow.parquet

    names = list(dict.fromkeys(name for row in rows for name in row))
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table({name: [row.get(name) for row in rows] for name in names}), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _png_drawer() -> Callable[[str], bytes]:
    """Raises `ImportError` without resvg, and `LookupError` if it finds no font: plots without numbers are no use."""
    from resvg_py import svg_to_bytes

    visible, invisible = (_TEXT_SVG.format(more=more) for more in (f'font-family="{FONTS}"', 'opacity="0"'))
    if svg_to_bytes(svg_string=visible) == svg_to_bytes(svg_string=invisible):
        raise LookupError("this machine has no fonts")

    def drawn(svg: str) -> bytes:
        content: bytes = svg_to_bytes(svg_string=svg, width=PNG_WIDTH)
        return content

    return drawn


def _file_name(policy: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in policy)
