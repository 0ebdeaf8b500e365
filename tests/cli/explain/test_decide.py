"""Asking the engine: in which order, with which consequences, and how its answers are laid out."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.cli.cluster_source.assemble import in_queue_order
from mooring.cli.cluster_source.cluster_input import ClusterInput
from mooring.cli.explain.report import Outcome, PodExplanation
from mooring.cli.explain.run import Explainer
from tests.api.builders import selector
from tests.builders import budget, node, pod
from tests.device_builders import claim, claiming, device_class, gpus, wants
from tests.scheduler.harness import engine_of


def created(view: Pod, at: str) -> Pod:
    return msgspec.structs.replace(view, metadata=msgspec.structs.replace(view.metadata, creation_timestamp=at))


def cluster(*views: ApiObject) -> ClusterInput:
    pods = [view for view in views if isinstance(view, Pod)]
    return ClusterInput(
        objects=[view for view in views if not isinstance(view, Pod)],
        placed=[view for view in pods if view.spec.node_name],
        pending=[view for view in pods if not view.spec.node_name],
        node_count=sum(isinstance(view, Node) for view in views),
    )


def everything(*views: ApiObject) -> set[str]:
    return {view.key for view in views if isinstance(view, Pod)}


def explained(*views: ApiObject, limit: int | None = 5) -> list[PodExplanation]:
    return list(Explainer(engine_of(), cluster(*views), limit).explain(everything(*views), lambda count: None))


def explained_one(name: str, *views: ApiObject, alone: bool = False) -> PodExplanation:
    given = cluster(*views)
    wanted = next(view for view in given.pending if view.metadata.name == name)
    explainer = Explainer(engine_of(), given, 5)
    (explanation,) = explainer.explain({wanted.key}, lambda count: None, ignores_others=alone)
    return explanation


@pytest.mark.parametrize(
    ("pods", "order"),
    [
        pytest.param([pod("low", priority=1), pod("high", priority=2)], ["high", "low"], id="by priority"),
        pytest.param(
            [created(pod("later"), "2026-01-01T23:00:00-02:00"), created(pod("first"), "2026-01-02T00:00:00Z")],
            ["first", "later"],
            id="then by age, whatever the time zone",
        ),
        pytest.param([pod("b"), pod("a")], ["b", "a"], id="then as they are written"),
        pytest.param(
            [pod("new"), created(pod("old"), "2026-01-02T00:00:00Z")], ["old", "new"], id="without a time it is new"
        ),
    ],
)
def test_the_order_of_the_queue(pods: list[Pod], order: Sequence[str]) -> None:
    assert [view.metadata.name for view in in_queue_order(pods)] == order


def test_each_pod_sees_those_before_it_as_placed() -> None:
    fates = explained(node("n1", cpu=4), pod("a", cpu=3), pod("b", cpu=3), pod("c", cpu=1))
    assert [(fate.pod, fate.node) for fate in fates] == [("default/a", "n1"), ("default/b", None), ("default/c", "n1")]


def test_a_pod_that_preempts_is_nominated_and_its_victims_stay() -> None:
    urgent, late = explained(
        node("n1", cpu=4),
        pod("running", cpu=4, on="n1"),
        pod("urgent", cpu=4, priority=9),
        pod("late", cpu=4, priority=5),
    )
    assert urgent.preemption is not None
    assert [victim.pod for victim in urgent.preemption.victims] == ["default/running"]
    assert late.nearest[0].obstacles[0].text == "8 cpu more (4 promised to default/urgent)"


@pytest.mark.parametrize(
    ("alone", "node_name"),
    [pytest.param(False, None, id="after the others"), pytest.param(True, "n1", id="alone")],
)
def test_one_pod(alone: bool, node_name: str | None) -> None:
    views = (node("n1", cpu=4), pod("first", cpu=3, priority=1), pod("second", cpu=3))
    assert explained_one("second", *views, alone=alone).node == node_name


def test_several_pods_are_decided_each_as_if_no_other_were_waiting() -> None:
    views = (node("n1", cpu=4), pod("first", cpu=3, priority=1), pod("second", cpu=3), pod("third", cpu=3))
    explainer = Explainer(engine_of(), cluster(*views), 5)
    found = explainer.explain({"default/second", "default/third"}, lambda count: None, ignores_others=True)
    assert {each.pod: each.node for each in found} == {"default/second": "n1", "default/third": "n1"}


def test_pods_after_the_one_that_is_asked_for_do_not_matter() -> None:
    counted: list[int] = []
    given = cluster(node("n1"), pod("a"), pod("b"), pod("c"))
    list(Explainer(engine_of(), given, 5).explain({given.pending[1].key}, counted.append))
    assert counted == [1, 1]


@pytest.mark.parametrize(
    ("view", "outcome", "message"),
    [
        pytest.param(pod(gates=["a", "b"]), Outcome.GATED, "waiting for scheduling gates: [a b]", id="gated"),
        pytest.param(pod(scheduler="volcano"), Outcome.LEFT_ALONE, "asks for scheduler volcano", id="another's"),
        pytest.param(pod(terminating=True), Outcome.LEFT_ALONE, "is being deleted", id="on its way out"),
    ],
)
def test_pods_that_are_not_decided(view: Pod, outcome: Outcome, message: str) -> None:
    (fate,) = explained(node("n1"), view)
    assert (fate.outcome, fate.message) == (outcome, message)


def test_scores_are_best_first_and_the_chosen_one_leads_its_equals() -> None:
    (fate,) = explained(node("n1", cpu=4), node("n2", cpu=8), node("n3", cpu=8), pod(cpu=1, memory="1Gi"), limit=2)
    assert fate.scores is not None
    assert [row.node for row in fate.scores.rows] == ["n2", "n3"]
    assert (fate.scores.tied_count, fate.feasible_count) == (2, 3)
    assert "NodeResourcesFit" in fate.scores.differing
    assert fate.scores.same_for_all["TaintToleration"] == 300
    assert fate.scores.rows[0].total == sum(fate.scores.rows[0].by_plugin.values())


def test_rejections_are_grouped_and_counted() -> None:
    (fate,) = explained(
        node("n1", cpu=1), node("n2", cpu=1), node("n3", cpu=1, memory=1), node("n4", taints=["t:NoSchedule"]),
        pod(cpu=2, memory=2),
    )  # fmt: skip
    assert fate.reasons == {"Insufficient cpu": 3, "Insufficient memory": 1, "node(s) had untolerated taint(s)": 1}
    assert [(group.reasons, group.nodes) for group in fate.rejections] == [
        (("Insufficient cpu",), ("n1", "n2")),
        (("Insufficient cpu", "Insufficient memory"), ("n3",)),
        (("node(s) had untolerated taint(s)",), ("n4",)),
    ]


def test_what_holds_everywhere_is_told_once() -> None:
    (fate,) = explained(node("n1"), node("n2", taints=["t:NoSchedule"]), pod(claims=["data"]))
    assert [obstacle.text for obstacle in fate.everywhere] == ['persistentvolumeclaim "data" not found']
    assert fate.otherwise_count == 1
    assert fate.reasons == {'persistentvolumeclaim "data" not found': 2}


@pytest.mark.parametrize(
    ("allowed", "broken"),
    [
        pytest.param(2, [(), ()], id="both may go"),
        pytest.param(1, [(), ("default/b",)], id="one may go"),
        pytest.param(0, [("default/b",), ("default/b",)], id="none may go"),
    ],
)
def test_budgets_that_victims_break(allowed: int, broken: list[tuple[str, ...]]) -> None:
    victims = [pod(f"v{n}", cpu=2, on="n1", labels={"app": "x"}, started_s=100.0 * n) for n in (1, 2)]
    nomination = budget("b", selector(app="x"), allowed=allowed)
    other = budget("other", selector(app="y"), allowed=0)
    (fate,) = explained(node("n1", cpu=4), nomination, other, *victims, pod("urgent", cpu=4, priority=9))
    assert fate.preemption is not None
    assert [victim.budgets_violated for victim in fate.preemption.victims] == broken
    assert [victim.started for victim in fate.preemption.victims] == ["1970-01-01T00:01:40Z", "1970-01-01T00:03:20Z"]


@pytest.mark.parametrize(
    ("view", "why_not"),
    [
        pytest.param(
            pod(cpu=9),
            "0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
            id="the node is too small",
        ),
        pytest.param(
            pod(cpu=3, preemption_policy="Never"), "not eligible due to preemptionPolicy=Never.", id="it must not"
        ),
    ],
)
def test_why_preemption_does_not_help(view: Pod, why_not: str) -> None:
    (fate,) = explained(node("n1", cpu=4), pod("running", cpu=2, on="n1"), view)
    assert fate.preemption is not None
    assert (fate.preemption.node, fate.preemption.why_not) == (None, why_not)


def test_a_nomination_from_the_input_is_honoured() -> None:
    (second,) = explained(
        node("n1", cpu=4),
        pod("leaving", cpu=4, on="n1", preempted=True),
        pod("nominated", cpu=4, priority=9, nominated="n1"),
    )
    assert second.outcome is Outcome.UNSCHEDULABLE
    assert "a terminating pod on the nominated node" in second.message


DEVICES = [device_class(), node("n1"), node("n2"), gpus("n1", 1), gpus("n2", 1), claim("shared", wants())]


def test_pods_share_a_claim_that_has_no_devices_yet() -> None:
    first, second = explained(*DEVICES, claiming("p1", "shared"), claiming("p2", "shared"))
    assert (first.outcome, second.outcome) == (Outcome.PLACED, Outcome.PLACED)
    assert first.node == second.node
    assert [(each.claim, each.device) for each in first.devices] == [("default/shared", "gpu-0")]
    late = explained_one("p2", *DEVICES, claiming("p1", "shared"), claiming("p2", "shared"))
    assert (late.node, late.devices) == (first.node, second.devices)


def test_alone_each_pod_gets_the_devices_again() -> None:
    given = cluster(*DEVICES, claiming("p1", "shared"), claiming("p2", "shared"))
    keys = {"default/p1", "default/p2"}
    fates = list(Explainer(engine_of(), given, 5).explain(keys, lambda count: None, ignores_others=True))
    assert [[(each.claim, each.device) for each in fate.devices] for fate in fates] == [
        [("default/shared", "gpu-0")]
    ] * 2
