"""The scheduling cycle with extenders: which requests are sent, when, and what follows from the responses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.catalogue import PLUGINS
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.engine import Engine
from mooring.scheduler.extenders.cycle import (
    ExtenderRequest,
    ExtenderResponse,
    FilterRequest,
    PreemptRequest,
    PrioritizeRequest,
    decide_with_extenders,
    filter_with_extenders,
    preempt_with_extenders,
    prioritize_with_extenders,
)
from mooring.scheduler.extenders.extender import (
    Extender,
    ExtenderFailure,
    ExtenderFilterResult,
    ExtenderPreemptionResult,
    FilteredNodes,
    HostPriority,
    MetaVictims,
    extenders_of,
)
from mooring.scheduler.framework.plugin import PreFilter, Proceed
from mooring.scheduler.framework.post_filter import Victims
from mooring.scheduler.framework.registry import Registry
from mooring.scheduler.framework.status import Code
from tests.api.builders import node_selector, term
from tests.builders import node, pod
from tests.scheduler.config.builders import Written, configuration, plugins
from tests.scheduler.extenders.builders import NamesAsObjects, answering, drive, extender, only, written
from tests.scheduler.harness import engine_of

NODES = (node("n1"), node("n2"), node("n3"), node("n4", unschedulable=True))
FILTER = {"filterVerb": "filter", "nodeCacheCapable": True}
SCORE = {"prioritizeVerb": "prioritize", "weight": 1, "nodeCacheCapable": True}
PREEMPT = {"preemptVerb": "preempt", "nodeCacheCapable": True}
BROKEN = ExtenderFailure("out of order")


def engine_with(
    *extenders: Written, views: tuple[ApiObject, ...] = NODES, registry: Registry | None = None, **fields: object
) -> Engine:
    return engine_of(*views, config=configuration(extenders=list(extenders), **fields), registry=registry)


def exchanged(
    engine: Engine, view: Pod, response: Callable[[ExtenderRequest], ExtenderResponse]
) -> tuple[Decision, list[tuple[ExtenderRequest, ...]]]:
    """A decision in full and what was asked for it; one that is not in full must come out the same."""
    brief, asked_in_brief = drive(decide_with_extenders(engine, engine.record(view)), response)
    full, asked = drive(decide_with_extenders(engine, engine.record(view), in_full=True), response)
    assert [list(map(type, requests)) for requests in asked] == [
        list(map(type, requests)) for requests in asked_in_brief
    ]
    for field in (
        "node_name",
        "message",
        "error",
        "feasible_count",
        "unschedulable_plugins",
        "pending_plugins",
        "clears_nomination",
    ):
        assert getattr(brief, field) == getattr(full, field), field
    assert victims_of(brief) == victims_of(full)
    return full, asked


def victims_of(decision: Decision) -> Any:
    plan = decision.preemption
    return (plan.node_name, [victim.name for victim in plan.victims]) if plan is not None else None


def names_asked_about(rounds: list[tuple[ExtenderRequest, ...]]) -> list[list[str]]:
    return [
        list(request.node_names)
        for requests in rounds
        for request in requests
        if isinstance(request, FilterRequest | PrioritizeRequest)
    ]


# Filtering


def test_extenders_get_the_nodes_that_filters_accept() -> None:
    decision, rounds = exchanged(engine_with(written(**FILTER)), pod(), answering(filter=only("n2", "n3")))
    assert names_asked_about(rounds) == [["n1", "n2", "n3"]]
    assert (decision.node_name, decision.feasible_count) == ("n2", 2)
    assert set(decision.scores) == {"n2", "n3"}
    assert set(decision.node_to_status) == {"n2", "n3", "n4"}, (
        "of a node that was dropped without a word nothing is known"
    )


def test_each_extender_gets_the_nodes_that_the_one_before_left() -> None:
    engine = engine_with(
        written("http://a", filterVerb="a", nodeCacheCapable=True),
        written("http://b", filterVerb="b", nodeCacheCapable=True),
        written("http://c", filterVerb="c", nodeCacheCapable=True),
    )
    decision, rounds = exchanged(engine, pod(), answering(a=only("n3", "n1"), b=only(), c=BROKEN))
    assert names_asked_about(rounds) == [["n1", "n2", "n3"], ["n3", "n1"]], "where none is left nobody is asked"
    assert decision.code is Code.UNSCHEDULABLE
    assert decision.unschedulable_plugins == {"Extender", "NodeUnschedulable"}


def test_an_extender_is_not_called_for_a_pod_without_its_resources() -> None:
    engine = engine_with(written(**FILTER, managedResources=[{"name": "example.com/gpu"}]))
    decision, rounds = exchanged(engine, pod(), answering())
    assert (decision.node_name, rounds) == ("n1", [])


def test_extenders_get_nodes_in_the_order_of_the_search() -> None:
    nodes = tuple(node(f"n{number}", zone="ab"[number // 2]) for number in range(4))
    engine = engine_with(written(**FILTER), views=nodes)
    _, rounds = exchanged(engine, pod(), answering(filter=only("n0")))
    assert names_asked_about(rounds) == [["n0", "n2", "n1", "n3"]]


def test_of_a_sample_extenders_see_the_sample() -> None:
    nodes = tuple(node(f"n{number:03}") for number in range(250))
    engine = engine_with(written(**FILTER), views=nodes, percentageOfNodesToScore=1)
    first, second = (
        drive(decide_with_extenders(engine, engine.record(pod())), answering(filter=BROKEN))[1] for _ in range(2)
    )
    assert names_asked_about(first) == [[f"n{number:03}" for number in range(100)]]
    assert names_asked_about(second) == [[f"n{number:03}" for number in range(100, 200)]], "an error moves on, too"


@pytest.mark.parametrize(
    ("response", "message", "unschedulable_plugins"),
    [
        pytest.param(
            only(failed={"n1": "too hot", "n2": "too hot", "n3": "too cold"}),
            "0/4 nodes are available: 1 node(s) were unschedulable, 1 too cold, 2 too hot.",
            {"NodeUnschedulable", "Extender"},
            id="its reasons are reported with the others",
        ),
        pytest.param(
            only(failed={"n1": "too hot"}),
            "0/4 nodes are available: 1 node(s) were unschedulable, 1 too hot.",
            {"NodeUnschedulable", "Extender"},
            id="nothing is said of nodes that it dropped without a word",
        ),
        pytest.param(
            only(failed={"n1": "a", "n4": "b", "elsewhere": "c"}, for_good={"n1": "never"}),
            "0/4 nodes are available: 1 b, 1 c, 1 never.",
            {"NodeUnschedulable", "Extender"},
            id="it may name any node",
        ),
    ],
)
def test_when_none_is_left(response: ExtenderFilterResult, message: str, unschedulable_plugins: set[str]) -> None:
    decision, _ = exchanged(engine_with(written(**FILTER)), pod(), answering(filter=response))
    assert decision.message is not None
    assert decision.message.startswith(message), decision.message
    assert (decision.code, decision.error, decision.node_name) == (Code.UNSCHEDULABLE, None, None)
    assert decision.unschedulable_plugins == unschedulable_plugins


def test_named_nodes_that_it_dropped_count_with_those_left_out() -> None:
    view = pod(nodes=node_selector(term(fields=["metadata.name In n1"]), term(fields=["metadata.name In n2"])))
    decision, rounds = exchanged(engine_with(written(**FILTER)), view, answering(filter=only(failed={"n1": "hot"})))
    assert names_asked_about(rounds) == [["n1", "n2"]]
    assert (decision.message or "").startswith(
        "0/4 nodes are available: 1 hot, 3 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )
    assert decision.unschedulable_plugins == {"Extender", "NodeAffinity"}


def test_the_failure_of_an_extender_ends_the_cycle() -> None:
    decision, _ = exchanged(engine_with(written(**FILTER)), pod(), answering(filter=BROKEN))
    assert (decision.error, decision.message, decision.code) == ("extender", "out of order", Code.ERROR)
    assert (decision.unschedulable_plugins, decision.clears_nomination) == (frozenset(), True)


def test_unless_its_failures_may_be_ignored() -> None:
    engine = engine_with(
        written("http://a", filterVerb="a", nodeCacheCapable=True, ignorable=True),
        written("http://b", filterVerb="b", nodeCacheCapable=True),
    )
    decision, rounds = exchanged(engine, pod(), answering(a=BROKEN, b=only("n3", "n2")))
    assert names_asked_about(rounds) == [["n1", "n2", "n3"], ["n3", "n2"]]
    assert decision.node_name == "n2"


# A promised node


def test_a_nominated_node_is_sent_first() -> None:
    view = pod(nominated="n2")
    decision, rounds = exchanged(engine_with(written(**FILTER)), view, answering(filter=only("n2")))
    assert (names_asked_about(rounds), decision.node_name, decision.feasible_count) == ([["n2"]], "n2", 1)


def test_a_rejected_nominated_node_is_sent_again_with_the_others() -> None:
    def response(request: ExtenderRequest) -> ExtenderResponse:
        assert isinstance(request, FilterRequest)
        return only("n1", failed={"n2": "hot"}) if len(request.node_names) > 1 else only(failed={"n2": "hot"})

    decision, rounds = exchanged(engine_with(written(**FILTER)), pod(nominated="n2"), response)
    first, again = names_asked_about(rounds)
    assert (first, sorted(again)) == (["n2"], ["n1", "n2", "n3"])
    assert again[0] == "n2", "it was looked at twice in the decision before, so that this search starts one further"
    assert decision.node_name == "n1"


def test_the_status_of_a_nominated_node_is_reported_even_if_the_search_ends_before_it() -> None:
    nodes = (*(node(f"n{number:03}") for number in range(150)), node("promised", cpu=0))
    engine = engine_with(written(**FILTER), views=nodes, percentageOfNodesToScore=1)
    decision, rounds = exchanged(
        engine, pod(cpu=1, nominated="promised"), answering(filter=only(failed={"n000": "hot"}))
    )
    assert len(names_asked_about(rounds)[0]) == 100
    assert (decision.message or "").startswith("0/151 nodes are available: 1 Insufficient cpu, 1 hot.")
    assert decision.unschedulable_plugins == {"Extender", "NodeResourcesFit"}


def test_a_failure_there_is_no_reason_to_give_up() -> None:
    def response(request: ExtenderRequest) -> ExtenderResponse:
        assert isinstance(request, FilterRequest)
        return only("n3") if len(request.node_names) > 1 else BROKEN

    decision, _ = exchanged(engine_with(written(**FILTER)), pod(nominated="n2"), response)
    assert decision.node_name == "n3"


# Scores


def scores(**by_name: int) -> tuple[HostPriority, ...]:
    return tuple(HostPriority(name, score) for name, score in by_name.items())


def test_scores_are_added_with_their_weight() -> None:
    engine = engine_with(written(**SCORE | {"weight": 3}))
    decision, rounds = exchanged(engine, pod(), answering(prioritize=scores(n1=1, n2=5, n3=2, n9=10)))
    assert (decision.node_name, len(rounds)) == ("n2", 1)
    by_node = {name: by_plugin["http://extender.test"] for name, by_plugin in decision.scores.items()}
    assert by_node == {"n1": 30, "n2": 150, "n3": 60}
    of_n2 = decision.scores["n2"]
    assert of_n2["total"] == sum(score for name, score in of_n2.items() if name != "total")


def test_all_prioritize_requests_are_sent_at_the_same_time() -> None:
    engine = engine_with(
        written("http://a", **FILTER, prioritizeVerb="a", weight=1),
        written("http://b", prioritizeVerb="b", weight=2, nodeCacheCapable=True),
        written("http://c", prioritizeVerb="c", weight=1, managedResources=[{"name": "example.com/gpu"}]),
        written("http://d", bindVerb="d"),
    )
    responses = answering(filter=only("n3", "n2"), a=scores(n2=4, n3=1), b=scores(n3=2))
    decision, rounds = exchanged(engine, pod(), responses)
    assert [[request.verb for request in requests] for requests in rounds] == [["filter"], ["a", "b"]]
    assert names_asked_about(rounds)[1:] == [["n3", "n2"], ["n3", "n2"]]
    assert decision.node_name == "n3", "10 + 40 are more than 40"


def test_missing_scores_are_ignored() -> None:
    decision, _ = exchanged(engine_with(written(**SCORE)), pod(), answering(prioritize=BROKEN))
    assert (decision.node_name, decision.error) == ("n1", None)


def test_one_node_needs_no_scores() -> None:
    engine = engine_with(written(**FILTER, prioritizeVerb="prioritize", weight=1))
    decision, rounds = exchanged(engine, pod(), answering(filter=only("n3")))
    assert (decision.node_name, len(rounds)) == ("n3", 1)


def test_scores_decide_even_where_all_nodes_are_equal_to_us() -> None:
    unscored = {"plugins": {"score": {"disabled": plugins("*")}}}
    engine = engine_with(written(**SCORE), profiles=[unscored])
    decision, _ = exchanged(engine, pod(), answering(prioritize=scores(n3=1)))
    assert decision.node_name == "n3"


# Preemption

CROWDED = (
    node("n1", cpu=1),
    node("n2", cpu=1),
    node("n3", cpu=2),
    pod("a", uid="ua", cpu=1, on="n1", priority=1),
    pod("b", uid="ub", cpu=1, on="n2", priority=2),
    pod("c", uid="uc", cpu=1, on="n3", priority=3),
    pod("d", uid="ud", cpu=1, on="n3", priority=3),
)
IMPORTANT = pod("important", cpu=1, priority=9)


def left(**by_node: tuple[str, ...]) -> ExtenderPreemptionResult:
    return ExtenderPreemptionResult({name: MetaVictims(uids, 0) for name, uids in by_node.items()})


def preempting(response: ExtenderResponse, **fields: object) -> tuple[Decision, list[tuple[ExtenderRequest, ...]]]:
    return exchanged(engine_with(written(**PREEMPT, **fields), views=CROWDED), IMPORTANT, answering(preempt=response))


def test_candidates_are_shown_with_their_victims() -> None:
    decision, rounds = preempting(left(n1=("ua",), n2=("ub",)))
    assert len(rounds) == 1
    (request,) = rounds[0]
    assert isinstance(request, PreemptRequest)
    shown = {name: [victim.uid for victim in found.pods] for name, found in request.victims.items()}
    assert shown == {"n1": ["ua"], "n2": ["ub"], "n3": ["uc"]}
    assert victims_of(decision) == ("n1", ["a"])


@pytest.mark.parametrize(
    ("response", "plan"),
    [
        pytest.param(left(n2=("ub",)), ("n2", ["b"]), id="strikes candidates off"),
        pytest.param(left(n3=("uc", "ud"), n2=("ub",)), ("n2", ["b"]), id="wants more victims"),
        pytest.param(left(n3=("uc", "ud")), ("n3", ["c", "d"]), id="and gets them"),
        pytest.param(
            ExtenderPreemptionResult({"n1": MetaVictims(("ua",), 2), "n2": MetaVictims(("ub",), 1)}),
            ("n2", ["b"]),
            id="counts broken budgets its own way",
        ),
    ],
)
def test_extenders_change_the_candidates_of_preemption(response: ExtenderResponse, plan: Any) -> None:
    decision, _ = preempting(response)
    assert victims_of(decision) == plan


@pytest.mark.parametrize(
    ("response", "message"),
    [
        pytest.param(left(), "preemption: no candidate node for preemption", id="leaves nobody"),
        pytest.param(BROKEN, "preemption: out of order", id="fails"),
        pytest.param(left(n9=("ua",)), 'preemption: nodeinfo not found for node name "n9"', id="invents a node"),
        pytest.param(
            left(n1=("ub",)),
            "preemption: extender: http://extender.test claims to preempt pod (UID: &{ub}) on node: n1, but the pod "
            "is not found on that node",
            id="names somebody who is not there",
        ),
        pytest.param(left(n1=()), 'preemption: expected at least one victim pod on node "n1"', id="names nobody"),
    ],
)
def test_preemption_that_comes_to_nothing(response: ExtenderResponse, message: str) -> None:
    decision, _ = preempting(response)
    assert victims_of(decision) is None
    assert decision.message is not None
    assert decision.message.endswith(message), decision.message
    assert (decision.code, decision.clears_nomination) == (Code.UNSCHEDULABLE, False)


@pytest.mark.parametrize(
    ("response", "plan"),
    [
        pytest.param(BROKEN, ("n1", ["a"]), id="a failure is passed over"),
        pytest.param(left(n1=(), n2=("ub",)), ("n2", ["b"]), id="a node without victims is no candidate"),
    ],
)
def test_an_extender_that_may_fail_at_preemption(response: ExtenderResponse, plan: Any) -> None:
    decision, _ = preempting(response, ignorable=True)
    assert victims_of(decision) == plan


def test_nodes_that_an_extender_rejected_may_be_freed_by_preemption() -> None:
    engine = engine_with(written(**FILTER), views=(node("n1", cpu=2), pod("a", cpu=1, on="n1", priority=1)))
    rejected = answering(filter=only(failed={"n1": "hot"}))
    decision, _ = exchanged(engine, IMPORTANT, rejected)
    assert (decision.message or "").endswith('preemption: expected at least one victim pod on node "n1"')
    engine = engine_with(written(**FILTER), views=(node("n1", cpu=2), pod("a", cpu=1, on="n1", priority=1)))
    decision, _ = exchanged(engine, IMPORTANT, answering(filter=only(for_good={"n1": "hot"})))
    assert (decision.message or "").endswith("1 Preemption is not helpful for scheduling.")


# What else can happen


class Fragile(PreFilter[None]):
    name = "Fragile"

    def pre_filter(self, pod: PodInfo) -> Proceed[None]:
        raise LookupError("no such luck")


def test_a_plugin_that_fails_ends_a_consultation_too() -> None:
    engine = engine_with(
        written(**FILTER),
        registry=Registry([*PLUGINS, Fragile]),
        profiles=[{"plugins": {"preFilter": {"enabled": plugins("Fragile")}}}],
    )
    decision, rounds = exchanged(engine, pod(), answering())
    assert (decision.error, rounds) == ("prefilter", [])
    assert (decision.message or "").startswith('running PreFilter plugin "Fragile": LookupError: no such luck')


@pytest.mark.parametrize(
    ("views", "view", "code"),
    [
        pytest.param(NODES, pod(gates=["g"]), Code.UNRESOLVABLE, id="a gate"),
        pytest.param((), pod(), Code.UNRESOLVABLE, id="no nodes"),
        pytest.param(NODES, pod(cpu=9), Code.UNSCHEDULABLE, id="no node fits"),
        pytest.param(NODES, pod(claims=["lost"]), Code.UNSCHEDULABLE, id="a PreFilter rejects"),
    ],
)
def test_no_extender_is_called_without_need(views: tuple[ApiObject, ...], view: Pod, code: Code) -> None:
    decision, rounds = exchanged(engine_with(written(**FILTER), views=views), view, answering())
    assert (decision.code, rounds) == (code, [])


def test_a_decision_without_requests() -> None:
    engine = engine_with(written(**FILTER))
    assert engine.decide(engine.record(pod())).node_name == "n1"


def test_an_engine_without_extenders_has_no_questions() -> None:
    engine = engine_of(*NODES)
    assert extenders_of(engine.configuration) == ()
    with pytest.raises(AssertionError, match="no extenders"):
        decide_with_extenders(engine, engine.record(pod()))


ENGINE = engine_of(node("n1"), node("n2"), pod("v", uid="uv", on="n1"), pod("w", uid="uw", on="n2"))
POD = ENGINE.record(pod("p", uid="up"))
VICTIM = ENGINE.columns.pods["uv"]
VERBS = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 1, "preemptVerb": "preempt"}
WHOLE, BY_NAME = extender(**VERBS), extender(**VERBS, nodeCacheCapable=True)
SENT_POD = {"metadata": {"name": "p", "namespace": "default", "uid": "up"}}
SENT_VICTIM = {"metadata": {"name": "v", "namespace": "default", "uid": "uv"}}


@pytest.mark.parametrize(
    ("message", "verb", "sent"),
    [
        pytest.param(
            FilterRequest(BY_NAME, POD, ("n1", "n2")),
            "filter",
            {"Pod": SENT_POD, "Nodes": None, "NodeNames": ["n1", "n2"]},
            id="filter by name",
        ),
        pytest.param(
            PrioritizeRequest(WHOLE, POD, ("n1",)),
            "prioritize",
            {
                "Pod": SENT_POD,
                "Nodes": {"metadata": {}, "items": [{"metadata": {"name": "n1"}, "spec": {"podCIDR": "10.0.0.0/24"}}]},
                "NodeNames": None,
            },
            id="prioritize whole nodes",
        ),
        pytest.param(
            PreemptRequest(BY_NAME, POD, {"n1": Victims((VICTIM,), 1)}),
            "preempt",
            {
                "Pod": SENT_POD,
                "NodeNameToVictims": None,
                "NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "uv"}], "NumPDBViolations": 1}},
            },
            id="preempt by uid",
        ),
        pytest.param(
            PreemptRequest(WHOLE, POD, {"n1": Victims((VICTIM,), 0)}),
            "preempt",
            {
                "Pod": SENT_POD,
                "NodeNameToVictims": {"n1": {"Pods": [SENT_VICTIM], "NumPDBViolations": 0}},
                "NodeNameToMetaVictims": None,
            },
            id="preempt whole pods",
        ),
    ],
)
def test_what_is_sent_for_a_request(message: ExtenderRequest, verb: str, sent: object) -> None:
    assert message.verb == verb
    assert msgspec.json.decode(message.body(NamesAsObjects())) == sent


def test_how_responses_are_read() -> None:
    assert FilterRequest(BY_NAME, POD, ()).read(b'{"NodeNames":["n1"]}') == ExtenderFilterResult(("n1",))
    assert PrioritizeRequest(BY_NAME, POD, ()).read(b'[{"Host":"n1","Score":1}]') == (HostPriority("n1", 1),)
    assert PreemptRequest(BY_NAME, POD, {}).read(b"{}") == ExtenderPreemptionResult({})


def test_filters_are_consulted_one_after_the_other() -> None:
    first, second, other = (
        extender(f"http://{verb}", filterVerb=verb, nodeCacheCapable=True, **fields)
        for verb, fields in (("a", {}), ("b", {}), ("c", {"managedResources": [{"name": "example.com/gpu"}]}))
    )
    responses = answering(a=only("n2", "n1", failed={"n3": "x"}), b=only("n1", failed={"n2": "y", "n3": "z"}))
    found, rounds = drive(filter_with_extenders(POD, ("n1", "n2", "n3"), (first, second, other)), responses)
    assert isinstance(found, FilteredNodes)
    assert found.node_names == ("n1",)
    assert {name: status.reasons for name, status in found.node_to_status.items()} == {"n2": ("y",), "n3": ("z",)}
    assert len(rounds) == 2


def test_scores_of_extenders_with_one_address_add_up() -> None:
    extenders = (extender(**VERBS), extender(**VERBS))
    added, rounds = drive(
        prioritize_with_extenders(POD, ("n1",), extenders), answering(prioritize=(HostPriority("n1", 2),))
    )
    assert added == {"http://extender.test": {"n1": 40}}
    assert len(rounds) == 1


def preempted_with(victims: dict[str, Victims], *extenders: Extender, **responses: ExtenderPreemptionResult) -> object:
    result, _ = drive(preempt_with_extenders(POD, victims, extenders, ENGINE.columns), answering(**responses))
    return result


def found(*pods: PodInfo) -> Victims:
    return Victims(pods, 0)


def test_victims_are_agreed_on_one_after_the_other() -> None:
    other = ENGINE.columns.pods["uw"]
    victims = {"n2": found(other), "n1": found(VICTIM)}
    first, second = extender(preemptVerb="a"), extender(preemptVerb="b")
    both = ExtenderPreemptionResult({"n1": MetaVictims(("uv",), 0), "n2": MetaVictims(("uw",), 3)})
    only_one = ExtenderPreemptionResult({"n1": MetaVictims(("uv",), 0)})
    assert preempted_with(victims, first, a=both) == {"n2": Victims((other,), 3), "n1": found(VICTIM)}
    assert list(preempted_with(victims, first, a=both)) == ["n2", "n1"]  # type: ignore[call-overload]
    assert preempted_with(victims, first, second, a=both, b=only_one) == {"n1": found(VICTIM)}
    assert preempted_with(victims, first, second, a=ExtenderPreemptionResult({}), b=both) == {}, (
        "nobody is left to ask about"
    )
    assert preempted_with(victims, first, second, b=both) == ExtenderFailure("nobody answers a")
    assert preempted_with(victims) == victims
