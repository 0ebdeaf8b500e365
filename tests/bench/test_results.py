"""Results, and figures with their targets."""

from __future__ import annotations

import msgspec
import pytest

from bench.figure import Figure
from bench.results import Level, Machine, Report, Result, SchedulerResult

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
        pytest.param(Figure("healed", 0.7, "s", at_most=15.0), True, "0.70 s    (at most 15.00)", id="quick enough"),
        pytest.param(Figure("healed", 15.1, "s", at_most=15.0), False, "(at most 15.00)   MISSED", id="too slow"),
        pytest.param(Figure("gets", 3_000, "/s", at_least=3_000), True, "(at least 3,000.00)", id="just enough"),
        pytest.param(Figure("gets", 2_999, "/s", at_least=3_000), False, "(at least 3,000.00)   MISSED", id="too few"),
        pytest.param(Figure("CPU a pod", 1.9, "ms"), True, "1.90 ms", id="for comparison only"),
    ],
)
def test_a_figure_stands_beside_its_target(figure: Figure, is_reached: bool, words: str) -> None:
    assert figure.is_reached is is_reached
    assert str(figure).startswith(figure.name)
    assert str(figure).endswith(words)
