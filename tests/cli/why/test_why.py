"""`mooring why` and `mooring queue` on a running cluster, and the texts for people."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.machine import free_port
from mooring.cli.why.text import attempts_lines, queue_lines
from tests.cli.screens import run
from tests.cluster.running import Up, running
from tests.waiting import LIMIT_S, wait_until

MOORING = [sys.executable, "-c", "from mooring.cli.main import main; main(prog_name='mooring')"]
PODS = "/api/v1/namespaces/default/pods"


@contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """The process runs in the block."""
    try:
        yield
    finally:
        process.terminate()
        process.wait(LIMIT_S)


def create_pod(up: Up, name: str, cpu: str) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}
    assert up.ask("POST", PODS, body).code == 201


def test_the_running_scheduler_tells_its_attempts_and_its_queue(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--nodes", "2") as up:
        kubeconfig = ("--kubeconfig", str(up.kubeconfig))
        create_pod(up, "small", "1")
        create_pod(up, "large", "99")

        def run_why(*arguments: str) -> Any:
            result = run(*arguments, *kubeconfig, "-o", "json")
            assert result.exit_code == 0, result.output
            return json.loads(result.stdout)

        wait_until(lambda: any(each.get("binding") == "bound" for each in run_why("why", "small")["attempts"]))
        wait_until(lambda: [row for row in run_why("why", "large")["queue"] if row.get("rejectedBy")])
        text = run("why", "default/large", *kubeconfig).output
        assert "2 × Insufficient cpu  NodeResourcesFit" in text
        assert "or after " in text
        assert "AssignedPodDelete" in text
        assert "nearest nodes now:" in text
        assert "67 cpu more (the whole node has 32)" in text, text
        (row,) = run_why("why", "large")["queue"]
        assert sorted(nearest_node["node"] for nearest_node in row["nearestNodes"]) == ["node-0", "node-1"]
        attempt = run_why("why", "large")["attempts"][0]
        assert int(attempt["revision"]) > 0
        first = run_why("why", "large")["attempts"][-1]
        assert first["nearestNodes"][0]["obstacles"][0]["plugin"] == "NodeResourcesFit"
        assert len(attempt["configuration"]) == 16
        assert attempt["steps"]["postFilterMicroseconds"] >= 0
        placed = next(each["node"] for each in run_why("why", "small")["attempts"] if each["node"])
        free = "node-1" if placed == "node-0" else "node-0"
        obstacles = run_why("why", "large", "--node", free)["obstacles"]
        assert [obstacle["text"] for obstacle in obstacles] == ["67 cpu more (the whole node has 32)"]
        assert "nothing keeps" not in run("why", "large", "--node", free, *kubeconfig).output
        assert run_why("queue")["counts"]["unschedulable"] == 1
        assert yaml.safe_load(run("queue", *kubeconfig, "-o", "yaml").stdout)["shown"] == 1
        assert yaml.safe_load(run("why", "large", *kubeconfig, "-o", "yaml").stdout)["pod"] == "default/large"
        assert "default/large  unschedulable" in run("queue", *kubeconfig).output
        unknown = run("why", "nosuch", *kubeconfig)
        assert "no record of an attempt for default/nosuch" in unknown.output
        assert unknown.exit_code == 1
        assert max(map(len, run("why", "large", *kubeconfig).output.splitlines())) <= 80
        for arguments, words in (
            (("why", "small", "--node", "node-0"), "pod default/small is on node node-"),
            (("why", "large", "--node", "node-9"), 'found no node "node-9"'),
        ):
            result = run(*arguments, *kubeconfig)
            assert (result.exit_code, words in result.output) == (2, True), result.output


def test_a_standalone_scheduler_is_read_through_its_secure_port(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--nodes", "1", "--without", "scheduler") as up:
        port, kubeconfig = free_port(), str(up.kubeconfig)
        reviews = [f"--authentication-kubeconfig={kubeconfig}", f"--authorization-kubeconfig={kubeconfig}"]
        port_flags = ["--bind-address=127.0.0.1", f"--secure-port={port}", f"--cert-dir={tmp_path / 'certificates'}"]
        flags = [f"--kubeconfig={kubeconfig}", "--leader-elect=false", *reviews, *port_flags]
        with ended(subprocess.Popen([*MOORING, "scheduler", *flags], stderr=subprocess.DEVNULL)):
            create_pod(up, "small", "1")

            def run_why(*arguments: str) -> tuple[int, str]:
                result = run(*arguments, "--kubeconfig", kubeconfig, "--scheduler", f"https://127.0.0.1:{port}")
                return result.exit_code, result.output

            wait_until(lambda: "node-0, of 1 feasible node" in run_why("why", "small", "--insecure-skip-tls-verify")[1])
            authority = str(next((tmp_path / "certificates").glob("*.crt")))
            assert run_why("queue", "--certificate-authority", authority)[0] == 0
            code, text = run_why("queue")
            assert (code, "--insecure-skip-tls-verify" in text) == (2, True), text
            code, text = run_why("queue", "--certificate-authority", str(tmp_path / "none"))
            assert (code, "No such file" in text) == (2, True), text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--insecure-skip-tls-verify"], "belong to --scheduler"),
        (["--scheduler", "https://h", "--insecure-skip-tls-verify", "--certificate-authority", "f"], "contradicts"),
    ],
)
def test_options_that_do_not_go_together(arguments: list[str], words: str) -> None:
    result = run("queue", *arguments)
    assert (result.exit_code, words in result.output) == (2, True), result.output


ATTEMPT: dict[str, Any] = {
    "time": "2026-01-01T00:00:10Z",
    "result": "Unschedulable",
    "node": None,
    "feasibleNodes": 0,
}


def rejected(attempt: int, nodes: int, **more: Any) -> dict[str, Any]:
    rejections = [{"plugin": "NodeResourcesFit", "reason": "Insufficient cpu", "nodes": nodes}]
    return {**ATTEMPT, "attempt": attempt, "rejections": rejections, **more}


def test_changes_between_two_attempts_are_shown() -> None:
    decisions = [rejected(2, 10, requeuedBy="AssignedPodDelete"), rejected(1, 12)]
    lines = list(attempts_lines("default/web", decisions, [], 1767225620.0, 80))
    assert lines == [
        "2 attempts on record: 2 × Unschedulable",
        "  2. 10s ago: Unschedulable, tried after AssignedPodDelete",
        "     10 × Insufficient cpu (was 12)  NodeResourcesFit",
        "  1. 10s ago: Unschedulable",
        "     12 × Insufficient cpu  NodeResourcesFit",
    ]


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        (
            {
                "nearestNodes": [
                    {"node": "n1", "obstacles": [{"text": "1 cpu more"}, {"text": "is cordoned"}]},
                    {"node": "n2", "obstacles": [{"text": "2 cpu more"}]},
                ]
            },
            ["  nearest nodes now:", "    n1: 1 cpu more; is cordoned", "    n2: 2 cpu more"],
        ),
        ({"nodesWithoutObstacles": 2}, ["  2 nodes would take it now"]),
        ({"obstaclesEverywhere": [{"text": "no claim data"}]}, ["  on every node: no claim data"]),
    ],
)
def test_what_is_missing_now(found: dict[str, Any], lines: list[str]) -> None:
    row = {"pod": "default/web", "state": "unschedulable", **found}
    shown = list(attempts_lines("default/web", [], [row], 0.0, 80))
    assert shown[1:-1] == lines


@pytest.mark.parametrize(
    ("binding", "words"),
    [("bound", "n1, of 3 feasible nodes, bound"), ("timeout", "not bound: timeout"), ("", "of 3 feasible nodes")],
)
def test_how_a_binding_ended(binding: str, words: str) -> None:
    decision = {**ATTEMPT, "attempt": 1, "result": "Success", "node": "n1", "feasibleNodes": 3, "binding": binding}
    assert words in "\n".join(attempts_lines("default/web", [decision], [], 1767225620.0, 80))


def test_an_empty_queue_is_one_line() -> None:
    page = {"counts": {"active": 0, "inFlight": 0}, "pods": []}
    assert list(queue_lines(page, 0.0, 80)) == ["active 0, in flight 0"]
