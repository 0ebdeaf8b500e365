"""What a failure says, and what becomes of the pod: each kind of end in one row."""

from __future__ import annotations

import pytest

from mooring.scheduler.cycle.decision import Decision, PreemptionPlan
from mooring.scheduler.failure import (
    Failure,
    failed_with_error,
    rejected_in_binding,
    rejected_in_cycle,
    rejected_on_node,
)
from mooring.scheduler.framework.status import Code, Status
from tests.builders import node, pod
from tests.scheduler.harness import engine_of

RECORD = engine_of(node("n1")).record(pod("web"))
FIT = frozenset(("NodeResourcesFit",))


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        pytest.param(
            rejected_in_cycle(Decision(RECORD, message="0/1 nodes", unschedulable_plugins=FIT)),
            Failure("0/1 nodes", is_error=False, plugin="NodeResourcesFit", unschedulable_plugins=FIT),
            id="no node: the nomination is kept",
        ),
        pytest.param(
            rejected_in_cycle(Decision(RECORD, message="0/1 nodes", unschedulable_plugins=FIT, clears_nomination=True)),
            Failure(
                "0/1 nodes", is_error=False, plugin="NodeResourcesFit", unschedulable_plugins=FIT, nominated_node=""
            ),
            id="no node, and preemption does not help: the nomination is cleared",
        ),
        pytest.param(
            rejected_in_cycle(
                Decision(RECORD, message="0/1 nodes", unschedulable_plugins=FIT, preemption=PreemptionPlan("n1", ()))
            ),
            Failure(
                "0/1 nodes", is_error=False, plugin="NodeResourcesFit", unschedulable_plugins=FIT, nominated_node="n1"
            ),
            id="preemption finds a node",
        ),
        pytest.param(
            rejected_in_cycle(Decision(RECORD, message="oops", error="filter")),
            Failure("oops", is_error=True),
            id="the cycle failed",
        ),
        pytest.param(
            rejected_on_node(Status(Code.UNSCHEDULABLE, ("not today",), "Quota")),
            Failure(
                "0/1 nodes are available: 1 not today.",
                is_error=False,
                plugin="Quota",
                unschedulable_plugins=frozenset(("Quota",)),
                nominated_node="",
            ),
            id="Reserve or Permit rejected it: unschedulable until an event of the plugin",
        ),
        pytest.param(
            rejected_on_node(Status(Code.PENDING, ("waiting",), "Quota")),
            Failure(
                "0/1 nodes are available: 1 waiting.",
                is_error=False,
                plugin="Quota",
                pending_plugins=frozenset(("Quota",)),
                nominated_node="",
            ),
            id="a pending plugin",
        ),
        pytest.param(
            rejected_in_binding(Status(Code.UNSCHEDULABLE, ("not ready",), "Disks")),
            Failure("not ready", is_error=False, plugin="Disks", nominated_node=""),
            id="PreBind or Bind rejected it: retried, because no event is known to help",
        ),
        pytest.param(
            failed_with_error(Status(Code.ERROR, ("the server is away",))),
            Failure("the server is away", is_error=True, nominated_node=""),
            id="an error",
        ),
    ],
)
def test_failures(failure: Failure, expected: Failure) -> None:
    assert failure == expected
