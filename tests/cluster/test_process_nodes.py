"""`mooring up --runtime process` from outside: pods that really run, their logs, and that nothing of them is left."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.running import Up, running
from tests.waiting import wait_until

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
        told = pod.get("status", {}).get("containerStatuses") or [{}]
        return "running" in told[0].get("state", {}) and told[0]["restartCount"] == restarts

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
    script = "trap 'echo bye; exit 0' TERM; echo I am $$; while :; do sleep 0.1; done"
    with running(tmp_path, "--data-dir", str(tmp_path / "data"), "--runtime", "process") as up:
        create(up, shell_pod("web", script))
        pod = wait_running(up, "web")
        assert pod["status"]["podIP"] == pod["status"]["hostIP"]
        first = int(wait_log(up, "web", "\n")[len("I am ") :])

        os.kill(first, signal.SIGKILL)
        pod = wait_running(up, "web", restarts=1)
        assert pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 137
        assert log(up, "web", "previous=true") == f"I am {first}\n"
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


def test_who_kills_the_shims_too_is_cleaned_up_after(tmp_path: Path) -> None:
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
    assert processes_of(pods) != []
    with running(tmp_path, *options) as up:
        wait(up, f"{PODS}/web", lambda pod: pod["status"]["phase"] == "Failed")
        wait_no_processes(pods)


def test_a_real_node_is_this_machine(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--runtime", "process") as up:
        nodes = wait(up, "/api/v1/nodes", lambda found: found["items"] and found["items"][0]["status"].get("nodeInfo"))
        (node,) = nodes["items"]
        assert node["status"]["capacity"]["cpu"] == str(len(os.sched_getaffinity(0)))
        assert node["status"]["nodeInfo"]["kernelVersion"] == os.uname().release


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(word) for word in text.split()]
