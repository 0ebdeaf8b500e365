"""The decision log: records are read as they were written, and the file stays within its limits."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.scheduler.config import load_configuration
from mooring.scheduler.engine import Engine
from mooring.scheduler.reporting.decision_log import DecisionLog, DecisionLogError, read_log
from mooring.scheduler.reporting.decision_records import BOUND, DecisionRecords
from tests.builders import node, pod


@pytest.fixture
def engine() -> Engine:
    engine = Engine(load_configuration(None), entropy=Entropy(1), best_nodes_max=2)
    engine.put(node("n1"))
    engine.put(node("n2"))
    return engine


def test_records_and_their_bindings_survive_in_the_file(tmp_path: Path, engine: Engine) -> None:
    path, clock = tmp_path / "decisions.db", VirtualClock()
    log, records = DecisionLog(path, clock), DecisionRecords(clock)
    log.attach(records)
    web, large = engine.record(pod("web", cpu=1)), engine.record(pod("large", cpu=99))
    records.add(engine.decide(large), 1, 0.001)
    records.add(engine.decide(large), 2, 0.001, "NodeAdd")
    records.add(engine.decide(web), 1, 0.001)
    log.flush()
    records.bound(web.uid, BOUND)
    log.flush()
    (placed,) = read_log(path, "default/web", 10)
    assert (placed.node is not None, placed.binding) == (True, BOUND)
    assert placed.best_nodes[0].scores["NodeResourcesFit"] > 0
    rejected = read_log(path, "default/large", 10)
    assert [(record.attempt, record.requeued_by) for record in rejected] == [(2, "NodeAdd"), (1, "")]
    assert rejected[0].rejections[0].reason == "Insufficient cpu"
    assert [record.attempt for record in read_log(path, "default/large", 1)] == [2]
    assert DecisionLog(path, clock) is not None  # a file that exists is opened again


def test_old_records_are_dropped(tmp_path: Path, engine: Engine) -> None:
    path, clock = tmp_path / "decisions.db", VirtualClock()
    log, records = DecisionLog(path, clock, age_s_max=60.0), DecisionRecords(clock)
    log.attach(records)
    web = engine.record(pod("web"))

    async def live() -> None:
        records.add(engine.decide(web), 1, 0.0)
        log.flush()
        await clock.wait(100.0)
        records.add(engine.decide(web), 2, 0.0)
        log.flush()

    run(live(), clock)
    assert [record.attempt for record in read_log(path, "default/web", 10)] == [2]


def test_a_file_that_is_too_large_loses_its_oldest_records(tmp_path: Path, engine: Engine) -> None:
    path, clock = tmp_path / "decisions.db", VirtualClock()
    log, records = DecisionLog(path, clock, bytes_max=100_000), DecisionRecords(clock)
    log.attach(records)
    decision = engine.decide(engine.record(pod("web", cpu=99)))
    for attempt in range(2_000):
        records.add(decision, attempt, 0.0)
        if attempt % 50 == 0:
            log.flush()
    log.flush()
    kept = [record.attempt for record in read_log(path, "default/web", 10_000)]
    assert kept[0] == 1_999
    assert 0 < len(kept) < 1_000


def test_the_last_records_are_written_when_the_scheduler_stops(tmp_path: Path, engine: Engine) -> None:
    path, clock = tmp_path / "decisions.db", VirtualClock()
    log, records = DecisionLog(path, clock), DecisionRecords(clock)
    log.attach(records)

    async def live() -> None:
        async with TaskGroup("test") as group:
            group.start_background(log.run(), name="log")
            await clock.wait(5.0)
            records.add(engine.decide(engine.record(pod("web"))), 1, 0.0)

    run(live(), clock)
    assert len(read_log(path, "default/web", 10)) == 1


def test_errors_name_the_file(tmp_path: Path) -> None:
    with pytest.raises(DecisionLogError, match="there is no file"):
        read_log(tmp_path / "none", "a/b", 1)
    (tmp_path / "text").write_text("not a database, but long enough to be read as one" * 100)
    with pytest.raises(DecisionLogError, match="is no decision log"):
        read_log(tmp_path / "text", "a/b", 1)
    with pytest.raises(DecisionLogError, match="cannot write the decision log"):
        DecisionLog(tmp_path / "no" / "folder", VirtualClock())


def test_a_disk_that_fails_stops_nothing(tmp_path: Path, engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    path, clock = tmp_path / "decisions.db", VirtualClock()
    log, records = DecisionLog(path, clock), DecisionRecords(clock)
    log.attach(records)
    with sqlite3.connect(path) as database:
        database.execute("DROP TABLE decisions")
    for attempt in range(3):
        records.add(engine.decide(engine.record(pod("web"))), attempt, 0.0)
        log.flush()
    assert [record.getMessage() for record in caplog.records] == [
        "decision log: 1 records were not written: no such table: decisions"
    ]


@pytest.mark.parametrize("raw", [b"", b"\xff\xff", b"\x80", "text"])
def test_a_record_that_is_damaged_is_an_error_with_the_file(tmp_path: Path, raw: bytes | str) -> None:
    path = tmp_path / "decisions #1?.db"
    DecisionLog(path, VirtualClock())
    with sqlite3.connect(path) as database:
        database.execute("INSERT INTO decisions VALUES (1, 1.0, 'default/web', 'u', 1, '', ?)", (raw,))
    with pytest.raises(DecisionLogError, match="has a record that cannot be read"):
        read_log(path, "default/web", 10)


def test_a_file_with_much_else_and_no_record_is_no_failure(tmp_path: Path, engine: Engine) -> None:
    """Old records were just dropped, and another program has filled the file."""
    path, clock = tmp_path / "shared.db", VirtualClock()
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE other AS SELECT zeroblob(100000) AS data")
    log, records = DecisionLog(path, clock, age_s_max=-1.0, bytes_max=1), DecisionRecords(clock)
    log.attach(records)
    records.add(engine.decide(engine.record(pod("web"))), 1, 0.0)
    log.flush()
    assert read_log(path, "default/web", 10) == []
