"""Results of benchmarks: written, compared with the baseline, shown."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from bench import check
from bench.check import SLOWED_WORKLOAD, SLOWER_MAX, Memory, SlowEngine, Verdict, cost_of, main, read_baseline
from bench.results import Figure, Level, Machine, Report, Result, SchedulerResult
from bench.suite import suite_names
from bench.workload import Size, read_workload
from mooring.scheduler.engine import Engine

LEVEL = Level(
    placed=10_000,
    pods=2_000,
    seconds=0.2,
    pods_per_second=10_000.0,
    pods_per_second_without_record=11_000.0,
    mean_us=100.0,
    p50_us=90.0,
    p99_us=200.0,
    longest_us=900.0,
    record_us=9.0,
    decode_us=10.0,
    cpu_share=1.0,
    loaded=10_000,
    load_us=30.0,
    resident_bytes=150 << 20,
)
RESULT = Result(name="plain", nodes=5_000, node_load_us=40.0, levels=(LEVEL,), peak_bytes=200 << 20)
SCHEDULER_RESULT = SchedulerResult(
    name="loop-plain",
    nodes=5_000,
    placed=10_000,
    waiting=0,
    pods=10_000,
    seconds=2.0,
    pods_per_second=5_000.0,
    mean_us=200.0,
    p50_ms=700.0,
    p99_ms=1_300.0,
    cpu_share=1.0,
    quiet_ms=12.0,
    resident_before_bytes=300_000_000,
    resident_after_bytes=420_000_000,
    resident_peak_bytes=430_000_000,
)
MACHINE = Machine(
    cpu="An Engine",
    cores=2,
    memory_bytes=8 << 30,
    system="Linux",
    python="CPython 3.11",
    numpy="2.0",
    msgspec="0.19",
    garbage_collection="on",
)
REPORT = Report(
    date="2026-01-12T08:00:00+00:00",
    commit="abc1234",
    has_uncommitted_changes=False,
    machine=MACHINE,
    results=(RESULT,),
    nodes_sweep=(RESULT,),
    placed_sweep=RESULT,
    through_scheduler=(SCHEDULER_RESULT,),
)


@pytest.mark.parametrize(
    ("target", "problems", "reaches"),
    [
        pytest.param(10_000, (), True, id="exactly the target is reached"),
        pytest.param(10_001, (), False, id="less is not"),
        pytest.param(None, (), None, id="without a target there is nothing to reach"),
        pytest.param(1, ("it went wrong",), False, id="what went wrong reaches nothing"),
    ],
)
def test_reaching_a_target(target: float | None, problems: tuple[str, ...], reaches: bool | None) -> None:
    result = msgspec.structs.replace(RESULT, target_pods_per_second=target, problems=problems)
    assert result.reaches_target is reaches


@pytest.mark.parametrize(
    ("changes", "reaches"),
    [
        pytest.param({}, None, id="without a target there is nothing to reach"),
        pytest.param({"target_pods_per_second": 5_000}, True, id="fast enough"),
        pytest.param({"target_pods_per_second": 5_001}, False, id="too slow"),
        pytest.param({"seconds_alone": 1.9, "slowdown_max": 1.1}, True, id="hardly slowed down"),
        pytest.param({"seconds_alone": 1.5, "slowdown_max": 1.1}, False, id="slowed down too much"),
        pytest.param(
            {"seconds_alone": 1.5, "slowdown_max": 1.1, "target_pods_per_second": 1},
            False,
            id="fast enough, and slowed down too much",
        ),
        pytest.param({"target_pods_per_second": 1, "problems": ("no",)}, False, id="what went wrong reaches nothing"),
    ],
)
def test_reaching_a_target_through_the_scheduler(changes: dict[str, object], reaches: bool | None) -> None:
    assert msgspec.structs.replace(SCHEDULER_RESULT, **changes).reaches_target is reaches


def test_what_follows_from_a_result_through_the_scheduler() -> None:
    assert SCHEDULER_RESULT.growth_bytes == 120_000_000
    assert SCHEDULER_RESULT.slowdown is None
    assert msgspec.structs.replace(SCHEDULER_RESULT, cpu_share=0.5).cpu_us == pytest.approx(100.0)
    assert msgspec.structs.replace(SCHEDULER_RESULT, seconds_alone=1.6).slowdown == pytest.approx(1.25)


@pytest.mark.parametrize(("cpu_share", "undisturbed"), [(1.0, True), (0.7, False)], ids=["alone", "not alone"])
def test_whether_the_machine_had_other_things_to_do(cpu_share: float, undisturbed: bool) -> None:
    assert msgspec.structs.replace(LEVEL, cpu_share=cpu_share).was_undisturbed is undisturbed


def test_a_report_can_be_written_and_read() -> None:
    assert msgspec.json.decode(msgspec.json.encode(REPORT), type=Report) == REPORT
    assert len(REPORT.all_results) == 4


# --- A figure beside its target --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("figure", "is_reached", "words"),
    [
        pytest.param(Figure("healed", 0.7, "s", at_most=15.0), True, "0.70 s    (at most 15)", id="quick enough"),
        pytest.param(Figure("healed", 15.1, "s", at_most=15.0), False, "(at most 15)   MISSED", id="too slow"),
        pytest.param(Figure("gets", 3_000, "/s", at_least=3_000), True, "(at least 3,000)", id="just enough"),
        pytest.param(Figure("gets", 2_999, "/s", at_least=3_000), False, "(at least 3,000)   MISSED", id="too few"),
        pytest.param(Figure("CPU a pod", 1.9, "ms"), True, "1.90 ms", id="for comparison only"),
    ],
)
def test_a_figure_stands_beside_its_target(figure: Figure, is_reached: bool, words: str) -> None:
    assert figure.is_reached is is_reached
    assert str(figure).startswith(figure.name)
    assert str(figure).endswith(words)


# --- The gate of `make bench-check`: it sees what is too slow or too large, and every workload has a baseline


SMALL = Size(nodes=50, placed=100, pods=100, warm_up=20)


@pytest.mark.parametrize(
    ("value", "is_within"),
    [
        pytest.param(1.5, True, id="at the limit"),
        pytest.param(1.6, False, id="above the limit"),
        pytest.param(0.3, True, id="faster than the baseline"),
    ],
)
def test_a_limit_is_a_multiple_of_the_baseline(value: float, is_within: bool) -> None:
    assert Verdict("plain", value, 1.0, SLOWER_MAX).is_within is is_within


def test_every_workload_of_the_engine_has_a_baseline() -> None:
    assert set(read_baseline().costs) == set(suite_names("engine"))


def test_a_slower_engine_costs_more() -> None:
    workload = read_workload(SLOWED_WORKLOAD)
    as_it_is = min(cost_of(workload, SMALL) for _ in range(3))
    assert cost_of(workload, SMALL, SlowEngine) > SLOWER_MAX * as_it_is


def call(monkeypatch: pytest.MonkeyPatch, cost: float, slow_cost: float, memory: Memory) -> tuple[int, str]:
    """The command with measured values of the test, as multiples of the baseline."""
    baseline = read_baseline()

    def measured(workload: object, size: object, engine_class: type[Engine] = Engine) -> float:
        return baseline.costs["plain"] * (slow_cost if engine_class is SlowEngine else cost)

    monkeypatch.setattr(check, "cost_of", measured)
    monkeypatch.setattr(check, "memory_of", lambda workload: memory)
    done = CliRunner().invoke(main, ["plain"])
    return done.exit_code, done.output


@pytest.mark.parametrize(
    ("cost", "slow_cost", "larger", "code", "text"),
    [
        pytest.param(1.0, 4.0, 1.0, 0, "1.00 times the baseline", id="as the baseline"),
        pytest.param(1.7, 4.0, 1.0, 1, "above the limit: plain", id="too slow"),
        pytest.param(1.0, 4.0, 1.4, 1, "above the limit: bytes per node, bytes per pod", id="too large"),
        pytest.param(1.0, 1.1, 1.0, 1, "the gate is blind", id="a slow engine goes unnoticed"),
    ],
)
def test_exit_codes(
    monkeypatch: pytest.MonkeyPatch, cost: float, slow_cost: float, larger: float, code: int, text: str
) -> None:
    baseline = read_baseline()
    memory = Memory(int(baseline.bytes_per_node * larger), int(baseline.bytes_per_pod * larger))
    found, output = call(monkeypatch, cost, slow_cost, memory)
    assert found == code, output
    assert text in output


def test_a_workload_above_the_limit_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = iter([9.0, 1.2, 9.0])
    monkeypatch.setattr(check, "cost_of", lambda *_: next(measured))
    assert check.compare("plain", 1.0).value == 1.2


def test_a_missing_baseline_says_how_to_write_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(check, "BASELINE", tmp_path / "baseline.json")
    done = CliRunner().invoke(main, ["plain"])
    assert done.exit_code == 1
    assert "python -m bench.check --write" in done.output


def test_the_baseline_names_its_commit_and_machine() -> None:
    written = msgspec.json.decode(check.BASELINE.read_bytes())
    assert written["commit"]
    assert written["machine"]["cores"] > 0
