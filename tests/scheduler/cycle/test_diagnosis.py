"""The diagnosis: the sentence that users read in the FailedScheduling event, to the letter."""

from __future__ import annotations

import pytest

from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.scheduler.cycle.diagnosis import unavailable_text
from tests.api.builders import node_selector, term
from tests.builders import node, pod
from tests.scheduler.harness import decide, engine_of

NO_CLAIMS = "no new claims to deallocate"


@pytest.mark.parametrize(
    ("count", "reasons", "text"),
    [
        pytest.param(3, {"Insufficient cpu": 3}, "0/3 nodes are available: 3 Insufficient cpu.", id="one reason"),
        pytest.param(
            12,
            {"Insufficient cpu": 2, "Too many pods": 10},
            "0/12 nodes are available: 10 Too many pods, 2 Insufficient cpu.",
            id="sorted as text, so that 10 comes before 2",
        ),
        pytest.param(
            2,
            {"Too many pods": 2, "Insufficient cpu": 2},
            "0/2 nodes are available: 2 Insufficient cpu, 2 Too many pods.",
            id="equal numbers by their words",
        ),
        pytest.param(2, {}, "0/2 nodes are available:", id="no reason at all"),
    ],
)
def test_reasons_in_one_sentence(count: int, reasons: dict[str, int], text: str) -> None:
    assert unavailable_text(count, reasons) == text


@pytest.mark.parametrize(
    ("cluster", "pending", "message"),
    [
        pytest.param(
            [node("n1", cpu=1), node("n2", cpu=1), node("n3", unschedulable=True)],
            pod(cpu=2),
            "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu. "
            f"{NO_CLAIMS}, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
            id="each node is counted under the first plugin that refuses it",
        ),
        pytest.param(
            [node("n1", cpu=1, memory="1Gi", pods=0), node("n2", cpu=1)],
            pod(cpu=2, memory="2Gi"),
            "0/2 nodes are available: 1 Insufficient memory, 1 Too many pods, 2 Insufficient cpu. "
            f"{NO_CLAIMS}, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
            id="a node with several reasons counts for each",
        ),
        pytest.param(
            [node("n1", cpu=1), node("n2", cpu=1), pod("a", cpu=1, on="n1"), pod("b", cpu=1, on="n2", priority=5)],
            pod(cpu=1, priority=0),
            f"0/2 nodes are available: 2 Insufficient cpu. {NO_CLAIMS}, preemption: 0/2 nodes are available: "
            "2 No preemption victims found for incoming pod.",
            id="preemption finds nobody of lower priority",
        ),
        pytest.param(
            [node("n1", cpu=1), pod("a", cpu=1, on="n1")],
            pod(cpu=1, priority=5),
            "0/1 nodes are available: 1 Insufficient cpu.",
            id="preemption that helps has nothing to say",
        ),
        pytest.param(
            [node("n1", cpu=1), pod("a", cpu=1, on="n1")],
            pod(cpu=1, priority=5, preemption_policy="Never"),
            "0/1 nodes are available: 1 Insufficient cpu. "
            f"{NO_CLAIMS}, preemption: not eligible due to preemptionPolicy=Never.",
            id="a pod that does not preempt",
        ),
        pytest.param(
            [node("n1", cpu=1), node("n2"), node("n3")],
            pod(cpu=2, nodes=node_selector(term(fields=["metadata.name In n1"]))),
            "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]. "
            f"{NO_CLAIMS}, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
            id="nodes that were left out are counted too",
        ),
        pytest.param(
            [node("n1"), node("n2")],
            pod(
                nodes=node_selector(term(fields=["metadata.name In n1", "metadata.name In n2"])),
            ),
            "0/2 nodes are available: pod affinity terms conflict. not found",
            id="a PreFilter that ends it speaks for all nodes",
        ),
        pytest.param([], pod(), "no nodes available to schedule pods", id="an empty cluster"),
        pytest.param([node("n1")], pod(terminating=True), "skip schedule deleting pod: default/p", id="too late"),
        pytest.param([node("n1")], pod(gates=["a", "b"]), None, id="a pod that waits at a gate was not tried"),
    ],
)
def test_the_message_of_a_pod_that_goes_nowhere(cluster: list[ApiObject], pending: Pod, message: str | None) -> None:
    assert decide(engine_of(*cluster), pending).message == message
