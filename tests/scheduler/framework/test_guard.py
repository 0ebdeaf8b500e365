"""The guard: whatever a user's plugin raises or returns fails one cycle and names the plugin."""

from __future__ import annotations

import asyncio
import signal

import numpy as np
import pytest

from mooring.scheduler.cache.arrays import Int64s, ReasonBits, Rows, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.catalogue import PLUGINS
from mooring.scheduler.config.types import InterPodAffinityArgs
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.plugin import (
    Filter,
    Plugin,
    PostFilter,
    PreEnqueue,
    PreFilter,
    PreScore,
    Proceed,
    Reserve,
    Scope,
    Score,
)
from mooring.scheduler.framework.post_filter import FailedAttempt, PostFilterResult
from mooring.scheduler.framework.registry import Registry
from mooring.scheduler.framework.status import Code, Reason, Status
from mooring.scheduler.plugins.inter_pod_affinity import InterPodAffinity, OwnTerms, Preferred, RequiredTerms
from mooring.scheduler.plugins.node_unschedulable import NodeUnschedulable
from tests.builders import HOSTNAME, node, pod
from tests.scheduler.config.builders import plugins, with_profile
from tests.scheduler.harness import decide, engine_of

NODES = (node("n1", cpu=2), node("n2", cpu=2), node("n3", unschedulable=True))


class Fragile(PreEnqueue, PreFilter[str], Filter[str], PostFilter, PreScore[str], Score[str], Reserve):
    """Breaks at the step that the pod's label `break` names. What reads the cluster: asked for each pod."""

    name = "Fragile"
    filter_reasons = (Reason("node(s) were dull"),)
    normalizes = True

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self.unreserved: list[str] = []

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        self._perhaps(pod.signature.labels.get("break", ""), "pre_enqueue")
        return None

    def pre_filter(self, pod: PodInfo) -> Proceed[str]:
        wish = pod.signature.labels.get("break", "")
        self._perhaps(wish, "pre_filter")
        return Proceed(wish)

    def filter(self, state: str, rows: Rows) -> Int64s:
        self._perhaps(state, "filter")
        if state == "answer with text":
            return ["x"] * length_of(rows)  # type: ignore[return-value]
        if state == "answer too little":
            return np.ones(2, dtype=np.int64)
        return np.full(length_of(rows), state == "post_filter", dtype=np.int64)

    def post_filter(self, attempt: FailedAttempt) -> PostFilterResult:
        self._perhaps(attempt.pod.signature.labels.get("break", ""), "post_filter")
        return PostFilterResult(status=Status.unschedulable("no idea"))

    def pre_score(self, pod: PodInfo, feasible: Rows) -> str:
        wish = pod.signature.labels.get("break", "")
        self._perhaps(wish, "pre_score")
        return wish

    def score(self, state: str, rows: Rows) -> Int64s:
        self._perhaps(state, "score")
        if state == "score too little":
            return np.ones(length_of(rows) + 1, dtype=np.int64)
        return np.zeros(length_of(rows), dtype=np.int64)

    def normalize(self, state: str, scores: Int64s, rows: Rows) -> Int64s:
        self._perhaps(state, "normalize")
        return scores

    def reserve(self, pod: PodInfo, row: int) -> Status | None:
        self._perhaps(pod.signature.labels.get("break", ""), "reserve")
        return None

    def unreserve(self, pod: PodInfo, node_name: str) -> None:
        self.unreserved.append(pod.name)
        self._perhaps(pod.signature.labels.get("break", ""), "unreserve")

    def _perhaps(self, wish: str, step: str) -> None:
        if wish == step:
            raise LookupError("no such luck")


class FragileRows(Fragile):
    """The same, but it reads facts alone: what it says is kept."""

    filter_scope = Scope.NODE
    score_scope = Scope.NODE


def engine_with(*extra: type[Plugin]) -> Engine:
    written = with_profile(plugins={"multiPoint": {"enabled": plugins(*(plugin.name for plugin in extra))}})
    return engine_of(*NODES, config=written, registry=Registry([*PLUGINS, *extra]))


@pytest.mark.parametrize("kind", [Fragile, FragileRows], ids=["asked for each pod", "kept"])
@pytest.mark.parametrize(
    ("step", "error", "message"),
    [
        ("pre_enqueue", "preenqueue", 'running PreEnqueue plugin "Fragile": '),
        ("pre_filter", "prefilter", 'running PreFilter plugin "Fragile": '),
        ("filter", "filter", 'running "Fragile" filter plugin: '),
        ("post_filter", "postfilter", 'running PostFilter plugin "Fragile": '),
        ("pre_score", "prescore", 'running PreScore plugin "Fragile": '),
        ("score", "score", 'running Score plugins: plugin "Fragile" failed with: '),
        ("normalize", "score", 'running Normalize on Score plugins: plugin "Fragile" failed with: '),
    ],
)
def test_a_step_that_breaks_ends_the_cycle_and_names_the_plugin(
    kind: type[Plugin], step: str, error: str, message: str
) -> None:
    engine = engine_with(kind)
    broken = pod(labels={"break": step})
    for _ in range(2):  # the second time it is no surprise any more, and must be reported all the same
        decision = decide(engine, broken)
        assert (decision.node_name, decision.error, decision.code) == (None, error, Code.ERROR)
        assert not decision.is_unschedulable
        assert decision.message is not None
        assert decision.message.startswith(f"{message}LookupError: no such luck (test_guard.py, line "), decision
        assert decision.status is not None
        assert (decision.status.code, decision.status.plugin) == (Code.ERROR, "Fragile")
        assert (decision.unschedulable_plugins, decision.pending_plugins) == (frozenset(), frozenset())
    assert decide(engine, pod("next")).node_name == "n1", "the next pod is none the worse for it"


@pytest.mark.parametrize("step", ["pre_score", "score", "normalize"])
def test_a_single_feasible_node_is_not_scored(step: str) -> None:
    engine = engine_with(Fragile)
    tied = pod(labels={"break": step}, node_labels={HOSTNAME: "n1"})
    assert engine.decide(engine.record(tied)).node_name == "n1"


@pytest.mark.parametrize(
    ("wish", "error"), [("answer with text", "filter"), ("answer too little", "filter"), ("score too little", "score")]
)
def test_a_result_of_the_wrong_type_names_the_plugin(wish: str, error: str) -> None:
    decision = decide(engine_with(FragileRows), pod(labels={"break": wish}))
    assert decision.error == error
    assert (decision.message or "").startswith('plugin "Fragile" returned an invalid result: ')


def test_a_filter_that_breaks_while_others_are_nominated_leaves_the_columns_as_they_were() -> None:
    engine = engine_with(Fragile)
    engine.put(pod("promised", cpu=1, nominated="n1", priority=9))
    used = engine.columns.resources.used.copy()
    assert decide(engine, pod(labels={"break": "filter"})).error == "filter"
    assert (engine.columns.resources.used == used).all()
    assert not engine.columns.in_transaction


def test_a_plugin_that_cannot_reserve_has_its_pod_taken_back() -> None:
    engine = engine_with(Fragile)
    status = engine.assume(decide(engine, pod("a", labels={"break": "reserve"})))
    assert status is not None
    assert (status.code, status.plugin) == (Code.ERROR, "Fragile")
    assert status.message.startswith('running Reserve plugin "Fragile": LookupError: no such luck (')
    assert not engine.columns.pods
    fragile = engine.cycles["default-scheduler"].profile.plugins["Fragile"]
    assert isinstance(fragile, Fragile)
    assert fragile.unreserved == ["a"]


def test_a_plugin_that_fails_to_unreserve_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    engine = engine_with(Fragile)
    decision = decide(engine, pod("a", labels={"break": "unreserve"}))
    assert engine.assume(decision) is None
    engine.forget(decision.pod)
    assert not engine.columns.pods
    assert "plugin Fragile failed to unreserve pod default/a on node n1" in caplog.text


def test_what_ours_raise_is_a_bug_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Int64s:
        raise LookupError("our own fault")

    monkeypatch.setattr(NodeUnschedulable, "filter", broken)
    with pytest.raises(LookupError, match="our own fault"):
        decide(engine_with(Fragile), pod())


class Raises(Filter[None]):
    """Raises what the test chose."""

    name = "Raises"
    filter_reasons = (Reason("never given"),)
    raised: BaseException

    def pre_filter(self, pod: PodInfo) -> Proceed[None]:
        return Proceed(None)

    def filter(self, state: None, rows: Rows) -> Int64s:
        raise self.raised


@pytest.mark.parametrize(
    "raised",
    [SystemExit(3), asyncio.CancelledError(), GeneratorExit(), RecursionError("deep"), MemoryError(), StopIteration()],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_plugin_raises_is_caught(raised: BaseException) -> None:
    engine = engine_with(Raises)
    plugin = engine.cycles["default-scheduler"].profile.plugins["Raises"]
    assert isinstance(plugin, Raises)
    plugin.raised = raised
    decision = decide(engine, pod())
    assert decision.error == "filter"
    assert (decision.message or "").startswith(f'running "Raises" filter plugin: {type(raised).__name__}')


def test_ctrl_c_of_a_command_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_with(Raises)
    plugin = engine.cycles["default-scheduler"].profile.plugins["Raises"]
    assert isinstance(plugin, Raises)
    plugin.raised = KeyboardInterrupt()
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        decide(engine, pod())
    monkeypatch.setattr(signal, "getsignal", lambda number: None)  # the event loop handles the signal
    assert decide(engine, pod()).error == "filter"


class CordonsNothing(NodeUnschedulable):
    """A user's subclass of a built-in plugin, with a bug."""

    name = "CordonsNothing"

    def filter(self, state: None, rows: Rows) -> Int64s:
        raise LookupError("no such luck")


def test_a_subclass_of_a_built_in_plugin_is_guarded() -> None:
    assert NodeUnschedulable.is_built_in
    assert not CordonsNothing.is_built_in
    decision = decide(engine_with(CordonsNothing), pod())
    assert (decision.message or "").startswith('running "CordonsNothing" filter plugin: LookupError: no such luck (')


class FewPods(NodeUnschedulable):
    """A user's subclass that adds a cluster-wide rule to a node-local one and declares no scope."""

    name = "FewPods"

    def filter(self, state: None, rows: Rows) -> Int64s:
        return super().filter(state, rows) | int(len(self._columns.pods) > 1)


def test_a_subclass_that_overrides_a_rule_is_called_for_every_pod() -> None:
    assert FewPods.filter_scope is Scope.CLUSTER
    engine = engine_with(FewPods)
    for name in ("a", "b"):
        assert decide(engine, pod("new", cpu=1)).node_name
        engine.put(pod(name, on="n3"))
    assert decide(engine, pod("new", cpu=1)).node_name is None


class HatesNobody(InterPodAffinity):
    """A user's subclass that lifts the rule: the built-in one's other forms must not be used beside it."""

    name = "HatesNobody"

    def filter(self, state: RequiredTerms, rows: Rows) -> ReasonBits:
        return np.zeros(length_of(rows), dtype=np.int64)


def test_a_subclass_does_not_inherit_other_forms_of_an_overridden_rule() -> None:
    plugin, rows = HatesNobody(Columns(), InterPodAffinityArgs()), np.array([0])
    terms = RequiredTerms(OwnTerms(None, (), False, (), (), None), ())
    assert plugin.filter_row(terms, 0) == 0
    assert plugin.filter_adjusted(terms, rows, np.ones((3, 1), dtype=np.int64)).tolist() == [0]
    assert InterPodAffinity.filter_scope is Scope.TOPOLOGY
    assert HatesNobody.filter_scope is Scope.CLUSTER


class PrefersLaterRows(InterPodAffinity):
    """A user's subclass that also scores nodes for pods without terms."""

    name = "PrefersLaterRows"

    def __init__(self, columns: Columns) -> None:
        super().__init__(columns, InterPodAffinityArgs())

    def pre_score(self, pod: PodInfo, feasible: Rows) -> Preferred:
        return Preferred({})

    def score(self, state: Preferred, rows: Rows) -> Int64s:
        return np.arange(len(NODES), dtype=np.int64)[rows]


def test_a_subclass_that_overrides_the_score_scores_pods_for_which_the_built_in_plugin_has_none() -> None:
    decision = decide(engine_with(PrefersLaterRows), pod("new"))
    assert decision.scores["n2"]["PrefersLaterRows"] > decision.scores["n1"]["PrefersLaterRows"]
