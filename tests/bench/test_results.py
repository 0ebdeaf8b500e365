"""Results: what follows from the figures."""

from __future__ import annotations

import msgspec
import pytest

from bench.results import Level, Machine, Report, Result

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


def test_the_ratio_to_kube_scheduler() -> None:
    assert msgspec.structs.replace(RESULT, kube_scheduler_ms=2.2).times_kube_scheduler == pytest.approx(22.0)
    assert RESULT.times_kube_scheduler is None


@pytest.mark.parametrize(("cpu_share", "undisturbed"), [(1.0, True), (0.7, False)], ids=["alone", "not alone"])
def test_whether_the_machine_had_other_things_to_do(cpu_share: float, undisturbed: bool) -> None:
    assert msgspec.structs.replace(LEVEL, cpu_share=cpu_share).was_undisturbed is undisturbed


def test_a_report_can_be_written_and_read() -> None:
    assert msgspec.json.decode(msgspec.json.encode(REPORT), type=Report) == REPORT
    assert len(REPORT.all_results) == 3
