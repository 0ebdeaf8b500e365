"""Deciding at first sight: the same decisions as if everything had been kept, to the throw of the die."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mooring.api.views.pod import Pod
from mooring.kit.entropy import Entropy
from mooring.scheduler.cache.pods import PodRecord
from mooring.scheduler.config import load_configuration
from mooring.scheduler.cycle.cycle import Cycle
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.engine import Engine
from tests.api.builders import node_selector, preferred, term
from tests.builders import HOSTNAME, MIB, ZONE, claim, node, persistent_volume, pod, pods_like, spread

Wishes = dict[str, object]
Taken = tuple[str | None, int, str | None]


@pytest.mark.parametrize(
    ("wishes", "count_at_first_sight"),
    [
        pytest.param(lambda n: {}, 40, id="requests alone"),
        pytest.param(lambda n: {"memory": 100 * n * MIB}, 40, id="requests out of balance"),
        pytest.param(
            lambda n: {"prefers_nodes": [preferred(n + 1, f"{ZONE} In a")]}, 40, id="a wish that outweighs all usage"
        ),
        pytest.param(
            lambda n: {"prefers_nodes": [preferred(100, f"{ZONE} In a"), preferred(99 - n, f"{ZONE} In b")]},
            40,
            id="wishes that others can catch up with",
        ),
        pytest.param(lambda n: {"image": "big"}, 40, id="an image that some nodes have"),
        pytest.param(lambda n: {"tolerations": [f"other{n}:NoSchedule"]}, 40, id="taints"),
        pytest.param(lambda n: {"spread": [spread(ZONE, app="web")]}, 40, id="evenly over zones"),
        pytest.param(lambda n: {"spread": [spread(ZONE, hard=False, app="web")]}, 40, id="rather evenly over zones"),
        pytest.param(lambda n: {"prefers_apart": [(n + 1, pods_like(ZONE, app="web"))]}, 40, id="rather apart"),
        pytest.param(lambda n: {"near": [pods_like(ZONE, app="first")]}, 40, id="near somebody"),
        pytest.param(
            lambda n: {"nodes": node_selector(term(f"{HOSTNAME} In n{n % 12}"))}, 40, id="a single node that fits"
        ),
        pytest.param(lambda n: {"node_labels": {ZONE: "nowhere"}}, 0, id="no node that fits"),
        pytest.param(lambda n: {"nodes": node_selector(term(fields=[f"metadata.name In n{n % 12}"]))}, 0, id="named"),
        pytest.param(lambda n: {"claims": ["data"]}, 0, id="a claim: somebody might fail"),
    ],
)
def test_first_sight_changes_no_decision(
    wishes: Callable[[int], Wishes], count_at_first_sight: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed: list[Decision] = []
    at_first_sight = Cycle._place_at_first_sight

    def counted(self: Cycle, pod: PodRecord) -> Decision | None:
        decision = at_first_sight(self, pod)
        placed.extend([decision] if decision is not None else [])
        return decision

    monkeypatch.setattr(Cycle, "_place_at_first_sight", counted)
    taken = _decisions(wishes)
    assert len(placed) == count_at_first_sight
    monkeypatch.setattr(Cycle, "_place_at_first_sight", lambda self, pod: None)
    assert _decisions(wishes) == taken


def _decisions(wishes: Callable[[int], Wishes]) -> list[Taken]:
    """Forty pods, each of another kind, come to twelve nodes and the place of one that went."""
    engine = Engine(load_configuration(None), entropy=Entropy(seed=7))
    engine.put(persistent_volume("disk"))
    engine.put(claim("data", volume="disk"))
    for number in range(13):
        engine.put(
            node(
                f"n{number}",
                cpu=8 + number % 2,
                zone="abc"[number % 3],
                taints=["dear:PreferNoSchedule"] if number % 4 == 0 else [],
                images={"big:latest": 400 * MIB} if number % 5 == 0 else {},
            )
        )
    engine.remove(node("n12"))
    engine.put(pod("first", on="n1", cpu=1, labels={"app": "first"}))
    taken: list[Taken] = []
    for number in range(40):
        view = _different(number, wishes(number))
        decision = engine.decide(engine.record(view))
        taken.append((decision.node_name, decision.feasible_count, decision.message))
        if decision.node_name is not None:
            engine.assume(decision)
    return taken


def _different(number: int, wishes: Wishes) -> Pod:
    return pod(f"web-{number}", cpu=f"{100 + 7 * number}m", labels={"app": "web"}, **wishes)  # type: ignore[arg-type]


def test_the_second_pod_of_a_kind_is_decided_by_what_is_kept() -> None:
    engine = Engine(load_configuration(None), entropy=Entropy(seed=7))
    engine.put(node("n1"))
    cycle = engine.cycles["default-scheduler"]
    assert cycle._place_at_first_sight(engine.record(pod("a", cpu=1))) is not None
    assert cycle._place_at_first_sight(engine.record(pod("b", cpu=1))) is None


def test_beside_nominated_pods_every_row_is_looked_at_properly() -> None:
    engine = Engine(load_configuration(None), entropy=Entropy(seed=7))
    engine.put(node("n1"))
    engine.put(pod("important", cpu=4, priority=1, nominated="n1"))
    decision = engine.decide(engine.record(pod("a", cpu=1)))
    assert decision.node_name is None
