"""The result cache changes no decision: a decision is a function of the cluster, the pod and the seed.

Each history is a random sequence of node changes, pod additions and deletions, decisions, assumptions and
nominations, with every plugin enabled. Every few events the test schedules all pending pods and one pod of each
template twice, with the cache as it is and with an empty one, and compares the decisions. At the end an engine that is
built from the remaining objects must decide the same.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings

from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.cycle.schedule_pod import SchedulingCycle
from mooring.scheduler.engine import Engine
from tests.scheduler.random_history import History, Seeds, event_seeds, forgetful, world_seeds
from tools.verdicts import by_name, written_decision

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
    uncached = SchedulingCycle(engine.cycle_for(pod).profile, engine.columns, by_name(engine.columns))
    assert outcome(brief) == outcome(full) == outcome(recorded)
    _assert_best_nodes(recorded, full)
    assert written_decision(full) == written_decision(uncached.decide(pod, in_full=True))
    if full.node_name is not None:
        best = max(scores["total"] for scores in full.scores.values())
        assert full.node_name == min(name for name, scores in full.scores.items() if scores["total"] == best)
    return full


def _assert_best_nodes(recorded: Decision, full: Decision) -> None:
    """The scores of the best nodes, and the rejections by plugin, are those of the decision in full."""
    for node in recorded.best_nodes:
        scores = {name: score for name, score in full.scores[node.node_name].items() if score}
        assert {name: score for name, score in (*node.scores.items(), ("total", node.total)) if score} == scores
    if full.node_name is None:
        assert recorded.best_nodes == ()
        return
    if full.feasible_count > 1:
        totals = sorted((scores["total"] for scores in full.scores.values()), reverse=True)
        assert [node.total for node in recorded.best_nodes] == totals[:3]
        assert recorded.best_nodes[0].node_name == full.node_name
    if not full.pod.nominated_node and full.node_names is None:
        by_plugin = Counter(status.plugin for status in full.node_to_status.values() if status is not None)
        assert {each.plugin: each.nodes for each in recorded.rejections} == by_plugin


def outcome(decision: Decision) -> dict[str, object]:
    """What a decision says without details by node."""
    return {key: said for key, said in written_decision(decision).items() if key not in ("nodes", "scores")}
