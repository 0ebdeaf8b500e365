"""The gate of `make bench-check`: it sees what is too slow or too large, and every workload has a baseline."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from bench import check
from bench.check import SLOWED_WORKLOAD, SLOWER_MAX, Memory, SlowEngine, Verdict, cost_of, main, read_baseline
from bench.suite import suite_names
from bench.workload import Size, read_workload
from mooring.scheduler.engine import Engine

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
