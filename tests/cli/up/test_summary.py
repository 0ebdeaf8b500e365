"""What `mooring up --from` prints."""

from __future__ import annotations

from collections import Counter

import pytest

from mooring.cli.up.summary import FAILURES_SHOWN_MAX, clone_lines, wrapped
from mooring.cluster.clone import CloneReport

NOTHING = "cloned 0 nodes, 0 pods, 0 other objects in 4.0 s"


@pytest.mark.parametrize(
    ("report", "lines"),
    [
        pytest.param(
            CloneReport(
                cloned=Counter(Node=1_200, Pod=3_400, Deployment=1),
                pods=Counter(bound=3_380, pending=20),
                nodes_not_ready=2,
            ),
            ["cloned 1,200 nodes (2 not ready), 3,400 pods (3,380 bound, 20 pending), 1 other object in 4.0 s"],
            id="all is well",
        ),
        pytest.param(
            CloneReport(added=[f"Namespace n{number}" for number in range(7)], ownerless=Counter(Pod=3)),
            [
                NOTHING,
                "  added, as the dump names but does not contain them: "
                "Namespace n0, Namespace n1, Namespace n2, Namespace n3, Namespace n4 and 2 more",
                "  without their owners, which are not in the dump: 3 Pod",
            ],
            id="a partial dump",
        ),
        pytest.param(
            CloneReport(
                left_out={"this API server has no such kind": Counter(Ingress=3, Event=12)}, failures=["Pod a: no"]
            ),
            [
                NOTHING,
                "  not taken over: 12 Event, 3 Ingress (this API server has no such kind)",
                "  not taken over: Pod a: no",
            ],
            id="not everything is taken over",
        ),
        pytest.param(
            CloneReport(failures=["Pod a: no"] * (FAILURES_SHOWN_MAX + 5)),
            [NOTHING, *["  not taken over: Pod a: no"] * FAILURES_SHOWN_MAX, "  not taken over: 5 more"],
            id="many failures",
        ),
    ],
)
def test_lines(report: CloneReport, lines: list[str]) -> None:
    assert list(clone_lines(report, 4.0)) == lines


def test_a_narrow_terminal() -> None:
    assert wrapped("  not taken over: 12 Event, 3 Ingress (no such kind)", 30).splitlines() == [
        "  not taken over: 12 Event, 3",
        "    Ingress (no such kind)",
    ]
