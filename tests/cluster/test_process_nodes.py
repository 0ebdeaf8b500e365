"""`mooring up --runtime process` from outside: pods that really run, their logs, and that nothing of them is left."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.running import Up, running
from tests.kubelet.processes.process_harness import container_pid
from tests.waiting import wait_until

RBAC = "rbac.authorization.k8s.io/v1"
PODS = "/api/v1/namespaces/default/pods"
FORKING = "setsid sleep 600 & (sleep 601 &) ; echo up; exec sleep 602"


def shell_pod(name: str, script: str, **spec: Any) -> dict[str, Any]:
    # Kubernetes takes two dollars for one.
    container = {"name": "main", "image": "none", "command": ["/bin/sh", "-c", script.replace("$", "$$")]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 60,
            **spec,
            "containers": [{**container, **spec.pop("container", {})}],
        },
    }


def create(up: Up, body: dict[str, Any]) -> None:
    answer = up.ask("POST", PODS, body)
    assert answer.code == 201, answer.body


def wait(up: Up, path: str, is_right: Callable[[Any], Any]) -> Any:
    found: Any = None

    def look() -> Any:
        nonlocal found
        found = up.ask("GET", path).document()
        return is_right(found)

    wait_until(look, each_s=0.1, why=lambda: f"{found}\n{up.log()}")
    return found


def wait_running(up: Up, name: str, restarts: int = 0) -> dict[str, Any]:
    def is_right(pod: Any) -> bool:
        statuses = pod.get("status", {}).get("containerStatuses") or [{}]
        return "running" in statuses[0].get("state", {}) and statuses[0]["restartCount"] == restarts

    found: dict[str, Any] = wait(up, f"{PODS}/{name}", is_right)
    return found


def log(up: Up, name: str, query: str = "") -> str:
    return up.ask("GET", f"{PODS}/{name}/log?{query}").body.decode()


def wait_log(up: Up, name: str, said: str) -> str:
    wait_until(lambda: said in log(up, name), each_s=0.1, why=lambda: log(up, name))
    return log(up, name)


def processes_of(directory: Path) -> list[str]:
    """What runs that belongs to pods of this directory."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            environment = (process / "environ").read_bytes() if process.name.isdecimal() else b""
            if f"MOORING_CONTAINER={directory}".encode() in environment:
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def wait_no_processes(directory: Path) -> None:
    wait_until(lambda: not processes_of(directory), each_s=0.05, why=lambda: processes_of(directory))


def test_a_pod_runs_heals_and_goes(tmp_path: Path) -> None:
    pods = tmp_path / "data" / "pods"
    script = "trap 'echo bye; exit 0' TERM; echo I am $(date +%s%N); while :; do sleep 0.1; done"
    with running(tmp_path, "--data-dir", str(tmp_path / "data"), "--runtime", "process") as up:
        create(up, shell_pod("web", script))
        pod = wait_running(up, "web")
        assert pod["status"]["podIP"] == pod["status"]["hostIP"]
        first = wait_log(up, "web", "\n")

        os.kill(container_pid(pods), signal.SIGKILL)
        pod = wait_running(up, "web", restarts=1)
        assert pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 137
        assert log(up, "web", "previous=true") == first
        second = wait_log(up, "web", "\n")
        assert re.fullmatch(rf"\S+Z {second}", log(up, "web", "timestamps=true&tailLines=1"))

        with up.opened(f"{PODS}/web/log?follow=true") as followed:
            assert followed.readline().decode() == second
            assert up.ask("DELETE", f"{PODS}/web").code == 200
            assert b"bye\n" in followed.read()
        wait(up, f"{PODS}/web", lambda found: found.get("code") == 404)
        wait_no_processes(pods)
        wait(up, PODS, lambda _: [path.name for path in pods.iterdir()] == ["lock"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["it is ended", "it is killed"])
def test_nothing_is_left_of_pods_when_mooring_has_ended_and_they_run_again_at_the_next_start(
    tmp_path: Path, number: signal.Signals
) -> None:
    pods, options = tmp_path / "data" / "pods", ("--data-dir", str(tmp_path / "data"), "--runtime", "process")
    with running(tmp_path, *options) as up:
        create(up, shell_pod("stays", FORKING))
        create(up, shell_pod("goes", FORKING))
        for name in ("stays", "goes"):
            wait_running(up, name)
            wait_log(up, name, "up")
        wait_until(lambda: len(processes_of(pods)) >= 6)
        up.end(number)
    wait_no_processes(pods)
    with running(tmp_path, *options) as up:
        wait_running(up, "stays", restarts=1)
        assert log(up, "stays", "previous=true") == "up\n"
        assert up.ask("DELETE", f"{PODS}/goes?gracePeriodSeconds=0").code == 200
        wait(up, PODS, lambda _: len([path for path in pods.iterdir() if path.is_dir()]) == 1)
        up.end(signal.SIGINT)
    wait_no_processes(pods)


def test_nothing_is_left_even_if_the_shims_are_killed(tmp_path: Path) -> None:
    pods, options = tmp_path / "data" / "pods", ("--data-dir", str(tmp_path / "data"), "--runtime", "process")
    with running(tmp_path, *options) as up:
        create(up, shell_pod("web", FORKING, restartPolicy="Never"))
        wait_running(up, "web")
        wait_log(up, "web", "up")
        shims = _children(up.process.pid)
        up.process.send_signal(signal.SIGSTOP)  # so that it does not see them go
        for shim in shims:
            os.kill(shim, signal.SIGKILL)
        up.end(signal.SIGKILL)
    wait_no_processes(pods)  # the kernel kills them with the first process of their PID namespace
    with running(tmp_path, *options) as up:
        wait(up, f"{PODS}/web", lambda pod: pod["status"]["phase"] == "Failed")
        wait_no_processes(pods)


def test_an_operator_finds_the_api_server_and_its_service_account(tmp_path: Path) -> None:
    """With the official client and in-cluster configuration, as the account and with the rights that RBAC gives it."""
    program = (
        "from kubernetes import client, config; config.load_incluster_config(); core = client.CoreV1Api()\n"
        "print([pod.metadata.name for pod in core.list_namespaced_pod('default').items])\n"
        "try: core.list_namespaced_secret('default')\n"
        "except client.ApiException as error: print(error.status)"
    )
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    role = {"apiVersion": RBAC, "kind": "Role", "metadata": {"name": "reader"}, "rules": rules}
    binding = {
        "apiVersion": RBAC,
        "kind": "RoleBinding",
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "operator", "namespace": "default"}],
    }
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "operator"}}
    rbac = f"/apis/{RBAC}/namespaces/default"
    # The users of this machine: pods with users of their own have another /tmp, where this Python may be.
    options = ("--data-dir", str(tmp_path / "data"), "--runtime", "process", "--pod-users", "host")
    with running(tmp_path, *options) as up:
        for path, body in (
            ("/api/v1/namespaces/default/serviceaccounts", account),
            (f"{rbac}/roles", role),
            (f"{rbac}/rolebindings", binding),
        ):
            assert up.ask("POST", path, body).code == 201
        wait(up, "/api/v1/namespaces/default/configmaps/kube-root-ca.crt", lambda found: found.get("data"))
        container = {"command": [sys.executable, "-c", program.replace("$", "$$")]}
        create(up, shell_pod("op", "", container=container, serviceAccountName="operator", restartPolicy="Never"))
        wait(up, f"{PODS}/op", lambda pod: pod["status"].get("phase") in ("Succeeded", "Failed"))
        assert log(up, "op") == "['op']\n403\n"


def test_a_stateful_set_keeps_its_data(tmp_path: Path) -> None:
    script = "cat /data/runs; echo run >> /data/runs; echo up; exec sleep 600"
    template = {
        "metadata": {"labels": {"app": "db"}},
        "spec": {
            "terminationGracePeriodSeconds": 60,
            "securityContext": {"runAsUser": os.getuid() or 999},
            "containers": [
                {
                    "name": "main",
                    "image": "none",
                    "command": ["/bin/sh", "-c", script],
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                }
            ],
        },
    }
    storage = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    body = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}},
            "template": template,
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": storage}],
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"},
        },
    }
    sets, volumes = "/apis/apps/v1/namespaces/default/statefulsets", tmp_path / "data" / "volumes"
    with running(tmp_path, "--data-dir", str(tmp_path / "data"), "--runtime", "process") as up:
        assert up.ask("POST", sets, body).code == 201
        first = wait(up, f"{PODS}/db-0", lambda pod: pod["metadata"].get("uid"))["metadata"]["uid"]
        wait_running(up, "db-0")
        wait_log(up, "db-0", "up")
        (volume,) = volumes.iterdir()
        assert (volume / "runs").read_text() == "run\n"
        assert volumes.stat().st_mode & 0o077 == 0
        assert up.ask("DELETE", f"{PODS}/db-0").code == 200
        wait(up, f"{PODS}/db-0", lambda pod: pod["metadata"].get("uid", first) != first)
        wait_running(up, "db-0")
        assert wait_log(up, "db-0", "up").startswith("run\n")
        assert up.ask("DELETE", f"{sets}/db").code == 200
        wait(up, "/api/v1/persistentvolumes", lambda found: not found["items"] and not list(volumes.iterdir()))


def test_a_real_node_is_this_machine(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--runtime", "process") as up:
        nodes = wait(up, "/api/v1/nodes", lambda found: found["items"] and found["items"][0]["status"].get("nodeInfo"))
        (node,) = nodes["items"]
        assert node["status"]["capacity"]["cpu"] == str(len(os.sched_getaffinity(0)))
        assert node["status"]["nodeInfo"]["kernelVersion"] == os.uname().release


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(word) for word in text.split()]
