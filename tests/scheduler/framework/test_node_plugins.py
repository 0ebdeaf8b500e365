"""Users' plugins for one node at a time filter and score like any other plugin, and cannot break the cycle."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.scheduler.cache.columns import Columns, Transaction
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.catalogue import default_registry
from mooring.scheduler.config import ConfigProblem, ConfigurationError
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.engine import Engine
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
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.registry import BadPluginError
from mooring.scheduler.framework.status import REASONS_MAX, Code, Reason, status_of
from tests.builders import HOSTNAME, ZONE, node, pod, pods_like
from tests.scheduler.config.builders import with_profile
from tests.scheduler.harness import decide, engine_of, filter_state, plugin_of, settle, without_line

# --- plugins under test ------------------------------------------------------------------------------------------


class ByLabel(FilterPlugin):
    """Rejects nodes with the text of their label `rejects`; a text that starts with `never` is unresolvable."""

    name = "ByLabel"

    def __init__(self) -> None:
        self.evaluated: list[str] = []

    def applies_to(self, pod: Pod) -> bool:
        return pod.metadata.labels.get("filtered") != "no"

    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        self.evaluated.append(node_info.name)
        text = node_info.labels.get("rejects")
        if text is None:
            return Status.success()
        return Status.unresolvable(text) if text.startswith("never") else Status.unschedulable(text)


class OneLoudPod(FilterPlugin):
    """Two loud pods do not share a node."""

    name = "OneLoudPod"

    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        loud = [other for other in node_info.pods if "loud" in other.signature.labels]
        if loud and "loud" in pod.metadata.labels:
            return Status.unschedulable("node(s) were loud already")
        return None


class ByRank(ScorePlugin):
    """Scores nodes by their label `rank`."""

    name = "ByRank"

    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        return int(node_info.labels.get("rank", "0"))


class ByAnyRank(ByRank):
    name = "ByAnyRank"
    normalizes = True


class Says(FilterPlugin):
    """Returns what the test wants."""

    name = "Says"
    answer: Callable[[Pod, NodeInfo], object] = staticmethod(lambda pod, node_info: None)

    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        return self.answer(pod, node_info)  # type: ignore[return-value]  # wrong answers are the point


class Scores(ScorePlugin):
    name = "Scores"
    answer: Callable[[Pod, NodeInfo], object] = staticmethod(lambda pod, node_info: 0)

    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        return self.answer(pod, node_info)  # type: ignore[return-value]  # wrong answers are the point


class AnyScores(Scores):
    name = "AnyScores"
    normalizes = True


class Limit(FilterPlugin):
    """At most so many pods on a node."""

    name = "Limit"
    limit = 0

    def configure(self, arguments: Mapping[str, object]) -> None:
        limit = arguments["limit"]
        if not isinstance(limit, int):
            raise ValueError(f"limit: found {limit!r}, wanted a number")
        self.limit = limit

    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        return Status.unschedulable("node(s) were at their limit") if node_info.pod_count >= self.limit else None


class Marked(FilterPlugin):
    """Takes its arguments in the constructor, and calls no constructor of a base class."""

    name = "Marked"

    def __init__(self, arguments: Mapping[str, object], columns: Columns) -> None:
        self.mark = str(arguments["mark"])
        self.columns = columns

    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        return None if self.mark in node_info.labels else Status.unschedulable("node(s) were not marked")


class RoomForCpu(FilterPlugin):
    """NodeResourcesFit, as far as cpu and the number of pods go."""

    name = "RoomForCpu"

    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        wanted = int(str(pod.spec.containers[0].resources.requests["cpu"]).removesuffix("m"))
        if node_info.free["pods"] >= 1 and node_info.free["cpu"] >= wanted:
            return None
        return Status.unresolvable("small") if node_info.allocatable["cpu"] < wanted else Status.unschedulable("full")


PLUGINS: tuple[type[NodePlugin], ...] = (
    ByLabel,
    OneLoudPod,
    ByRank,
    ByAnyRank,
    Says,
    Scores,
    AnyScores,
    Limit,
    Marked,
    RoomForCpu,
)


def engine_with(plugin: type[NodePlugin], *views: ApiObject, disabled: str = "", arguments: object = None) -> Engine:
    registry = default_registry()
    for plugin_class in dict.fromkeys((*PLUGINS, plugin)):
        registry.register(plugin_class)
    plugins = {"multiPoint": {"enabled": [{"name": plugin.name}], "disabled": [{"name": disabled}] if disabled else []}}
    given_arguments = [{"name": plugin.name, "args": arguments}] if arguments is not None else []
    return engine_of(*views, config=with_profile(plugins=plugins, pluginConfig=given_arguments), registry=registry)


def profile_of(engine: Engine) -> Profile:
    return engine.cycles["default-scheduler"].profile


def node_info(engine: Engine, name: str) -> NodeInfo:
    return NodeInfo(engine.columns, engine.columns.row_of[name])


# --- NodeInfo ---------------------------------------------------------------------------------------------------


def small_cluster() -> Engine:
    return engine_of(
        node(
            "n1", cpu=4, memory=1000, pods=10, zone="a", taints=["gpu=true:NoSchedule"], others={"example.com/gpu": 2}
        ),
        node("n2"),
        pod("a", on="n1", cpu="1500m", memory=300),
        pod("b", on="n1", cpu="500m", others={"example.com/gpu": 2}),
    )


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        pytest.param(lambda n: n.name, "n1", id="its name"),
        pytest.param(lambda n: n.labels, {HOSTNAME: "n1", ZONE: "a"}, id="its labels"),
        pytest.param(lambda n: dict(n.annotations), {}, id="its annotations"),
        pytest.param(lambda n: n.zone, "a", id="its zone"),
        pytest.param(lambda n: [(t.key, t.effect) for t in n.taints], [("gpu", "NoSchedule")], id="its taints"),
        pytest.param(lambda n: n.node.metadata.name, "n1", id="the whole node"),
        pytest.param(lambda n: n.allocatable["cpu"], 4000, id="cpu in thousandths"),
        pytest.param(lambda n: n.requested["cpu"], 2000, id="what its pods requested"),
        pytest.param(
            lambda n: n.free,
            {"cpu": 2000, "memory": 700, "pods": 8, "example.com/gpu": 0},
            id="what is free, of everything that it offers",
        ),
        pytest.param(lambda n: n.free["example.com/fpga"], 0, id="0 of a resource that no node has"),
        pytest.param(lambda n: ("cpu" in n.free, "example.com/fpga" in n.free), (True, False), id="what it knows"),
        pytest.param(lambda n: n.pod_count, 2, id="how many pods"),
        pytest.param(lambda n: [p.key for p in n.pods], ["default/a", "default/b"], id="which pods"),
        pytest.param(repr, "NodeInfo(n1)", id="its name, in a debugger"),
    ],
)
def test_a_node_info_shows(read: Callable[[NodeInfo], object], expected: object) -> None:
    assert read(node_info(small_cluster(), "n1")) == expected


def test_a_node_without_a_zone_has_none() -> None:
    assert node_info(small_cluster(), "n2").zone is None


@pytest.mark.parametrize("attribute", ["name", "labels", "free", "pods", "anything_else"])
def test_a_node_info_cannot_be_written(attribute: str) -> None:
    with pytest.raises(AttributeError):
        setattr(node_info(small_cluster(), "n1"), attribute, None)


def test_reading_an_unknown_resource_does_not_add_it() -> None:
    engine = small_cluster()
    before = list(engine.columns.resources.names)
    assert node_info(engine, "n1").free["example.com/fpga"] == 0
    assert engine.columns.resources.names == before


def test_a_node_info_follows_its_node() -> None:
    engine = small_cluster()
    n2 = node_info(engine, "n2")
    engine.put(node("n2", zone="b"))
    engine.put(pod("c", on="n2", cpu=1))
    assert (n2.zone, n2.requested["cpu"], n2.pod_count) == ("b", 1000, 1)


def test_a_node_info_shows_the_state_of_a_transaction() -> None:
    engine = small_cluster()
    n1 = node_info(engine, "n1")
    with Transaction(engine.columns) as transaction:
        transaction.displace(engine.columns.pods["default/a"])
        assert ([p.name for p in n1.pods], n1.free["cpu"]) == (["b"], 3500)
    assert ([p.name for p in n1.pods], n1.free["cpu"]) == (["a", "b"], 2000)


# --- filtering --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "code", "reasons"),
    [
        pytest.param(Status.unschedulable("too loud"), Code.UNSCHEDULABLE, ("too loud",), id="unschedulable"),
        pytest.param(Status.unresolvable("too far"), Code.UNRESOLVABLE, ("too far",), id="unresolvable"),
        pytest.param(Status.unschedulable("hot", "loud"), Code.UNSCHEDULABLE, ("hot", "loud"), id="several reasons"),
    ],
)
def test_a_status_rejects_the_node(
    answer: object, code: Code, reasons: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Says, "answer", staticmethod(lambda pod, node_info: answer if node_info.name == "n1" else None))
    decision = decide(engine_with(Says, node("n1"), node("n2")), pod())
    status = decision.node_to_status["n1"]
    assert status is not None
    assert (status.plugin, status.code, status.reasons) == ("Says", code, reasons)
    assert (decision.node_to_status["n2"], decision.node_name) == (None, "n2")


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


# --- errors -----------------------------------------------------------------------------------------------------


def failure_of(decision: Decision) -> tuple[str | None, str]:
    """Where a cycle failed, and what it said."""
    assert decision.node_name is None
    assert decision.status is not None
    assert decision.status.code is Code.ERROR
    return decision.error, decision.status.message


def raises(pod: Pod, node_info: NodeInfo) -> object:
    if pod.metadata.name == "unlucky" and node_info.name != "n1":
        raise KeyError("power")
    return None


def test_an_exception_ends_the_cycle_of_its_pod_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Says, "answer", staticmethod(raises))
    engine = engine_with(Says, node("n1"), node("n2"), node("n3"))
    where = f"(test_node_plugins.py, line {raises.__code__.co_firstlineno + 2})"
    assert failure_of(decide(engine, pod("unlucky"))) == (
        "filter",
        f"running \"Says\" filter plugin: pod default/unlucky on node n2: KeyError: 'power' {where}",
    )
    assert decide(engine, pod("lucky")).node_name == "n1"


def gives_up(pod: Pod, node_info: NodeInfo) -> object:
    sys.exit("no licence")


def test_sys_exit_fails_one_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Says, "answer", staticmethod(gives_up))
    where = f"(test_node_plugins.py, line {gives_up.__code__.co_firstlineno + 1})"
    assert failure_of(decide(engine_with(Says, node("n1")), pod())) == (
        "filter",
        f'running "Says" filter plugin: pod default/p on node n1: SystemExit: no licence {where}',
    )


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(True, id="True"),
        pytest.param(False, id="False"),
        pytest.param(3, id="a number"),
        pytest.param("too loud", id="a text"),
        pytest.param(Reason("fine"), id="a Reason, which is for array plugins"),
        pytest.param(Status, id="the class"),
    ],
)
def test_a_filter_that_returns_no_status_is_an_error(answer: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Says, "answer", staticmethod(lambda pod, node_info: answer))
    decision = decide(engine_with(Says, node("n1")), pod())
    assert failure_of(decision) == (
        "filter",
        'running "Says" filter plugin: pod default/p on node n1: '
        f"filter returned {answer!r}; expected None or a Status",
    )


class Unprintable:
    """A value that cannot be shown, compared or tested."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __bool__(self) -> bool:
        raise RuntimeError("no bool")


@pytest.mark.parametrize(
    ("plugin", "method", "text"),
    [
        pytest.param(
            Says, "filter", 'running "Says" filter plugin: pod default/p on node n1: RuntimeError: no repr', id="filter"
        ),
        pytest.param(
            Scores,
            "score",
            'running Score plugins: plugin "Scores" failed with: pod default/p on node n1: RuntimeError: no repr',
            id="score",
        ),
        pytest.param(
            Says, "applies_to", 'running "Says" filter plugin: pod default/p: RuntimeError: no bool', id="applies_to"
        ),
    ],
)
def test_a_value_that_raises_when_it_is_looked_at_is_an_error(
    plugin: type[NodePlugin], method: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin, method, lambda *arguments: Unprintable())
    _, message = failure_of(decide(engine_with(plugin, node("n1"), node("n2")), pod()))
    assert without_line(message) == text


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no str")


def test_an_exception_that_cannot_be_shown_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(pod: Pod, node_info: NodeInfo) -> object:
        raise Unspeakable

    monkeypatch.setattr(Says, "answer", staticmethod(answer))
    _, message = failure_of(decide(engine_with(Says, node("n1")), pod()))
    assert without_line(message) == 'running "Says" filter plugin: pod default/p on node n1: Unspeakable'


def test_a_status_can_report_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Says, "answer", staticmethod(lambda pod, node_info: Status.error("the meter is away")))
    assert failure_of(decide(engine_with(Says, node("n1")), pod())) == (
        "filter",
        'running "Says" filter plugin: the meter is away',
    )


def loose(value: Any) -> Any:
    """A value that the type checker does not look at."""
    return value


@pytest.mark.parametrize(
    ("make", "text"),
    [
        pytest.param(
            Status.unschedulable, "reasons=(), plugin=''); a Status unschedulable needs a reason", id="no reason"
        ),
        pytest.param(
            lambda: Status.unresolvable(""),
            "('',), plugin=''); the reasons of a Status are texts that are not empty",
            id="an empty reason",
        ),
        pytest.param(
            lambda: Status(Code.ERROR, loose(7)),
            "reasons=7, plugin=''); the reasons of a Status are texts that are not empty",
            id="a number",
        ),
        pytest.param(
            lambda: Status(Code.ERROR, loose("away")),
            "'away', plugin=''); the reasons of a Status are texts that are not empty",
            id="a text, no tuple",
        ),
        pytest.param(
            lambda: Status(Code.SUCCESS, ("x",)), "a Status success has no reasons", id="success with a reason"
        ),
        pytest.param(
            lambda: Status(Code.WAIT),
            "reasons=(), plugin=''); a Status for a node is success, unschedulable, unresolvable, error",
            id="a code of another extension point",
        ),
    ],
)
def test_an_invalid_status_is_an_error(make: Callable[[], Status], text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(pod: Pod, node_info: NodeInfo) -> Status:
        return make()

    monkeypatch.setattr(Says, "answer", staticmethod(answer))
    _, message = failure_of(decide(engine_with(Says, node("n1")), pod()))
    assert message.startswith('running "Says" filter plugin: pod default/p on node n1: filter returned Status(code=')
    assert message.endswith(text)


def test_an_exception_in_applies_to_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def applies_to(self: Says, pod: Pod) -> bool:
        raise LookupError

    monkeypatch.setattr(Says, "applies_to", applies_to)
    decision = decide(engine_with(Says, node("n1")), pod())
    where = f"(test_node_plugins.py, line {applies_to.__code__.co_firstlineno + 1})"
    assert failure_of(decision) == (
        "filter",
        f'running "Says" filter plugin: pod default/p: LookupError {where}',
    )


def test_an_error_during_preemption_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails_when_empty(pod: Pod, node_info: NodeInfo) -> object:
        return Status.unschedulable("full") if node_info.pods else 1 / 0

    monkeypatch.setattr(Says, "answer", staticmethod(fails_when_empty))
    engine = engine_with(Says, node("n1"), pod("a", on="n1", priority=1, cpu=1))
    decision = decide(engine, pod(priority=5))
    assert decision.preemption is None
    assert decision.message is not None
    assert "ZeroDivisionError" in decision.message
    assert [p.name for p in node_info(engine, "n1").pods] == ["a"]
    assert not engine.columns.in_transaction


def test_the_line_of_an_inherited_method_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere: dict[str, object] = {"__name__": "elsewhere"}
    source = """
from tests.scheduler.framework.test_node_plugins import Says

class Inherits(Says):
    name = "Inherits"
"""
    exec(compile(source, "elsewhere.py", "exec"), elsewhere)
    monkeypatch.setattr(Says, "answer", staticmethod(raises))
    inherits = elsewhere["Inherits"]
    assert isinstance(inherits, type)
    assert issubclass(inherits, FilterPlugin)
    _, message = failure_of(decide(engine_with(inherits, node("n1"), node("n2")), pod("unlucky")))
    assert message.endswith(f"(test_node_plugins.py, line {raises.__code__.co_firstlineno + 2})")


# --- scoring ----------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("plugin", "answer", "wanted"),
    [
        pytest.param(Scores, 101, "from 0 to 100; with `normalizes = True` any whole number is valid", id="too much"),
        pytest.param(Scores, -1, "from 0 to 100; with `normalizes = True` any whole number is valid", id="too little"),
        pytest.param(Scores, 0.5, "from 0 to 100; with `normalizes = True` any whole number is valid", id="a fraction"),
        pytest.param(Scores, None, "from 0 to 100; with `normalizes = True` any whole number is valid", id="nothing"),
        pytest.param(Scores, True, "from 0 to 100; with `normalizes = True` any whole number is valid", id="yes"),
        pytest.param(AnyScores, 2**60, f"from {-RAW_SCORE_MAX} to {RAW_SCORE_MAX}", id="more than can be scaled"),
    ],
)
def test_an_invalid_score_is_an_error(
    plugin: type[Scores], answer: object, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scores, "answer", staticmethod(lambda pod, node_info: answer))
    decision = decide(engine_with(plugin, node("n1"), node("n2")), pod())
    assert failure_of(decision) == (
        "score",
        f'running Score plugins: plugin "{plugin.name}" failed with: pod default/p on node n1: '
        f"score returned {answer!r}; expected a whole number {wanted}",
    )


def test_a_whole_number_of_numpy_is_a_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scores, "answer", staticmethod(lambda pod, node_info: np.int64(7)))
    assert decide(engine_with(Scores, node("n1")), pod()).scores["n1"]["Scores"] == 7


def test_an_exception_while_scoring_ends_the_cycle_of_its_pod_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def divides(pod: Pod, node_info: NodeInfo) -> object:
        return 100 // len(pod.metadata.labels)

    monkeypatch.setattr(Scores, "answer", staticmethod(divides))
    engine = engine_with(Scores, node("n1"), node("n2"))
    where = f"(test_node_plugins.py, line {divides.__code__.co_firstlineno + 1})"
    assert failure_of(engine.decide(engine.record(pod("bare")))) == (
        "score",
        'running Score plugins: plugin "Scores" failed with: pod default/bare on node n1: '
        f"ZeroDivisionError: integer division or modulo by zero {where}",
    )
    assert decide(engine, pod(labels={"app": "web"})).node_name == "n1"


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
            f"KeyError: 'limit' (test_node_plugins.py, line {Limit.configure.__code__.co_firstlineno + 1})",
            id="an exception",
        ),
        pytest.param(
            Marked,
            {},
            f"KeyError: 'mark' (test_node_plugins.py, line {Marked.__init__.__code__.co_firstlineno + 1})",
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
