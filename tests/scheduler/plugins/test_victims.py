"""Victims of preemption: which pods, on which node, one criterion at a time; disruption budgets."""

from __future__ import annotations

import pytest

from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.scheduler.engine import Engine
from mooring.scheduler.plugins.default_preemption import importance_key
from tests.api.builders import selector
from tests.builders import HOSTNAME, ZONE, budget, node, pod, pods_like, spread
from tests.scheduler.harness import decide, engine_of

WEB = {"app": "web"}
URGENT = pod("urgent", cpu=2, priority=100)


def preempted(engine: Engine, view: Pod = URGENT) -> tuple[str, list[str]] | None:
    """The nominated node, and the victims in the order of their importance."""
    plan = decide(engine, view).preemption
    return (plan.node_name, [victim.name for victim in plan.victims]) if plan is not None else None


def full(name: str, *residents: Pod, cpu: int = 2) -> list[ApiObject]:
    return [node(name, cpu=cpu), *residents]


def resident(name: str, on: str, cpu: int = 2, priority: int = 0, started_s: float | None = 0.0) -> Pod:
    return pod(name, on=on, cpu=cpu, priority=priority, started_s=started_s, labels=WEB)


@pytest.mark.parametrize(
    ("cluster", "chosen"),
    [
        pytest.param(
            [*full("n1", resident("a", "n1", priority=9)), *full("n2", resident("b", "n2", priority=5))],
            ("n2", ["b"]),
            id="the most important victim is the least important",
        ),
        pytest.param(
            [
                *full("n1", resident("a", "n1", cpu=1, priority=5), resident("b", "n1", cpu=1, priority=3)),
                *full("n2", resident("c", "n2", cpu=1, priority=5), resident("d", "n2", cpu=1, priority=1)),
            ],
            ("n2", ["c", "d"]),
            id="the sum of priorities is smallest",
        ),
        pytest.param(
            [
                *full("n1", resident("a", "n1", cpu=1, priority=5), resident("b", "n1", cpu=1, priority=5)),
                *full("n2", resident("c", "n2", priority=5)),
            ],
            ("n2", ["c"]),
            id="the victims are fewest",
        ),
        pytest.param(
            [
                *full("n1", resident("a", "n1", cpu=1, priority=-5), resident("b", "n1", cpu=1, priority=-5)),
                *full("n2", resident("c", "n2", priority=-5)),
            ],
            ("n2", ["c"]),
            id="fewer are better even if their priority is negative",
        ),
        pytest.param(
            [*full("n1", resident("a", "n1", started_s=10.0)), *full("n2", resident("b", "n2", started_s=20.0))],
            ("n2", ["b"]),
            id="the victim has run for the shortest time",
        ),
        pytest.param(
            [
                *full(
                    "n1",
                    resident("a", "n1", cpu=1, priority=5, started_s=30.0),
                    resident("b", "n1", cpu=1, priority=0, started_s=1.0),
                ),
                *full(
                    "n2",
                    resident("c", "n2", cpu=1, priority=5, started_s=20.0),
                    resident("d", "n2", cpu=1, priority=0, started_s=25.0),
                ),
            ],
            ("n1", ["a", "b"]),
            id="the time of the most important victims counts, not that of the others",
        ),
        pytest.param(
            [*full("n2", resident("b", "n2")), *full("n1", resident("a", "n1"))],
            ("n1", ["a"]),
            id="all being equal, the name that comes first",
        ),
        pytest.param(
            [
                *full("n1", resident("a", "n1", priority=1)),
                *full("n2", pod("b", on="n2", cpu=2, priority=9, started_s=0.0)),
                budget("b", selector(app="web"), allowed=0),
            ],
            ("n2", ["b"]),
            id="before all that, the fewest budgets are violated",
        ),
        pytest.param(
            [
                *full("n1", resident("a", "n1", cpu=1), resident("b", "n1", cpu=1)),
                *full("n2", resident("c", "n2")),
                budget("b", selector(app="web"), allowed=0),
            ],
            ("n2", ["c"]),
            id="two violations are worse than one",
        ),
    ],
)
def test_the_node_that_hurts_least(cluster: list[ApiObject], chosen: tuple[str, list[str]]) -> None:
    assert preempted(engine_of(*cluster)) == chosen


@pytest.mark.parametrize(
    ("cluster", "pending", "victims"),
    [
        pytest.param(
            full("n1", resident("a", "n1", cpu=1, priority=1), resident("b", "n1", cpu=1, priority=2), cpu=3),
            URGENT,
            ["a"],
            id="who can stay stays, the most important first",
        ),
        pytest.param(
            full("n1", resident("a", "n1", cpu=1, started_s=5.0), resident("b", "n1", cpu=1, started_s=3.0), cpu=3),
            URGENT,
            ["a"],
            id="at equal priority who has run longer",
        ),
        pytest.param(
            full("n1", resident("a", "n1", cpu=1), resident("b", "n1", cpu=1), cpu=3),
            URGENT,
            ["b"],
            id="at equal times who came first",
        ),
        pytest.param(
            full("n1", resident("a", "n1", cpu=1, started_s=None), resident("b", "n1", cpu=1, started_s=9.0), cpu=3),
            URGENT,
            ["a"],
            id="who has not started yet counts least",
        ),
        pytest.param(
            full("n1", *(resident(name, "n1", cpu=1, started_s=None) for name in "ab"), cpu=3),
            URGENT,
            ["a"],
            id="of those the one that came last counts most",
        ),
        pytest.param(
            [
                *full("n1", resident("a", "n1", cpu=1, priority=1), pod("b", on="n1", cpu=1, priority=2), cpu=3),
                budget("b", selector(app="web"), allowed=0),
            ],
            URGENT,
            ["b"],
            id="who is protected stays before all others",
        ),
        pytest.param(
            full("n1", resident("big", "n1", cpu=3, priority=1), resident("a", "n1", cpu=1, priority=0), cpu=4),
            URGENT,
            ["big"],
            id="a less important pod may stay where a more important one cannot",
        ),
        pytest.param(
            full("n1", resident("peer", "n1", cpu=1, priority=100), resident("a", "n1", cpu=1), cpu=3),
            URGENT,
            ["a"],
            id="pods of the same priority are nobody's victims",
        ),
        pytest.param(
            [node("n1"), pod("a", on="n1", ports=["80"]), pod("b", on="n1", ports=["81"])],
            pod("urgent", ports=["80"], priority=100),
            ["a"],
            id="for a host port",
        ),
        pytest.param(
            [node("n1"), pod("a", on="n1", labels=WEB), pod("b", on="n1")],
            pod("urgent", priority=100, apart=[pods_like(HOSTNAME, app="web")]),
            ["a"],
            id="for anti-affinity of the pod",
        ),
        pytest.param(
            [node("n1"), pod("a", on="n1", apart=[pods_like(HOSTNAME, app="web")]), pod("b", on="n1")],
            pod("urgent", priority=100, labels=WEB),
            ["a"],
            id="for anti-affinity of the victim",
        ),
        pytest.param(
            [node("n1", zone="a"), node("n2", zone="b", unschedulable=True), pod("a", on="n1", labels=WEB)],
            pod("urgent", priority=100, labels=WEB, spread=[spread(ZONE, app="web")]),
            ["a"],
            id="for even spreading",
        ),
    ],
)
def test_who_has_to_leave(cluster: list[ApiObject], pending: Pod, victims: list[str]) -> None:
    found = preempted(engine_of(*cluster), pending)
    assert found is not None
    assert found[0] == "n1"
    assert found[1] == victims


@pytest.mark.parametrize(
    ("cluster", "pending"),
    [
        pytest.param(full("n1", resident("a", "n1", priority=100)), URGENT, id="nobody of lower priority"),
        pytest.param(full("n1", resident("a", "n1"), cpu=1), URGENT, id="a node that is too small even if empty"),
        pytest.param(
            [node("n1", taints=["gpu:NoSchedule"]), resident("a", "n1")], URGENT, id="a rejection that is for good"
        ),
        pytest.param(
            full("n1", resident("a", "n1", cpu=1), resident("peer", "n1", cpu=1, priority=100)),
            URGENT,
            id="those who may leave are not enough",
        ),
        pytest.param(
            [node("n1"), pod("a", on="n1", labels=WEB)],
            pod("urgent", priority=100, near=[pods_like(HOSTNAME, app="db")]),
            id="affinity is not found by evicting",
        ),
    ],
)
def test_preemption_that_does_not_help(cluster: list[ApiObject], pending: Pod) -> None:
    assert preempted(engine_of(*cluster), pending) is None


def test_nothing_changes_by_thinking_about_it() -> None:
    engine = engine_of(*full("n1", resident("a", "n1", cpu=1), resident("b", "n1", cpu=1)))
    before = engine.columns.resources.used.tobytes()
    assert preempted(engine) == ("n1", ["a", "b"])
    assert engine.columns.resources.used.tobytes() == before
    assert list(engine.columns.pods_on[0]) == ["default/a", "default/b"]


def test_victims_of_a_row_are_found_again_when_the_row_changes() -> None:
    engine = engine_of(*full("n1", resident("a", "n1", priority=9)), *full("n2", resident("b", "n2", priority=5)))
    assert preempted(engine) == ("n2", ["b"])
    engine.put(resident("b", "n2", priority=50))
    assert preempted(engine) == ("n1", ["a"])
    engine.put(budget("b", selector(app="web"), allowed=0))
    engine.put(pod("b", on="n2", cpu=2, priority=50))
    assert preempted(engine) == ("n2", ["b"]), "budgets are read again too"


def test_importance_by_priority_start_and_arrival() -> None:
    engine = engine_of(
        node("n1"),
        pod("young", on="n1", priority=1, started_s=9.0),
        pod("waiting", on="n1", priority=1),
        pod("old", on="n1", priority=1, started_s=1.0),
        pod("as old", on="n1", priority=1, started_s=1.0),
        pod("important", on="n1", priority=2),
        pod("waiting too", on="n1", priority=1),
    )
    ranked = sorted(engine.columns.pods.values(), key=importance_key)
    assert [each.name for each in ranked] == ["important", "old", "as old", "young", "waiting too", "waiting"]
