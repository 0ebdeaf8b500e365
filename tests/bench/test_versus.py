"""The comparison of two schedulers, with our own API server and our own scheduler on both sides, and its pages."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from click.testing import CliRunner

from bench.client import dechunked
from bench.machine import describe_machine
from bench.versus.__main__ import JSON_FILE, ROOT, compare_on, main, size_for, write_pages
from bench.versus.cluster import Binaries
from bench.versus.report import BEGIN, END, page_text, plot, readme_text, table
from bench.versus.results import KUBE_SCHEDULER, MOORING, ApiPath, Comparison, Round, WorkloadComparison, spread
from bench.workload import Size, read_workload


def round_of(scheduler: str, seconds: float, cpu_ms: float) -> Round:
    return Round(
        scheduler=scheduler,
        pods=100,
        bound=100,
        seconds=seconds,
        p50_ms=10.0,
        p99_ms=20.0,
        scheduler_cpu_ms=cpu_ms,
        api_server_cpu_ms=5.0,
        store_cpu_ms=1.0,
        resident_bytes=80_000_000,
    )


PLAIN = WorkloadComparison(
    workload="plain",
    nodes=1_000,
    placed=1_000,
    pods=100,
    rounds=(
        *(round_of(MOORING, 0.5, 0.5), round_of(KUBE_SCHEDULER, 1.0, 2.0)),
        *(round_of(MOORING, 0.4, 0.6), round_of(KUBE_SCHEDULER, 1.25, 2.4)),
        *(round_of(MOORING, 0.25, 0.7), round_of(KUBE_SCHEDULER, 0.8, 2.8)),
    ),
    api_path=(ApiPath(pods=100, create_s=0.1, bind_s=0.1),),
)
COMPARISON = Comparison(
    date="2026-11-18T12:00:00+00:00",
    commit="abc1234",
    has_uncommitted_changes=False,
    machine=describe_machine(),
    etcd="3.4.23",
    api_server="kube-apiserver v1.36.4",
    kube_scheduler="v1.36.4",
    command="python -m bench.versus",
    workloads=(PLAIN,),
)


def test_both_sides_bind_every_pod(tmp_path: Path) -> None:
    size = Size(nodes=12, placed=12, pods=6, warm_up=1)
    compared = compare_on(read_workload("preemption"), size, Binaries("", "", ""), 1, tmp_path)
    assert [measured.scheduler for measured in compared.rounds] == [MOORING, KUBE_SCHEDULER]
    for measured in compared.rounds:
        assert measured.bound == measured.pods == 6
        assert 0 <= measured.p50_ms <= measured.p99_ms
        assert min(measured.scheduler_cpu_ms, measured.api_server_cpu_ms, measured.resident_bytes, measured.seconds) > 0
    assert compared.api_path[0].bindings_per_second > compared.api_path[0].pods_per_second > 0


def test_a_table_has_the_medians_and_the_share_of_the_api_path() -> None:
    lines = list(table(COMPARISON))
    assert "| mooring | **250** (200 to 400) | 50% | 0.60 | 5.00 | 10 | 20 | 80 |" in lines[2]
    assert "| kube-scheduler | **100** (80 to 125) | 20% | 2.40 |" in lines[3]
    assert "500 created and bound; 1,000 bindings alone" in lines[4]
    assert "| plain pods, 1,000 nodes | 250 pods/s | 100 pods/s | 0.60 ms and 2.40 ms: 4.0 × |" in readme_text(
        COMPARISON
    )


def test_the_plot_is_svg() -> None:
    assert ElementTree.fromstring(plot(COMPARISON)).tag.endswith("svg")


def test_only_the_text_between_the_marks_is_written(tmp_path: Path) -> None:
    for folder in ("bench", "docs/plots"):
        (tmp_path / folder).mkdir(parents=True)
    for page in ("docs/benchmarks.md", "README.md"):
        (tmp_path / page).write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_pages(COMPARISON, tmp_path)
    text = (tmp_path / "docs/benchmarks.md").read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert msgspec.json.decode((tmp_path / "bench" / JSON_FILE).read_bytes(), type=Comparison) == COMPARISON


def test_the_pages_of_the_project_are_those_of_its_figures() -> None:
    comparison = msgspec.json.decode((ROOT / "bench" / JSON_FILE).read_bytes(), type=Comparison)
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert page_text(comparison, f"../bench/{JSON_FILE}", "plots/versus.svg") in page
    assert readme_text(comparison) in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param([], "--etcd BIN is missing", id="no binary"),
        pytest.param(["--etcd", "/nowhere/etcd"], "--etcd: cannot run /nowhere/etcd", id="no such binary"),
        pytest.param(["--etcd", "/bin/false"], "ended with code 1", id="another binary"),
    ],
)
def test_missing_binaries(arguments: list[str], text: str) -> None:
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 2
    assert text in done.output


@pytest.mark.parametrize(
    ("name", "size"),
    [
        pytest.param("plain", Size(nodes=10, placed=5, pods=40, warm_up=3), id="as asked for"),
        pytest.param(
            "preemption", Size(nodes=10, placed=5, placed_per_node=4, pods=5, warm_up=3), id="a node for each pod"
        ),
    ],
)
def test_the_size_of_a_workload(name: str, size: Size) -> None:
    assert size_for(read_workload(name), Size(nodes=10, placed=5, pods=40, warm_up=3)) == size


@pytest.mark.parametrize(
    ("data", "found"),
    [
        pytest.param(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nrest", (b"abcde", 20), id="two chunks"),
        pytest.param(b"3\r\nabc\r\n0\r\n", None, id="the end is missing"),
        pytest.param(b"a\r\nabc", None, id="part of a chunk"),
    ],
)
def test_chunked_bodies(data: bytes, found: tuple[bytes, int] | None) -> None:
    assert dechunked(data, 0) == found


def test_a_spread() -> None:
    found = spread([3.0, 1.0, 2.0])
    assert (found.median, found.least, found.most) == (2.0, 1.0, 3.0)
