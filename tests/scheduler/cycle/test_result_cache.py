"""Cached results equal computed ones."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings

from mooring.api.views.pod import Pod
from mooring.scheduler.cache.arrays import Int64s, ReasonBits, Rows, length_of
from mooring.scheduler.cache.columns import Columns, Transaction
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.catalogue import PLUGINS
from mooring.scheduler.cycle import result_cache
from mooring.scheduler.cycle.attempt import PodAttempt
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.cycle.result_cache import ResultCache
from mooring.scheduler.cycle.schedule_pod import SchedulingCycle
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.guard import PluginError
from mooring.scheduler.framework.plugin import SKIP, Filter, Proceed, Scope, Score, Skip
from mooring.scheduler.framework.registry import Registry
from mooring.scheduler.framework.status import Reason
from mooring.scheduler.plugins.default_preemption import VictimTable
from mooring.scheduler.plugins.inter_pod_affinity import InterPodAffinity, RequiredTerms
from tests.api.builders import preferred
from tests.builders import HOSTNAME, MIB, ZONE, node, owned_by, pod, pods_like
from tests.device_builders import device_class, gpus
from tests.scheduler.config.builders import plugins, with_profile
from tests.scheduler.harness import engine_of
from tests.scheduler.random_history import History, Seeds, event_seeds, forgetful, world_seeds
from tools.verdicts import by_name, written_decision


class Recorder(Filter[None], Score[None]):
    """Rejects no node, and records which nodes it was asked about."""

    filter_reasons = (Reason("node(s) were asked"),)

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self.evaluated: list[str] = []

    def pre_filter(self, pod: PodInfo) -> Proceed[None]:
        return Proceed(None)

    def pre_score(self, pod: PodInfo, feasible: Rows) -> Skip:
        return SKIP

    def filter(self, state: None, rows: Rows) -> Int64s:
        self.evaluated += [self._columns.node_names[row] for row in np.arange(self._columns.height)[rows]]
        return np.zeros(length_of(rows), dtype=np.int64)

    def score(self, state: None, rows: Rows) -> Int64s:
        return np.zeros(length_of(rows), dtype=np.int64)

    def read(self) -> list[str]:
        plugin_calls, self.evaluated = sorted(self.evaluated), []
        return plugin_calls


class FactsRecorder(Recorder):
    name = "FactsRecorder"
    filter_scope = Scope.NODE


class UsageRecorder(Recorder):
    name = "UsageRecorder"
    filter_scope = Scope.NODE_PODS


class ClusterRecorder(Recorder):
    name = "ClusterRecorder"


RECORDERS = (FactsRecorder, UsageRecorder, ClusterRecorder)
ALL = ["n1", "n2", "n3"]


def watched() -> Engine:
    config = with_profile(plugins={"multiPoint": {"enabled": plugins(*(recorder.name for recorder in RECORDERS))}})
    return engine_of(node("n1"), node("n2"), node("n3"), config=config, registry=Registry([*PLUGINS, *RECORDERS]))


def plugin_calls(engine: Engine, name: str = "web") -> dict[str, list[str]]:
    """Which nodes each recorder is asked about when a pod is decided."""
    profile = engine.cycles["default-scheduler"].profile
    recorders = [plugin for plugin in profile.plugins.values() if isinstance(plugin, Recorder)]
    for recorder in recorders:
        recorder.read()
    engine.decide(engine.record(pod(name, labels={"app": "web"})))
    return {recorder.name: recorder.read() for recorder in recorders}


def test_the_first_pod_of_a_signature_evaluates_all_nodes() -> None:
    assert plugin_calls(watched()) == {"FactsRecorder": ALL, "UsageRecorder": ALL, "ClusterRecorder": ALL}


def test_the_next_pod_calls_cluster_scoped_plugins_only() -> None:
    engine = watched()
    plugin_calls(engine)
    assert plugin_calls(engine, "another") == {"FactsRecorder": [], "UsageRecorder": [], "ClusterRecorder": ALL}


def test_the_row_of_a_new_pod_is_evaluated_again() -> None:
    engine = watched()
    plugin_calls(engine)
    engine.put(pod("new", on="n2"))
    assert plugin_calls(engine) == {"FactsRecorder": [], "UsageRecorder": ["n2"], "ClusterRecorder": ALL}
    engine.put(pod("q", nominated="n3"))
    usage = plugin_calls(engine)["UsageRecorder"]
    assert set(usage) == {"n3"}, "with the nominated pod and without it"


def test_a_changed_node_is_evaluated_by_all_plugins() -> None:
    engine = watched()
    plugin_calls(engine)
    engine.put(node("n3", cpu=64))
    engine.put(pod("new", on="n1"))
    assert plugin_calls(engine) == {"FactsRecorder": ["n3"], "UsageRecorder": ["n1", "n3"], "ClusterRecorder": ALL}


def test_a_removed_node_is_not_evaluated() -> None:
    engine = watched()
    plugin_calls(engine)
    engine.remove(node("n2"))
    assert plugin_calls(engine)["UsageRecorder"] == []
    assert engine.decide(engine.record(pod("p", labels={"app": "web"}))).feasible_count == 2


def test_the_least_recently_used_signature_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_cache, "CACHE_BYTES_MAX", 0)
    engine = watched()
    plugin_calls(engine)
    for number in range(result_cache.SIGNATURES_MIN + 1):
        engine.decide(engine.record(pod(f"other-{number}", labels={"number": str(number)})))
    assert plugin_calls(engine)["FactsRecorder"] == ALL


@pytest.mark.parametrize(
    ("other", "is_shared"),
    [
        pytest.param(pod("b", cpu=1, labels={"app": "b"}), True, id="other labels"),
        pytest.param(pod("b", cpu=1, owner=owned_by("ReplicaSet", "b")), True, id="another owner"),
        pytest.param(pod("b", cpu=2, labels={"app": "a"}), False, id="other requests"),
        pytest.param(pod("b", cpu=1, labels={"app": "a"}, priority=7), False, id="another priority"),
        pytest.param(pod("b", cpu=1, labels={"app": "a"}, namespace="other"), False, id="another namespace"),
    ],
)
def test_signatures_with_the_same_spec_share_results(other: Pod, is_shared: bool) -> None:
    engine = engine_of(node("n1"), node("n2"))
    first, second = engine.record(pod("a", cpu=1, labels={"app": "a"})), engine.record(other)
    cache = ResultCache(engine.cycle_for(first).profile, engine.columns)
    results = cache.results_for(first)
    assert (cache.results_for(second) is results) is is_shared
    assert cache.results_for(first) is results


def test_a_user_plugin_may_read_labels() -> None:
    engine = watched()
    first, second = (engine.record(pod(name, labels={"app": name})) for name in ("a", "b"))
    cache = ResultCache(engine.cycle_for(first).profile, engine.columns)
    assert cache.results_for(first) is not cache.results_for(second)


def test_victims_are_not_shared() -> None:
    engine = engine_of(node("n1"))
    first, second = (engine.record(pod(name, labels={"app": name})) for name in ("a", "b"))
    cache = ResultCache(engine.cycle_for(first).profile, engine.columns)
    results = cache.results_for(first)
    results.row_cache(VictimTable)
    own = cache.results_for(second)
    assert own is not results
    assert not own.has_row_cache
    assert cache.results_for(second) is own
    assert cache.results_for(first) is results


def test_reuse_is_counted() -> None:
    engine = engine_of(node("n1"), gpus("n1", 2))
    counts = engine.cycles["default-scheduler"].reuse_counts
    for name in ("a", "b", "c"):
        engine.decide(engine.record(pod(name, others={GPUS: 1})))
    assert (counts.pods, counts.reused, counts.unknown, counts.dropped) == (3, 2, 1, {})
    engine.put(device_class(resource=GPUS))
    engine.decide(engine.record(pod("d", others={GPUS: 1})))
    assert (counts.reused, counts.unknown, counts.dropped) == (2, 2, {"expired": 1})


def test_signatures_that_make_room_for_others_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_cache, "CACHE_BYTES_MAX", 0)
    engine = engine_of(node("n1"))
    counts = engine.cycles["default-scheduler"].reuse_counts
    for cpu in range(result_cache.SIGNATURES_MIN + 2):
        engine.decide(engine.record(pod(f"p{cpu}", cpu=f"{cpu}m")))
    assert (counts.reused, counts.dropped) == (0, {"pod_incompatible": 2})


def test_a_plugin_that_fails_drops_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = watched()
    plugin_calls(engine)
    counts = engine.cycles["default-scheduler"].reuse_counts
    recorder = engine.cycles["default-scheduler"].profile.plugins["FactsRecorder"]

    def fail(*_: object) -> None:
        raise PluginError("FactsRecorder", "filter", "broken", "broken")

    monkeypatch.setattr(recorder, "filter", fail)
    engine.put(node("n4"))
    assert engine.decide(engine.record(pod("web", labels={"app": "web"}))).error
    assert (counts.pods, counts.reused, counts.dropped) == (2, 1, {"pod_failed": 1})


def test_nothing_is_cached_inside_of_a_transaction() -> None:
    engine = engine_of(node("n1"))
    record = engine.record(pod())
    cache = ResultCache(engine.cycle_for(record).profile, engine.columns)
    with Transaction(engine.columns), pytest.raises(AssertionError, match="must not be cached"):
        cache.results_for(record)


RANKED = (node("n1", labels={"rank": "1"}), node("n2", labels={"rank": "2"}), node("n3", labels={"rank": "3"}))
LIKES = [preferred(10, "rank Gt 1"), preferred(20, "rank Gt 2")]


def test_normalized_scores_follow_a_changed_node() -> None:
    """The same rows fit, but what is best among them is another."""
    engine = engine_of(*RANKED)
    record = engine.record(pod(prefers_nodes=LIKES))
    assert engine.decide(record).node_name == "n3"
    engine.put(node("n3", labels={"rank": "0"}))
    assert engine.decide(record).node_name == "n2"
    engine.put(node("n1", labels={"rank": "9"}))
    assert engine.decide(record).node_name == "n1"


@pytest.mark.parametrize("newcomer", [pod("q", cpu=10, priority=9, nominated="n3"), pod("r", cpu=10, on="n3")])
def test_normalized_scores_follow_the_nodes_that_fit(newcomer: Pod) -> None:
    """While n3 fits, n1 looks poor beside it, and n2 wins because it is empty; without n3, n1 is the best there is."""
    engine = engine_of(
        node("n1", cpu=10, memory="10Gi", labels={"rank": "2"}),
        node("n2", cpu=10, memory="10Gi", labels={"rank": "1"}),
        node("n3", cpu=10, memory="10Gi", labels={"rank": "3"}, taints=["old:PreferNoSchedule"]),
        pod("a", cpu=9, memory="9Gi", on="n1"),
    )
    record = engine.record(pod(cpu="100m", prefers_nodes=[preferred(100, "rank Gt 2"), preferred(60, "rank Gt 1")]))
    assert engine.decide(record).node_name == "n2"
    engine.put(newcomer)
    assert engine.decide(record).node_name == "n1"
    engine.remove(newcomer)
    assert engine.decide(record).node_name == "n2"


def test_image_scores_follow_the_number_of_nodes() -> None:
    """With every node that lacks it, an image is worth less on the one that has it."""
    engine = engine_of(node("full", cpu=8, images={"web:1": 4000 * MIB}), node("n1", cpu=8), pod("a", cpu=4, on="full"))
    record = engine.record(pod(image="web:1"))
    assert engine.decide(record).node_name == "full"
    for number in range(2, 60):
        engine.put(node(f"n{number}", cpu=8))
    assert engine.decide(record).node_name == "n1"


GPUS = "example.com/gpu"


def test_plugin_state_follows_a_device_class() -> None:
    engine = engine_of(node("n1"), gpus("n1", 2))
    record = engine.record(pod(others={GPUS: 1}))
    cache = ResultCache(engine.cycle_for(record).profile, engine.columns)
    assert not cache.results_for(record).fits[0]
    engine.put(device_class(resource=GPUS))
    assert cache.results_for(record).fits[0], "a device class offers the resource now"
    engine.remove(device_class(resource=GPUS))
    assert not cache.results_for(record).fits[0]


@pytest.mark.parametrize(
    ("changes", "best"),
    [
        pytest.param({"n2": 1}, ["n1", "n3"], id="a node with a new pod scores less"),
        pytest.param({"n1": 1, "n2": 1, "n3": 1}, ["n1", "n2", "n3"], id="all nodes with a new pod tie again"),
        pytest.param({"n1": 2, "n2": 1, "n3": 2}, ["n2"], id="one node is best"),
        pytest.param({"n1": 4, "n3": 4}, ["n2"], id="full nodes do not fit"),
    ],
)
def test_the_best_rows_follow_single_rows(changes: dict[str, int], best: list[str]) -> None:
    engine = engine_of(node("n1", cpu=4), node("n2", cpu=4), node("n3", cpu=4))
    record = engine.record(pod(cpu=1))
    cache = ResultCache(engine.cycle_for(record).profile, engine.columns)
    assert len(cache.results_for(record).best_rows()) == 3
    for name, cpu in changes.items():
        engine.put(pod(f"on-{name}", cpu=cpu, on=name))
        cache.results_for(record).best_rows()  # after each change, so that the list is updated and not made anew
    results = cache.results_for(record)
    assert [engine.columns.node_names[row] for row in results.best_rows()] == best
    assert results.fits.tolist() == [changes.get(name, 0) < 4 for name in ALL]


def web(name: str, key: str, on: str = "") -> Pod:
    """A pod that keeps away from others like it."""
    return pod(name, on=on, labels={"app": "web"}, apart=[pods_like(key, app="web")])


def recorded(monkeypatch: pytest.MonkeyPatch) -> tuple[Engine, list[str]]:
    """A cluster, and the nodes that InterPodAffinity is asked about."""
    engine = engine_of(*(node(name, zone="a") for name in ALL))
    plugin_calls: list[str] = []
    plugin = engine.cycles["default-scheduler"].profile.plugins["InterPodAffinity"]
    assert isinstance(plugin, InterPodAffinity)
    filter_rows, filter_row = plugin.filter, plugin.filter_row

    def record_rows(state: RequiredTerms, rows: Rows) -> ReasonBits:
        plugin_calls.extend(engine.columns.node_names[row] for row in np.arange(engine.columns.height)[rows])
        return filter_rows(state, rows)

    def record_row(state: RequiredTerms, row: int) -> int:
        plugin_calls.append(engine.columns.node_names[row])
        return filter_row(state, row)

    monkeypatch.setattr(plugin, "filter", record_rows)
    monkeypatch.setattr(plugin, "filter_row", record_row)
    return engine, plugin_calls


@pytest.mark.parametrize(
    ("key", "asked_again"),
    [pytest.param(HOSTNAME, ["n1"], id="a domain is a node"), pytest.param(ZONE, ALL, id="a domain is many nodes")],
)
def test_a_topology_filter_is_cached_while_domains_are_nodes(
    key: str, asked_again: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, plugin_calls = recorded(monkeypatch)
    engine.decide(engine.record(web("a", key)))
    assert plugin_calls == ALL
    plugin_calls.clear()
    engine.put(web("a", key, on="n1"))
    decision = engine.decide(engine.record(web("b", key)))
    assert plugin_calls == asked_again
    assert (decision.node_name is None) == (key == ZONE)


def test_a_topology_filter_is_not_cached_once_two_nodes_share_a_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, plugin_calls = recorded(monkeypatch)
    engine.put(web("a", HOSTNAME, on="n1"))
    assert engine.decide(engine.record(web("b", HOSTNAME))).feasible_count == 2
    engine.put(node("n2", zone="a", labels={HOSTNAME: "n1"}))
    plugin_calls.clear()
    assert engine.decide(engine.record(web("b", HOSTNAME))).feasible_count == 1
    assert plugin_calls == ALL
    engine.put(node("n2", zone="a"))
    plugin_calls.clear()
    assert engine.decide(engine.record(web("b", HOSTNAME))).feasible_count == 2


def test_a_new_term_of_another_pod_drops_what_was_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, _ = recorded(monkeypatch)
    assert engine.decide(engine.record(web("b", HOSTNAME))).feasible_count == 3
    engine.put(pod("d", on="n3", labels={"app": "db"}, apart=[pods_like(HOSTNAME, app="web")]))
    assert engine.decide(engine.record(web("b", HOSTNAME))).feasible_count == 2


def test_no_step_reads_all_nodes_for_a_pod_whose_signature_is_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where some nodes do not fit: counting and listing those that do takes longer in a larger cluster."""
    engine = engine_of(*(node(f"n{n}", cpu=4) for n in range(20)), node("full", cpu=1))
    for number in range(3):
        engine.place(pod(f"first-{number}", cpu=2))
    monkeypatch.setattr(np, "count_nonzero", lambda rows: pytest.fail("rows are counted"))
    monkeypatch.setattr(PodAttempt, "feasible", property(lambda attempt: pytest.fail("the feasible nodes are listed")))
    feasible = [engine.place(pod(f"web-{number}", cpu=2)).feasible_count for number in range(30)]
    assert (feasible[0], feasible[-1]) == (20, 8), "two pods fill a node"


# --- The result cache changes no decision: a decision is a function of the cluster, the pod and the seed


CHECKED_EVERY = 8
"""Events between two rounds of decisions: so few that most cached answers still hold and the others must be found."""


@pytest.mark.parametrize("memory", ["roomy", "cramped"])
@settings(max_examples=50)
@given(seed=world_seeds, events=event_seeds)
def test_the_cache_changes_no_decision(memory: str, seed: int, events: Seeds) -> None:
    history = History(seed)
    with forgetful(memory == "cramped"):
        for count, event in enumerate(events):
            history.happen(event)
            if count % CHECKED_EVERY == 0:
                for pod in _pods_to_try(history):
                    _assert_same_with_an_empty_cache(history.engine, pod)
        anew = history.built_anew()
        for pod in history.pending:
            decision = _assert_same_with_an_empty_cache(history.engine, pod)
            same_pod = anew.record(history.as_it_is_now(pod))
            assert written_decision(anew.decide(same_pod, in_full=True)) == written_decision(decision)


def _pods_to_try(history: History) -> list[PodInfo]:
    return [*history.pending, *(history.engine.record(template) for template in history.templates)]


def _assert_same_with_an_empty_cache(engine: Engine, pod: PodInfo) -> Decision:
    brief = engine.decide(pod)
    for cycle in engine.cycles.values():
        cycle.best_nodes_max = 3
    recorded = engine.decide(pod)
    for cycle in engine.cycles.values():
        cycle.best_nodes_max = 0
    full = engine.decide(pod, in_full=True)
    uncached = SchedulingCycle(
        engine.cycle_for(pod).profile, engine.columns, by_name(engine.columns), None, lambda: 0.0
    )
    assert outcome(brief) == outcome(full) == outcome(recorded)
    _assert_best_nodes(recorded, full)
    assert written_decision(full) == written_decision(uncached.decide(pod, in_full=True))
    if full.node_name is not None:
        best = max(scores["total"] for scores in full.scores.values())
        assert full.node_name == min(name for name, scores in full.scores.items() if scores["total"] == best)
    return full


def _assert_best_nodes(recorded: Decision, full: Decision) -> None:
    """The scores of the best nodes, and the rejections by plugin, are those of the decision in full."""
    for best in recorded.best_nodes:
        scores = {name: score for name, score in full.scores[best.node_name].items() if score}
        assert {name: score for name, score in (*best.scores.items(), ("total", best.total)) if score} == scores
    if full.node_name is None:
        assert recorded.best_nodes == ()
        return
    if full.feasible_count > 1:
        totals = sorted((scores["total"] for scores in full.scores.values()), reverse=True)
        assert [node.total for node in recorded.best_nodes] == totals[:3]
        assert recorded.best_nodes[0].node_name == full.node_name
    if not full.pod.nominated_node and full.node_names is None:
        by_plugin = Counter(status.plugin for status in full.node_to_status.values() if status is not None)
        assert {rejection.plugin: rejection.nodes for rejection in recorded.rejections} == by_plugin


def outcome(decision: Decision) -> dict[str, object]:
    """What a decision says without details by node."""
    return {key: said for key, said in written_decision(decision).items() if key not in ("nodes", "scores")}
