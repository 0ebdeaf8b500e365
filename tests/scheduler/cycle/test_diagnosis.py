"""The diagnosis: the sentence that users read in the FailedScheduling event, to the letter."""

from __future__ import annotations

import numpy as np
import pytest

from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.scheduler.cache.arrays import Int64s, Rows, length_of
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.catalogue import PLUGINS
from mooring.scheduler.framework.diagnosis import Diagnosis, FitError
from mooring.scheduler.framework.plugin import Filter, PreFilter, Proceed
from mooring.scheduler.framework.registry import Registry
from mooring.scheduler.framework.status import Code, Reason, Status
from tests.api.builders import node_selector, term
from tests.builders import node, pod
from tests.scheduler.config.builders import plugins, with_profile
from tests.scheduler.harness import decide, engine_of

CORDON = "node.kubernetes.io/unschedulable:NoSchedule"
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
    assert FitError(count, Diagnosis(reasons)).message == text


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


# Who refused


class Patience(PreFilter[str], Filter[str]):
    """Waits, refuses or names nodes, as the pod's label `wish` says."""

    name = "Patience"
    filter_reasons = (Reason("node(s) were being prepared", Code.PENDING), Reason("node(s) were broken"))

    def pre_filter(self, pod: PodInfo) -> Proceed[str] | Status:
        wish = pod.signature.labels.get("wish", "")
        if wish == "reject":
            return Status.unschedulable("not today")
        return Proceed(wish, frozenset(("n1", "n2")) if wish == "two nodes" else None)

    def filter(self, state: str, rows: Rows) -> Int64s:
        bits = {"wait": 0b01, "refuse": 0b10, "wait and refuse": 0b11}.get(state, 0)
        return np.full(length_of(rows), bits, dtype=np.int64)


@pytest.mark.parametrize(
    ("pending", "rejectors", "waits"),
    [
        pytest.param(pod(cpu=1), set(), set(), id="a pod that is placed"),
        pytest.param(
            pod(cpu=9), {"NodeResourcesFit", "NodeUnschedulable"}, set(), id="the first that refuses on some node"
        ),
        pytest.param(pod(cpu=9, tolerations=[CORDON]), {"NodeResourcesFit"}, set(), id="nobody else"),
        pytest.param(pod(labels={"wish": "reject"}), {"Patience"}, set(), id="a PreFilter that rejects"),
        pytest.param(
            pod(labels={"wish": "reject"}, nodes=node_selector(term(fields=["metadata.name In n1"]))),
            {"Patience", "NodeAffinity"},
            set(),
            id="and one that named nodes before it",
        ),
        pytest.param(
            pod(cpu=9, nodes=node_selector(term(fields=["metadata.name In n1"]))),
            {"NodeResourcesFit", "NodeAffinity"},
            set(),
            id="a PreFilter that left nodes out",
        ),
        pytest.param(
            pod(labels={"wish": "two nodes"}, nodes=node_selector(term(fields=["metadata.name In n3"]))),
            {"NodeAffinity", "Patience"},
            set(),
            id="two that together left out all",
        ),
        pytest.param(
            pod(labels={"wish": "wait"}),
            {"NodeUnschedulable", "Patience"},
            {"Patience"},
            id="one that waits for something",
        ),
        pytest.param(
            pod(labels={"wish": "wait and refuse"}),
            {"NodeUnschedulable", "Patience"},
            set(),
            id="one that would refuse if it did not wait",
        ),
        pytest.param(pod(gates=["g"]), {"SchedulingGates"}, set(), id="a gate"),
        pytest.param(
            pod(cpu=9, nominated="n3", nodes=node_selector(term(fields=["metadata.name In n1"]))),
            {"NodeResourcesFit", "NodeAffinity", "NodeUnschedulable"},
            set(),
            id="the node that was promised is asked first",
        ),
    ],
)
def test_who_refused(pending: Pod, rejectors: set[str], waits: set[str]) -> None:
    written = with_profile(plugins={"multiPoint": {"enabled": plugins("Patience")}})
    engine = engine_of(
        node("n1"), node("n2"), node("n3", unschedulable=True), config=written, registry=Registry([*PLUGINS, Patience])
    )
    for _ in range(2):  # the second answer is the one that was kept
        decision = engine.decide(engine.record(pending))
        assert (set(decision.unschedulable_plugins), set(decision.pending_plugins)) == (rejectors, waits)
        assert decision.is_unschedulable is not decision.is_placed


def test_a_kept_diagnosis_follows_the_cluster() -> None:
    engine = engine_of(node("n1"), node("n2", unschedulable=True))
    assert decide(engine, pod(cpu=9)).unschedulable_plugins == {"NodeResourcesFit", "NodeUnschedulable"}
    engine.put(node("n2"))
    assert decide(engine, pod(cpu=9)).unschedulable_plugins == {"NodeResourcesFit"}
