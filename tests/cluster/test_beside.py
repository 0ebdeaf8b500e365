"""The scheduler and the controllers in a process of their own: nobody can tell, whatever ends first."""

from __future__ import annotations

import errno
import os
import pickle
import signal
from pathlib import Path
from typing import Any

import pytest

from mooring.cluster import beside
from mooring.cluster.beside import Orders, RefusedError, processes_for, run_beside
from mooring.cluster.settings import PartSettings
from mooring.controllers.settings import IN_PROCESS_DEFAULTS
from mooring.kit.clock import SystemClock, VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run, run_real
from mooring.kit.tasks import TaskGroup
from mooring.store.memory import MemoryStore
from tests.cluster.running import Up, running
from tests.fakes.raw_client import RawClient
from tests.waiting import wait_until

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
LARGE = beside.WORTH_A_PROCESS_NODES


def lines_of(up: Up) -> list[str]:
    """What was logged. That a cycle was slow says something of the machine only."""
    return [line for line in up.log().splitlines() if line and "slow cycle" not in line]


class TestAClusterOfTwoProcesses:
    def test_a_deployment_runs_and_the_end_is_quiet(self, tmp_path: Path) -> None:
        with running(tmp_path, "--ephemeral", "--nodes", "3", "--processes", "2") as up:
            deploy(up, "web", 4)
            (child,) = wait_until(lambda: children_of(up.process.pid))
            assert up.end(signal.SIGINT) == 0
            wait_until(lambda: not is_alive(child))
        assert lines_of(up) == ["stopping ... (again to stop at once)"]

    def test_a_cluster_that_is_stopped_at_work_lets_bindings_end(self, tmp_path: Path) -> None:
        with running(tmp_path, "--data-dir", str(tmp_path / "data"), "--nodes", "50", "--processes", "2") as up:
            (child,) = wait_until(lambda: children_of(up.process.pid))
            create(up, "web", 400)
            wait_until(lambda: status_of(up, "web").get("replicas", 0) > 20)
            assert up.end(signal.SIGTERM) == 0
            assert not is_alive(child)
        assert lines_of(up) == ["stopping ... (again to stop at once)"]

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


class TestAProcessThatDoesNotStart:
    def test_it_is_tried_again_later_and_later(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def start(line: int, pipes: tuple[int, ...]) -> None:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

        async def scene() -> None:
            async with TaskGroup("scene") as group:
                clients = {"scheduler": RawClient(MemoryStore(), clock, Entropy(1))}
                group.start_background(run_beside(PartSettings(), clients, clock, Entropy(2)), name="beside")
                await clock.wait(10.0)

        monkeypatch.setattr(beside, "_start", start)
        clock = VirtualClock()
        run(scene(), clock)
        said = "the process of the scheduler could not be started: [Errno 11] Resource temporarily unavailable"
        assert caplog.messages == [f"{said}; it is started again in {delay_s} s" for delay_s in (1, 2, 4, 8)]

    def test_a_process_that_refuses_its_settings_is_not_started_again(self, capfd: pytest.CaptureFixture[str]) -> None:
        async def scene() -> None:
            clock = SystemClock()
            clients = {"controllers": RawClient(MemoryStore(), clock, Entropy(1))}
            await run_beside(PartSettings(enabled_controllers=("nosuch",)), clients, clock, Entropy(2))

        with pytest.raises(RefusedError, match="the process of the controllers refuses to start, as it says above"):
            run_real(scene())
        assert capfd.readouterr().err.startswith("mooring: there is no controller 'nosuch'; there are ")


class TestOrders:
    def test_they_survive_the_way(self) -> None:
        settings = PartSettings({"profiles": [{"schedulerName": "mine"}]}, IN_PROCESS_DEFAULTS, ("*", "-job"))
        orders = Orders(settings, 7, "/4:root", 30, {"scheduler": 5})
        assert pickle.loads(pickle.dumps(orders)) == orders


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
    create(up, name, replicas)
    wait_until(lambda: status_of(up, name).get("availableReplicas") == replicas)


def create(up: Up, name: str, replicas: int) -> None:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
    assert up.ask("POST", DEPLOYMENTS, body).code == 201


def status_of(up: Up, name: str) -> dict[str, Any]:
    status: dict[str, Any] = up.ask("GET", f"{DEPLOYMENTS}/{name}").document()["status"]
    return status


def children_of(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
