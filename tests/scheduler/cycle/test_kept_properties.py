"""What is kept of a shape changes no decision, whatever happened since: the decision is a function of the cluster.

Each history is a sequence of node changes, pods that come and go, decisions, assumptions and nominations. Again and
again on its way all pending pods, and one pod of each template, are decided about in ways that must agree: with what
was kept so far, and with nothing kept; and in the end by an engine that never saw anything but what is left.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from mooring.scheduler.cache.pods import PodRecord
from mooring.scheduler.cycle.cycle import Cycle
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.engine import Engine
from tests.scheduler.random_history import History, Seeds, event_seeds, forgetful, world_seeds
from tools.verdicts import by_name, written_decision

CHECKED_EVERY = 8
"""Events between two rounds of decisions: few, so that most of what is kept is right and the rest must be found."""


@pytest.mark.parametrize("memory", ["roomy", "cramped"])
@settings(max_examples=50)
@given(seed=world_seeds, events=event_seeds)
def test_what_is_kept_changes_no_decision(memory: str, seed: int, events: Seeds) -> None:
    history = History(seed)
    with forgetful(memory == "cramped"):
        for count, event in enumerate(events):
            history.happen(event)
            if count % CHECKED_EVERY == 0:
                for pod in _pods_to_try(history):
                    _assert_same_with_nothing_kept(history.engine, pod)
        anew = history.built_anew()
        for pod in history.pending:
            decision = _assert_same_with_nothing_kept(history.engine, pod)
            same_pod = anew.record(history.as_it_is_now(pod))
            assert written_decision(anew.decide(same_pod, in_full=True)) == written_decision(decision)


def _pods_to_try(history: History) -> list[PodRecord]:
    return [*history.pending, *(history.engine.record(template) for template in history.templates)]


def _assert_same_with_nothing_kept(engine: Engine, pod: PodRecord) -> Decision:
    brief = engine.decide(pod)
    full = engine.decide(pod, in_full=True)
    forgotten = Cycle(engine.cycle_for(pod).profile, engine.columns, by_name(engine.columns))
    assert outcome(brief) == outcome(full)
    assert written_decision(full) == written_decision(forgotten.decide(pod, in_full=True))
    if full.node_name is not None:
        best = max(scores["total"] for scores in full.scores.values())
        assert full.node_name == min(name for name, scores in full.scores.items() if scores["total"] == best)
    return full


def outcome(decision: Decision) -> dict[str, object]:
    """What a decision says without details by node."""
    return {key: said for key, said in written_decision(decision).items() if key not in ("nodes", "scores")}
