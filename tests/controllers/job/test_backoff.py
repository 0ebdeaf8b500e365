"""How long a failed pod of a Job waits to be replaced."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mooring.api.views.pod import Pod
from mooring.controllers.job.backoff import (
    INDEX_FAILURES,
    INDEX_IGNORED_FAILURES,
    NO_FAILURES,
    FailureRecord,
    failure_annotations,
    finished_at_s,
    next_record,
    remaining_for_index_s,
    remaining_s,
)
from tests.controllers.batch_builders import job_pod, job_view
from tests.controllers.builders import NOW_S


def failed(ago_s: float, **parts: str) -> Pod:
    return job_pod(f"f{ago_s}", "Failed", exit_code=1, ended_ago_s=ago_s, annotations=parts)


def succeeded(ago_s: float) -> Pod:
    return job_pod(f"s{ago_s}", "Succeeded", exit_code=0, ended_ago_s=ago_s)


@pytest.mark.parametrize(
    ("known", "good", "bad", "expected"),
    [
        pytest.param(FailureRecord(2, 7.0), [], [], FailureRecord(2, 7.0), id="nothing new"),
        pytest.param(
            NO_FAILURES, [], [failed(9), failed(3)], FailureRecord(2, NOW_S - 3), id="two more, the last counts"
        ),
        pytest.param(FailureRecord(2, 7.0), [succeeded(5)], [], NO_FAILURES, id="a success begins anew"),
        pytest.param(
            FailureRecord(2, 7.0),
            [succeeded(5)],
            [failed(9), failed(3), failed(4)],
            FailureRecord(2, NOW_S - 3),
            id="what failed after it counts",
        ),
        pytest.param(FailureRecord(2, 7.0), [succeeded(1)], [failed(9)], NO_FAILURES, id="what failed before does not"),
    ],
)
def test_records(known: FailureRecord, good: Sequence[Pod], bad: Sequence[Pod], expected: FailureRecord) -> None:
    assert next_record(known, good, bad) == expected


@pytest.mark.parametrize(
    ("failures", "ago_s", "expected"),
    [(0, 0, 0.0), (1, 0, 10.0), (1, 4, 6.0), (2, 4, 16.0), (1, 40, 0.0), (9, 0, 600.0)],
)
def test_waiting(failures: int, ago_s: float, expected: float) -> None:
    assert remaining_s(failures, NOW_S - ago_s, NOW_S) == expected


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(None, 0.0, id="nobody failed yet"),
        pytest.param(failed(4), 6.0, id="the first"),
        pytest.param(failed(4, **{INDEX_FAILURES: "1", INDEX_IGNORED_FAILURES: "1"}), 36.0, id="after two"),
    ],
)
def test_waiting_for_an_index(pod: Pod | None, expected: float) -> None:
    assert remaining_for_index_s(pod, NOW_S) == expected


def test_the_count_travels_to_the_replacement() -> None:
    ignore = {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}}]}
    known = failed(0, **{INDEX_FAILURES: "2"})
    assert failure_annotations(job_view(), None) == {INDEX_FAILURES: "0"}
    assert failure_annotations(job_view(), known) == {INDEX_FAILURES: "3"}
    assert failure_annotations(job_view(podFailurePolicy=ignore), known) == {
        INDEX_FAILURES: "2",
        INDEX_IGNORED_FAILURES: "1",
    }


@pytest.mark.parametrize(
    ("pod", "ago_s"),
    [
        pytest.param(failed(30), 30, id="its containers ended"),
        pytest.param(job_pod("p", going=True), 0, id="its deletion"),
        pytest.param(job_pod("p"), 3600, id="its creation"),
    ],
)
def test_when_it_ended(pod: Pod, ago_s: float) -> None:
    assert finished_at_s(pod) == NOW_S - ago_s
