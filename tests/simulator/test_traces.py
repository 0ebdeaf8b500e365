"""The DLRM trace and SimKube traces: what they become, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from mooring.simulator.csv_traces import GPU, MAX_PER_NODE, RDMA_PERCENT, csv_lines, dlrm_workload
from mooring.simulator.errors import ScenarioError
from mooring.simulator.simkube import simkube_workload
from mooring.simulator.workload import FOREVER_S, Arrivals

# --- DLRM -------------------------------------------------------------------------------------------------------

HEADER = (
    "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,memory_request,"
    "memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,deletion_time\n"
)
GPU_INSTANCE = "instance_7,HN,app_0,12,12,1,1,25,25,120.0,120.0,680.0,800.0,8,,,\n"
CPU_INSTANCE = "instance_9,CN,app_130,64,64,0,0,1,1,320.5,320.5,255.0,300.0,-1,500.0,560.0,1435760.0\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "trace.csv"
    path.write_text(text)
    return path


def test_instances_become_pods_in_order_of_time(tmp_path: Path) -> None:
    found = dlrm_workload(written(tmp_path, HEADER + CPU_INSTANCE + GPU_INSTANCE), "role")
    gpu, cpu = found.arrivals
    assert (gpu.at_s, gpu.lifetime_s, gpu.owner) == (0.0, FOREVER_S, "app-0")
    assert (cpu.at_s, cpu.lifetime_s, cpu.owner) == (500.0, 1435200.0, "app-130")
    assert gpu.pod.metadata.labels == {"app": "app-0", "role": "HN", MAX_PER_NODE: "8"}
    assert gpu.pod.spec.node_selector == {"role": "HN"}
    requests = {"cpu": "12000m", "memory": "122880Mi", "ephemeral-storage": "696320Mi", GPU: "1", RDMA_PERCENT: "25"}
    assert gpu.pod.spec.containers[0].resources.requests == requests
    assert cpu.pod.metadata.labels == {"app": "app-130", "role": "CN"}
    assert cpu.pod.spec.containers[0].resources.requests["memory"] == "328192Mi"
    (anywhere,) = dlrm_workload(written(tmp_path, HEADER + CPU_INSTANCE), "").arrivals
    assert anywhere.pod.spec.node_selector == {}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "is empty; wanted the columns instance_sn"),
        (HEADER.replace("rdma_request,", ""), 1, "has no column rdma_request"),
        (HEADER + GPU_INSTANCE.replace("12,12", "some,12"), 2, "cpu_request is 'some'; wanted a number"),
        (HEADER + GPU_INSTANCE.replace("12,12", "inf,12"), 2, "cpu_request is 'inf'; wanted a number"),
        (HEADER + GPU_INSTANCE.replace("1,1", "-1,1", 1), 2, "gpu_request is -1; wanted 0 or more"),
        (HEADER + GPU_INSTANCE.replace("HN", "XN"), 2, "role is 'XN'; wanted CN or HN"),
        (HEADER + GPU_INSTANCE.replace("app_0", ""), 2, "app_name is empty"),
        (HEADER + GPU_INSTANCE + GPU_INSTANCE, 3, "instance_7 is there twice"),
        (HEADER + CPU_INSTANCE.replace("560", "400"), 2, "scheduled_time 400 is before creation_time 500"),
        (HEADER + CPU_INSTANCE.replace("1435760", "510"), 2, "deletion_time 510 is before 560"),
        (HEADER + GPU_INSTANCE + CPU_INSTANCE[:40], 3, "cells; wanted 17"),
        (HEADER + '"instance', 2, "is no line of CSV: unexpected end of data"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, text: str, line: int, words: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ScenarioError) as error:
        dlrm_workload(path, "")
    assert error.value.where == f"{path}:{line}"
    assert words in error.value.text


def test_a_csv_file_is_read_line_by_line(tmp_path: Path) -> None:
    path = written(tmp_path, "name\nfirst\nsecond\n" + "\0" * 10)
    lines = csv_lines(path, ("name",))
    assert [next(lines).text("name"), next(lines).text("name")] == ["first", "second"]


@pytest.mark.parametrize("reader", [lambda path: dlrm_workload(path, ""), simkube_workload])
def test_a_file_that_is_not_there(tmp_path: Path, reader: Any) -> None:
    with pytest.raises(ScenarioError, match="cannot be read: No such file or directory"):
        reader(tmp_path / "nowhere")


# --- SimKube ----------------------------------------------------------------------------------------------------

BEGIN_S = 1_710_892_138
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}, "creationTimestamp": None},
    "spec": {
        "containers": [{"name": "main", "image": "web", "resources": {"requests": {"cpu": "500m"}}}],
        "nodeName": "traced-node",
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "tmp", "emptyDir": {}}],
    },
}


def an_object(kind: str, name: str, spec: dict[str, Any], api_version: str = "apps/v1") -> dict[str, Any]:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"namespace": "shop", "name": name, "annotations": {}},
        "spec": spec,
    }


def deployment(replicas: int, image: str = "web") -> dict[str, Any]:
    containers = [{**TEMPLATE["spec"]["containers"][0], "image": image}]
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "containers": containers}}
    return an_object("Deployment", "web", {"replicas": replicas, "template": template})


def event(after_s: int, *applied: dict[str, Any], deleted: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"ts": BEGIN_S + after_s, "applied_objs": list(applied), "deleted_objs": list(deleted)}


def trace(folder: Path, *events: Any, lifecycles: Any = None, tracked: Any = None, version: int = 2) -> Path:
    """A trace as its documentation describes it."""
    path = folder / "cluster.sktrace"
    document = {
        "version": version,
        "config": {"trackedObjects": tracked or {"apps/v1.Deployment": {"podSpecTemplatePaths": ["/spec/template"]}}},
        "events": list(events),
        "index": {"apps/v1.Deployment": {"shop/web": 2**64 - 1}},
        "pod_lifecycles": lifecycles or {},
    }
    path.write_bytes(msgspec.msgpack.encode(document))
    return path


def lives(found: Arrivals) -> list[tuple[str, float, float]]:
    """Name, arrival, and time until the end or the deletion of each pod."""
    return sorted(
        (arrival.pod.metadata.name, arrival.at_s, min(arrival.lifetime_s, arrival.deleted_s - arrival.at_s))
        for arrival in found.arrivals
    )


def test_a_deployment_is_scaled_and_deleted(tmp_path: Path) -> None:
    found = simkube_workload(
        trace(
            tmp_path,
            event(0),
            event(0, deployment(1)),
            event(60, deployment(3)),
            event(100, deployment(2)),
            event(150, deleted=(deployment(2),)),
        )
    )
    assert lives(found) == [("web-0", 0.0, 150.0), ("web-1", 60.0, 90.0), ("web-2", 60.0, 40.0)]
    assert [arrival.at_s for arrival in found.arrivals] == [0.0, 60.0, 60.0]
    pod = found.arrivals[0].pod
    assert (pod.metadata.namespace, pod.metadata.labels, pod.spec.node_name) == ("shop", {"app": "web"}, "")
    assert [volume.name for volume in pod.spec.volumes] == ["tmp"]
    assert pod.metadata.owner_references[0].controller
    assert len(found.types) == 1


def test_a_new_template_replaces_the_pods(tmp_path: Path) -> None:
    found = simkube_workload(trace(tmp_path, event(0, deployment(2)), event(30, deployment(2, image="next"))))
    assert lives(found) == [
        ("web-0", 0.0, 30.0),
        ("web-1", 0.0, 30.0),
        ("web-2", 30.0, FOREVER_S),
        ("web-3", 30.0, FOREVER_S),
    ]


def test_lifecycles_of_pods_and_jobs(tmp_path: Path) -> None:
    bare = an_object("Pod", "bare", TEMPLATE["spec"], "v1")
    cron = an_object("CronJob", "nightly", {"jobTemplate": {"spec": {"template": TEMPLATE}}}, "batch/v1")
    job = an_object("Job", "once", {"parallelism": 2, "template": TEMPLATE}, "batch/v1")
    path = trace(
        tmp_path,
        event(0, bare, cron, job),
        event(500, deleted=(cron, job)),
        lifecycles={
            ("v1.Pod", "shop/bare"): {7: [{"Finished": [BEGIN_S + 5, BEGIN_S + 65]}]},
            ("batch/v1.CronJob", "shop/nightly"): {
                2**64 - 1: [{"Finished": [BEGIN_S + 10, BEGIN_S + 40]}, "Empty", {"Running": BEGIN_S + 70}]
            },
        },
    )
    assert lives(simkube_workload(path)) == [
        ("bare", 5.0, 60.0),
        ("nightly-0", 10.0, 30.0),
        ("nightly-1", 70.0, 430.0),
        ("once-0", 0.0, 500.0),
        ("once-1", 0.0, 500.0),
    ]


def test_custom_kinds_have_the_templates_of_the_configuration(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    gang = an_object("Job", "gang", {"tasks": [{"template": TEMPLATE}, {"template": TEMPLATE}]}, "batch.volcano.sh/v1")
    gang["kind"] = "VolcanoJob"
    tracked = {"batch.volcano.sh/v1.VolcanoJob": {"podSpecTemplatePaths": ["/spec/tasks/*/template"]}}
    daemons = an_object("DaemonSet", "logs", {"template": TEMPLATE})
    found = simkube_workload(trace(tmp_path, event(0, gang, daemons), tracked=tracked))
    assert lives(found) == [("gang-0", 0.0, FOREVER_S), ("gang-1", 0.0, FOREVER_S)]
    assert "objects without pods here: 1 DaemonSet" in caplog.text


def cut(folder: Path) -> Path:
    path = trace(folder, event(0, deployment(1)))
    path.write_bytes(path.read_bytes()[:-40])
    return path


def emptied(folder: Path) -> Path:
    path = folder / "cluster.sktrace"
    path.write_bytes(b"")
    return path


BAD = {
    "truncated": (cut, "", "is no SimKube trace: Input data was truncated"),
    "empty": (emptied, "", "cannot be read: cannot mmap an empty file"),
    "a later version": (lambda folder: trace(folder, version=3), "", "has version 3; wanted 2"),
    "no trace": (lambda folder: written(folder, "name,cpu\n"), "", "is no SimKube trace"),
    "decreasing times": (
        lambda folder: trace(folder, event(9), event(4)),
        ": event 2",
        f"ts decreases from {BEGIN_S + 9} to {BEGIN_S + 4}",
    ),
    "a bad time": (lambda folder: trace(folder, event(0), {"ts": "noon"}), ": event 2", "Expected `int`, got `str`"),
    "a bad quantity": (
        lambda folder: trace(folder, event(0, an_object("Pod", "x", {"containers": 7}, "v1"))),
        ": event 1",
        "spec.containers: expected a list, found 7",
    ),
    "an object without a name": (
        lambda folder: trace(folder, event(0), event(1, {"apiVersion": "v1", "kind": "Pod", "metadata": {}})),
        ": event 2",
        "an object has no name",
    ),
    "too many replicas": (lambda folder: trace(folder, event(0, deployment(10**9))), ": event 1", "replicas; at most"),
    "a bad lifecycle": (
        lambda folder: trace(
            folder,
            event(0, an_object("Pod", "x", TEMPLATE["spec"], "v1")),
            lifecycles={("v1.Pod", "shop/x"): {1: [{"Finished": [1]}]}},
        ),
        ": event 1",
        "of shop/x is none",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_traces_are_named(case: str, tmp_path: Path) -> None:
    make, place, words = BAD[case]
    path = make(tmp_path)
    with pytest.raises(ScenarioError) as error:
        simkube_workload(path)
    assert error.value.where == f"{path}{place}"
    assert words in error.value.text
