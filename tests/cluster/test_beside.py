"""The scheduler and the controllers in a process of their own: nobody can tell, whatever ends first."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mooring.apiserver.access.users import User
from mooring.cluster import beside
from mooring.cluster.beside import Orders, processes_for, without_secrets
from mooring.cluster.settings import ClusterSettings
from tests.cluster.running import ADMIN_TOKEN, Up, command, running

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
WAITED_S_MAX = 60.0
LOOKED_EACH_S = 0.05
LARGE = beside.WORTH_A_PROCESS_NODES


class TestAClusterOfTwoProcesses:
    def test_a_deployment_runs_and_the_end_is_quiet(self, tmp_path: Path) -> None:
        with running(tmp_path, "--ephemeral", "--nodes", "3", "--processes", "2") as up:
            deploy(up, "web", 4)
            (child,) = wait_until(lambda: children_of(up.process.pid))
            assert up.end(signal.SIGINT) == 0
            wait_until(lambda: not is_alive(child))
        assert up.log().strip() == "stopping ... (again to stop at once)"

    def test_a_second_process_that_is_killed_is_started_again_and_goes_on(self, tmp_path: Path) -> None:
        with running(tmp_path, "--data-dir", str(tmp_path / "data"), "--nodes", "3", "--processes", "2") as up:
            deploy(up, "before", 2)
            (child,) = wait_until(lambda: children_of(up.process.pid))
            os.kill(child, signal.SIGKILL)
            deploy(up, "after", 2)
            wait_until(lambda: children_of(up.process.pid) not in ([], [child]))
            assert "the process of the scheduler and the controllers ended (code -9)" in up.log()

    def test_the_second_process_does_not_outlive_the_first(self, tmp_path: Path) -> None:
        with running(tmp_path, "--ephemeral", "--nodes", "1", "--processes", "2") as up:
            (child,) = wait_until(lambda: children_of(up.process.pid))
            deploy(up, "web", 1)
            up.end(signal.SIGKILL)
            wait_until(lambda: not is_alive(child))

    def test_what_cannot_be_had_is_said_and_is_the_end(self, tmp_path: Path) -> None:
        kubeconfig = str(tmp_path / "kubeconfig")
        words = command("--port", "0", "--ephemeral", "--kubeconfig", kubeconfig, "--processes", "2")
        ended = subprocess.run(
            [*words, "--controllers", "nosuch"], capture_output=True, text=True, timeout=WAITED_S_MAX, check=False
        )
        assert ended.returncode == 1
        said = ended.stderr.splitlines()
        assert said[0].startswith("mooring: there is no controller 'nosuch'; there are ")
        assert said[1:] == [
            "mooring: the process of the scheduler and the controllers refuses to start, as it says above"
        ]


class TestOrders:
    def test_they_hold_no_secrets(self) -> None:
        settings = ClusterSettings(token=ADMIN_TOKEN, users={"token-of-jane": User("jane")}, nodes=3)
        orders = pickle.dumps(Orders(without_secrets(settings), 1, "", 30, {"scheduler": 5}))
        assert ADMIN_TOKEN.encode() not in orders
        assert b"token-of-jane" not in orders
        assert pickle.loads(orders).settings.nodes == 3


class TestHowManyProcesses:
    @pytest.mark.parametrize(
        ("nodes", "cores", "wanted"),
        [
            pytest.param(9, 8, 1, id="a small cluster has one"),
            pytest.param(LARGE, 8, 2, id="a large one has two"),
            pytest.param(LARGE, 1, 1, id="a large one on a single core has one"),
        ],
    )
    def test_it_depends_on_the_cluster_and_the_machine(
        self, nodes: int, cores: int, wanted: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)), raising=False)
        assert processes_for(nodes) == wanted


def deploy(up: Up, name: str, replicas: int) -> None:
    """A Deployment, until all of it is available."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
    assert up.ask("POST", DEPLOYMENTS, body).code == 201
    wait_until(lambda: up.ask("GET", f"{DEPLOYMENTS}/{name}").document()["status"].get("availableReplicas") == replicas)


def wait_until(look: Callable[[], Any]) -> Any:
    for _ in range(int(WAITED_S_MAX / LOOKED_EACH_S)):
        if found := look():
            return found
        threading.Event().wait(LOOKED_EACH_S)
    raise AssertionError("waited in vain")


def children_of(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
