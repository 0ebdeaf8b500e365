"""SimKube traces at the cluster level: objects are applied and deleted, and controllers create the pods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from mooring.simulator.errors import ScenarioError
from mooring.simulator.scenario.reading import read_scenario
from mooring.simulator.simulation import SimulationResult, simulate
from tests.simulator.test_traces import BEGIN_S, TEMPLATE, an_object, deployment, event, trace

SELECTOR = {"matchLabels": {"app": "web"}}


def run(folder: Path, *events: Any, pool: str = "count: 2", minutes: int = 10, **more: Any) -> SimulationResult:
    path = folder / "scenario.yaml"
    trace(folder, *events, **more)
    path.write_text(
        f'cluster: {{pools: [{{name: node, {pool}, cpu: "4", memory: 8Gi}}]}}\n'
        "workload: {simkube: {trace: cluster.sktrace}}\nlevel: cluster\n"
        f"duration: {minutes}m\nsamples: {{every: 1m}}\n"
    )
    return simulate(read_scenario(path, {}), "default", 1)


def running(result: SimulationResult) -> list[float]:
    return [sample["running"] for sample in result.samples]


def a_deployment(replicas: int, image: str = "web", **metadata: Any) -> dict[str, Any]:
    """As a cluster prints it."""
    found = deployment(replicas, image)
    found["metadata"] |= {"uid": "traced", "resourceVersion": "7", "managedFields": [], **metadata}
    found["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": "3"}
    spec = found["spec"]["template"]["spec"]
    mounts = [{"name": "data", "mountPath": "/data"}]
    spec["containers"] = [{**container, "volumeMounts": mounts} for container in spec["containers"]]
    return {**found, "spec": {**found["spec"], "selector": SELECTOR}, "status": {"replicas": 9}}


def test_a_deployment_is_applied_scaled_rolled_out_and_deleted(tmp_path: Path) -> None:
    result = run(
        tmp_path,
        event(0, a_deployment(2)),
        event(150, a_deployment(4)),
        event(270, a_deployment(4, image="next")),
        event(450, deleted=(a_deployment(4, image="next"),)),
    )
    assert running(result) == [2, 2, 2, 4, 4, 4, 4, 4, 0, 0, 0]
    # The rollout replaces four pods, and nothing is evicted.
    assert (result.figures["placed"], result.figures["evictions"], result.figures["pending"]) == (8, 0, 0)


def test_jobs_run_as_long_as_their_pods_in_the_trace(tmp_path: Path) -> None:
    labels = {"batch.kubernetes.io/controller-uid": "traced", "app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {**TEMPLATE["spec"], "restartPolicy": "OnFailure"}}
    selector = {"matchLabels": {"batch.kubernetes.io/controller-uid": "traced"}}
    once = an_object("Job", "once", {"selector": selector, "template": template}, "batch/v1")
    lasting = an_object("Job", "lasting", {"parallelism": 2, "template": template}, "batch/v1")
    bare = an_object("Pod", "bare", TEMPLATE["spec"], "v1")
    result = run(
        tmp_path,
        event(0, once, lasting, bare),
        event(390, deleted=(lasting,)),
        lifecycles={
            ("batch/v1.Job", "shop/once"): {1: [{"Finished": [BEGIN_S, BEGIN_S + 90]}]},
            ("v1.Pod", "shop/bare"): {2: [{"Finished": [BEGIN_S, BEGIN_S + 200]}, {"Running": BEGIN_S}]},
        },
    )
    assert running(result)[1:] == [4, 3, 3, 2, 2, 2, 0, 0, 0, 0]
    assert result.figures["placed"] == 4


def test_kinds_with_pods_that_only_controllers_know(tmp_path: Path) -> None:
    """A pod of a DaemonSet on each node, pods of a StatefulSet without claims, and Jobs by the clock of the trace."""
    spec = {"selector": SELECTOR, "template": TEMPLATE}
    claims = [{"metadata": {"name": "store"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}]
    stateful = an_object(
        "StatefulSet", "db", {**spec, "replicas": 2, "serviceName": "db", "volumeClaimTemplates": claims}
    )
    # The trace begins at 23:48:58.
    schedule = {"schedule": "50 23 * * *", "jobTemplate": {"spec": {"template": _once()}}}
    result = run(
        tmp_path,
        event(0, an_object("DaemonSet", "logs", spec), stateful, an_object("CronJob", "cron", schedule, "batch/v1")),
        lifecycles={("batch/v1.CronJob", "shop/cron"): {1: [{"Finished": [BEGIN_S, BEGIN_S + 60]}]}},
    )
    assert running(result) == [3, 4, 5, 4, 4, 4, 4, 4, 4, 4, 4]


@pytest.mark.parametrize(("cpu", "added"), [("3500m", 1), ("4", 0)])
def test_the_autoscaler_leaves_space_for_the_pods_of_daemon_sets(tmp_path: Path, cpu: str, added: int) -> None:
    daemons = an_object("DaemonSet", "logs", {"selector": SELECTOR, "template": TEMPLATE})
    large = deployment(2)
    (container,) = large["spec"]["template"]["spec"]["containers"]
    container["resources"] = {"requests": {"cpu": cpu}}
    large["spec"]["selector"] = SELECTOR
    result = run(tmp_path, event(0, daemons), event(60, large), pool="count: 1, autoscale: {max: 4}")
    assert (result.figures["nodes_added"], running(result)[-1]) == (added, 1 + 3 * added)
    # A node whose pods all belong to DaemonSets has none that must move.
    path = tmp_path / "idle"
    path.mkdir()
    idle = run(path, event(0, daemons), pool="count: 3, autoscale: {min: 1, max: 4}", minutes=20)
    assert (idle.figures["nodes_removed"], running(idle)[-1]) == (2, 1)


def _once() -> dict[str, Any]:
    return {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}


def test_namespaces_and_classes_that_objects_name_exist(tmp_path: Path) -> None:
    important = a_deployment(1)
    important["spec"]["template"]["spec"] |= {"priorityClassName": "important", "runtimeClassName": "gvisor"}
    system = deployment(1)
    system["metadata"]["name"] = "system"
    system["spec"]["template"]["spec"] |= {"priorityClassName": "system-node-critical"}
    system["spec"]["selector"] = SELECTOR
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": "web"}}}
    assert running(run(tmp_path, event(0, important, system), event(30, namespace)))[1] == 2


def test_other_kinds_are_left_out_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = an_object("ConfigMap", "settings", {}, "v1")
    del config["spec"]
    gang = an_object("Gang", "gang", {"template": TEMPLATE}, "example.com/v1")
    result = run(tmp_path, event(0, config, gang, a_deployment(1)), event(60, deleted=(config, gang)))
    assert running(result)[-1] == 1
    assert "cluster.sktrace: the API server does not serve these kinds: 2 Gang" in caplog.text
    assert "without pods" not in caplog.text


def test_what_the_api_server_rejects_has_the_number_of_its_event(tmp_path: Path) -> None:
    wrong = a_deployment(1)
    wrong["spec"]["selector"] = {"matchLabels": {"app": "other"}}
    with pytest.raises(ScenarioError, match=r"Deployment web: .*selector") as error:
        run(tmp_path, event(0), event(30, wrong))
    assert error.value.where == f"{tmp_path / 'cluster.sktrace'}: event 2"


def test_a_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    events = (event(0, a_deployment(3)), event(120, a_deployment(5)))
    first, again = (msgspec.json.encode(run(tmp_path, *events)) for _ in range(2))
    assert first == again
