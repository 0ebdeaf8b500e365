"""Plugins for one node at a time filter and score like any other plugin."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.catalogue import default_registry
from mooring.scheduler.config import ConfigProblem, ConfigurationError
from mooring.scheduler.framework.adapter import (
    RAW_SCORE_MAX,
    REASONS_REPORTED_MAX,
    REJECTING_CODES,
    NodePluginAdapter,
    NodePluginState,
    scaled,
)
from mooring.scheduler.framework.guard import PluginError
from mooring.scheduler.framework.node_plugins import FilterPlugin, NodeInfo, NodePlugin, ScorePlugin, Status
from mooring.scheduler.framework.plugin import Filter, Permit, Scope, Score, scaled_to_best
from mooring.scheduler.framework.registry import BadPluginError
from mooring.scheduler.framework.status import REASONS_MAX, Code, Reason, status_of
from tests.builders import HOSTNAME, node, pod, pods_like
from tests.scheduler.framework.node_plugins import (
    ByAnyRank,
    ByLabel,
    ByRank,
    Limit,
    Marked,
    OneLoudPod,
    RoomForCpu,
    engine_with,
    profile_of,
)
from tests.scheduler.harness import decide, engine_of, filter_state, plugin_of, settle


def test_nodes_can_be_rejected_for_different_reasons() -> None:
    nodes = [node(f"n{i}", labels={"rejects": words}) for i, words in enumerate(["dark", "dark", "never lit", "damp"])]
    message = decide(engine_with(ByLabel, *nodes), pod()).message
    assert message is not None
    assert message.startswith("0/4 nodes are available: 1 damp, 1 never lit, 2 dark.")


@pytest.mark.parametrize(
    "others",
    [
        pytest.param([node("x", unschedulable=True)], id="a cordoned node"),
        pytest.param([node("x", cpu="100m")], id="a node without room"),
        pytest.param([node("x", taints=["gpu:NoSchedule"])], id="a tainted node"),
        pytest.param([node(f"x{i}", unschedulable=True) for i in range(9)], id="most nodes, if most are cordoned"),
        pytest.param(
            [node("x"), pod("web", on="x", labels={"app": "web"})], id="a node that a filter of the cluster rejected"
        ),
    ],
)
def test_a_plugin_is_not_called_for(others: list[Node | Pod]) -> None:
    engine = engine_with(ByLabel, node("n1"), node("n2"), node("n3"), *others)
    decide(engine, pod(cpu=1, apart=[pods_like(HOSTNAME, app="web")]))
    assert plugin_of(engine, ByLabel).evaluated == ["n1", "n2", "n3"]


def test_a_plugin_is_not_called_for_a_row_without_a_node() -> None:
    engine = engine_with(ByLabel, node("n1"), node("n2"), node("n3"))
    engine.remove(node("n2"))
    assert decide(engine, pod()).node_name == "n1"
    (adapter,) = [use.plugin for use in profile_of(engine).filters if use.plugin.name == "ByLabel"]
    assert adapter.filter(filter_state(adapter, engine.record(pod())), slice(0, 3)).tolist() == [0, 0, 0]
    assert "n2" not in plugin_of(engine, ByLabel).evaluated


def test_a_pod_that_the_plugin_does_not_apply_to_is_skipped() -> None:
    engine = engine_with(ByLabel, node("n1", labels={"rejects": "everyone"}))
    assert decide(engine, pod(labels={"filtered": "no"})).node_name == "n1"
    assert plugin_of(engine, ByLabel).evaluated == []


def test_a_filter_sees_the_pods_placed_before() -> None:
    engine = engine_with(OneLoudPod, node("n1"), node("n2"))
    loud = {"loud": "yes"}
    assert settle(engine, pod("a", labels=loud), pod("b", labels=loud), pod("c", labels=loud), pod("d")) == [
        *("n1", "n2"),
        None,
        "n1",
    ]


def test_preemption_evicts_the_pods_that_the_plugin_objects_to() -> None:
    engine = engine_with(
        OneLoudPod,
        node("n1"),
        pod("loud", on="n1", labels={"loud": "yes"}, priority=1),
        pod("quiet", on="n1", priority=1),
    )
    plan = decide(engine, pod("important", labels={"loud": "yes"}, priority=5)).preemption
    assert plan is not None
    assert (plan.node_name, [victim.name for victim in plan.victims]) == ("n1", ["loud"])


def test_preemption_does_not_try_an_unresolvable_node() -> None:
    engine = engine_with(ByLabel, node("n1", labels={"rejects": "never"}), pod("a", on="n1", priority=1))
    decision = decide(engine, pod(priority=5))
    assert decision.preemption is None
    assert decision.message is not None
    assert decision.message.endswith("Preemption is not helpful for scheduling.")


def test_a_nominated_pod_counts_as_if_it_were_there() -> None:
    loud = {"loud": "yes"}
    engine = engine_with(OneLoudPod, node("n1"), node("n2"), pod("promised", labels=loud, nominated="n1", priority=5))
    decision = decide(engine, pod(labels=loud))
    status = decision.node_to_status["n1"]
    assert status is not None
    assert (status.reasons, decision.node_name) == (("node(s) were loud already",), "n2")


@given(
    cpus_milli=st.lists(st.integers(0, 40), min_size=1, max_size=6),
    placed=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 20)), max_size=8),
    wanted_milli=st.integers(1, 30),
)
def test_a_transcription_of_a_built_in_filter_lets_the_same_nodes_through(
    cpus_milli: list[int], placed: list[tuple[int, int]], wanted_milli: int
) -> None:
    views: list[ApiObject] = [node(f"n{i}", cpu=f"{cpu}m", pods=3) for i, cpu in enumerate(cpus_milli)]
    views += [pod(f"p{i}", on=f"n{at % len(cpus_milli)}", cpu=f"{cpu}m") for i, (at, cpu) in enumerate(placed)]
    asking = pod(cpu=f"{wanted_milli}m")
    transcribed = decide(engine_with(RoomForCpu, *views, disabled="NodeResourcesFit"), asking).node_to_status
    built_in = decide(engine_of(*views), asking).node_to_status
    assert {n: r and r.code for n, r in transcribed.items()} == {n: r and r.code for n, r in built_in.items()}


# --- more reasons than bits -------------------------------------------------------------------------------------


def test_beyond_the_limit_nodes_are_counted_under_one_reason() -> None:
    count = REASONS_REPORTED_MAX + 7
    nodes = [node(f"n{i:03}", labels={"rejects": f"{'never ' if i % 2 else ''}reason {i:03}"}) for i in range(count)]
    decision = decide(engine_with(ByLabel, *nodes), pod())
    reported = [status for status in decision.node_to_status.values() if status is not None]
    other = "node(s) were rejected by plugin ByLabel for other reasons"
    assert [status.reasons[0] for status in reported].count(other) == 7
    assert [status.code is Code.UNRESOLVABLE for status in reported] == [i % 2 == 1 for i in range(count)]
    assert decision.message is not None
    assert f"7 {other}" in decision.message


REASONS = st.builds(
    Reason, st.sampled_from([f"reason {number}" for number in range(80)]), st.sampled_from(REJECTING_CODES)
)


@given(st.lists(REASONS, max_size=250))
def test_every_reason_has_a_bit(reasons: list[Reason]) -> None:
    state = NodePluginState("Wordy", pod())
    bits = [state.bit(reason) for reason in reasons]
    assert len(state.reasons) <= REASONS_MAX
    failure = next((reason for reason in reasons if reason.code is Code.ERROR), None)
    for reason, bit in zip(reasons, bits, strict=True):
        status = status_of("Wordy", bit, state.reasons)
        assert status.code is reason.code
        if failure is not None and reason.code is Code.ERROR:
            assert status.reasons == (f'running "Wordy" filter plugin: {failure.message}',)
        else:
            other = "node(s) were rejected by plugin Wordy for other reasons"
            assert status.reasons in ((reason.message,), (other,))
            assert len(set(reasons)) > REASONS_REPORTED_MAX or status.reasons == (reason.message,)


def test_the_best_node_wins() -> None:
    ranked = [node(f"n{i}", labels={"rank": rank}) for i, rank in enumerate(["10", "100", "0"])]
    decision = decide(engine_with(ByRank, *ranked), pod())
    assert decision.node_name == "n1"
    assert {name: scores["ByRank"] for name, scores in decision.scores.items()} == {"n0": 10, "n1": 100, "n2": 0}


def test_normalised_scores_are_scaled_over_the_feasible_nodes() -> None:
    ranked = [node(f"n{i}", labels={"rank": rank}) for i, rank in enumerate(["1000", "250", "0"])]
    cordoned = node("n9", labels={"rank": "9999"}, unschedulable=True)
    decision = decide(engine_with(ByAnyRank, *ranked, cordoned), pod())
    assert {name: scores["ByAnyRank"] for name, scores in decision.scores.items()} == {"n0": 100, "n1": 25, "n2": 0}


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        pytest.param([], [], id="no nodes"),
        pytest.param([0, 0], [0, 0], id="nothing to tell them apart by"),
        pytest.param([7], [100], id="one node is the best"),
        pytest.param([50, 200, 100], [25, 100, 50], id="shares of the best"),
        pytest.param([-500, -100, -300], [0, 100, 50], id="less is better: from the worst to the best"),
        pytest.param([-50, 50], [0, 100], id="on both sides of zero"),
        pytest.param([-3, -3], [0, 0], id="all equally bad"),
        pytest.param([-RAW_SCORE_MAX, RAW_SCORE_MAX, 0], [0, 100, 50], id="as far apart as they may be"),
    ],
)
def test_scaling(scores: list[int], expected: list[int]) -> None:
    assert scaled(np.array(scores, dtype=np.int64)).tolist() == expected


@given(st.lists(st.integers(-RAW_SCORE_MAX, RAW_SCORE_MAX), min_size=1, max_size=20))
def test_scaling_keeps_the_order(numbers: list[int]) -> None:
    scores = np.array(numbers, dtype=np.int64)
    result = scaled(scores)
    assert result.min() >= 0
    assert result.max() <= 100
    assert (np.diff(result[np.argsort(scores)]) >= 0).all()
    if scores.min() >= 0:
        assert result.tolist() == scaled_to_best(scores, reverse=False).tolist()


# --- configuration ----------------------------------------------------------------------------------------------


def test_arguments_come_from_the_configuration() -> None:
    engine = engine_with(Limit, node("n1"), pod("a", on="n1"), node("n2"), arguments={"limit": 1})
    assert settle(engine, pod("b"), pod("c")) == ["n2", None]


@pytest.mark.parametrize(
    ("plugin", "arguments", "text"),
    [
        pytest.param(Limit, {"limit": "two"}, "limit: found 'two', wanted a number", id="rejected on purpose"),
        pytest.param(ByRank, {"b": 1, "a": 2}, "takes no arguments, but was given a, b", id="not expected at all"),
        pytest.param(
            Limit,
            {},
            f"KeyError: 'limit' (node_plugins.py, line {Limit.configure.__code__.co_firstlineno + 1})",
            id="an exception",
        ),
        pytest.param(
            Marked,
            {},
            f"KeyError: 'mark' (node_plugins.py, line {Marked.__init__.__code__.co_firstlineno + 1})",
            id="an exception in the constructor",
        ),
    ],
)
def test_bad_arguments_are_rejected_at_start_up(
    plugin: type[NodePlugin], arguments: Mapping[str, object], text: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        engine_with(plugin, arguments=arguments)
    assert caught.value.problems == (ConfigProblem("profiles", f'initializing plugin "{plugin.name}": {text}'),)


def test_a_constructor_can_take_the_arguments_and_needs_no_base_constructor() -> None:
    engine = engine_with(Marked, node("n1"), node("n2", labels={"gold": ""}), arguments={"mark": "gold"})
    assert decide(engine, pod()).node_name == "n2"
    assert plugin_of(engine, Marked).columns is engine.columns


def test_a_class_that_filters_and_scores_is_one_plugin() -> None:
    class Both(FilterPlugin, ScorePlugin):
        name = "Both"

        def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
            return Status.unschedulable("dark") if "dark" in node_info.labels else None

        def score(self, pod: Pod, node_info: NodeInfo) -> int:
            return int(node_info.labels.get("rank", "0"))

    nodes = [node("n1", labels={"rank": "99", "dark": "1"}), node("n2", labels={"rank": "1"}), node("n3")]
    engine = engine_with(Both, *nodes)
    assert decide(engine, pod()).node_name == "n2"
    profile = profile_of(engine)
    (filtering,) = [use.plugin for use in profile.filters if use.plugin.name == "Both"]
    assert isinstance(filtering, NodePluginAdapter)
    assert any(use.plugin is filtering for use in profile.scores)


def test_a_class_can_serve_other_extension_points_as_well() -> None:
    class Gate(FilterPlugin, Permit):
        name = "Gate"

        def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
            return Status.unschedulable("closed") if "closed" in node_info.labels else None

        def permit(self, pod: PodInfo, node_name: str) -> None:
            raise ZeroDivisionError("oops")

    engine = engine_with(Gate, node("n1", labels={"closed": ""}), node("n2"))
    assert decide(engine, pod()).node_name == "n2"
    (permit,) = profile_of(engine).permits
    assert permit is plugin_of(engine, Gate)
    with pytest.raises(PluginError, match="ZeroDivisionError: oops"):
        permit.permit(engine.record(pod()), "n2")


class Twice(FilterPlugin):
    name = "Twice"

    def __init__(self, arguments: Mapping[str, object]) -> None: ...

    def configure(self, arguments: Mapping[str, object]) -> None: ...

    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        return None


@pytest.mark.parametrize(
    ("plugin", "text"),
    [
        pytest.param(
            type("Cached", (ByLabel,), {"name": "Cached", "filter_scope": Scope.NODE}),
            "sets filter_scope, but results of a FilterPlugin are not cached; remove it, or inherit from Filter and",
            id="a filter that declares a scope",
        ),
        pytest.param(
            type("Cached", (ByRank,), {"name": "Cached", "score_scope": Scope.NODE_PODS}),
            "sets score_scope, but results of a ScorePlugin are not cached; remove it, or inherit from Score and",
            id="a score that declares a scope",
        ),
        pytest.param(
            type("Mixed", (ByLabel, Filter), {"name": "Mixed"}),
            "inherits from both FilterPlugin and Filter: keep one of them",
            id="filters for one node and for many",
        ),
        pytest.param(
            type("Mixed", (ByRank, Score), {"name": "Mixed"}),
            "inherits from both ScorePlugin and Score: keep one of them",
            id="scores for one node and for many",
        ),
        pytest.param(
            Twice, "takes arguments in its constructor and in configure: keep one of them", id="arguments in two places"
        ),
        pytest.param(
            type("Idle", (NodePlugin,), {"name": "Idle"}),
            "serves no extension point: inherit from FilterPlugin, ScorePlugin, …",
            id="no extension point",
        ),
    ],
)
def test_a_class_is_not_registered_that(plugin: type[NodePlugin], text: str) -> None:
    with pytest.raises(BadPluginError, match=re.escape(text)):
        default_registry().register(plugin)
