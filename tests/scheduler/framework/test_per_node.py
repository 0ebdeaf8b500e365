"""A rule written for one node at a time filters and scores like any other plugin, and cannot take the cycle down."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.whatif import WhatIf
from mooring.scheduler.config import ConfigurationError, Problem
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.normalise import scaled_to_best
from mooring.scheduler.framework.per_node import (
    RAW_SCORE_MAX,
    REFUSING_CODES,
    TEXTS_MAX,
    NodeSituation,
    PerNodeFilter,
    PerNodeScore,
    Trial,
    for_good,
    stretched,
)
from mooring.scheduler.framework.plugin import Reads
from mooring.scheduler.framework.registry import BadPluginError
from mooring.scheduler.framework.status import REASONS_MAX, Code, Reason, refusal_of
from mooring.scheduler.plugins.catalogue import default_registry
from tests.builders import HOSTNAME, ZONE, node, pod, pods_like
from tests.scheduler.config.builders import with_profile
from tests.scheduler.harness import decide, engine_of, filter_state, plugin_of, settle

Answer = str | Reason | None


# --- rules to try things out with -------------------------------------------------------------------------------


class ByLabel(PerNodeFilter):
    """Refuses nodes with the words of their label `refuses`; `never` in front of them means for good."""

    name = "ByLabel"

    def __init__(self, columns: Columns, arguments: Mapping[str, object]) -> None:
        super().__init__(columns, arguments)
        self.asked: list[str] = []

    def concerns(self, pod: Pod) -> bool:
        return pod.metadata.labels.get("concerned") != "no"

    def why_not(self, pod: Pod, node: NodeSituation) -> Answer:
        self.asked.append(node.name)
        text = node.labels.get("refuses")
        return for_good(text) if text is not None and text.startswith("never") else text


class OneLoudPod(PerNodeFilter):
    """Two loud pods do not share a node."""

    name = "OneLoudPod"

    def why_not(self, pod: Pod, node: NodeSituation) -> Answer:
        loud = [other for other in node.pods if "loud" in other.shape.labels]
        return "node(s) were loud already" if loud and "loud" in pod.metadata.labels else None


class ByRank(PerNodeScore):
    """Scores nodes by their label `rank`."""

    name = "ByRank"

    def score_node(self, pod: Pod, node: NodeSituation) -> int:
        return int(node.labels.get("rank", "0"))


class ByAnyRank(ByRank):
    name = "ByAnyRank"
    normalises = True


class Says(PerNodeFilter):
    """Answers what the test wants."""

    name = "Says"
    answer: Callable[[Pod, NodeSituation], object] = staticmethod(lambda pod, node: None)

    def why_not(self, pod: Pod, node: NodeSituation) -> Answer:
        return self.answer(pod, node)  # type: ignore[return-value]  # wrong answers are the point


class Scores(PerNodeScore):
    name = "Scores"
    answer: Callable[[Pod, NodeSituation], object] = staticmethod(lambda pod, node: 0)

    def score_node(self, pod: Pod, node: NodeSituation) -> int:
        return self.answer(pod, node)  # type: ignore[return-value]  # wrong answers are the point


class AnyScores(Scores):
    name = "AnyScores"
    normalises = True


class Limit(PerNodeFilter):
    """At most so many pods on a node."""

    name = "Limit"
    limit = 0

    def configure(self, arguments: Mapping[str, object]) -> None:
        limit = arguments["limit"]
        if not isinstance(limit, int):
            raise ValueError(f"limit: found {limit!r}, wanted a number")
        self.limit = limit

    def why_not(self, pod: Pod, node: NodeSituation) -> Answer:
        return "node(s) were at their limit" if node.pod_count >= self.limit else None


class Forgetful(PerNodeFilter):
    name = "Forgetful"

    def __init__(self, arguments: Mapping[str, object]) -> None:
        self.arguments = arguments

    def why_not(self, pod: Pod, node: NodeSituation) -> Answer:
        return None


class RoomForCpu(PerNodeFilter):
    """NodeResourcesFit, as far as cpu and the number of pods go."""

    name = "RoomForCpu"

    def why_not(self, pod: Pod, node: NodeSituation) -> Answer:
        wanted = int(str(pod.spec.containers[0].resources.requests["cpu"]).removesuffix("m"))
        if node.free["pods"] < 1 or node.free["cpu"] < wanted:
            return for_good("small") if node.allocatable["cpu"] < wanted else "full"
        return None


RULES = (ByLabel, OneLoudPod, ByRank, ByAnyRank, Says, Scores, AnyScores, Limit, Forgetful, RoomForCpu)


def engine_with(
    rule: type[PerNodeFilter] | type[PerNodeScore], *views: ApiObject, disabled: str = "", arguments: object = None
) -> Engine:
    registry = default_registry()
    for each in RULES:
        registry.register(each)
    plugins = {"multiPoint": {"enabled": [{"name": rule.name}], "disabled": [{"name": disabled}] if disabled else []}}
    given_arguments = [{"name": rule.name, "args": arguments}] if arguments is not None else []
    return engine_of(*views, config=with_profile(plugins=plugins, pluginConfig=given_arguments), registry=registry)


def situation(engine: Engine, name: str) -> NodeSituation:
    return NodeSituation(engine.columns, engine.columns.row_of[name])


# --- what a rule sees of a node ---------------------------------------------------------------------------------


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
        pytest.param(lambda n: n.view.metadata.name, "n1", id="the whole node"),
        pytest.param(lambda n: n.allocatable["cpu"], 4000, id="cpu in thousandths"),
        pytest.param(lambda n: n.requested["cpu"], 2000, id="what its pods requested"),
        pytest.param(
            lambda n: n.free,
            {"cpu": 2000, "memory": 700, "pods": 8, "example.com/gpu": 0},
            id="what is free, of everything that it offers",
        ),
        pytest.param(lambda n: n.free["example.com/fpga"], 0, id="nothing, of what nobody offers"),
        pytest.param(lambda n: ("cpu" in n.free, "example.com/fpga" in n.free), (True, False), id="what it knows"),
        pytest.param(lambda n: n.pod_count, 2, id="how many pods"),
        pytest.param(lambda n: [p.key for p in n.pods], ["default/a", "default/b"], id="which pods"),
        pytest.param(repr, "NodeSituation(n1)", id="who it is, in a debugger"),
    ],
)
def test_a_situation_shows(read: Callable[[NodeSituation], object], expected: object) -> None:
    assert read(situation(small_cluster(), "n1")) == expected


def test_a_node_without_a_zone_has_none() -> None:
    assert situation(small_cluster(), "n2").zone is None


@pytest.mark.parametrize("attribute", ["name", "labels", "free", "pods", "anything_else"])
def test_a_situation_cannot_be_written(attribute: str) -> None:
    with pytest.raises(AttributeError):
        setattr(situation(small_cluster(), "n1"), attribute, None)


def test_asking_for_a_resource_that_nobody_has_leaves_no_trace() -> None:
    engine = small_cluster()
    before = list(engine.columns.resources.names)
    assert situation(engine, "n1").free["example.com/fpga"] == 0
    assert engine.columns.resources.names == before


def test_a_situation_follows_its_node() -> None:
    engine = small_cluster()
    n2 = situation(engine, "n2")
    engine.put(node("n2", zone="b"))
    engine.put(pod("c", on="n2", cpu=1))
    assert (n2.zone, n2.requested["cpu"], n2.pod_count) == ("b", 1000, 1)


def test_a_situation_shows_what_a_what_if_supposes() -> None:
    engine = small_cluster()
    n1 = situation(engine, "n1")
    with WhatIf(engine.columns) as experiment:
        experiment.displace(engine.columns.pods["default/a"])
        assert ([p.name for p in n1.pods], n1.free["cpu"]) == (["b"], 3500)
    assert ([p.name for p in n1.pods], n1.free["cpu"]) == (["a", "b"], 2000)


# --- filtering --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "code", "reasons"),
    [
        pytest.param("too loud", Code.UNSCHEDULABLE, ("too loud",), id="a text: not now"),
        pytest.param(for_good("too far"), Code.UNRESOLVABLE, ("too far",), id="for good: not ever"),
        pytest.param(Reason("hot"), Code.UNSCHEDULABLE, ("hot",), id="a reason as the framework writes it"),
    ],
)
def test_what_a_rule_says_is_the_refusal(
    answer: object, code: Code, reasons: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Says, "answer", staticmethod(lambda pod, node: answer if node.name == "n1" else None))
    decision = decide(engine_with(Says, node("n1"), node("n2")), pod())
    refusal = decision.refusals["n1"]
    assert refusal is not None
    assert (refusal.plugin, refusal.code, refusal.reasons) == ("Says", code, reasons)
    assert (decision.refusals["n2"], decision.node_name) == (None, "n2")


def test_different_nodes_may_be_refused_in_different_words() -> None:
    nodes = [node(f"n{i}", labels={"refuses": words}) for i, words in enumerate(["dark", "dark", "never lit", "damp"])]
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
            [node("x"), pod("web", on="x", labels={"app": "web"})], id="a node that a filter of the cluster refused"
        ),
    ],
)
def test_a_rule_is_not_asked_about(others: list[Node | Pod]) -> None:
    engine = engine_with(ByLabel, node("n1"), node("n2"), node("n3"), *others)
    decide(engine, pod(cpu=1, apart=[pods_like(HOSTNAME, app="web")]))
    assert plugin_of(engine, ByLabel).asked == ["n1", "n2", "n3"]


def test_a_rule_is_not_asked_about_a_row_that_belongs_to_nobody() -> None:
    engine = engine_with(ByLabel, node("n1"), node("n2"), node("n3"))
    engine.remove(node("n2"))
    assert decide(engine, pod()).node_name == "n1"
    plugin = plugin_of(engine, ByLabel)
    assert plugin.filter(filter_state(plugin, engine.record(pod())), slice(0, 3)).tolist() == [0, 0, 0]
    assert "n2" not in plugin.asked


def test_a_pod_that_is_none_of_its_business_costs_nothing() -> None:
    engine = engine_with(ByLabel, node("n1", labels={"refuses": "everyone"}))
    assert decide(engine, pod(labels={"concerned": "no"})).node_name == "n1"
    assert plugin_of(engine, ByLabel).asked == []


def test_what_the_pods_before_it_changed_counts() -> None:
    engine = engine_with(OneLoudPod, node("n1"), node("n2"))
    loud = {"loud": "yes"}
    assert settle(engine, pod("a", labels=loud), pod("b", labels=loud), pod("c", labels=loud), pod("d")) == [
        *("n1", "n2"),
        None,
        "n1",
    ]


def test_preemption_evicts_whom_the_rule_stands_against() -> None:
    engine = engine_with(
        OneLoudPod,
        node("n1"),
        pod("loud", on="n1", labels={"loud": "yes"}, priority=1),
        pod("quiet", on="n1", priority=1),
    )
    plan = decide(engine, pod("important", labels={"loud": "yes"}, priority=5)).preemption
    assert plan is not None
    assert (plan.node_name, [victim.name for victim in plan.victims]) == ("n1", ["loud"])


def test_preemption_does_not_try_what_is_refused_for_good() -> None:
    engine = engine_with(ByLabel, node("n1", labels={"refuses": "never"}), pod("a", on="n1", priority=1))
    decision = decide(engine, pod(priority=5))
    assert decision.preemption is None
    assert decision.message is not None
    assert decision.message.endswith("Preemption is not helpful for scheduling.")


def test_a_nominated_pod_counts_as_if_it_were_there() -> None:
    loud = {"loud": "yes"}
    engine = engine_with(OneLoudPod, node("n1"), node("n2"), pod("promised", labels=loud, nominated="n1", priority=5))
    decision = decide(engine, pod(labels=loud))
    refusal = decision.refusals["n1"]
    assert refusal is not None
    assert (refusal.reasons, decision.node_name) == (("node(s) were loud already",), "n2")


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
    transcribed = decide(engine_with(RoomForCpu, *views, disabled="NodeResourcesFit"), asking).refusals
    built_in = decide(engine_of(*views), asking).refusals
    assert {n: r and r.code for n, r in transcribed.items()} == {n: r and r.code for n, r in built_in.items()}


# --- more words than bits ---------------------------------------------------------------------------------------


def test_beyond_the_limit_nodes_are_counted_under_one_text() -> None:
    count = TEXTS_MAX + 7
    nodes = [node(f"n{i:03}", labels={"refuses": f"{'never ' if i % 2 else ''}reason {i:03}"}) for i in range(count)]
    decision = decide(engine_with(ByLabel, *nodes), pod())
    told = [refusal for refusal in decision.refusals.values() if refusal is not None]
    other = "node(s) were refused by plugin ByLabel for yet other reasons"
    assert [refusal.reasons[0] for refusal in told].count(other) == 7
    assert [refusal.code is Code.UNRESOLVABLE for refusal in told] == [i % 2 == 1 for i in range(count)]
    assert decision.message is not None
    assert f"7 {other}" in decision.message


REASONS = st.builds(
    Reason, st.sampled_from([f"reason {number}" for number in range(80)]), st.sampled_from(REFUSING_CODES)
)


@given(st.lists(REASONS, max_size=250))
def test_every_reason_has_a_bit_that_says_it(reasons: list[Reason]) -> None:
    trial = Trial("Wordy", pod())
    bits = [trial.bit(reason) for reason in reasons]
    assert len(trial.reasons) <= REASONS_MAX
    failure = next((reason for reason in reasons if reason.code is Code.ERROR), None)
    for reason, bit in zip(reasons, bits, strict=True):
        refusal = refusal_of("Wordy", bit, trial.reasons)
        assert refusal.code is reason.code
        if failure is not None and reason.code is Code.ERROR:
            assert refusal.reasons == (f'running "Wordy" filter plugin: {failure.message}',)
        else:
            other = "node(s) were refused by plugin Wordy for yet other reasons"
            assert refusal.reasons in ((reason.message,), (other,))
            assert len(set(reasons)) > TEXTS_MAX or refusal.reasons == (reason.message,)


# --- failures ---------------------------------------------------------------------------------------------------


def failure_of(decision: Decision) -> tuple[str | None, str]:
    """Where a cycle failed, and what it said."""
    assert decision.node_name is None
    assert decision.rejection is not None
    assert decision.rejection.code is Code.ERROR
    return decision.error, decision.rejection.message


def raises(pod: Pod, node: NodeSituation) -> object:
    if pod.metadata.name == "unlucky" and node.name != "n1":
        raise KeyError("power")
    return None


def test_an_exception_ends_the_cycle_of_its_pod_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Says, "answer", staticmethod(raises))
    engine = engine_with(Says, node("n1"), node("n2"), node("n3"))
    where = f"(test_per_node.py, line {raises.__code__.co_firstlineno + 2})"
    assert failure_of(decide(engine, pod("unlucky"))) == (
        "filter",
        f"running \"Says\" filter plugin: pod default/unlucky on node n2: KeyError: 'power' {where}",
    )
    assert decide(engine, pod("lucky")).node_name == "n1"


def gives_up(pod: Pod, node: NodeSituation) -> object:
    sys.exit("no licence")


def test_a_rule_that_ends_the_process_ends_a_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Says, "answer", staticmethod(gives_up))
    where = f"(test_per_node.py, line {gives_up.__code__.co_firstlineno + 1})"
    assert failure_of(decide(engine_with(Says, node("n1")), pod())) == (
        "filter",
        f'running "Says" filter plugin: pod default/p on node n1: SystemExit: no licence {where}',
    )


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(True, id="yes"),
        pytest.param(False, id="no"),
        pytest.param("", id="no words"),
        pytest.param(["dark"], id="a list"),
        pytest.param(Reason("fine", Code.SUCCESS), id="a reason to let it through"),
        pytest.param(Reason(None), id="a reason without words"),
    ],
)
def test_an_answer_that_means_nothing_is_a_failure(answer: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Says, "answer", staticmethod(lambda pod, node: answer))
    decision = decide(engine_with(Says, node("n1")), pod())
    assert failure_of(decision) == (
        "filter",
        f'running "Says" filter plugin: pod default/p on node n1: why_not answered {answer!r}; '
        "wanted None, a text that says why not, or for_good(text)",
    )


def test_an_exception_before_any_node_is_looked_at_is_a_failure_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def concerns(self: Says, pod: Pod) -> bool:
        raise LookupError

    monkeypatch.setattr(Says, "concerns", concerns)
    decision = decide(engine_with(Says, node("n1")), pod())
    where = f"(test_per_node.py, line {concerns.__code__.co_firstlineno + 1})"
    assert failure_of(decision) == (
        "filter",
        f'running "Says" filter plugin: pod default/p: LookupError {where}',
    )


def test_a_failure_while_preempting_leaves_everything_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails_when_empty(pod: Pod, node: NodeSituation) -> object:
        return "full" if node.pods else 1 / 0

    monkeypatch.setattr(Says, "answer", staticmethod(fails_when_empty))
    engine = engine_with(Says, node("n1"), pod("a", on="n1", priority=1, cpu=1))
    decision = decide(engine, pod(priority=5))
    assert decision.preemption is None
    assert decision.message is not None
    assert "ZeroDivisionError" in decision.message
    assert [p.name for p in situation(engine, "n1").pods] == ["a"]
    assert not engine.columns.in_what_if


def test_a_constructor_that_forgets_its_base_is_told_so() -> None:
    assert failure_of(decide(engine_with(Forgetful, node("n1")), pod())) == (
        "filter",
        'running "Forgetful" filter plugin: pod default/p: '
        "its constructor does not call super().__init__(columns, arguments)",
    )


# --- scoring ----------------------------------------------------------------------------------------------------


def test_the_best_node_wins() -> None:
    ranked = [node(f"n{i}", labels={"rank": rank}) for i, rank in enumerate(["10", "100", "0"])]
    decision = decide(engine_with(ByRank, *ranked), pod())
    assert decision.node_name == "n1"
    assert {name: scores["ByRank"] for name, scores in decision.scores.items()} == {"n0": 10, "n1": 100, "n2": 0}


def test_any_numbers_are_stretched_over_the_feasible_nodes() -> None:
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
def test_stretching(scores: list[int], expected: list[int]) -> None:
    assert stretched(np.array(scores, dtype=np.int64)).tolist() == expected


@given(st.lists(st.integers(-RAW_SCORE_MAX, RAW_SCORE_MAX), min_size=1, max_size=20))
def test_stretching_keeps_the_order_and_the_scale(numbers: list[int]) -> None:
    scores = np.array(numbers, dtype=np.int64)
    result = stretched(scores)
    assert result.min() >= 0
    assert result.max() <= 100
    assert (np.diff(result[np.argsort(scores)]) >= 0).all()
    if scores.min() >= 0:
        assert result.tolist() == scaled_to_best(scores, reverse=False).tolist()


@pytest.mark.parametrize(
    ("rule", "answer", "wanted"),
    [
        pytest.param(Scores, 101, "from 0 to 100; with `normalises = True` any whole number will do", id="too much"),
        pytest.param(Scores, -1, "from 0 to 100; with `normalises = True` any whole number will do", id="too little"),
        pytest.param(Scores, 0.5, "from 0 to 100; with `normalises = True` any whole number will do", id="a fraction"),
        pytest.param(Scores, None, "from 0 to 100; with `normalises = True` any whole number will do", id="nothing"),
        pytest.param(Scores, True, "from 0 to 100; with `normalises = True` any whole number will do", id="yes"),
        pytest.param(AnyScores, 2**60, f"from {-RAW_SCORE_MAX} to {RAW_SCORE_MAX}", id="more than can be stretched"),
    ],
)
def test_a_score_that_cannot_be_is_a_failure(
    rule: type[Scores], answer: object, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scores, "answer", staticmethod(lambda pod, node: answer))
    decision = decide(engine_with(rule, node("n1"), node("n2")), pod())
    assert failure_of(decision) == (
        "score",
        f'running Score plugins: plugin "{rule.name}" failed with: pod default/p on node n1: '
        f"score_node answered {answer!r}; wanted a whole number {wanted}",
    )


def test_a_whole_number_of_numpy_is_a_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scores, "answer", staticmethod(lambda pod, node: np.int64(7)))
    assert decide(engine_with(Scores, node("n1")), pod()).scores["n1"]["Scores"] == 7


def test_an_exception_while_scoring_ends_the_cycle_of_its_pod_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def divides(pod: Pod, node: NodeSituation) -> object:
        return 100 // len(pod.metadata.labels)

    monkeypatch.setattr(Scores, "answer", staticmethod(divides))
    engine = engine_with(Scores, node("n1"), node("n2"))
    where = f"(test_per_node.py, line {divides.__code__.co_firstlineno + 1})"
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
    ("rule", "arguments", "text"),
    [
        pytest.param(Limit, {"limit": "two"}, "limit: found 'two', wanted a number", id="refused on purpose"),
        pytest.param(ByRank, {"b": 1, "a": 2}, "takes no arguments, but was given a, b", id="not expected at all"),
        pytest.param(
            Limit,
            {},
            f"KeyError: 'limit' (test_per_node.py, line {Limit.configure.__code__.co_firstlineno + 1})",
            id="not thought of",
        ),
    ],
)
def test_bad_arguments_are_refused_at_start_up(
    rule: type[Limit] | type[ByRank], arguments: Mapping[str, object], text: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        engine_with(rule, arguments=arguments)
    assert caught.value.problems == (Problem("profiles", f'initializing plugin "{rule.name}": {text}'),)


def test_a_rule_that_filters_and_scores_is_one_plugin() -> None:
    class Both(PerNodeFilter, PerNodeScore):
        name = "Both"

        def why_not(self, pod: Pod, node: NodeSituation) -> Answer:
            return "dark" if "dark" in node.labels else None

        def score_node(self, pod: Pod, node: NodeSituation) -> int:
            return int(node.labels.get("rank", "0"))

    registry = default_registry()
    registry.register(Both)
    config = with_profile(plugins={"multiPoint": {"enabled": [{"name": "Both"}]}})
    nodes = [node("n1", labels={"rank": "99", "dark": "1"}), node("n2", labels={"rank": "1"}), node("n3")]
    assert decide(engine_of(*nodes, config=config, registry=registry), pod()).node_name == "n2"


@pytest.mark.parametrize(
    ("base", "attribute"),
    [
        pytest.param(PerNodeFilter, "filter_reads", id="of a filter"),
        pytest.param(PerNodeScore, "score_reads", id="of a score"),
    ],
)
def test_a_promise_that_nobody_could_keep_is_refused(base: type, attribute: str) -> None:
    with pytest.raises(BadPluginError, match=rf"sets {attribute} = Reads.FACTS, but .* is never kept"):
        type("Promising", (base,), {"name": "Promising", attribute: Reads.FACTS})
