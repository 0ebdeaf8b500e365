"""The result of `mooring compare`: a table with a column for each configuration, JSON, and a plot as SVG.

1. A figure is the mean over the seeds; its spread (standard deviation) follows if it is not 0.
2. The plot has a row for each configuration and a bar for each node, in the same order everywhere: by the share under
   the first configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import msgspec

from mooring.cli.compare.run import ConfigurationComparison
from mooring.cli.terminal import counted
from mooring.scheduler.plan.compare import ConfigurationOutcome, Summary

PLOT_WIDTH = 960
PLOT_ROW = 120
PLOT_MARGIN = 28
COLOURS = ("#2563eb", "#d9480f", "#2b8a3e", "#862e9c", "#a61e4d")


def as_data(comparison: ConfigurationComparison) -> dict[str, Any]:
    """With the mean and the spread of each figure."""
    data: dict[str, Any] = msgspec.to_builtins(comparison)
    data["summary"] = {
        name: {title: msgspec.to_builtins(Summary.of(values)) for title, values in _figures(outcomes)}
        for name, outcomes in comparison.outcomes.items()
    }
    return data


def as_json(comparison: ConfigurationComparison) -> str:
    return msgspec.json.format(msgspec.json.encode(as_data(comparison)), indent=2).decode() + "\n"


def as_lines(comparison: ConfigurationComparison) -> Iterator[str]:
    """The table."""
    names = {config: _short(config) for config in comparison.outcomes}
    columns = {config: dict(_figures(outcomes)) for config, outcomes in comparison.outcomes.items()}
    titles = list(dict.fromkeys(title for figures in columns.values() for title in figures))
    seeds = len(next(iter(comparison.outcomes.values())))
    yield f"{counted(comparison.pods, 'pod')} on {counted(comparison.node_count, 'node')}, {counted(seeds, 'seed')}"
    rows = [["", *names.values()]]
    for title in titles:
        cells = [_cell(figures.get(title)) for figures in columns.values()]
        rows.append([title, *cells])
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    for row in rows:
        first, *others = (
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join((first, *others)).rstrip()
    yield comparison.bound.text


def _figures(outcomes: Sequence[ConfigurationOutcome]) -> Iterator[tuple[str, list[float]]]:
    """Every figure with its value for each seed."""

    def over(read: Callable[[ConfigurationOutcome], float]) -> list[float]:
        return [float(read(outcome)) for outcome in outcomes]

    yield "placed", over(lambda outcome: outcome.placed)
    yield "pending", over(lambda outcome: outcome.pending)
    for reason in sorted({reason for outcome in outcomes for reason in outcome.pending_by_reason}):
        yield f"  {reason}", [float(outcome.pending_by_reason.get(reason, 0)) for outcome in outcomes]
    yield "nodes used", over(lambda outcome: outcome.nodes_used)
    yield "nodes empty", over(lambda outcome: outcome.nodes_empty)
    for resource in outcomes[0].allocation_percent:
        yield f"allocated {resource} %", [outcome.allocation_percent[resource] for outcome in outcomes]
    for resource in outcomes[0].stranded_percent:
        yield f"stranded {resource} %", [outcome.stranded_percent[resource] for outcome in outcomes]
    yield "zone skew", over(lambda outcome: outcome.zone_skew)
    yield "pods that land elsewhere", over(lambda outcome: outcome.moved)


def _cell(values: list[float] | None) -> str:
    if values is None:
        return "0"
    summary = Summary.of(values)
    mean = f"{summary.mean:.1f}".removesuffix(".0")
    return f"{mean} ± {summary.spread:.1f}" if summary.spread >= 0.05 else mean


def _short(config: str) -> str:
    return Path(config).stem


def as_svg(comparison: ConfigurationComparison) -> str:
    """A bar for each node, under the first seed."""
    first = next(iter(comparison.outcomes.values()))[0].node_shares
    order = sorted(first, key=lambda name: (-first[name], name))
    height = PLOT_MARGIN + len(comparison.outcomes) * (PLOT_ROW + PLOT_MARGIN)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {PLOT_WIDTH} {height}" role="img"'
        ' font-family="system-ui, sans-serif" font-size="13">',
        "<title>Requested share of each node, by configuration</title>",
    ]
    width = PLOT_WIDTH / max(len(order), 1)
    for index, (config, outcomes) in enumerate(comparison.outcomes.items()):
        top = PLOT_MARGIN + index * (PLOT_ROW + PLOT_MARGIN)
        shares, outcome = outcomes[0].node_shares, outcomes[0]
        caption = f"{_short(config)}: {outcome.placed} placed, {outcome.pending} pending, {outcome.nodes_empty} empty"
        parts.append(f'<text x="0" y="{top - 8}" fill="#868e96">{escape(caption)}</text>')
        parts.append(f'<rect x="0" y="{top}" width="{PLOT_WIDTH}" height="{PLOT_ROW}" fill="#868e9622"/>')
        colour = COLOURS[index % len(COLOURS)]
        for place, name in enumerate(order):
            bar = PLOT_ROW * min(shares.get(name, 0.0), 1.0)
            parts.append(
                f'<rect x="{place * width:.2f}" y="{top + PLOT_ROW - bar:.1f}" width="{max(width * 0.85, 0.5):.2f}"'
                f' height="{bar:.1f}" fill="{colour}"><title>{escape(name)} {shares.get(name, 0.0):.0%}</title></rect>'
            )
    return "\n".join([*parts, "</svg>"]) + "\n"
