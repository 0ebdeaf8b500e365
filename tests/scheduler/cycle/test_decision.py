"""The decision: how it ended, in one word for the queue and the pod's condition."""

from __future__ import annotations

import pytest

from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.scheduler.framework.status import Code
from tests.builders import node, pod
from tests.scheduler.harness import decide, engine_of


@pytest.mark.parametrize(
    ("cluster", "pending", "code", "is_unschedulable"),
    [
        pytest.param([node()], pod(), Code.SUCCESS, False, id="placed"),
        pytest.param([node()], pod(cpu=9), Code.UNSCHEDULABLE, True, id="refused"),
        pytest.param([node()], pod(claims=["nobody's"]), Code.UNSCHEDULABLE, True, id="rejected, whatever the node"),
        pytest.param([], pod(), Code.UNRESOLVABLE, True, id="no nodes at all"),
        pytest.param([node()], pod(gates=["g"]), Code.UNRESOLVABLE, True, id="a gate"),
        pytest.param([node()], pod(terminating=True), Code.SKIP, False, id="not worth trying"),
    ],
)
def test_how_it_ended(cluster: list[ApiObject], pending: Pod, code: Code, is_unschedulable: bool) -> None:
    decision = decide(engine_of(*cluster), pending)
    assert (decision.code, decision.is_unschedulable) == (code, is_unschedulable)
