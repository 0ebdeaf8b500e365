"""Clusters in the background: `mooring up --detach`, `mooring status`, `mooring down`."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import LIMIT_S, wait_until

SMALL = ("--ephemeral", "--port", "0")
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: ferry}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: ferry}}}}
  template:
    metadata: {{labels: {{app: ferry}}}}
    spec: {{containers: [{{name: c, image: i, resources: {{requests: {{cpu: "{cpu}"}}}}}}]}}
"""


@dataclass
class Shell:
    """Runs commands of a user who has a home of their own."""

    home: Path

    def mooring(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "mooring", *words],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            env={**os.environ, "XDG_STATE_HOME": str(self.home), "TMPDIR": str(self.home)},
        )

    def clusters(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.mooring("status", "-o", "json").stdout)
        return found

    def left_over(self) -> list[Path]:
        return [path for path in self.home.rglob("*") if path.is_file()]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    home = tmp_path / "home-with-a-path-that-is-too-long-for-a-unix-socket-in-it"
    home.mkdir()
    user = Shell(home)
    yield user
    for cluster in user.clusters():
        os.kill(cluster["pid"], signal.SIGKILL)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize("processes", ["1", "2"])
def test_it_returns_when_the_cluster_is_ready_and_down_ends_it(shell: Shell, processes: str) -> None:
    started = shell.mooring("up", "--detach", *SMALL, "--nodes", "3", "--processes", processes)
    assert (started.returncode, started.stderr) == (0, "")
    assert "`mooring down mooring` ends it." in started.stdout
    (cluster,) = shell.clusters()
    assert f"export KUBECONFIG={cluster['kubeconfig']}" in started.stdout
    assert (cluster["name"], cluster["ready"], cluster["nodes"], cluster["nodesReady"]) == ("mooring", True, 3, 3)

    shown = shell.mooring("status")
    assert shown.returncode == 0
    lines = shown.stdout.splitlines()
    assert lines[0].startswith("mooring: ready, up ")
    assert "  nodes        3 (3 ready)" in lines
    assert all(len(line) <= 80 or str(shell.home) in line for line in lines)

    ended = shell.mooring("down")
    assert (ended.returncode, ended.stdout) == (0, "cluster mooring has ended\n")
    assert not is_alive(cluster["pid"])
    assert shell.left_over() == []
    nothing = shell.mooring("status")
    assert (nothing.returncode, nothing.stderr) == (1, "no cluster runs: `mooring up` starts one\n")
    assert shell.mooring("down").returncode == 0
    unknown = shell.mooring("down", "nosuch")
    assert (unknown.returncode, unknown.stderr) == (1, "no running cluster is named nosuch\n")


def test_several_clusters_have_names(shell: Shell) -> None:
    for words in ((), (), ("--name", "third")):
        assert shell.mooring("up", "-d", *SMALL, *words).returncode == 0
    assert [cluster["name"] for cluster in shell.clusters()] == ["mooring", "mooring-2", "third"]
    taken = shell.mooring("up", "-d", *SMALL, "--name", "third")
    assert taken.returncode == 2
    assert "a cluster third runs already" in taken.stderr
    ambiguous = shell.mooring("down")
    assert ambiguous.returncode == 2
    assert "several clusters run: mooring, mooring-2, third; name one of them, or use --all" in ambiguous.stderr
    assert shell.mooring("down", "mooring-2").stdout == "cluster mooring-2 has ended\n"
    assert [cluster["name"] for cluster in shell.clusters()] == ["mooring", "third"]
    assert shell.mooring("down", "--all").returncode == 0
    assert shell.left_over() == []


def test_a_start_that_fails_shows_the_end_of_its_log(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        failed = shell.mooring("up", "--detach", "--ephemeral", "--port", port)
    assert (failed.returncode, failed.stdout) == (1, "")
    assert f"cannot listen on 127.0.0.1:{port}" in failed.stderr
    assert "choose another port" in failed.stderr
    assert failed.stderr.endswith("mooring: the cluster ended before it was ready, with code 1\n")
    assert shell.left_over() == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("--detach", "--controllers", "nosuch"), "there is no controller 'nosuch'", id="a wrong flag"),
        pytest.param(("--detach", "--name", "No Name"), "--name 'No Name': wanted lower-case letters", id="a name"),
        pytest.param(("--wait", "5s"), "--wait needs --detach", id="waiting in the foreground"),
    ],
)
def test_errors_are_reported_by_the_command(shell: Shell, words: tuple[str, ...], said: str) -> None:
    failed = shell.mooring("up", *SMALL, *words)
    assert failed.returncode == 2
    assert said in failed.stderr
    assert shell.left_over() == []


@pytest.mark.parametrize(("cpu", "code"), [("1", 0), ("99", 1)])
def test_it_waits_for_workloads(shell: Shell, tmp_path: Path, cpu: str, code: int) -> None:
    manifest = tmp_path / "ferry.yaml"
    manifest.write_text(DEPLOYMENT.format(cpu=cpu), encoding="utf-8")
    wait = "170s" if code == 0 else "2s"
    ended = shell.mooring("up", "-d", *SMALL, "--nodes", "1", "-f", str(manifest), "--wait", wait)
    assert ended.returncode == code, ended
    if code == 0:
        assert "deployment/ferry: 2 of 2 replicas are available" in ended.stdout
    else:
        assert "in time; the cluster runs on, `mooring down` stops it" in ended.stderr
    assert len(shell.clusters()) == 1


def test_a_cluster_that_was_killed_is_forgotten(shell: Shell) -> None:
    assert shell.mooring("up", "-d", *SMALL, "--nodes", "1", "--processes", "2").returncode == 0
    (cluster,) = shell.clusters()
    os.kill(cluster["pid"], signal.SIGKILL)
    wait_until(lambda: not is_alive(cluster["pid"]))
    assert shell.clusters() == []
    assert shell.mooring("down").returncode == 0
    assert shell.mooring("up", "-d", *SMALL).returncode == 0
    assert [each["name"] for each in shell.clusters()] == ["mooring"]
    assert shell.mooring("down").returncode == 0
    assert shell.left_over() == []


def test_a_cluster_in_the_foreground_is_shown_and_stopped_as_well(shell: Shell) -> None:
    words = [sys.executable, "-m", "mooring", "up", *SMALL, "--name", "front"]
    environment = {**os.environ, "XDG_STATE_HOME": str(shell.home), "TMPDIR": str(shell.home)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        wait_until(lambda: any(cluster["ready"] for cluster in shell.clusters()))
        assert shell.mooring("down", "front").stdout == "cluster front has ended\n"
        assert process.wait(LIMIT_S) == 0


def test_a_registry_that_cannot_be_written_stops_no_cluster(shell: Shell) -> None:
    (shell.home / "mooring").write_text("a file where a directory should be", encoding="utf-8")
    words = [sys.executable, "-m", "mooring", "up", *SMALL]
    environment = {**os.environ, "XDG_STATE_HOME": str(shell.home), "TMPDIR": str(shell.home)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        assert any("Ctrl-C ends it." in line for line in process.stdout)
        process.terminate()
        process.wait(LIMIT_S)
    assert shell.mooring("up", "-d", *SMALL).returncode == 2
