"""DefaultPreemption: who may preempt, where it looks, and when it stops. (Whom it evicts: cycle/test_victims.)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.kit.entropy import Entropy
from mooring.scheduler.config import load_configuration
from mooring.scheduler.engine import Engine
from tests.api.builders import selector
from tests.builders import budget, node, pod
from tests.scheduler.config.builders import with_arguments, with_profile
from tests.scheduler.harness import decide, engine_of
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
def test_who_may_not_preempt(cluster: list[ApiObject], view: Pod, text: str) -> None:
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
    for each in cluster:
        engine.put(each)
    return nominated(engine)


TEN = [each for number in range(10) for each in full(f"n{number}", priority=10 - number)]
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
    protected = [each for number in range(5) for each in full(f"n{number}", labels=WEB)]
    cluster = [*protected, *full("n7", priority=50), budget("b", selector(app="web"), allowed=0)]
    assert searching(0, limited(10, 1), cluster) == "n7"


def test_nodes_that_do_not_help_are_no_candidates() -> None:
    cluster = [*full("n0", priority=100), *full("n1", priority=100), *full("n2")]
    assert searching(0, limited(10, 1), cluster) == "n2"


def test_candidates_are_found_among_many_nodes() -> None:
    """More rows than are examined in one go, most of them hopeless."""
    cluster = [each for number in range(200) for each in full(f"n{number:03}", priority=100)]
    engine = engine_of(*cluster, *full("n150"), *full("n199", priority=-1))
    assert nominated(engine) == "n199"


def test_what_was_found_is_forgotten_when_the_cluster_changes() -> None:
    engine = engine_of(*full("n1", priority=100))
    assert nominated(engine) is None
    for each in full("n2"):
        engine.put(each)
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
