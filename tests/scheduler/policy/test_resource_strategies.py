"""The strategies of NodeResourcesFit as plugins: the same scores, and words for arguments that say nothing sound."""

from __future__ import annotations

import pytest

from mooring.scheduler.config import ConfigurationError
from mooring.scheduler.framework.plugin import Score
from mooring.scheduler.plugins.node_resources_fit import FitScoreState, NodeResourcesFit
from mooring.scheduler.policy.resource_strategies import (
    NodeResourcesLeastAllocated,
    NodeResourcesMostAllocated,
    RequestedToCapacityRatio,
)
from tests.builders import node, pod
from tests.scheduler.config.builders import Written, plugins, with_arguments, with_profile
from tests.scheduler.harness import engine_of, plugin_of, scored_by

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
def test_arguments_that_are_refused(plugin: str, arguments: Written, complaint: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        engine_of(config=named(plugin, **arguments))
    assert [problem.text for problem in refused.value.problems] == [complaint]
