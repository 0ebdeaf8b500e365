"""An attempt: the status of each row, from the results of filters in any order."""

from __future__ import annotations

import numpy as np
import pytest

from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.scheduler.cache.arrays import Int64s, Rows, length_of
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.catalogue import PLUGINS
from mooring.scheduler.cycle.attempt import EXCLUDED, DryRun
from mooring.scheduler.cycle.result_cache import FITS
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.plugin import Filter, PreFilter, Proceed
from mooring.scheduler.framework.registry import Registry
from mooring.scheduler.framework.status import Code, Diagnosis, FitError, Reason, Status
from tests.api.builders import node_selector, term
from tests.builders import HOSTNAME, ZONE, node, pod, pods_like, spread
from tests.scheduler.config.builders import plugins, with_profile
from tests.scheduler.harness import attempt_of, decide, engine_of

WEB = {"app": "web"}


def cluster() -> Engine:
    """Nodes that reject a big web pod that wants to be alone, each for another reason."""
    engine = engine_of(
        node("fits"),
        node("cordoned", unschedulable=True),
        node("gone"),
        node("small", cpu=1),
        node("busy", cpu=4),
        node("taken"),
        node("both", cpu=1, taints=["gpu:NoSchedule"]),
        pod("a", cpu=3, on="busy"),
        pod("b", labels=WEB, on="taken"),
    )
    engine.remove(node("gone"))
    return engine


BIG = pod(cpu=2, labels=WEB, apart=[pods_like(HOSTNAME, app="web")])


def test_the_first_rejecting_filter_and_its_reasons() -> None:
    engine = cluster()
    attempt = attempt_of(engine, BIG)
    said = {name: attempt.status_at(row) for name, row in engine.columns.row_of.items()}
    assert said == {
        "fits": None,
        "cordoned": Status(Code.UNRESOLVABLE, ("node(s) were unschedulable",), "NodeUnschedulable"),
        "small": Status(Code.UNRESOLVABLE, ("Insufficient cpu",), "NodeResourcesFit"),
        "busy": Status(Code.UNSCHEDULABLE, ("Insufficient cpu",), "NodeResourcesFit"),
        "taken": Status(Code.UNSCHEDULABLE, ("node(s) didn't match pod anti-affinity rules",), "InterPodAffinity"),
        "both": Status(Code.UNRESOLVABLE, ("node(s) had untolerated taint(s)",), "TaintToleration"),
    }
    assert np.arange(engine.columns.height)[attempt.feasible].tolist() == [engine.columns.row_of["fits"]]


def test_rows_by_code() -> None:
    engine = cluster()
    attempt = attempt_of(engine, BIG)
    names = engine.columns.node_names

    def rejected_with(code: Code) -> list[str]:
        return [names[row] for row in np.flatnonzero(attempt.is_rejected_with(code))]

    assert rejected_with(Code.UNSCHEDULABLE) == ["busy", "taken"]
    assert rejected_with(Code.UNRESOLVABLE) == ["cordoned", "small", "both"]
    assert rejected_with(Code.ERROR) == []
    rows = engine.columns.row_of
    codes = {name: attempt.code_at(row) for name, row in rows.items()}
    assert codes["fits"] is Code.SUCCESS
    assert codes["small"] is Code.UNRESOLVABLE
    assert codes["busy"] is Code.UNSCHEDULABLE


def test_filters_that_rejected_some_rows() -> None:
    engine = cluster()
    attempt = attempt_of(engine, BIG)
    found = {use.plugin.name: len(rows) for use, rows, _ in attempt.rejections()}
    assert found == {"NodeUnschedulable": 1, "TaintToleration": 1, "NodeResourcesFit": 2, "InterPodAffinity": 1}


def test_excluded_rows() -> None:
    engine = engine_of(node("n1"), node("n2"), node("n3"), node("n4"))
    engine.remove(node("n2"))
    attempt = attempt_of(engine, pod(nodes=node_selector(term(fields=["metadata.name In n3"]))))
    assert attempt.first.tolist() == [EXCLUDED, EXCLUDED, FITS, EXCLUDED]
    assert attempt.excluded_count == 2, "a row without a node does not count"
    assert attempt.status_at(0) == Status(Code.UNRESOLVABLE, ("node(s) didn't satisfy plugin(s) [NodeAffinity]",))
    assert attempt.code_at(0) is Code.UNRESOLVABLE


@pytest.mark.parametrize(
    ("view", "plugin", "was_asked"),
    [
        pytest.param(pod(), "DynamicResources", True, id="nobody rejects: all were asked"),
        pytest.param(
            pod(nodes=node_selector(term(fields=["metadata.name In a", "metadata.name In b"]))),
            "DynamicResources",
            False,
            id="somebody before it rejected",
        ),
        pytest.param(pod(claims=["missing"]), "NodeResourcesFit", True, id="somebody after it rejected"),
    ],
)
def test_whether_a_pre_filter_ran(view: Pod, plugin: str, was_asked: bool) -> None:
    assert attempt_of(engine_of(node("n1")), view).was_pre_filtered(plugin) is was_asked


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
            id="each node is counted under the first plugin that rejects it",
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


# Who rejected


class Patience(PreFilter[str], Filter[str]):
    """Waits, rejects or names nodes, as the pod's label `wish` says."""

    name = "Patience"
    filter_reasons = (Reason("node(s) were being prepared", Code.PENDING), Reason("node(s) were broken"))

    def pre_filter(self, pod: PodInfo) -> Proceed[str] | Status:
        wish = pod.signature.labels.get("wish", "")
        if wish == "reject":
            return Status.unschedulable("not today")
        return Proceed(wish, frozenset(("n1", "n2")) if wish == "two nodes" else None)

    def filter(self, state: str, rows: Rows) -> Int64s:
        bits = {"wait": 0b01, "reject": 0b10, "wait and reject": 0b11}.get(state, 0)
        return np.full(length_of(rows), bits, dtype=np.int64)


@pytest.mark.parametrize(
    ("pending", "rejectors", "waits"),
    [
        pytest.param(pod(cpu=1), set(), set(), id="a pod that is placed"),
        pytest.param(
            pod(cpu=9), {"NodeResourcesFit", "NodeUnschedulable"}, set(), id="the first that rejects on some node"
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
            pod(labels={"wish": "wait and reject"}),
            {"NodeUnschedulable", "Patience"},
            set(),
            id="one that would reject if it did not wait",
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
def test_the_rejecting_plugins(pending: Pod, rejectors: set[str], waits: set[str]) -> None:
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


class ClusterDryRun:
    """A dry run on all nodes of a cluster, by name."""

    def __init__(self, engine: Engine, view: Pod) -> None:
        self._engine = engine
        self._names = list(engine.columns.row_of)
        attempt = attempt_of(engine, view)
        rows = np.array(list(engine.columns.row_of.values()), dtype=np.int64)
        self._attempt = attempt
        self.dry_run = DryRun(attempt, rows, attempt.profile.filters)

    def remove(self, name: str) -> None:
        pod = self._engine.columns.pods[f"default/{name}"]
        self.dry_run.remove(self._names.index(pod.node_name), pod)

    def add(self, view: Pod, node_name: str) -> None:
        self.dry_run.add(self._names.index(node_name), self._engine.record(view))

    def rejecting(self, *, beside_nominated: bool = False) -> dict[str, str]:
        at = np.arange(len(self._names))
        ask = self.dry_run.rejections_with_nominated_pods if beside_nominated else self.dry_run.rejections
        first, _ = ask(at)
        filters = self._attempt.profile.filters
        return {
            name: filters[number].plugin.name for name, number in zip(self._names, first.tolist()) if number != FITS
        }


def test_filters_of_the_row_see_the_rows_own_changes() -> None:
    engine = engine_of(node("n1", cpu=2), node("n2", cpu=2), pod("a", cpu=1, on="n1"), pod("b", cpu=1, on="n2"))
    run = ClusterDryRun(engine, pod(cpu=2))
    with run.dry_run:
        assert run.rejecting() == {"n1": "NodeResourcesFit", "n2": "NodeResourcesFit"}
        run.remove("a")
        assert run.rejecting() == {"n2": "NodeResourcesFit"}
        run.add(pod("c", ports=["80"], cpu=1), "n1")
        assert run.rejecting() == {"n1": "NodeResourcesFit", "n2": "NodeResourcesFit"}


def test_filters_of_the_cluster_do_not_see_the_changes_of_other_rows() -> None:
    """Both nodes lose their web pod, but each is evaluated as if the other still had its own."""
    engine = engine_of(
        node("n1", zone="a"), node("n2", zone="b"), pod("a", labels=WEB, on="n1"), pod("b", labels=WEB, on="n2")
    )
    apart = ClusterDryRun(engine, pod(apart=[pods_like(HOSTNAME, app="web")]))
    with apart.dry_run:
        apart.remove("a")
        apart.remove("b")
        assert apart.rejecting() == {}
    near = ClusterDryRun(engine, pod(near=[pods_like(HOSTNAME, app="web")]))
    with near.dry_run:
        near.remove("a")
        near.remove("b")
        assert near.rejecting() == {"n1": "InterPodAffinity", "n2": "InterPodAffinity"}
    even = ClusterDryRun(engine, pod(labels=WEB, spread=[spread(ZONE, app="web")]))
    with even.dry_run:
        even.add(pod("c", labels=WEB), "n1")
        even.add(pod("d", labels=WEB), "n2")
        assert even.rejecting() == {"n1": "PodTopologySpread", "n2": "PodTopologySpread"}, "2 and 2 would be even"


def test_facts_are_what_they_were() -> None:
    engine = engine_of(node("n1", taints=["gpu:NoSchedule"], cpu=1), pod("a", cpu=1, on="n1"), node("n2"))
    run = ClusterDryRun(engine, pod(cpu=2))
    with run.dry_run:
        run.remove("a")
        assert run.rejecting() == {"n1": "TaintToleration"}


def test_nominated_pods_count_as_present_and_as_absent() -> None:
    engine = engine_of(
        node("n1", cpu=2),
        node("n2", cpu=2),
        pod("a", cpu=2, on="n1"),
        pod("q", cpu=1, priority=5, nominated="n1"),
        pod("r", cpu=1, priority=0, nominated="n2"),
    )
    run = ClusterDryRun(engine, pod(cpu=2, priority=5))
    with run.dry_run:
        assert run.rejecting() == {"n1": "NodeResourcesFit"}
        run.remove("a")
        assert run.rejecting() == {}
        assert run.rejecting(beside_nominated=True) == {"n1": "NodeResourcesFit"}
    assert engine.columns.pods["default/a"].node_name == "n1"
