"""Filtering: nominated pods, sampling, and nodes that a PreFilter excludes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.scheduler.cache.arrays import Int64s, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.catalogue import PLUGINS
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.cycle.filter_nodes import Sample, num_feasible_nodes_to_find, sample
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.plugin import Filter, Proceed
from mooring.scheduler.framework.registry import Registry
from mooring.scheduler.framework.status import Code, Reason
from tests.api.builders import node_selector, term
from tests.builders import HOSTNAME, ZONE, node, pod, pods_like, spread
from tests.scheduler.config.builders import configuration, plugins
from tests.scheduler.harness import decide, engine_of

WEB = {"app": "web"}


def rejections(engine: Engine, view: Pod) -> dict[str, str]:
    """The first reason of each node that rejects."""
    return {name: r.reasons[0] for name, r in decide(engine, view).node_to_status.items() if r is not None}


@pytest.mark.parametrize(
    ("nominated_row", "pending", "rejected"),
    [
        pytest.param(
            pod("q", cpu=3, priority=5, nominated="n1"),
            pod(cpu=2, priority=5),
            {"n1": "Insufficient cpu"},
            id="resources that are reserved to an equal is taken",
        ),
        pytest.param(
            pod("q", cpu=3, priority=9, nominated="n1"),
            pod(cpu=2, priority=5),
            {"n1": "Insufficient cpu"},
            id="and to somebody more important",
        ),
        pytest.param(
            pod("q", cpu=3, priority=1, nominated="n1"), pod(cpu=2, priority=5), {}, id="but not to somebody less so"
        ),
        pytest.param(
            pod("q", cpu=3, priority=9, nominated="n1"), pod(cpu=1, priority=5), {}, id="there may be room for both"
        ),
        pytest.param(
            pod("q", ports=["80"], nominated="n1"),
            pod(ports=["80"]),
            {"n1": "node(s) didn't have free ports for the requested pod ports"},
            id="a host port is promised too",
        ),
        pytest.param(
            pod("q", labels=WEB, nominated="n1"),
            pod(apart=[pods_like(HOSTNAME, app="web")]),
            {"n1": "node(s) didn't match pod anti-affinity rules"},
            id="a pod that is not there yet can be in the way",
        ),
        pytest.param(
            pod("q", apart=[pods_like(HOSTNAME, app="web")], nominated="n1"),
            pod(labels=WEB, apart=[pods_like(HOSTNAME, app="db")]),
            {"n1": "node(s) didn't satisfy existing pods anti-affinity rules"},
            id="and can keep others away",
        ),
        pytest.param(
            pod("q", apart=[pods_like(HOSTNAME, app="web")], nominated="n1"),
            pod(labels=WEB),
            {},
            id="except those that affinity had skipped before: so does kube-scheduler v1.36",
        ),
        pytest.param(
            pod("q", labels=WEB, nominated="n1"),
            pod(near=[pods_like(HOSTNAME, app="web")]),
            {
                "n1": "node(s) didn't match pod affinity rules",
                "n2": "node(s) didn't match pod affinity rules",
            },
            id="but is no company yet: the node must be right without it as well",
        ),
        pytest.param(
            pod("q", labels=WEB, nominated="n1"),
            pod(labels=WEB, spread=[spread(HOSTNAME, app="web")]),
            {"n1": "node(s) didn't match pod topology spread constraints"},
            id="and it is spread against",
        ),
        pytest.param(pod("q", cpu=3, priority=9, nominated="elsewhere"), pod(cpu=2), {}, id="a node that nobody knows"),
    ],
)
def test_pods_that_are_nominated_to_other_nodes(nominated_row: Pod, pending: Pod, rejected: dict[str, str]) -> None:
    engine = engine_of(node("n1", cpu=4), node("n2", cpu=4), nominated_row)
    assert rejections(engine, pending) == rejected


def test_what_is_promised_is_not_scored() -> None:
    engine = engine_of(node("n1"), node("n2"))
    before = decide(engine, pod(cpu=1)).scores
    engine.put(pod("q", cpu=1, priority=9, nominated="n1"))
    assert decide(engine, pod(cpu=1)).scores == before


def nominated_to(name: str, *cluster: ApiObject) -> tuple[Engine, Pod]:
    view = pod("mine", cpu=2, priority=5, nominated=name)
    return engine_of(*cluster, view), view


@pytest.mark.parametrize(
    ("cluster", "chosen", "scored"),
    [
        pytest.param([node("n1", cpu=64), node("n2")], "n2", {"n2"}, id="it goes where it was promised room"),
        pytest.param([node("n1"), node("n2", cpu=1)], "n1", {"n1"}, id="or elsewhere, if there is none"),
        pytest.param([node("n1"), node("n3")], "n1", {"n1", "n3"}, id="or elsewhere, if the node is gone"),
        pytest.param(
            [node("n1"), node("n2"), pod("q", cpu=3, priority=9, nominated="n2")],
            "n1",
            {"n1"},
            id="or elsewhere, if the same room was promised to somebody more important",
        ),
    ],
)
def test_a_pod_that_is_nominated_itself(cluster: list[ApiObject], chosen: str, scored: set[str]) -> None:
    engine, view = nominated_to("n2", *cluster)
    decision = decide(engine, view)
    assert decision.node_name == chosen
    assert set(decision.scores) == scored
    assert engine.decide(engine.record(view)).node_name == chosen


def test_a_pod_does_not_conflict_with_its_own_nomination() -> None:
    engine, view = nominated_to("n2", node("n1", cpu=1), node("n2", cpu=3))
    engine.put(pod("q", cpu=1, priority=5, nominated="n2"))
    assert decide(engine, view).node_name == "n2"
    assert rejections(engine, pod("another", cpu=2, priority=5)) == {"n1": "Insufficient cpu", "n2": "Insufficient cpu"}


def test_a_full_decision_of_a_nominated_pod_has_the_statuses_of_other_nodes() -> None:
    engine, view = nominated_to("n2", node("n1", cpu=1), node("n2"), node("n3"))
    assert {name for name, status in decide(engine, view).node_to_status.items() if status is None} == {"n2", "n3"}


def test_a_nominated_node_that_is_not_named_is_tried_all_the_same() -> None:
    view = pod("mine", nominated="n2", nodes=node_selector(term(fields=["metadata.name In n1"])))
    decision = decide(engine_of(node("n1"), node("n2"), node("n3"), view), view)
    assert decision.node_name == "n1"
    said = {name: status.reasons[0] for name, status in decision.node_to_status.items() if status is not None}
    assert said == {
        "n2": "node(s) didn't match Pod's node affinity/selector",
        "n3": "node(s) didn't satisfy plugin(s) [NodeAffinity]",
    }


def test_rows_without_a_node_do_not_count() -> None:
    engine = engine_of(node("n1", zone="a"), node("n2", zone="b"), node("n3", zone="c"))
    engine.remove(node("n2"))
    view = pod(labels=WEB, spread=[spread(ZONE, app="web")])
    assert set(decide(engine, view).node_to_status) == {"n1", "n3"}
    engine.remove(node("n1"))
    engine.remove(node("n3"))
    assert decide(engine, view).error == "nonodes"


@pytest.mark.parametrize(
    ("percentage", "node_count", "wanted"),
    [
        pytest.param(1, 99, 99, id="a small cluster is looked at in full"),
        pytest.param(1, 100, 100, id="so is one of just a hundred"),
        pytest.param(1, 5000, 100, id="a hundred at least"),
        pytest.param(30, 5000, 1500, id="the percentage"),
        pytest.param(33, 1001, 330, id="rounded down"),
        pytest.param(100, 5000, 5000, id="all"),
        pytest.param(0, 1000, 420, id="0: by size, 50 less one for each 125 nodes"),
        pytest.param(0, 6000, 300, id="0: in a large cluster five percent"),
        pytest.param(0, 120, 100, id="0: a hundred at least"),
    ],
)
def test_how_many_are_enough(percentage: int, node_count: int, wanted: int) -> None:
    assert num_feasible_nodes_to_find(percentage, node_count) == wanted


# Which rows are found

ANSWERS = st.lists(st.sampled_from(["fits", "rejects", "fails"]), max_size=30)
ROWS = ANSWERS.flatmap(lambda answers: st.tuples(st.just(tuple(answers)), st.permutations(range(len(answers)))))


@given(ROWS, st.integers(1, 12))
def test_a_sample_is_what_a_search_would_have_found(case: tuple[tuple[str, ...], list[int]], wanted: int) -> None:
    answers, rows = case
    taken = sample(
        np.array(rows, dtype=np.int64),
        np.array([answer == "fits" for answer in answers], dtype=np.bool_),
        np.array([answer == "fails" for answer in answers], dtype=np.bool_),
        wanted,
    )
    found, processed = searched(rows, answers, wanted)
    failed = processed < len(rows) and answers[rows[processed]] == "fails"
    assert taken.found.tolist() == found
    assert taken.processed == processed
    assert taken.unprocessed.tolist() == rows[processed + failed :]


def searched(rows: list[int], answers: tuple[str, ...], wanted: int) -> tuple[list[int], int]:
    """One after the other, until one would be too many or fails."""
    found: list[int] = []
    for place, row in enumerate(rows):
        if answers[row] == "fails":
            return found, place
        if answers[row] == "fits":
            if len(found) == wanted:
                return found, place
            found.append(row)
    return found, len(rows)


def test_without_failures_nothing_is_looked_for() -> None:
    taken = sample(np.arange(3), np.array([True, False, True]), None, 1)
    assert taken == Sample(taken.found, taken.unprocessed, 2)
    assert (taken.found.tolist(), taken.unprocessed.tolist()) == ([0], [2])


# In a cluster


class Fickle(Filter[str]):
    """Fails on the node that the pod's label `break` names."""

    name = "Fickle"
    filter_reasons = (Reason("it broke", Code.ERROR),)

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def pre_filter(self, pod: PodInfo) -> Proceed[str]:
        return Proceed(pod.signature.labels.get("break", ""))

    def filter(self, state: str, rows: Rows) -> Int64s:
        numbers = np.arange(self._columns.height)[rows]
        return np.where(numbers == self._columns.row_of.get(state, -1), 1, 0)


def cluster(count: int, percentage: int | None = None, *, small: int = 0, **settings: object) -> Engine:
    """Nodes n000, n001, … of which the first `small` take no pod."""
    nodes = [node(f"n{number:03}", cpu=0 if number < small else 4) for number in range(count)]
    config = configuration(percentageOfNodesToScore=percentage, **settings)
    return engine_of(*nodes, config=config, registry=Registry([*PLUGINS, Fickle]))


def found(decision: Decision) -> list[int]:
    return sorted(int(name[1:]) for name in decision.scores)


@pytest.mark.parametrize("percentage", [None, 100], ids=["not set", "100"])
def test_all_nodes_are_searched_by_default(percentage: int | None) -> None:
    engine = cluster(250, percentage)
    for _ in range(2):
        decision = decide(engine, pod(cpu=1))
        assert (decision.feasible_count, found(decision)) == (250, list(range(250)))


def test_each_search_starts_where_the_last_one_ended() -> None:
    engine = cluster(250, 1)
    assert found(decide(engine, pod(cpu=1))) == list(range(100))
    assert found(decide(engine, pod(cpu=1))) == list(range(100, 200))
    assert found(decide(engine, pod(cpu=1))) == [*range(50), *range(200, 250)]


def test_nodes_that_reject_are_passed_by() -> None:
    engine = cluster(250, 1, small=30)
    decision = decide(engine, pod(cpu=1))
    assert found(decision) == list(range(30, 130))
    assert set(decision.node_to_status) == {f"n{number:03}" for number in range(130)}, (
        "unprocessed nodes have no status"
    )
    assert found(decide(engine, pod(cpu=1))) == list(range(130, 230))


def test_a_pod_that_fits_nowhere_was_looked_for_everywhere() -> None:
    engine = cluster(250, 1)
    decide(engine, pod(cpu=1))
    decision = decide(engine, pod(cpu=9))
    assert (decision.message or "").startswith("0/250 nodes are available: 250 Insufficient cpu.")
    assert decision.unschedulable_plugins == {"NodeResourcesFit"}
    assert found(decide(engine, pod(cpu=1))) == list(range(100, 200)), "once around, the start is the same"


def test_nodes_of_all_zones_are_in_every_sample() -> None:
    nodes = [node(f"n{number:03}", zone="abc"[number // 100]) for number in range(300)]
    engine = engine_of(*nodes, config=configuration(percentageOfNodesToScore=1))
    assert found(decide(engine, pod(cpu=1))) == [*range(34), *range(100, 133), *range(200, 233)]


def test_profiles_share_the_start_and_may_have_their_own_percentage() -> None:
    profiles = [{"schedulerName": "a", "percentageOfNodesToScore": 50}, {"schedulerName": "b"}]
    engine = cluster(300, 1, profiles=profiles)
    assert found(decide(engine, pod(cpu=1, scheduler="a"))) == list(range(150))
    assert found(decide(engine, pod(cpu=1, scheduler="b"))) == list(range(150, 250))


def test_of_named_nodes_enough_of_them() -> None:
    engine = cluster(300, 40)
    few = pod(cpu=1, nodes=node_selector(*(term(fields=[f"metadata.name In n{n:03}"]) for n in (5, 7))))
    assert found(decide(engine, few)) == [5, 7]
    assert found(decide(engine, pod(cpu=1))) == list(range(2, 122)), "two were looked at"
    many = pod(cpu=1, nodes=node_selector(*(term(fields=[f"metadata.name In n{n:03}"]) for n in range(100, 260))))
    assert len(found(decide(engine, many))) == 100


def test_the_promised_node_is_looked_at_first_and_counts_once() -> None:
    engine = cluster(300, 1, small=1)
    assert decide(engine, pod("lucky", cpu=1, nominated="n007")).node_name == "n007"
    assert found(decide(engine, pod(cpu=1))) == list(range(1, 101)), "only there: nobody else's turn has passed"
    engine = cluster(300, 1, small=1)
    decide(engine, pod("unlucky", cpu=1, nominated="n000"))
    assert found(decide(engine, pod(cpu=1))) == list(range(101, 201)), "it is among those looked at"
    engine = cluster(300, 1, small=1)
    decide(engine, pod(cpu=1))
    decide(engine, pod("unlucky", cpu=1, nominated="n000"))
    assert found(decide(engine, pod(cpu=1))) == [*range(1, 3), *range(202, 300)], "it is one more"


@pytest.mark.parametrize(
    ("broken", "error", "next_found"),
    [
        pytest.param("n050", "filter", range(50, 150), id="where the search gets to"),
        pytest.param("n150", None, range(100, 200), id="where it does not"),
    ],
)
def test_a_filter_that_fails(broken: str, error: str | None, next_found: range) -> None:
    profile = {"plugins": {"multiPoint": {"enabled": plugins("Fickle")}}}
    engine = cluster(300, 1, profiles=[profile])
    assert decide(engine, pod(cpu=1, labels={"break": broken})).error == error
    assert found(decide(engine, pod(cpu=1))) == list(next_found)


def test_where_nothing_is_scored_the_first_node_will_do() -> None:
    unscored = {"plugins": {"score": {"disabled": plugins("*")}}}
    engine = cluster(300, 1, small=2, profiles=[unscored])
    decisions = [decide(engine, pod(cpu=1)) for _ in range(3)]
    assert [decision.node_name for decision in decisions] == ["n002", "n003", "n004"]
    assert [decision.feasible_count for decision in decisions] == [1, 1, 1]


# Against a plain search

PODS = st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=6)


@settings(max_examples=25)
@given(
    sizes=st.lists(st.integers(0, 4), min_size=110, max_size=140),
    zones=st.integers(1, 4),
    percentage=st.sampled_from([0, 1, 85, 95]),
    pending=PODS,
)
def test_an_engine_samples_as_a_plain_search_does(
    sizes: list[int], zones: int, percentage: int, pending: list[tuple[int, bool]]
) -> None:
    nodes = [node(f"n{n:03}", cpu=size, zone=f"z{n * n % zones}") for n, size in enumerate(sizes)]
    free = {node_view.metadata.name: size for node_view, size in zip(nodes, sizes, strict=True)}
    engine = engine_of(*nodes, config=configuration(percentageOfNodesToScore=percentage))
    by_zone: dict[str, list[str]] = {}
    for node_view in nodes:
        by_zone.setdefault(node_view.metadata.labels["topology.kubernetes.io/zone"], []).append(node_view.metadata.name)
    turns = max(len(names) for names in by_zone.values())
    order = [names[turn] for turn in range(turns) for names in by_zone.values() if turn < len(names)]
    start = 0
    for number, (cpu, is_placed) in enumerate(pending):
        decision = decide(engine, pod(f"p{number}", cpu=cpu))
        expected, processed = plain_search(order, start, free, cpu, num_feasible_nodes_to_find(percentage, len(order)))
        assert set(decision.scores) == expected
        assert decision.feasible_count == len(expected)
        start = (start + processed) % len(order)
        if decision.node_name is not None and is_placed:
            assert engine.assume(decision) is None
            free[decision.node_name] -= cpu


def plain_search(order: list[str], start: int, free: Mapping[str, int], cpu: int, wanted: int) -> tuple[set[str], int]:
    found: set[str] = set()
    for step in range(len(order)):
        name = order[(start + step) % len(order)]
        if free[name] >= cpu:
            if len(found) == wanted:
                return found, step
            found.add(name)
    return found, len(order)
