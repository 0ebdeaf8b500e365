"""The scheduling cycle: every way in which it can end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.kit.entropy import Entropy
from mooring.scheduler.cache.arrays import Int64s, Rows, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.catalogue import PLUGINS
from mooring.scheduler.config import load_configuration
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.plugin import Filter, Plugin, PostFilter, PreFilter, PreScore, Proceed, Score
from mooring.scheduler.framework.post_filter import PostFilterResult
from mooring.scheduler.framework.registry import Registry
from mooring.scheduler.framework.status import Code, Reason, Status
from tests.api.builders import node_selector, preferred, term
from tests.builders import MIB, ZONE, node, pod, pods_like
from tests.scheduler.config.builders import plugins, with_profile
from tests.scheduler.harness import decide, engine_of
from tools.verdicts import written_decision

NODES = (node("n1"), node("n2"), node("n3", unschedulable=True))


class Wish(PreFilter[str], Filter[str], PreScore[str], Score[str]):
    """Does what the pod's label `wish` says."""

    name = "Wish"
    filter_reasons = (Reason("node(s) were out of luck"), Reason("the stars are wrong", Code.ERROR))

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def pre_filter(self, pod: PodInfo) -> Proceed[str] | Status:
        match pod.signature.labels.get("wish", ""):
            case "reject":
                return Status.unschedulable("not today")
            case "reject-for-good":
                return Status.unresolvable("never")
            case "fail":
                return Status.error("it broke")
            case wish if wish.startswith("only-"):
                return Proceed(wish, frozenset((wish.removeprefix("only-"),)))
            case wish:
                return Proceed(wish)

    def filter(self, state: str, rows: Rows) -> Int64s:
        numbers = np.arange(self._columns.height)[rows]
        bits = {"reject-nodes": 1, "break": 2}.get(state, 0)
        return np.where(numbers < 2, bits, 0)

    def pre_score(self, pod: PodInfo, feasible: Rows) -> str | Status:
        wish = pod.signature.labels.get("wish", "")
        return Status.error("cannot weigh") if wish == "fail-scores" else wish

    def score(self, state: str, rows: Rows) -> Int64s:
        worth = {"too-much": 101, "too-little": -1}.get(state, 50)
        return np.full(length_of(rows), worth, dtype=np.int64)


def engine_with(*extra: type[Plugin]) -> Engine:
    written = with_profile(plugins={"multiPoint": {"enabled": plugins(*(plugin.name for plugin in extra))}})
    return engine_of(*NODES, config=written, registry=Registry([*PLUGINS, *extra]))


def wishing(wish: str) -> Decision:
    engine = engine_with(Wish)
    brief = engine.decide(engine.record(pod(labels={"wish": wish})))
    full = decide(engine, pod(labels={"wish": wish}))
    for field in ("node_name", "message", "error", "status", "feasible_count", "node_names"):
        assert getattr(brief, field) == getattr(full, field), field
    return full


def test_a_pod_that_fits() -> None:
    decision = wishing("")
    assert (decision.node_name, decision.feasible_count, decision.is_placed) == ("n1", 2, True)
    assert (decision.message, decision.error, decision.status, decision.preemption) == (None, None, None, None)
    assert {name for name, status in decision.node_to_status.items() if status is None} == {"n1", "n2"}
    assert set(decision.scores) == {"n1", "n2"}
    assert decision.scores["n1"]["Wish"] == 50
    assert decision.scores["n1"]["total"] == sum(v for k, v in decision.scores["n1"].items() if k != "total")


@pytest.mark.parametrize(
    ("wish", "code", "reason"),
    [("reject", Code.UNSCHEDULABLE, "not today"), ("reject-for-good", Code.UNRESOLVABLE, "never")],
)
def test_a_pod_that_a_pre_filter_rejects(wish: str, code: Code, reason: str) -> None:
    decision = wishing(wish)
    assert decision.status == Status(code, (reason,), "Wish")
    assert (decision.node_name, decision.error, decision.node_to_status) == (None, None, {})
    assert decision.message is not None
    assert decision.message.startswith(f"0/3 nodes are available: {reason}. ")


@pytest.mark.parametrize(
    ("wish", "error", "message"),
    [
        ("fail", "prefilter", 'running PreFilter plugin "Wish": it broke'),
        ("break", "filter", 'running "Wish" filter plugin: the stars are wrong'),
        ("fail-scores", "prescore", 'running PreScore plugin "Wish": cannot weigh'),
        (
            "too-much",
            "score",
            'plugin "Wish" returns an invalid score 101, it should in the range of [0, 100] after normalizing',
        ),
        (
            "too-little",
            "score",
            'plugin "Wish" returns an invalid score -1, it should in the range of [0, 100] after normalizing',
        ),
    ],
)
def test_a_cycle_that_fails(wish: str, error: str, message: str) -> None:
    decision = wishing(wish)
    assert (decision.node_name, decision.error, decision.message) == (None, error, message)
    assert decision.status is not None
    assert (decision.status.code, decision.status.message) == (Code.ERROR, message)
    assert decision.preemption is None, "an error is tried again, nobody is evicted for it"


@pytest.mark.parametrize("wish", ["fail-scores", "too-much"])
def test_a_cycle_that_fails_to_score_still_reports_the_results_of_filter(wish: str) -> None:
    decision = wishing(wish)
    fitting = sorted(name for name, status in decision.node_to_status.items() if status is None)
    assert (fitting, sorted(decision.node_to_status)) == (["n1", "n2"], ["n1", "n2", "n3"])
    written = written_decision(decision)
    assert (written["prefilter"]["code"], written["scores"]) == ("Success", {})


def test_of_several_nodes_in_error_the_first_name_is_reported() -> None:
    decision = wishing("break")
    rejections = {name: status.code for name, status in decision.node_to_status.items() if status is not None}
    assert rejections == {"n1": Code.ERROR, "n2": Code.ERROR, "n3": Code.UNRESOLVABLE}


def test_a_pre_filter_that_names_nodes() -> None:
    decision = wishing("only-n2")
    assert (decision.node_name, decision.node_names) == ("n2", frozenset(("n2",)))
    status = decision.node_to_status["n1"]
    assert status is not None
    assert (status.plugin, status.code) == ("", Code.UNRESOLVABLE)
    assert status.reasons == ("node(s) didn't satisfy plugin(s) [Wish]",)


@pytest.mark.parametrize(
    ("named", "wish", "reason"),
    [
        ("n2", "only-n1", "node(s) didn't satisfy plugin(s) [NodeAffinity Wish] simultaneously"),
        ("n2", "only-n2", None),
    ],
)
def test_two_pre_filters_that_name_nodes(named: str, wish: str, reason: str | None) -> None:
    view = pod(labels={"wish": wish}, nodes=node_selector(term(fields=[f"metadata.name In {named}"])))
    decision = decide(engine_with(Wish), view)
    assert (decision.status.message if decision.status is not None else None) == reason
    assert decision.is_placed is (reason is None)


@pytest.mark.parametrize(
    ("view", "error"),
    [
        pytest.param(pod(terminating=True), "skip", id="a pod that is being deleted"),
        pytest.param(pod(gates=["g"], terminating=True), None, id="gates come first"),
    ],
)
def test_pods_that_are_not_tried(view: Any, error: str | None) -> None:
    decision = decide(engine_with(Wish), view)
    assert (decision.node_name, decision.error) == (None, error)


def test_a_gate_names_its_plugin() -> None:
    decision = decide(engine_of(*NODES), pod(gates=["a", "b"]))
    assert decision.status == Status(Code.UNRESOLVABLE, ("waiting for scheduling gates: [a b]",), "SchedulingGates")


def test_without_nodes_no_plugin_runs() -> None:
    decision = decide(engine_of(), pod())
    assert (decision.error, decision.message) == ("nonodes", "no nodes available to schedule pods")


class Helper(PostFilter):
    """Finds room on n2, by magic."""

    name = "Helper"

    def post_filter(self, attempt: object) -> PostFilterResult:
        return PostFilterResult("n2")


class Shrug(PostFilter):
    name = "Shrug"

    def post_filter(self, attempt: object) -> PostFilterResult:
        return PostFilterResult(status=Status.unschedulable("no idea"))


class Crash(PostFilter):
    name = "Crash"

    def post_filter(self, attempt: object) -> PostFilterResult:
        return PostFilterResult(status=Status.error("it broke"))


@pytest.mark.parametrize(
    ("extra", "node_name", "end_of_message"),
    [
        pytest.param(
            [Shrug], None, "2 No preemption victims found for incoming pod., no idea", id="all that failed speak"
        ),
        pytest.param([Helper, Shrug], "n2", "2 node(s) were out of luck.", id="the first that helps ends it"),
        pytest.param([Crash, Shrug], None, "2 node(s) were out of luck. it broke", id="so does one that fails"),
    ],
)
def test_post_filters_run_in_order(extra: list[type[Plugin]], node_name: str | None, end_of_message: str) -> None:
    decision = decide(engine_with(Wish, *extra), pod(labels={"wish": "reject-nodes"}, preemption_policy="Always"))
    assert decision.message is not None
    assert decision.message.endswith(end_of_message), decision.message
    assert (decision.preemption.node_name if decision.preemption is not None else None) == node_name


def test_the_die_breaks_ties_between_the_best_only() -> None:
    offered: list[list[str]] = []

    def die(columns: Columns) -> Any:
        def choose(rows: Int64s) -> int:
            offered.append([columns.node_names[row] for row in rows])
            return int(rows[-1])

        return choose

    engine = Engine(load_configuration(None), entropy=Entropy(seed=1), tie_break=die)
    for view in (*NODES, node("n4"), pod("a", cpu=1, on="n2")):
        engine.put(view)
    assert decide(engine, pod(cpu=1)).node_name == "n4"
    assert offered == [["n1", "n4"]]


WEB = {"app": "web"}


def test_a_total_is_the_sum_of_weighted_scores() -> None:
    engine = engine_of(node("n1", zone="a", images={"web:1": 900 * MIB}), node("n2", taints=["old:PreferNoSchedule"]))
    scores = decide(engine, pod(cpu=1, image="web:1", prefers_nodes=[preferred(1, f"{ZONE} In a")])).scores
    assert scores["n1"]["NodeAffinity"] == 200, "weight 2"
    assert scores["n1"]["TaintToleration"] == 300, "weight 3"
    assert scores["n2"]["TaintToleration"] == 0
    for of_node in scores.values():
        assert of_node["total"] == sum(score for name, score in of_node.items() if name != "total")


def test_a_skipped_plugin_has_no_score() -> None:
    engine = engine_of(node("n1"), node("n2"))
    assert set(decide(engine, pod(cpu=1)).scores["n1"]) == {
        "TaintToleration",
        "NodeResourcesFit",
        "NodeResourcesBalancedAllocation",
        "ImageLocality",
        "DynamicResources",
        "total",
    }
    assert "NodeResourcesBalancedAllocation" not in decide(engine, pod()).scores["n1"]


def test_scores_are_normalised_over_the_nodes_that_fit() -> None:
    """A node that rejects must not be the yardstick for the others, whoever rejects there."""
    engine = engine_of(
        node("n1", labels={"rank": "1"}),
        node("n2", labels={"rank": "2"}),
        node("n3", labels={"rank": "3"}),
        pod("w", on="n3", labels=WEB),
    )
    prefers = [preferred(10, "rank Gt 1"), preferred(10, "rank Gt 2")]
    everywhere = decide(engine, pod(prefers_nodes=prefers)).scores
    assert [everywhere[name]["NodeAffinity"] for name in ("n1", "n2", "n3")] == [0, 100, 200]
    apart = decide(engine, pod(prefers_nodes=prefers, apart=[pods_like("kubernetes.io/hostname", app="web")])).scores
    assert {name: scores["NodeAffinity"] for name, scores in apart.items()} == {"n1": 0, "n2": 200}


def test_pods_that_dislike_each_other_are_placed_by_rank_until_no_node_is_left() -> None:
    engine = engine_of(node("n1"), node("n2"), node("n3"), pod("a", cpu=1, on="n2"))
    apart = [pods_like("kubernetes.io/hostname", app="web")]
    found = []
    for number in range(4):
        decision = engine.decide(engine.record(pod(f"w{number}", labels=WEB, apart=apart)))
        found.append((decision.feasible_count, decision.node_name))
        if decision.node_name is not None:
            engine.assume(decision)
    assert [count for count, _ in found] == [3, 2, 1, 0]
    assert {name for _, name in found[:2]} == {"n1", "n3"}, "the emptier ones first"
    assert found[2:] == [(1, "n2"), (0, None)]


def test_weights_come_from_the_configuration() -> None:
    config = with_profile(
        plugins={"score": {"enabled": plugins("ImageLocality=9"), "disabled": plugins("TaintToleration")}}
    )
    engine = engine_of(node("n1", images={"web:1": 5000 * MIB}), config=config)
    scores = decide(engine, pod(image="web:1")).scores["n1"]
    assert scores["ImageLocality"] == 900
    assert "TaintToleration" not in scores


def test_without_any_score_all_nodes_that_fit_are_equally_good() -> None:
    config = with_profile(plugins={"multiPoint": {"disabled": plugins("*"), "enabled": plugins(*ONLY_FILTERS)}})
    engine = engine_of(node("n2"), node("n1"), node("n0", unschedulable=True), config=config)
    decision = decide(engine, pod())
    assert decision.node_name == "n1"
    assert decision.scores == {"n1": {"total": 0}, "n2": {"total": 0}}


ONLY_FILTERS = ("PrioritySort", "NodeUnschedulable", "DefaultBinder")


@pytest.mark.parametrize(
    ("cluster", "pending", "code", "is_unschedulable"),
    [
        pytest.param([node()], pod(), Code.SUCCESS, False, id="placed"),
        pytest.param([node()], pod(cpu=9), Code.UNSCHEDULABLE, True, id="rejected"),
        pytest.param([node()], pod(claims=["nobody's"]), Code.UNSCHEDULABLE, True, id="rejected, whatever the node"),
        pytest.param([], pod(), Code.UNRESOLVABLE, True, id="no nodes at all"),
        pytest.param([node()], pod(gates=["g"]), Code.UNRESOLVABLE, True, id="a gate"),
        pytest.param([node()], pod(terminating=True), Code.SKIP, False, id="not worth trying"),
    ],
)
def test_how_it_ended(cluster: list[ApiObject], pending: Pod, code: Code, is_unschedulable: bool) -> None:
    decision = decide(engine_of(*cluster), pending)
    assert (decision.code, decision.is_unschedulable) == (code, is_unschedulable)
