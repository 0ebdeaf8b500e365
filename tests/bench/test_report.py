"""The report: a history file, plots, and pages that keep the text around the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from bench.report import BEGIN, END, readme_text, results_text, scheduler_table, table, with_results, write_report
from bench.results import Figure, Report, Section
from mooring.cli.simulate.plots import Axis, Point, line_plot
from tests.bench.test_results import LEVEL, REPORT, RESULT, SCHEDULER_RESULT


@pytest.mark.parametrize(
    ("page", "written"),
    [
        pytest.param("# Page\n", f"# Page\n\n{BEGIN}\n\nnew\n\n{END}\n", id="a page without marks gets them"),
        pytest.param(f"a\n{BEGIN}\nold\n{END}\nb\n", f"a\n{BEGIN}\n\nnew\n\n{END}\nb\n", id="only between the marks"),
    ],
)
def test_the_page(page: str, written: str) -> None:
    assert with_results(page, "new") == written
    assert with_results(written, "new") == written


@pytest.mark.parametrize(
    ("changes", "cell"),
    [
        pytest.param({"target_pods_per_second": 9_000}, "| **10,000** | 9,000 | reached |", id="reached"),
        pytest.param({"target_pods_per_second": 12_000}, "| 12,000 | missed |", id="missed"),
        pytest.param({"problems": ("no",)}, "|  | wrong |", id="wrong"),
    ],
)
def test_a_line_of_the_table(changes: dict[str, object], cell: str) -> None:
    line = list(table([msgspec.structs.replace(RESULT, **changes)]))[-1]
    assert cell in line


@pytest.mark.parametrize(
    ("changes", "cell"),
    [
        pytest.param({"target_pods_per_second": 4_000}, "| **5,000** | 4,000 |  |  |  | reached |", id="reached"),
        pytest.param({"target_pods_per_second": 6_000}, "| 6,000 |  |  |  | missed |", id="missed"),
        pytest.param(
            {"seconds_alone": 1.6, "cpu_slowdown": 1.2, "slowdown_max": 1.1},
            "|  | 1.25 × | 1.20 × | 1.10 × | missed |",
            id="slowed down too much",
        ),
        pytest.param({"problems": ("no",)}, "|  | wrong |", id="wrong"),
        pytest.param({}, "| 200 | 200 | 700 | 1,300 | 12 | 120 | 130 |", id="times and memory"),
    ],
)
def test_a_line_of_the_table_through_the_scheduler(changes: dict[str, object], cell: str) -> None:
    line = list(scheduler_table([msgspec.structs.replace(SCHEDULER_RESULT, **changes)]))[-1]
    assert cell in line


@pytest.mark.parametrize(
    ("report", "sentence"),
    [
        pytest.param(REPORT, "commit abc1234 ([all figures](../bench/history/x.json))", id="where the figures are"),
        pytest.param(REPORT, "- An Engine, 2 cores, 8 GiB, Linux", id="the machine"),
        pytest.param(
            msgspec.structs.replace(REPORT, has_uncommitted_changes=True),
            "abc1234 with uncommitted changes",
            id="uncommitted changes",
        ),
        pytest.param(
            msgspec.structs.replace(REPORT, results=(msgspec.structs.replace(RESULT, problems=("2 < 1",)),)),
            "**plain went wrong**: 2 < 1.",
            id="what went wrong",
        ),
        pytest.param(
            msgspec.structs.replace(
                REPORT,
                results=(msgspec.structs.replace(RESULT, levels=(msgspec.structs.replace(LEVEL, cpu_share=0.5),)),),
            ),
            "the machine had other things to do (share of the CPU): plain (50%).",
            id="disturbances",
        ),
        pytest.param(REPORT, "### Through the scheduler\n\nOn 5,000 nodes", id="a table of its own"),
        pytest.param(
            msgspec.structs.replace(
                REPORT, through_scheduler=(msgspec.structs.replace(SCHEDULER_RESULT, cpu_share=0.5),)
            ),
            "(share of the CPU): loop-plain (50%).",
            id="disturbances of the scheduler",
        ),
    ],
)
def test_what_the_page_says(report: Report, sentence: str) -> None:
    assert sentence in results_text(report, "x.json")


def test_everything_is_written(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"# Mooring\n\n{BEGIN}\nold\n{END}\n\nMore.\n")
    path = write_report(REPORT, tmp_path / "history", tmp_path / "docs", readme)
    assert path.name == "2026-01-12-abc1234.json"
    assert msgspec.json.decode(path.read_bytes(), type=Report) == REPORT
    plots = sorted(plot.name for plot in (tmp_path / "docs" / "plots").iterdir())
    assert plots == ["cost-against-nodes.svg", "cost-against-placed-pods.svg"]
    assert "| 10,000 | 10,000 | 100 |" in (tmp_path / "docs" / "benchmarks.md").read_text()
    quoted = readme.read_text()
    assert quoted.startswith("# Mooring\n")
    assert quoted.endswith("More.\n")
    assert "old" not in quoted
    assert "Measured on 2026-01-12, commit abc1234" in quoted


@pytest.mark.parametrize(
    ("runs", "quoted"),
    [
        pytest.param((9_500.0, 9_800.0, 10_000.0), "9,500 to 10,000 pods/s", id="several runs: slowest and fastest"),
        pytest.param((10_000.0,), "10,000 pods/s", id="one run"),
        pytest.param((), "10,000 pods/s", id="an old report"),
    ],
)
def test_the_readme_quotes_a_range(runs: tuple[float, ...], quoted: str) -> None:
    result = msgspec.structs.replace(RESULT, name="plain", runs=runs)
    lines = readme_text(msgspec.structs.replace(REPORT, results=(result,))).splitlines()
    assert f"| deciding on 5,000 nodes, plain pods | {quoted} |" in lines


def test_figures_of_whole_processes_are_a_table() -> None:
    figures = (Figure("single gets", 5_000.0, "/s", at_least=3_000), Figure("idle", 30.0, "%", at_most=20.0))
    report = msgspec.structs.replace(
        REPORT, sections=(Section("The API server", "python -m bench.apiserver", figures),)
    )
    text = results_text(report, "x.json")
    assert "| single gets | 5,000 /s | at least 3,000 | reached |" in text
    assert "| idle | 30.0 % | at most 20 | missed |" in text


# --- Plots: well-formed, alone, and the same every time --------------------------------------------------------------


SVG = "{http://www.w3.org/2000/svg}"
LINES = {"plain": [(100, 30.0), (1_000, 60.0), (100_000, 900.0)], "them": [(5_000, 2_200.0)]}


def drawn(lines: Mapping[str, Sequence[Point]]) -> ElementTree.Element:
    return ElementTree.fromstring(line_plot("Cost & more", "nodes", lines, is_logarithmic=True))


def texts(root: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in root.iter(f"{SVG}text")]


def test_a_plot_has_its_titles_its_names_and_its_powers_of_ten() -> None:
    assert {"Cost & more", "nodes", "plain", "them", "100", "1000", "10k", "100k"} <= set(texts(drawn(LINES)))


def test_a_line_goes_through_its_points() -> None:
    root = drawn(LINES)
    assert len(list(root.iter(f"{SVG}circle"))) == 4
    assert len(list(root.iter(f"{SVG}polyline"))) == 2


def test_the_same_points_give_the_same_bytes() -> None:
    assert line_plot("t", "x", LINES, is_logarithmic=True) == line_plot("t", "x", LINES, is_logarithmic=True)


def test_a_point_says_its_values() -> None:
    hints = [circle.findtext(f"{SVG}title") for circle in drawn(LINES).iter(f"{SVG}circle")]
    assert hints == ["plain: 100, 30", "plain: 1000, 60", "plain: 100k, 900", "them: 5000, 2200"]


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
    assert len(list(drawn({"s": points}).iter(f"{SVG}circle"))) == count


def test_names_of_many_lines_do_not_overlap() -> None:
    names = [f"a workload with a long name, {number}" for number in range(3)]
    root = drawn({name: [(10, 100.0), (100, 100.0)] for name in names})
    heights = sorted(float(t.get("y", "0")) for t in root.iter(f"{SVG}text") if t.text in names)
    assert len(heights) == 3
    assert all(below - above >= 12 for above, below in pairwise(heights))


@pytest.mark.parametrize(("value", "place"), [(1, 0.0), (10, 50.0), (100, 100.0)])
def test_places_on_an_axis(value: float, place: float) -> None:
    assert Axis(1, 100, 0.0, 100.0, is_logarithmic=True).at(value) == pytest.approx(place)
