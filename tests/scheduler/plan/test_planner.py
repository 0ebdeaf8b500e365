"""Plans of small clusters, by question; and bounds: never better than a real placement."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.kit.entropy import Entropy
from mooring.scheduler.config import load_configuration
from mooring.scheduler.engine import Engine
from mooring.scheduler.plan.bound import NOT_INSTALLED, fewest_used_nodes, most_pods
from mooring.scheduler.plan.planner import Planner
from mooring.scheduler.plan.request import NodeType, PlanError, PlanRequest, PlanResult, Question
from tests.api.builders import selector
from tests.builders import HOSTNAME, ZONE, budget, node, owned_by, pod, pods_like, spread
from tests.scheduler.cache.logical_state import logical_state

WEB = owned_by("ReplicaSet", "web")
DAEMON = owned_by("DaemonSet", "agent")


def engine_with(*objects: ApiObject) -> Engine:
    engine = Engine(load_configuration(None), entropy=Entropy(1))
    for view in objects:
        engine.put(view)
    return engine


def plan(
    objects: Iterable[ApiObject], question: Question, *pods: Pod, pending: Iterable[Pod] = (), **options: object
) -> PlanResult:
    """The result of a plan, which must leave no trace."""
    engine = engine_with(*objects)
    waiting = [engine.record(view) for view in pending]
    before = logical_state(engine.columns)
    request = PlanRequest(question, pods=pods, **options)  # type: ignore[arg-type]
    result = Planner(engine, lambda: waiting).plan(request)
    assert logical_state(engine.columns) == before
    again = Planner(engine, lambda: waiting).plan(request)
    assert msgspec.json.encode(again) == msgspec.json.encode(result)
    return result


def nodes_of(result: PlanResult) -> dict[str, str]:
    return {placement.pod: placement.node for placement in result.placements}


# Placing


def test_each_pod_sees_the_ones_before_it() -> None:
    result = plan(
        [node("n1", cpu=2), node("n2", cpu=1)], Question.PLACE, pod("a", cpu=2), pod("b", cpu=1), pod("c", cpu=1)
    )
    assert nodes_of(result) == {"default/a": "n1", "default/b": "n2"}
    (pending,) = result.pending
    assert pending.pod == "default/c"
    assert pending.message.startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert pending.reasons == {"Insufficient cpu": 2}


def test_pods_of_higher_priority_come_first() -> None:
    result = plan([node("n1", cpu=1)], Question.PLACE, pod("low", cpu=1), pod("high", cpu=1, priority=10))
    assert nodes_of(result) == {"default/high": "n1"}


def test_a_pod_that_waits_for_others_is_tried_again_after_them() -> None:
    near = pod("near", near=[pods_like(HOSTNAME, app="db")], priority=10)
    result = plan([node("n1", cpu=1), node("n2", cpu=1)], Question.PLACE, near, pod("db", cpu=1, labels={"app": "db"}))
    placed = nodes_of(result)
    assert placed["default/near"] == placed["default/db"]
    assert not result.pending


def test_without_pods_the_pending_pods_of_the_cluster_are_planned() -> None:
    result = plan([node("n1")], Question.PLACE, pending=[pod("waiting", cpu=1)])
    assert nodes_of(result) == {"default/waiting": "n1"}


def test_preemption_names_victims_and_violated_budgets() -> None:
    objects = [
        node("n1", cpu=1),
        pod("old", cpu=1, on="n1", labels={"app": "old"}),
        budget("keep", selector(app="old"), allowed=0),
    ]
    (placed,) = plan(objects, Question.PLACE, pod("new", cpu=1, priority=10)).placements
    assert (placed.node, placed.victims[0].pod) == ("n1", "default/old")
    assert placed.victims[0].budgets_violated == ("default/keep",)


# Removing nodes


def test_evicted_pods_move_and_daemon_pods_end() -> None:
    objects = [
        node("n1"),
        node("n2"),
        pod("web-1", cpu=1, on="n1", owner=WEB),
        pod("agent-1", on="n1", owner=DAEMON),
        pod("bare", on="n2"),
    ]
    result = plan(objects, Question.REMOVE_NODES, nodes=("n1",))
    assert nodes_of(result) == {"default/web-1": "n2"}
    (drained,) = result.drained
    assert (drained.is_safe, drained.pods, drained.ends) == (True, 1, ("default/agent-1",))


def test_requested_pods_are_placed_after_the_nodes_are_removed() -> None:
    objects = [node("n1", cpu=8), node("n2", cpu=4), pod("web-1", cpu=2, on="n1", owner=WEB)]
    asked = pod("new-1", cpu=2), pod("new-2", cpu=2)
    assert len(plan(objects, Question.PLACE, *asked).placements) == 2
    result = plan(objects, Question.REMOVE_NODES, *asked, nodes=("n1",))
    assert nodes_of(result) == {"default/web-1": "n2", "default/new-1": "n2"}
    assert [pending.pod for pending in result.pending] == ["default/new-2"]


def test_no_pod_moves_to_a_node_that_is_removed_next() -> None:
    objects = [node("n1"), node("n2"), node("n3"), pod("web-1", on="n1", owner=WEB), pod("web-2", on="n2", owner=WEB)]
    result = plan(objects, Question.REMOVE_NODES, nodes=("n1", "n2"))
    assert set(nodes_of(result).values()) == {"n3"}


def test_a_pod_without_a_place_is_pending_and_its_node_comes_last() -> None:
    objects = [
        node("n1", cpu=4),
        node("n2", cpu=1),
        node("n3", cpu=1),
        pod("large", cpu=4, on="n1", owner=WEB),
        pod("small", cpu=1, on="n2", owner=WEB),
    ]
    result = plan(objects, Question.REMOVE_NODES, nodes=("n1", "n2"))
    assert [(drained_node.node, drained_node.is_safe) for drained_node in result.drained] == [
        ("n2", True),
        ("n1", False),
    ]
    assert [(pending.pod, pending.moved_from) for pending in result.pending] == [("default/large", "n1")]


def test_a_budget_that_allows_nothing_blocks_the_drain() -> None:
    objects = [
        node("n1"),
        node("n2"),
        pod("db-0", on="n1", owner=owned_by("StatefulSet", "db"), labels={"app": "db"}),
        budget("db", selector(app="db"), allowed=0),
    ]
    (drained,) = plan(objects, Question.REMOVE_NODES, nodes=("n1",)).drained
    assert drained.blocked == ("PodDisruptionBudget default/db blocks default/db-0",)
    assert not drained.is_safe


def test_a_budget_of_one_lets_pods_go_one_after_the_other() -> None:
    objects = [
        node("n1"),
        node("n2"),
        *(pod(f"db-{n}", on="n1", owner=owned_by("StatefulSet", "db"), labels={"app": "db"}) for n in range(3)),
        budget("db", selector(app="db"), allowed=1),
    ]
    (drained,) = plan(objects, Question.REMOVE_NODES, nodes=("n1",)).drained
    assert (drained.is_safe, drained.blocked) == (True, ())


def test_a_pod_without_a_controller_is_lost() -> None:
    (drained,) = plan([node("n1"), node("n2"), pod("bare", on="n1")], Question.REMOVE_NODES, nodes=("n1",)).drained
    assert (drained.lost, drained.is_safe) == (("default/bare",), False)


def test_an_unknown_node_is_an_error_with_the_nearest_name() -> None:
    planner = Planner(engine_with(node("worker-1")), lambda: ())
    with pytest.raises(PlanError, match=r'found no node "worker-l"; did you mean worker-1\?'):
        planner.plan(PlanRequest(Question.REMOVE_NODES, nodes=("worker-l",)))


def test_a_text_that_is_too_long_for_a_name_has_no_nearest_name() -> None:
    name = "w" * 254
    planner = Planner(engine_with(node("w" * 253)), lambda: ())
    with pytest.raises(PlanError, match=f'found no node "{name}"$'):
        planner.plan(PlanRequest(Question.REMOVE_NODES, nodes=(name,)))


# Adding nodes


@pytest.mark.parametrize(
    ("types", "words"),
    [
        ((), "adding nodes needs at least one type of node"),
        ((NodeType("m", node("m"), count=1001),), "found 1001 nodes to add; a plan adds at most 1000"),
        ((NodeType("m", node("m")), NodeType("m", node("n"))), 'found two types of nodes with the name "m"'),
    ],
)
def test_types_of_nodes_that_cannot_be_added(types: tuple[NodeType, ...], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        plan([node("n1")], Question.ADD_NODES, pod("p"), node_types=types)


def test_the_smallest_number_of_nodes() -> None:
    pods = [pod(f"p{number}", cpu=1) for number in range(10)]
    result = plan([node("n1", cpu=1)], Question.ADD_NODES, *pods, node_types=(NodeType("m", node("m", cpu=4)),))
    assert [(new_nodes.type, new_nodes.count) for new_nodes in result.nodes_to_add] == [("m", 3)]
    assert not result.pending


def test_daemon_pods_take_their_share_of_a_new_node() -> None:
    objects = [node("n1", cpu=1), pod("agent-1", cpu=1, on="n1", owner=DAEMON)]
    pods = [pod(f"p{number}", cpu=1) for number in range(6)]
    result = plan(objects, Question.ADD_NODES, *pods, node_types=(NodeType("m", node("m", cpu=4)),))
    assert result.nodes_to_add[0].count == 2


def test_the_cheapest_mix_of_types() -> None:
    pods = [pod("large", cpu=8), *(pod(f"small-{number}", cpu=1) for number in range(2))]
    types = (NodeType("large", node("large", cpu=8), price=8.0), NodeType("small", node("small", cpu=2), price=2.0))
    result = plan([node("n1", cpu=1, pods=0)], Question.ADD_NODES, *pods, node_types=types)
    assert {new_nodes.type: new_nodes.count for new_nodes in result.nodes_to_add} == {"large": 1, "small": 1}


def test_a_pod_that_fits_on_no_type_stays_pending_and_the_others_are_placed() -> None:
    pods = [pod("huge", cpu=64), pod("small", cpu=1)]
    result = plan([node("n1", pods=0)], Question.ADD_NODES, *pods, node_types=(NodeType("m", node("m", cpu=4)),))
    assert result.nodes_to_add[0].count == 1
    assert [pending.pod for pending in result.pending] == ["default/huge"]


def test_a_given_number_of_nodes_is_added() -> None:
    types = (NodeType("m", node("m", cpu=1), count=2),)
    result = plan([node("n1", pods=0)], Question.ADD_NODES, *(pod(f"p{n}", cpu=1) for n in range(3)), node_types=types)
    assert (len(result.placements), len(result.pending)) == (2, 1)


def test_anti_affinity_needs_a_node_for_each_pod() -> None:
    apart = [pods_like(HOSTNAME, app="web")]
    pods = [pod(f"p{number}", labels={"app": "web"}, apart=apart) for number in range(5)]
    result = plan([node("n1")], Question.ADD_NODES, *pods, node_types=(NodeType("m", node("m")),))
    assert result.nodes_to_add[0].count == 4


# Fixing


@pytest.mark.parametrize(
    ("objects", "wanted", "changes"),
    [
        ([node("n1", cpu=2)], pod("p", cpu=3), ("request 2 cpu instead of 3",)),
        ([node("n1", taints=["gpu=true:NoSchedule"])], pod("p"), ("tolerate gpu=true:NoSchedule",)),
        ([node("n1", unschedulable=True)], pod("p"), ("uncordon node n1",)),
        ([node("n1")], pod("p", node_labels={"disk": "ssd"}), ("drop the node selector disk=ssd",)),
        (
            [node("n1"), pod("taken", ports=["80"], on="n1")],
            pod("p", ports=["80"]),
            ("do not use host port 80",),
        ),
        (
            [node("n1"), pod("other", labels={"app": "x"}, on="n1")],
            pod("p", apart=[pods_like(HOSTNAME, app="x")]),
            ("drop the required pod anti-affinity",),
        ),
        (
            [node("n1"), pod("one", labels={"app": "x"}, on="n1"), node("n2", cpu=0)],
            pod("p", cpu=1, labels={"app": "x"}, spread=[spread(HOSTNAME, app="x")]),
            ("drop the topology spread constraints with DoNotSchedule",),
        ),
    ],
    ids=["requests", "taint", "cordon", "selector", "port", "anti-affinity", "spread"],
)
def test_the_smallest_fix_comes_first(objects: list[ApiObject], wanted: Pod, changes: tuple[str, ...]) -> None:
    result = plan(objects, Question.FIX, wanted)
    assert result.fixes[0].changes == changes
    assert result.fixes[0].node == "n1"


def test_other_fixes_follow() -> None:
    objects = [node("n1", cpu=2), pod("other", cpu=1, on="n1", owner=WEB)]
    changes = [fix.changes for fix in plan(objects, Question.FIX, pod("p", cpu=2)).fixes]
    assert changes == [
        ("request 1 cpu instead of 2",),
        ("evict default/other from node n1",),
        ("add a node like n1",),
    ]


def test_a_fix_that_requests_less_than_another_one_is_left_out() -> None:
    objects: list[ApiObject] = [node("n1", cpu=2), node("n2", cpu=1)]
    changes = [fix.changes for fix in plan(objects, Question.FIX, pod("p", cpu=4)).fixes]
    assert [change for change in changes if change[0].startswith("request")] == [("request 2 cpu instead of 4",)]


def test_an_eviction_that_violates_a_budget_names_it() -> None:
    other = pod("other", cpu=1, on="n1", owner=WEB, labels={"app": "x"})
    objects = [node("n1", cpu=2), other, budget("b", selector(app="x"), allowed=0)]
    changes = [fix.changes for fix in plan(objects, Question.FIX, pod("p", cpu=2)).fixes]
    assert ("evict default/other from node n1 (violates budget default/b)",) in changes


def test_new_nodes_that_differ_in_their_zone_only_are_one_fix() -> None:
    objects: list[ApiObject] = [
        *(node(f"n{number}", cpu=4, labels={ZONE: f"z{number}"}) for number in range(3)),
        *(pod(f"other-{number}", cpu=1, on=f"n{number}", owner=WEB) for number in range(3)),
        node("large", cpu=8, unschedulable=True),
    ]
    changes = [fix.changes for fix in plan(objects, Question.FIX, pod("p", cpu=4)).fixes]
    new = [change[0] for change in changes if change[0].startswith("add")]
    assert new == ["add a node like n0", "add a node like large"]


def test_a_pod_that_fits_needs_no_fix() -> None:
    result = plan([node("n1")], Question.FIX, pod("p"))
    assert (result.fixes, nodes_of(result)) == ((), {"default/p": "n1"})


# Capacity


def test_how_many_more_fit_and_what_runs_out() -> None:
    objects = [node("n1", cpu=4), node("n2", cpu=4), pod("there", cpu=3, on="n2")]
    capacity = plan(objects, Question.CAPACITY, pod("web", cpu=1)).capacity
    assert capacity is not None
    assert (capacity.groups, capacity.limited_by) == (5, "Insufficient cpu")


def test_pods_in_a_ratio() -> None:
    result = plan([node("n1", cpu=10)], Question.CAPACITY, pod("web", cpu=1), pod("db", cpu=2), ratio=(2, 1))
    assert result.capacity is not None
    assert result.capacity.pods == {"default/web": 4, "default/db": 2}


# Defragmenting


def test_pods_move_together_and_nodes_become_empty() -> None:
    objects = [
        *(node(f"n{number}", cpu=4) for number in range(4)),
        *(pod(f"web-{number}", cpu=1, on=f"n{number}", owner=WEB) for number in range(4)),
    ]
    result = plan(objects, Question.DEFRAGMENT)
    assert result.before is not None
    assert result.after is not None
    assert (result.before.empty_nodes, result.after.empty_nodes) == (0, 3)
    assert len(result.moves) == 3


def test_a_budget_keeps_a_node_in_use() -> None:
    objects = [
        *(node(f"n{number}", cpu=4) for number in range(2)),
        *(pod(f"web-{n}", cpu=1, on=f"n{n}", owner=WEB, labels={"app": "web"}) for n in range(2)),
        budget("web", selector(app="web"), allowed=0),
    ]
    assert plan(objects, Question.DEFRAGMENT).moves == ()


def test_room_for_a_pod_takes_the_fewest_moves() -> None:
    objects = [
        node("n1", cpu=4),
        node("n2", cpu=4),
        pod("a", cpu=1, on="n1", owner=WEB),
        pod("b", cpu=2, on="n1", owner=WEB),
        pod("c", cpu=1, on="n2", owner=WEB),
    ]
    result = plan(objects, Question.DEFRAGMENT, pod("large", cpu=4))
    assert [(move.pod, move.from_node, move.to_node) for move in result.moves] == [("default/c", "n2", "n1")]
    assert nodes_of(result) == {"default/large": "n2"}


def test_no_moves_make_room_for_a_pod_larger_than_any_node() -> None:
    result = plan([node("n1", cpu=4), pod("a", cpu=1, on="n1", owner=WEB)], Question.DEFRAGMENT, pod("huge", cpu=8))
    assert (result.moves, [pending.pod for pending in result.pending]) == ((), ["default/huge"])


CPUS = st.lists(st.integers(1, 8), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(CPUS, st.lists(st.integers(2, 16), min_size=1, max_size=3))
def test_no_plan_is_cheaper_than_the_bound(cpus: list[int], sizes: list[int]) -> None:
    pods = tuple(pod(f"p{number}", cpu=cpu) for number, cpu in enumerate(cpus))
    types = tuple(
        NodeType(f"t{number}", node(f"t{number}", cpu=size), float(size)) for number, size in enumerate(sizes)
    )
    planner = Planner(engine_with(node("n1", cpu=3)), lambda: ())
    result = planner.plan(PlanRequest(Question.ADD_NODES, pods=pods, node_types=types))
    assert result.bound is not None
    assert result.bound.value is not None
    assert sum(new_nodes.price for new_nodes in result.nodes_to_add) >= result.bound.value - 1e-6


@settings(max_examples=60, deadline=None)
@given(CPUS)
def test_no_placement_has_more_pods_than_the_bound(cpus: list[int]) -> None:
    pods = tuple(pod(f"p{number}", cpu=cpu) for number, cpu in enumerate(cpus))
    engine = engine_with(node("n1", cpu=8), node("n2", cpu=4))
    bound = most_pods(engine, [engine.record(view) for view in pods])
    result = Planner(engine, lambda: ()).plan(PlanRequest(Question.PLACE, pods=pods))
    assert bound.value is not None
    assert len(result.placements) <= bound.value


def test_a_bound_that_is_reached() -> None:
    pods = tuple(pod(f"p{number}", cpu=2) for number in range(8))
    planner = Planner(engine_with(node("n1", pods=0)), lambda: ())
    types = (NodeType("m", node("m", cpu=4)),)
    result = planner.plan(PlanRequest(Question.ADD_NODES, pods=pods, node_types=types))
    assert result.nodes_to_add[0].count == 4
    assert result.bound is not None
    assert result.bound.text == "no plan needs fewer than 4 nodes."


def test_selectors_and_taints_count() -> None:
    engine = engine_with(
        node("n1", cpu=8), node("n2", cpu=8, labels={"disk": "ssd"}), node("n3", taints=["x:NoSchedule"])
    )
    pods = [engine.record(pod(f"p{number}", cpu=4, node_labels={"disk": "ssd"})) for number in range(5)]
    assert most_pods(engine, pods).value == 2


def test_pods_that_cannot_move_keep_their_nodes() -> None:
    engine = engine_with(
        *(node(f"n{number}", cpu=4) for number in range(3)),
        pod("bare", cpu=1, on="n0"),
        pod("web-1", cpu=4, on="n1", owner=WEB),
        pod("web-2", cpu=1, on="n2", owner=WEB),
    )
    assert fewest_used_nodes(engine).value == 2


def test_without_the_solver_the_text_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    engine = engine_with(node("n1"))
    bound = most_pods(engine, [engine.record(pod("p"))])
    assert (bound.value, bound.text) == (None, NOT_INSTALLED)
