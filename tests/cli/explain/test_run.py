"""One run of explain: configurations, notes, errors, and the decision about each pod."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.cli.cluster_source import assemble
from mooring.cli.cluster_source.assemble import in_queue_order
from mooring.cli.cluster_source.cluster_input import ClusterInput
from mooring.cli.errors import InputError
from mooring.cli.explain.report import Outcome, PodExplanation, Report
from mooring.cli.explain.run import Explainer, ExplainRequest, run_explain
from mooring.kit.clock import VIRTUAL_WALL_S, VirtualClock
from mooring.scheduler.engine import Engine
from tests.api.builders import selector
from tests.builders import budget, node, pod
from tests.device_builders import claim, claiming, device_class, gpus, wants
from tests.scheduler.harness import engine_of

NODE = (
    "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 9}}}\n---\n"
)
POD = "{apiVersion: v1, kind: Pod, metadata: {name: p}}\n---\n"
CONFIGURATION = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def explained(text: str, config: Path | None = None, pod: str | None = None) -> tuple[Report, list[str]]:
    notes: list[str] = []
    request = ExplainRequest(
        files=("-",),
        pods=(pod,) if pod is not None else (),
        config=str(config) if config is not None else None,
    )
    return run_explain(request, io.BytesIO(text.encode()), notes.append, VirtualClock()), notes


def test_a_run_without_surprises() -> None:
    report, notes = explained(NODE + POD)
    assert (report.node_count, report.pending_count, report.placed_count, notes) == (1, 1, 0, [])
    assert report.pods[0].outcome is Outcome.PLACED


@pytest.mark.parametrize(
    ("configuration", "said"),
    [
        pytest.param("a: [", "c.yaml:1: cannot be read as YAML or JSON: ", id="not YAML"),
        pytest.param("", "c.yaml:1: cannot be read as YAML or JSON: expected one document, found none", id="empty"),
        pytest.param(POD, 'c.yaml:1: no kind "Pod" is registered for version "v1"', id="something else"),
        pytest.param(CONFIGURATION + "parallelism: 0\n", "c.yaml:3: parallelism: Invalid value: 0", id="a bad value"),
        pytest.param(CONFIGURATION + "paralelism: 3\n", "c.yaml:3: ", id="an unknown field"),
        pytest.param(
            CONFIGURATION + "profiles:\n- plugins:\n    filter:\n      enabled:\n      - name: Nope\n",
            "c.yaml:",
            id="an unknown plugin",
        ),
    ],
)
def test_a_bad_configuration_is_reported_with_its_line(configuration: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(configuration)
    with pytest.raises(InputError) as caught:
        explained(NODE, file)
    assert caught.value.lines()[0].startswith(f"{tmp_path}/{said}")


def test_a_configuration_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file or directory"):
        explained(NODE, tmp_path / "none.yaml")


def test_a_configuration_changes_the_decision(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(CONFIGURATION + "profiles:\n- schedulerName: mine\n")
    report, _ = explained(NODE + POD + POD.replace("p}", "q}, spec: {schedulerName: mine}"), file)
    assert {pod.pod: pod.outcome for pod in report.pods} == {
        "default/p": Outcome.LEFT_ALONE,
        "default/q": Outcome.PLACED,
    }


def test_extenders_are_not_called_and_a_note_says_so(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(CONFIGURATION + "extenders:\n- urlPrefix: http://localhost:1/x\n  filterVerb: filter\n")
    assert explained(NODE, file)[1] == ["1 extender(s) in the configuration are not asked"]


@pytest.mark.parametrize(
    ("now_s", "decided_at_s"),
    [pytest.param(None, VIRTUAL_WALL_S, id="the clock's"), pytest.param(5.0, 5.0, id="another")],
)
def test_the_time_that_is_decided_for(
    now_s: float | None, decided_at_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[float] = []

    class Watched(Engine):
        def __init__(self, *arguments: Any, services: Mapping[str, Any], **options: Any) -> None:
            told.append(services["clock"].wall_s())
            super().__init__(*arguments, services=services, **options)

    monkeypatch.setattr(assemble, "Engine", Watched)
    request = ExplainRequest(files=("-",), now_s=now_s)
    report = run_explain(request, io.BytesIO((NODE + POD).encode()), lambda text: None, VirtualClock())
    assert (report.decided_at_s, told) == (decided_at_s, [decided_at_s])


def test_a_cluster_without_nodes_is_an_error() -> None:
    with pytest.raises(InputError, match="found no nodes in -; wanted at least one: kubectl get nodes -o yaml"):
        explained(POD)


@pytest.mark.parametrize(
    ("status", "outcome", "message"),
    [
        pytest.param("{phase: Running}", Outcome.RUNNING, "", id="running"),
        pytest.param("{phase: Failed}", Outcome.FINISHED, "its phase is Failed", id="failed"),
    ],
)
def test_a_pod_that_needs_no_decision(status: str, outcome: Outcome, message: str) -> None:
    pod = f"{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {{nodeName: n1}}, status: {status}}}"
    (found,) = explained(NODE + pod, pod="p")[0].pods
    assert (found.outcome, found.node, found.message) == (outcome, "n1", message)


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


def explanations(*views: ApiObject, limit: int | None = 5) -> list[PodExplanation]:
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
    results = explanations(node("n1", cpu=4), pod("a", cpu=3), pod("b", cpu=3), pod("c", cpu=1))
    assert [(result.pod, result.node) for result in results] == [
        ("default/a", "n1"),
        ("default/b", None),
        ("default/c", "n1"),
    ]


def test_a_pod_that_preempts_is_nominated_and_its_victims_stay() -> None:
    urgent, late = explanations(
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
    (found,) = explanations(node("n1"), view)
    assert (found.outcome, found.message) == (outcome, message)


def test_scores_are_best_first_and_the_chosen_one_leads_its_equals() -> None:
    (found,) = explanations(node("n1", cpu=4), node("n2", cpu=8), node("n3", cpu=8), pod(cpu=1, memory="1Gi"), limit=2)
    assert found.scores is not None
    assert [row.node for row in found.scores.rows] == ["n2", "n3"]
    assert (found.scores.tied_count, found.feasible_count) == (2, 3)
    assert "NodeResourcesFit" in found.scores.differing
    assert found.scores.same_for_all["TaintToleration"] == 300
    assert found.scores.rows[0].total == sum(found.scores.rows[0].by_plugin.values())


def test_rejections_are_grouped_and_counted() -> None:
    (found,) = explanations(
        node("n1", cpu=1), node("n2", cpu=1), node("n3", cpu=1, memory=1), node("n4", taints=["t:NoSchedule"]),
        pod(cpu=2, memory=2),
    )  # fmt: skip
    assert found.reasons == {"Insufficient cpu": 3, "Insufficient memory": 1, "node(s) had untolerated taint(s)": 1}
    assert [(group.reasons, group.nodes) for group in found.rejections] == [
        (("Insufficient cpu",), ("n1", "n2")),
        (("Insufficient cpu", "Insufficient memory"), ("n3",)),
        (("node(s) had untolerated taint(s)",), ("n4",)),
    ]


def test_an_obstacle_on_every_node_is_shown_once() -> None:
    (found,) = explanations(node("n1"), node("n2", taints=["t:NoSchedule"]), pod(claims=["data"]))
    assert [obstacle.text for obstacle in found.everywhere] == ['persistentvolumeclaim "data" not found']
    assert found.otherwise_count == 1
    assert found.reasons == {'persistentvolumeclaim "data" not found': 2}


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
    (found,) = explanations(node("n1", cpu=4), nomination, other, *victims, pod("urgent", cpu=4, priority=9))
    assert found.preemption is not None
    assert [victim.budgets_violated for victim in found.preemption.victims] == broken
    assert [victim.started for victim in found.preemption.victims] == ["1970-01-01T00:01:40Z", "1970-01-01T00:03:20Z"]


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
    (found,) = explanations(node("n1", cpu=4), pod("running", cpu=2, on="n1"), view)
    assert found.preemption is not None
    assert (found.preemption.node, found.preemption.why_not) == (None, why_not)


def test_a_nomination_from_the_input_is_honoured() -> None:
    (second,) = explanations(
        node("n1", cpu=4),
        pod("leaving", cpu=4, on="n1", preempted=True),
        pod("nominated", cpu=4, priority=9, nominated="n1"),
    )
    assert second.outcome is Outcome.UNSCHEDULABLE
    assert "a terminating pod on the nominated node" in second.message


DEVICES = [device_class(), node("n1"), node("n2"), gpus("n1", 1), gpus("n2", 1), claim("shared", wants())]


def test_pods_share_a_claim_that_has_no_devices_yet() -> None:
    first, second = explanations(*DEVICES, claiming("p1", "shared"), claiming("p2", "shared"))
    assert (first.outcome, second.outcome) == (Outcome.PLACED, Outcome.PLACED)
    assert first.node == second.node
    assert [(device.claim, device.device) for device in first.devices] == [("default/shared", "gpu-0")]
    late = explained_one("p2", *DEVICES, claiming("p1", "shared"), claiming("p2", "shared"))
    assert (late.node, late.devices) == (first.node, second.devices)


def test_alone_each_pod_gets_the_devices_again() -> None:
    given = cluster(*DEVICES, claiming("p1", "shared"), claiming("p2", "shared"))
    keys = {"default/p1", "default/p2"}
    results = list(Explainer(engine_of(), given, 5).explain(keys, lambda count: None, ignores_others=True))
    assert [[(device.claim, device.device) for device in found.devices] for found in results] == [
        [("default/shared", "gpu-0")]
    ] * 2
