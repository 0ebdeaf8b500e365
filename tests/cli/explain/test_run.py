"""One run: configurations, notes, and what stops it. Choosing pods is tested in `test_explain`."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mooring.cli.cluster_source import assemble
from mooring.cli.errors import InputError
from mooring.cli.explain.report import Outcome, Report
from mooring.cli.explain.run import ExplainRequest, run_explain
from mooring.kit.clock import VIRTUAL_WALL_S, VirtualClock
from mooring.scheduler.engine import Engine

NODE = (
    "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 9}}}\n---\n"
)
POD = "{apiVersion: v1, kind: Pod, metadata: {name: p}}\n---\n"
CONFIGURATION = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def explained(text: str, config: Path | None = None, pod: str | None = None) -> tuple[Report, list[str]]:
    notes: list[str] = []
    request = ExplainRequest(("-",), (pod,) if pod is not None else (), str(config) if config is not None else None)
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
def test_a_bad_configuration_is_told_with_its_line(configuration: str, said: str, tmp_path: Path) -> None:
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


def test_extenders_are_not_asked_and_that_is_told(tmp_path: Path) -> None:
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
    request = ExplainRequest(("-",), now_s=now_s)
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
    (fate,) = explained(NODE + pod, pod="p")[0].pods
    assert (fate.outcome, fate.node, fate.message) == (outcome, "n1", message)
