"""NodeLabel: labels that a profile requires, forbids or prefers, whatever their values."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.api.views.node import Node
from mooring.scheduler.config import ConfigurationError
from mooring.scheduler.framework.events import ActionType, ClusterEvent, EventResource
from mooring.scheduler.framework.plugin import SKIP, Score
from mooring.scheduler.framework.status import Code
from mooring.scheduler.plugins.node_resources_fit import FitScoreState, NodeResourcesFit
from mooring.scheduler.policy.plugins import (
    NodeLabel,
    NodeResourcesLeastAllocated,
    NodeResourcesMostAllocated,
    RequestedToCapacityRatio,
)
from tests.builders import node, pod
from tests.scheduler.config.builders import Written, plugins, with_arguments, with_profile
from tests.scheduler.harness import decide, engine_of, plugin_of, rejected_by, scored_by

SAID = ("node(s) didn't have the requested labels",)
NODES = (
    node("plain"),
    node("fast", labels={"disk": "ssd"}),
    node("leaving", labels={"retiring": "2026-11-16"}),
    node("both", labels={"disk": "", "retiring": ""}),
)


def profile(**arguments: list[str]) -> Written:
    enabled = {"multiPoint": {"enabled": plugins("NodeLabel")}}
    return with_profile(plugins=enabled, pluginConfig=[{"name": "NodeLabel", "args": arguments}])


@pytest.mark.parametrize(
    ("arguments", "rejecting"),
    [
        pytest.param({"presentLabels": ["disk"]}, ["plain", "leaving"], id="a label that must be there"),
        pytest.param({"absentLabels": ["retiring"]}, ["leaving", "both"], id="a label that must not be there"),
        pytest.param(
            {"presentLabels": ["disk"], "absentLabels": ["retiring"]}, ["plain", "leaving", "both"], id="both demands"
        ),
        pytest.param({"presentLabels": ["disk", "retiring"]}, ["plain", "fast", "leaving"], id="all of several"),
        pytest.param({"absentLabels": ["disk", "retiring"]}, ["fast", "leaving", "both"], id="none of several"),
        pytest.param(
            {"presentLabels": ["nobody/has-it"]}, [node_view.metadata.name for node_view in NODES], id="nobody has it"
        ),
    ],
)
def test_labels_that_decide(arguments: dict[str, list[str]], rejecting: list[str]) -> None:
    engine = engine_of(*NODES, config=profile(**arguments))
    assert rejected_by(engine, NodeLabel, pod()) == dict.fromkeys(rejecting, SAID)


@pytest.mark.parametrize(
    ("arguments", "scores"),
    [
        pytest.param({"presentLabelsPreference": ["disk"]}, [0, 100, 0, 100], id="a label that is liked"),
        pytest.param({"absentLabelsPreference": ["retiring"]}, [100, 100, 0, 0], id="a label that is disliked"),
        pytest.param(
            {"presentLabelsPreference": ["disk"], "absentLabelsPreference": ["retiring"]},
            [50, 100, 0, 50],
            id="the average of two",
        ),
        pytest.param(
            {"presentLabelsPreference": ["disk", "retiring", "rack"]}, [0, 33, 33, 66], id="an average is cut off"
        ),
        pytest.param(
            {"presentLabelsPreference": ["disk", "disk", "retiring"]}, [0, 66, 33, 100], id="said twice, counted twice"
        ),
    ],
)
def test_labels_that_are_liked(arguments: dict[str, list[str]], scores: list[int]) -> None:
    engine = engine_of(*NODES, config=profile(**arguments))
    assert scored_by(engine, NodeLabel, pod()) == dict(
        zip((node_view.metadata.name for node_view in NODES), scores, strict=True)
    )


def test_without_arguments_it_has_nothing_to_say() -> None:
    engine = engine_of(*NODES, config=profile())
    assert rejected_by(engine, NodeLabel, pod()) is SKIP
    assert scored_by(engine, NodeLabel, pod()) is SKIP


def test_preemption_is_not_tried_for_a_label() -> None:
    engine = engine_of(
        node("full", cpu=1), pod("small", cpu=1, priority=0, on="full"), config=profile(presentLabels=["disk"])
    )
    decision = decide(engine, pod(priority=10))
    status = decision.node_to_status["full"]
    assert status is not None
    assert status.code is Code.UNRESOLVABLE
    assert decision.preemption is None


def test_cached_results_follow_the_labels() -> None:
    engine = engine_of(node("n1"), config=profile(presentLabels=["disk"], presentLabelsPreference=["rack"]))
    assert decide(engine, pod()).node_name is None
    engine.put(node("n1", labels={"disk": "ssd"}))
    assert decide(engine, pod()).scores["n1"]["NodeLabel"] == 0
    engine.put(node("n1", labels={"disk": "ssd", "rack": "r1"}))
    assert decide(engine, pod()).scores["n1"]["NodeLabel"] == 100


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param(
            {"presentLabels": ["a", "b"], "absentLabels": ["c", "b"]},
            'presentLabels[1]: Invalid value: "b": conflict with absentLabels[1]',
            id="demanded and forbidden",
        ),
        pytest.param(
            {"presentLabelsPreference": ["a"], "absentLabelsPreference": ["a"]},
            'presentLabelsPreference[0]: Invalid value: "a": conflict with absentLabelsPreference[0]',
            id="liked and disliked",
        ),
        pytest.param(
            {"presentLabel": ["a"]},
            'strict decoding error: unknown field "presentLabel"; did you mean "presentLabels"?',
            id="misspelt",
        ),
        pytest.param({"absentLabels": "a"}, 'absentLabels: expected a list, found the text "a"', id="not a list"),
    ],
)
def test_arguments_that_are_rejected(arguments: dict[str, list[str]], complaint: str) -> None:
    with pytest.raises(ConfigurationError) as rejected:
        engine_of(config=profile(**arguments))
    assert str(rejected.value) == f'initializing plugin "NodeLabel": {complaint}'


def test_a_node_with_other_labels_can_help() -> None:
    (registered,) = plugin_of(engine_of(config=profile(presentLabels=["disk"])), NodeLabel).events_to_register()
    assert registered.matches(ClusterEvent(EventResource.NODE, ActionType.ADD))
    assert registered.matches(ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL))
    assert not registered.matches(ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT))
    assert not registered.matches(ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE))


# --- against the rule, written down for one node ----------------------------------------------------------------

KEYS = ("a", "b", "c")
some_keys = st.lists(st.sampled_from(KEYS), max_size=3)
some_nodes = st.lists(st.dictionaries(st.sampled_from(KEYS), st.sampled_from(("", "x")), max_size=3), max_size=6)


def expected_rejection(view: Node, present: list[str], absent: list[str]) -> bool:
    for label in present:
        if label not in view.metadata.labels:
            return True
    return any(label in view.metadata.labels for label in absent)


def expected_score(view: Node, present: list[str], absent: list[str]) -> int:
    score = 0
    for label in present:
        score += 100 if label in view.metadata.labels else 0
    for label in absent:
        score += 0 if label in view.metadata.labels else 100
    return score // (len(present) + len(absent))


@settings(max_examples=100)
@given(nodes=some_nodes, present=some_keys, absent=some_keys)
def test_results_equal_the_plain_rule(nodes: list[dict[str, str]], present: list[str], absent: list[str]) -> None:
    absent = [key for key in absent if key not in present]
    views = [node(f"n{number}", labels=labels) for number, labels in enumerate(nodes)]
    arguments = {
        "presentLabels": present,
        "absentLabels": absent,
        "presentLabelsPreference": present,
        "absentLabelsPreference": absent,
    }
    engine = engine_of(*views, config=profile(**arguments))
    rejected, scored = rejected_by(engine, NodeLabel, pod()), scored_by(engine, NodeLabel, pod())
    if not present and not absent:
        assert rejected is SKIP
        assert scored is SKIP
        return
    assert rejected == {v.metadata.name: SAID for v in views if expected_rejection(v, present, absent)}
    assert scored == {v.metadata.name: expected_score(v, present, absent) for v in views}


CLUSTER = (
    node("empty", cpu=8, memory="16Gi"),
    node("busy", cpu=8, memory="16Gi"),
    node("lopsided", cpu=4, memory="32Gi"),
    pod("on-busy", cpu=5, memory="6Gi", on="busy"),
    pod("on-lopsided", cpu="3500m", memory="1Gi", on="lopsided"),
)
WANTED = pod(cpu=2, memory="3Gi")
RISING = [{"utilization": 0, "score": 0}, {"utilization": 70, "score": 10}, {"utilization": 100, "score": 4}]
CPU_COUNTS_MORE = [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 1}]


def named(plugin: str, **arguments: object) -> Written:
    enabled = {"multiPoint": {"enabled": plugins(plugin)}}
    return with_profile(plugins=enabled, pluginConfig=[{"name": plugin, "args": arguments}])


@pytest.mark.parametrize(
    ("kind", "arguments", "strategy"),
    [
        pytest.param(NodeResourcesLeastAllocated, {}, {"type": "LeastAllocated"}, id="free nodes first"),
        pytest.param(NodeResourcesMostAllocated, {}, {"type": "MostAllocated"}, id="full nodes first"),
        pytest.param(
            NodeResourcesLeastAllocated,
            {"resources": CPU_COUNTS_MORE},
            {"type": "LeastAllocated", "resources": CPU_COUNTS_MORE},
            id="resources with weights",
        ),
        pytest.param(
            RequestedToCapacityRatio,
            {"shape": RISING},
            {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": RISING}},
            id="a shape",
        ),
    ],
)
def test_they_score_as_node_resources_fit_does(
    kind: type[Score[FitScoreState]], arguments: Written, strategy: Written
) -> None:
    alone = engine_of(*CLUSTER, config=named(kind.name, **arguments))
    fit = engine_of(*CLUSTER, config=with_arguments("NodeResourcesFit", {"scoringStrategy": strategy}))
    scores = scored_by(alone, kind, WANTED)
    assert scores == scored_by(fit, NodeResourcesFit, WANTED)
    assert isinstance(scores, dict)
    assert len(set(scores.values())) == len(scores)
    plugin, record = plugin_of(alone, kind), alone.record(WANTED)
    assert isinstance(plugin, NodeResourcesLeastAllocated | NodeResourcesMostAllocated | RequestedToCapacityRatio)
    rows = alone.columns.rows_named(scores)
    state = plugin.pre_score(record, rows)
    assert [plugin.score_row(state, row) for row in rows.tolist()] == [
        scores[alone.columns.node_names[row]] for row in rows.tolist()
    ]


@pytest.mark.parametrize(
    ("plugin", "arguments", "complaint"),
    [
        pytest.param(
            "RequestedToCapacityRatio",
            {},
            'initializing plugin "RequestedToCapacityRatio": args.shape: Required value: at least one point must be '
            "specified",
            id="no shape",
        ),
        pytest.param(
            "NodeResourcesMostAllocated",
            {"shape": RISING},
            'initializing plugin "NodeResourcesMostAllocated": args.shape: Forbidden: only RequestedToCapacityRatio '
            "has one",
            id="a shape for one that has none",
        ),
        pytest.param(
            "NodeResourcesLeastAllocated",
            {"resources": [{"name": "cpu", "weight": 101}]},
            'initializing plugin "NodeResourcesLeastAllocated": args.resources[0].weight: Invalid value: 101: resource '
            "weight of cpu not in valid range (0, 100]",
            id="too large a weight",
        ),
        pytest.param(
            "NodeResourcesLeastAllocated",
            {"resource": []},
            'initializing plugin "NodeResourcesLeastAllocated": strict decoding error: unknown field "resource"; did '
            'you mean "resources"?',
            id="a misspelt field",
        ),
    ],
)
def test_arguments_that_are_rejected_by_strategies(plugin: str, arguments: Written, complaint: str) -> None:
    with pytest.raises(ConfigurationError) as rejected:
        engine_of(config=named(plugin, **arguments))
    assert [problem.text for problem in rejected.value.problems] == [complaint]
