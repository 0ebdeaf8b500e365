"""The worker process: clusters of two processes, restarts, and the end of either process."""

from __future__ import annotations

import errno
import os
import pickle
import signal
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

from mooring.cluster import worker
from mooring.cluster.settings import TWO_PROCESSES_NODES_MIN, ControlPlaneSettings, processes_for
from mooring.cluster.worker import WorkerSettingsError, keep_running, new_tokens
from mooring.cluster.worker_messages import StartMessage
from mooring.controllers.settings import IN_PROCESS_DEFAULTS
from mooring.kit.clock import SystemClock, VirtualClock
from mooring.kit.loop import run, run_real
from mooring.kit.tasks import TaskGroup
from tests.cluster.running import Up, running
from tests.waiting import wait_until

NOWHERE = Path("/nowhere")
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def lines_of(up: Up) -> list[str]:
    """The log without slow cycles, which depend on the machine."""
    return [line for line in up.log().splitlines() if line and "slow cycle" not in line]


class TestClusterOfTwoProcesses:
    def test_a_deployment_runs_and_the_end_is_quiet(self, tmp_path: Path) -> None:
        with running(tmp_path, "--ephemeral", "--nodes", "3", "--processes", "2") as up:
            deploy(up, "web", 4)
            (child,) = wait_until(lambda: children_of(up.process.pid))
            assert up.end(signal.SIGINT) == 0
            wait_until(lambda: not is_alive(child))
        assert lines_of(up) == ["stopping ... (again to stop at once)"]

    def test_a_worker_that_is_stopped_finishes_its_bindings(self, tmp_path: Path) -> None:
        with running(tmp_path, "--data-dir", str(tmp_path / "data"), "--nodes", "50", "--processes", "2") as up:
            (child,) = wait_until(lambda: children_of(up.process.pid))
            create(up, "web", 400)
            wait_until(lambda: status_of(up, "web").get("replicas", 0) > 20)
            assert up.end(signal.SIGTERM) == 0
            assert not is_alive(child)
        assert lines_of(up) == ["stopping ... (again to stop at once)"]

    def test_a_worker_that_is_killed_is_started_again(self, tmp_path: Path) -> None:
        with running(tmp_path, "--data-dir", str(tmp_path / "data"), "--nodes", "3", "--processes", "2") as up:
            deploy(up, "before", 2)
            (child,) = wait_until(lambda: children_of(up.process.pid))
            os.kill(child, signal.SIGKILL)
            deploy(up, "after", 2)
            wait_until(lambda: children_of(up.process.pid) not in ([], [child]))
            assert "the worker process (scheduler, controllers) exited with code -9" in up.log()

    def test_the_worker_exits_when_the_first_process_is_killed(self, tmp_path: Path) -> None:
        with running(tmp_path, "--ephemeral", "--nodes", "1", "--processes", "2") as up:
            (child,) = wait_until(lambda: children_of(up.process.pid))
            deploy(up, "web", 1)
            up.end(signal.SIGKILL)
            wait_until(lambda: not is_alive(child))

    def test_objects_have_the_field_managers_of_the_components(self, tmp_path: Path) -> None:
        with running(tmp_path, "--ephemeral", "--nodes", "1", "--processes", "2") as up:
            deploy(up, "web", 1)
            (pod,) = pods_of(up, "web")
            assert pod["metadata"]["managedFields"][0]["manager"] == "kube-controller-manager"
            create(up, "waiting", 1, node="nowhere")
            (waiting,) = wait_until(lambda: [pod for pod in pods_of(up, "waiting") if "conditions" in pod["status"]])
            assert waiting["metadata"]["managedFields"][-1]["manager"] == "kube-scheduler"

    def test_only_the_owner_can_connect_and_the_socket_is_removed(self, tmp_path: Path) -> None:
        with running(tmp_path, "--ephemeral", "--nodes", "1", "--processes", "2") as up:
            deploy(up, "web", 1)
            (path,) = unix_sockets_of(up.process.pid)
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            assert up.end(signal.SIGTERM) == 0
            assert not path.parent.exists()

    def test_a_request_over_the_socket_needs_a_token(self, tmp_path: Path) -> None:
        with running(tmp_path, "--ephemeral", "--nodes", "1", "--processes", "2") as up:
            (path,) = wait_until(lambda: unix_sockets_of(up.process.pid))
            with socket.socket(socket.AF_UNIX) as connected:
                connected.connect(str(path))
                connected.sendall(b"GET /api/v1/nodes HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                assert connected.makefile("rb").readline() == b"HTTP/1.1 401 Unauthorized\r\n"


class TestWorkerThatDoesNotStart:
    def test_it_is_started_again_with_a_backoff(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def start(control: int) -> None:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

        async def scene() -> None:
            async with TaskGroup("scene") as group:
                group.start_background(keep_running(message("scheduler"), clock), name="worker")
                await clock.wait(10.0)

        monkeypatch.setattr(worker, "_start", start)
        clock = VirtualClock()
        run(scene(), clock)
        failed = "the worker process (scheduler) could not be started: [Errno 11] Resource temporarily unavailable"
        assert caplog.messages == [f"{failed}; it is started again in {delay_s} s" for delay_s in (1, 2, 4, 8)]

    def test_a_worker_that_rejects_its_settings_is_not_started_again(
        self, capfd: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        settings = ControlPlaneSettings(enabled_controllers=("nosuch",))
        with pytest.raises(WorkerSettingsError, match=r"the worker process \(controllers\) rejects its settings"):
            run_real(keep_running(message("controllers", settings, tmp_path), SystemClock()))
        assert capfd.readouterr().err.startswith("mooring: there is no controller 'nosuch'; there are ")


class TestStartMessage:
    def test_it_can_be_pickled(self) -> None:
        sent = message(
            "scheduler",
            ControlPlaneSettings({"profiles": [{"schedulerName": "mine"}]}, IN_PROCESS_DEFAULTS, ("*", "-job")),
        )
        assert pickle.loads(pickle.dumps(sent)) == sent

    def test_its_repr_shows_no_token(self) -> None:
        sent = message("scheduler")
        assert sent.tokens["scheduler"] not in repr(sent)

    def test_every_component_has_a_token_of_its_own_at_every_start(self) -> None:
        tokens = [*new_tokens(["scheduler", "controllers"]).values(), *new_tokens(["scheduler"]).values()]
        assert len({*tokens}) == 3
        assert min(map(len, tokens)) >= 43  # 256 bits in base64


class TestNumberOfProcesses:
    @pytest.mark.parametrize(
        ("nodes", "cores", "wanted"),
        [
            pytest.param(9, 8, 1, id="a small cluster has one"),
            pytest.param(TWO_PROCESSES_NODES_MIN, 8, 2, id="a large one has two"),
            pytest.param(TWO_PROCESSES_NODES_MIN, 1, 1, id="a large one on a single core has one"),
        ],
    )
    def test_it_depends_on_the_cluster_and_the_machine(
        self, nodes: int, cores: int, wanted: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)), raising=False)
        assert processes_for(nodes) == wanted


def message(component: str, settings: ControlPlaneSettings | None = None, folder: Path = NOWHERE) -> StartMessage:
    api, pages = str(folder / "api.sock"), str(folder / "pages.sock")
    return StartMessage(settings or ControlPlaneSettings(), 7, "/4:root", 30, api, pages, new_tokens([component]))


def deploy(up: Up, name: str, replicas: int) -> None:
    """Create a Deployment and wait until it is available."""
    create(up, name, replicas)
    wait_until(lambda: status_of(up, name).get("availableReplicas") == replicas)


def create(up: Up, name: str, replicas: int, node: str = "") -> None:
    labels = {"app": name}
    pod_spec: dict[str, Any] = {"containers": [{"name": "web", "image": "web:1"}]}
    if node:
        pod_spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    template = {"metadata": {"labels": labels}, "spec": pod_spec}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
    assert up.ask("POST", DEPLOYMENTS, body).code == 201


def status_of(up: Up, name: str) -> dict[str, Any]:
    status: dict[str, Any] = up.ask("GET", f"{DEPLOYMENTS}/{name}").document()["status"]
    return status


def pods_of(up: Up, app: str) -> list[dict[str, Any]]:
    pods: list[dict[str, Any]] = up.ask("GET", f"/api/v1/namespaces/default/pods?labelSelector=app={app}").document()[
        "items"
    ]
    return pods


def children_of(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def unix_sockets_of(pid: int) -> list[Path]:
    """The paths of the Unix sockets on which a process listens."""
    inodes = {os.readlink(file) for file in Path(f"/proc/{pid}/fd").iterdir() if file.is_symlink()}
    rows = [line.split() for line in Path("/proc/net/unix").read_text(encoding="utf-8").splitlines()[1:]]
    paths = (Path(row[7]) for row in rows if len(row) > 7 and f"socket:[{row[6]}]" in inodes)
    return [path for path in dict.fromkeys(paths) if path.name == "api.sock"]


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
