"""Draws the plots of examples/simulations/fgd: our runs, and the figures of the authors as crosses.

    mooring simulate examples/simulations/fgd/experiment.yaml --set nodes=… --set pods=… --output DIR
    python tools/plot_fgd.py DIR/samples.csv docs/plots

The authors' figures are those of the default trace, means of ten seeds.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

from mooring.cli.simulate.plots import Point, line_plot

AUTHORS_ALLOCATION = {
    "Random": (86.30, 87.47),
    "DotProd": (90.62, 90.85),
    "GpuClustering": (91.65, 91.88),
    "GpuPacking": (91.78, 92.00),
    "BestFit": (92.86, 93.08),
    "FGD": (95.23, 95.39),
}
"""At 100 and 130 % demand."""
AUTHORS_FRAGMENTATION = {
    "Random": (15.10, 14.48, 13.49, 12.43),
    "DotProd": (12.09, 9.43, 9.30, 9.08),
    "GpuClustering": (12.11, 8.45, 8.21, 8.00),
    "GpuPacking": (12.01, 8.37, 8.13, 7.91),
    "BestFit": (10.81, 7.41, 7.05, 6.85),
    "FGD": (8.93, 5.00, 4.73, 4.57),
}
"""At 50, 90, 100 and 130 % demand."""
X_TITLE = "demand in % of the GPUs; crosses: the authors' figures"


def mean_lines(rows: list[dict[str, str]], column: str, from_percent: float) -> dict[str, list[Point]]:
    """For each policy the mean over seeds, at every percent of demand."""
    seeds: dict[tuple[str, str], list[Point]] = {}
    for row in rows:
        seeds.setdefault((row["policy"], row["seed"]), []).append((float(row["demand_percent"]), float(row[column])))
    places = np.arange(from_percent, 131)
    lines: dict[str, list[Point]] = {}
    for policy in dict.fromkeys(row["policy"] for row in rows):
        of_seeds = [sorted(points) for (name, _), points in seeds.items() if name == policy]
        values = [np.interp(places, [x for x, _ in points], [y for _, y in points]) for points in of_seeds]
        lines[policy] = [(float(x), float(y)) for x, y in zip(places, np.mean(values, axis=0))]
    return lines


def main(samples: Path, folder: Path) -> None:
    with samples.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    allocation = line_plot(
        "GPU allocation (%)",
        X_TITLE,
        mean_lines(rows, "gpu_allocation_percent", 80),
        marks={name: list(zip((100.0, 130.0), values)) for name, values in AUTHORS_ALLOCATION.items()},
        y_low=75,
    )
    fragmentation = line_plot(
        "fragmented GPUs (%)",
        X_TITLE,
        mean_lines(rows, "fragmentation_percent", 0),
        marks={name: list(zip((50.0, 90.0, 100.0, 130.0), values)) for name, values in AUTHORS_FRAGMENTATION.items()},
    )
    (folder / "fgd-allocation.svg").write_text(allocation, encoding="utf-8")
    (folder / "fgd-fragmentation.svg").write_text(fragmentation, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
