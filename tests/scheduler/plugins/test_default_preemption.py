"""DefaultPreemption: which pods may preempt, the candidate nodes, the victims, disruption budgets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.kit.entropy import Entropy
from mooring.scheduler.config import load_configuration
from mooring.scheduler.engine import Engine
from mooring.scheduler.plugins.default_preemption import importance_key
from tests.api.builders import selector
from tests.builders import HOSTNAME, ZONE, budget, claim, csi_node, node, pod, pods_like, spread
from tests.scheduler.config.builders import plugins, with_arguments, with_profile
from tests.scheduler.harness import decide, engine_of
from tests.storage_builders import ephemeral
from tools.verdicts import by_name

WEB = {"app": "web"}
URGENT = pod("urgent", cpu=2, priority=100)


def full(name: str, priority: int = 0, labels: dict[str, str] | None = None) -> list[ApiObject]:
    """A node, and a pod that fills it."""
    resident = pod(f"on-{name}", cpu=2, priority=priority, on=name, labels=labels, started_s=0.0)
    return [node(name, cpu=2), resident]


def nominated(engine: Engine, view: Pod = URGENT) -> str | None:
    plan = decide(engine, view).preemption
    return plan.node_name if plan is not None else None


def preemption_text(engine: Engine, view: Pod) -> str:
    message = decide(engine, view).message
    assert message is not None
    return message.partition("preemption: ")[2]


RESERVED = pod("urgent", cpu=2, priority=100, nominated="n1")


@pytest.mark.parametrize(
    ("cluster", "view", "text"),
    [
        pytest.param(
            full("n1"),
            pod("meek", cpu=2, priority=100, preemption_policy="Never"),
            "not eligible due to preemptionPolicy=Never.",
            id="a pod that does not preempt",
        ),
        pytest.param(
            [node("n1", cpu=2), pod("victim", cpu=2, on="n1", preempted=True)],
            RESERVED,
            "not eligible due to a terminating pod on the nominated node.",
            id="its victim is leaving already",
        ),
        pytest.param(
            [node("n1", cpu=1), pod("other", cpu=2, on="n1")],
            pod("meek", cpu=1, priority=0),
            "0/1 nodes are available: 1 No preemption victims found for incoming pod.",
            id="nobody is less important",
        ),
    ],
)
def test_pods_that_may_not_preempt(cluster: list[ApiObject], view: Pod, text: str) -> None:
    engine = engine_of(*cluster, *([view] if view.status.nominated_node_name else []))
    assert preemption_text(engine, view) == text
    assert nominated(engine, view) is None


@pytest.mark.parametrize(
    "cluster",
    [
        pytest.param([node("n1", cpu=2), pod("v", cpu=2, on="n1", terminating=True)], id="for reasons of its own"),
        pytest.param(
            [node("n1", cpu=2), pod("v", cpu=2, on="n1", preempted=True, priority=100)], id="but it was as important"
        ),
        pytest.param(
            [node("n1", cpu=2, unschedulable=True), pod("v", cpu=2, on="n1", preempted=True)],
            id="from a node that is out of the question by now",
        ),
    ],
)
def test_a_pod_is_leaving_the_nominated_node(cluster: list[ApiObject]) -> None:
    engine = engine_of(*cluster, *full("n2"), RESERVED)
    assert nominated(engine, RESERVED) is not None


def test_nodes_that_reject_for_good_are_not_examined() -> None:
    engine = engine_of(node("n1", cpu=2, taints=["gpu:NoSchedule"]), pod("a", cpu=2, on="n1"), *full("n2", 100))
    assert preemption_text(engine, URGENT) == (
        "0/2 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )


def test_a_nomination_that_leads_nowhere_is_void() -> None:
    lost = pod("lost", cpu=2, priority=0, nominated="n1")
    decision = decide(engine_of(*full("n1"), lost), lost)
    assert decision.preemption is None
    assert decision.clears_nomination
    rejected = decide(engine_of(*full("n1")), pod("meek", cpu=2, priority=100, preemption_policy="Never"))
    assert not rejected.clears_nomination, "who may not preempt keeps what he was promised"


class Die(Entropy):
    """Always shows the same number, and counts how often it was thrown."""

    def __init__(self, number: int) -> None:
        super().__init__(seed=0)
        self._number = number

    def integer_below(self, limit: int) -> int:
        return self._number % limit

    def fork(self, name: str) -> Die:
        return self


def limited(percentage: int, absolute: int) -> dict[str, Any]:
    return with_arguments(
        "DefaultPreemption", {"minCandidateNodesPercentage": percentage, "minCandidateNodesAbsolute": absolute}
    )


def searching(start: int, config: dict[str, Any], cluster: Sequence[ApiObject]) -> str | None:
    """The node that a search finds that starts at this place."""
    engine = Engine(load_configuration(config), entropy=Die(start), tie_break=by_name)
    for view in cluster:
        engine.put(view)
    return nominated(engine)


TEN = [view for number in range(10) for view in full(f"n{number}", priority=10 - number)]
"""The later a node's name, the less important is its pod."""


@pytest.mark.parametrize(
    ("start", "percentage", "absolute", "chosen"),
    [
        pytest.param(0, 10, 1, "n0", id="one candidate is enough: the first"),
        pytest.param(4, 10, 1, "n4", id="from a random place on"),
        pytest.param(0, 30, 1, "n2", id="the best of the first three"),
        pytest.param(0, 10, 5, "n4", id="the best of at least five"),
        pytest.param(8, 40, 1, "n9", id="the search goes round"),
        pytest.param(3, 100, 1, "n9", id="all of them"),
        pytest.param(7, 10, 100, "n9", id="more than there are"),
    ],
)
def test_the_search_stops_when_enough_candidates_are_known(
    start: int, percentage: int, absolute: int, chosen: str
) -> None:
    assert searching(start, limited(percentage, absolute), TEN) == chosen


def test_the_search_goes_on_until_no_budget_is_violated() -> None:
    protected = [view for number in range(5) for view in full(f"n{number}", labels=WEB)]
    cluster = [*protected, *full("n7", priority=50), budget("b", selector(app="web"), allowed=0)]
    assert searching(0, limited(10, 1), cluster) == "n7"


def test_nodes_that_do_not_help_are_no_candidates() -> None:
    cluster = [*full("n0", priority=100), *full("n1", priority=100), *full("n2")]
    assert searching(0, limited(10, 1), cluster) == "n2"


def test_candidates_are_found_among_many_nodes() -> None:
    """More rows than are examined in one go, most of them hopeless."""
    cluster = [view for number in range(200) for view in full(f"n{number:03}", priority=100)]
    engine = engine_of(*cluster, *full("n150"), *full("n199", priority=-1))
    assert nominated(engine) == "n199"


def test_cached_victims_are_dropped_when_the_cluster_changes() -> None:
    engine = engine_of(*full("n1", priority=100))
    assert nominated(engine) is None
    for view in full("n2"):
        engine.put(view)
    assert nominated(engine) == "n2"
    engine.put(pod("on-n2", cpu=2, priority=100, on="n2"))
    assert nominated(engine) is None


def test_of_candidates_that_violate_a_budget_only_as_many_are_kept_as_were_wanted() -> None:
    """One candidate is wanted: the search goes on for a clean one, but of the others only the first counts."""
    protected = [*full("n1", 9, WEB), *full("n2", 5, WEB), *full("n3", 1, WEB)]
    one = with_arguments("DefaultPreemption", {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 1})
    assert nominated(engine_of(*protected, budget("b", selector(app="web"), allowed=0), config=one)) == "n1"


@pytest.mark.parametrize(
    ("plugins", "clears"),
    [
        pytest.param({}, True, id="preemption that does not help takes the promise back"),
        pytest.param({"postFilter": {"disabled": [{"name": "*"}]}}, True, id="nobody who could help does so, too"),
    ],
)
def test_a_nomination_that_was_of_no_use(plugins: dict[str, Any], clears: bool) -> None:
    engine = engine_of(node("n1", cpu=1), config=with_profile(plugins=plugins))
    assert decide(engine, RESERVED).clears_nomination is clears


def test_without_nodes_a_nomination_is_void() -> None:
    assert decide(engine_of(), RESERVED).clears_nomination


def preempted(engine: Engine, view: Pod = URGENT) -> tuple[str, list[str]] | None:
    """The nominated node, and the victims in the order of their importance."""
    plan = decide(engine, view).preemption
    return (plan.node_name, [victim.name for victim in plan.victims]) if plan is not None else None


def holding(name: str, *residents: Pod, cpu: int = 2) -> list[ApiObject]:
    return [node(name, cpu=cpu), *residents]


def resident(name: str, on: str, cpu: int = 2, priority: int = 0, started_s: float | None = 0.0) -> Pod:
    return pod(name, on=on, cpu=cpu, priority=priority, started_s=started_s, labels=WEB)


@pytest.mark.parametrize(
    ("cluster", "chosen"),
    [
        pytest.param(
            [*holding("n1", resident("a", "n1", priority=9)), *holding("n2", resident("b", "n2", priority=5))],
            ("n2", ["b"]),
            id="the most important victim is the least important",
        ),
        pytest.param(
            [
                *holding("n1", resident("a", "n1", cpu=1, priority=5), resident("b", "n1", cpu=1, priority=3)),
                *holding("n2", resident("c", "n2", cpu=1, priority=5), resident("d", "n2", cpu=1, priority=1)),
            ],
            ("n2", ["c", "d"]),
            id="the sum of priorities is smallest",
        ),
        pytest.param(
            [
                *holding("n1", resident("a", "n1", cpu=1, priority=5), resident("b", "n1", cpu=1, priority=5)),
                *holding("n2", resident("c", "n2", priority=5)),
            ],
            ("n2", ["c"]),
            id="the victims are fewest",
        ),
        pytest.param(
            [
                *holding("n1", resident("a", "n1", cpu=1, priority=-5), resident("b", "n1", cpu=1, priority=-5)),
                *holding("n2", resident("c", "n2", priority=-5)),
            ],
            ("n2", ["c"]),
            id="fewer are better even if their priority is negative",
        ),
        pytest.param(
            [
                *holding("n1", resident("a", "n1", started_s=10.0)),
                *holding("n2", resident("b", "n2", started_s=20.0)),
            ],
            ("n2", ["b"]),
            id="the victim has run for the shortest time",
        ),
        pytest.param(
            [
                *holding(
                    "n1",
                    resident("a", "n1", cpu=1, priority=5, started_s=30.0),
                    resident("b", "n1", cpu=1, priority=0, started_s=1.0),
                ),
                *holding(
                    "n2",
                    resident("c", "n2", cpu=1, priority=5, started_s=20.0),
                    resident("d", "n2", cpu=1, priority=0, started_s=25.0),
                ),
            ],
            ("n1", ["a", "b"]),
            id="the time of the most important victims counts, not that of the others",
        ),
        pytest.param(
            [*holding("n2", resident("b", "n2")), *holding("n1", resident("a", "n1"))],
            ("n1", ["a"]),
            id="all being equal, the name that comes first",
        ),
        pytest.param(
            [
                *holding("n1", resident("a", "n1", priority=1)),
                *holding("n2", pod("b", on="n2", cpu=2, priority=9, started_s=0.0)),
                budget("b", selector(app="web"), allowed=0),
            ],
            ("n2", ["b"]),
            id="before all that, the fewest budgets are violated",
        ),
        pytest.param(
            [
                *holding("n1", resident("a", "n1", cpu=1), resident("b", "n1", cpu=1)),
                *holding("n2", resident("c", "n2")),
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
            holding("n1", resident("a", "n1", cpu=1, priority=1), resident("b", "n1", cpu=1, priority=2), cpu=3),
            URGENT,
            ["a"],
            id="who can stay stays, the most important first",
        ),
        pytest.param(
            holding("n1", resident("a", "n1", cpu=1, started_s=5.0), resident("b", "n1", cpu=1, started_s=3.0), cpu=3),
            URGENT,
            ["a"],
            id="at equal priority who has run longer",
        ),
        pytest.param(
            holding("n1", resident("a", "n1", cpu=1), resident("b", "n1", cpu=1), cpu=3),
            URGENT,
            ["b"],
            id="at equal times who came first",
        ),
        pytest.param(
            holding("n1", resident("a", "n1", cpu=1, started_s=None), resident("b", "n1", cpu=1, started_s=9.0), cpu=3),
            URGENT,
            ["a"],
            id="who has not started yet counts least",
        ),
        pytest.param(
            holding("n1", *(resident(name, "n1", cpu=1, started_s=None) for name in "ab"), cpu=3),
            URGENT,
            ["a"],
            id="of those the one that came last counts most",
        ),
        pytest.param(
            [
                *holding("n1", resident("a", "n1", cpu=1, priority=1), pod("b", on="n1", cpu=1, priority=2), cpu=3),
                budget("b", selector(app="web"), allowed=0),
            ],
            URGENT,
            ["b"],
            id="who is protected stays before all others",
        ),
        pytest.param(
            holding("n1", resident("big", "n1", cpu=3, priority=1), resident("a", "n1", cpu=1, priority=0), cpu=4),
            URGENT,
            ["big"],
            id="a less important pod may stay where a more important one cannot",
        ),
        pytest.param(
            holding("n1", resident("peer", "n1", cpu=1, priority=100), resident("a", "n1", cpu=1), cpu=3),
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
def test_which_pods_are_victims(cluster: list[ApiObject], pending: Pod, victims: list[str]) -> None:
    found = preempted(engine_of(*cluster), pending)
    assert found is not None
    assert found[0] == "n1"
    assert found[1] == victims


@pytest.mark.parametrize(
    ("cluster", "pending"),
    [
        pytest.param(holding("n1", resident("a", "n1", priority=100)), URGENT, id="nobody of lower priority"),
        pytest.param(holding("n1", resident("a", "n1"), cpu=1), URGENT, id="a node that is too small even if empty"),
        pytest.param(
            [node("n1", taints=["gpu:NoSchedule"]), resident("a", "n1")], URGENT, id="a rejection that is for good"
        ),
        pytest.param(
            holding("n1", resident("a", "n1", cpu=1), resident("peer", "n1", cpu=1, priority=100)),
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
    engine = engine_of(*holding("n1", resident("a", "n1", cpu=1), resident("b", "n1", cpu=1)))
    before = engine.columns.resources.used.tobytes()
    assert preempted(engine) == ("n1", ["a", "b"])
    assert engine.columns.resources.used.tobytes() == before
    assert list(engine.columns.pods_on[0]) == ["default/a", "default/b"]


def test_victims_of_a_row_are_found_again_when_the_row_changes() -> None:
    engine = engine_of(*holding("n1", resident("a", "n1", priority=9)), *holding("n2", resident("b", "n2", priority=5)))
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
    assert [record.name for record in ranked] == ["important", "old", "as old", "young", "waiting too", "waiting"]


def victim_names(view: Pod, *views: ApiObject, config: dict[str, Any] | None = None) -> list[str] | None:
    plan = decide(engine_of(*views, config=config), view).preemption
    return [victim.name for victim in plan.victims] if plan is not None else None


@pytest.mark.parametrize(
    ("percentage", "absolute", "victims"),
    [
        pytest.param(0, 1, ["on-n1"], id="one candidate: of those that violate a budget, the first is kept"),
        pytest.param(0, 2, ["on-n2"], id="two candidates: the better of the first two"),
        pytest.param(100, 0, ["on-n3"], id="all nodes: the best of all"),
        pytest.param(10, 0, None, id="a tenth of three nodes is none at all"),
    ],
)
def test_how_many_candidates_that_violate_a_budget_are_kept(
    percentage: int, absolute: int, victims: list[str] | None
) -> None:
    arguments = {"minCandidateNodesPercentage": percentage, "minCandidateNodesAbsolute": absolute}
    protected = [
        *full("n1", 9, WEB),
        *full("n2", 5, WEB),
        *full("n3", 1, WEB),
        budget("b", selector(app="web"), allowed=0),
    ]
    assert victim_names(URGENT, *protected, config=with_arguments("DefaultPreemption", arguments)) == victims


def test_nodes_beyond_the_candidate_limit_count_as_not_helpful() -> None:
    no_candidates = {"minCandidateNodesPercentage": 1, "minCandidateNodesAbsolute": 0}
    engine = engine_of(*full("n1"), *full("n2", 200), config=with_arguments("DefaultPreemption", no_candidates))
    message = decide(engine, URGENT).message or ""
    assert message.partition("preemption: ")[2] == (
        "0/2 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )


def test_a_failure_that_several_nodes_share_is_reported_once() -> None:
    """Without VolumeBinding, no filter rejects a pod whose claim belongs to another pod until its victims are gone."""
    foreign = claim("urgent-scratch")
    view = pod("urgent", cpu=2, priority=100, volumes=[ephemeral("scratch")])
    config = with_profile(plugins={"multiPoint": {"disabled": plugins("VolumeBinding")}})
    limits = (csi_node("n1", driver=1), csi_node("n2", driver=1))
    message = decide(engine_of(*full("n1"), *full("n2"), *limits, foreign, config=config), view).message or ""
    assert message.count("was not created for pod") == 1
    assert "[" not in message


@pytest.mark.parametrize("times", [1, 2, 3])
def test_all_equal_terms_of_a_victim_go_with_it(times: int) -> None:
    term = pods_like(HOSTNAME, app="web")
    resident = pod("resident", apart=[term] * times, on="n1", priority=0)
    assert victim_names(pod("new", labels=WEB, priority=9), node("n1"), resident) == ["resident"]
