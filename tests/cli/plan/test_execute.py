"""`mooring plan --defragment --execute` on a running cluster: moves, budgets, pods that do not settle, Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from mooring.cli.cluster_source.live import connect
from mooring.cli.errors import InputError
from mooring.cli.plan.execute import Mover
from mooring.kit.clock import SystemClock
from tests.cli.screens import run
from tests.cluster.running import Up, running
from tests.waiting import LIMIT_S, wait_until

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
MERGE = {"Content-Type": "application/merge-patch+json"}
FINALIZER = "example.com/hold"


def pod_spec(cpu: str) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]}


def deploy(up: Up, name: str, replicas: int, cpu: str) -> None:
    """A Deployment all of whose pods are ready."""
    template = {"metadata": {"labels": {"app": name}}, "spec": pod_spec(cpu)}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
    assert up.ask("POST", DEPLOYMENTS, body).code == 201
    path = f"{DEPLOYMENTS}/{name}"
    wait_until(lambda: up.ask("GET", path).document()["status"].get("readyReplicas") == replicas, why=up.log)


def protect(up: Up, name: str, max_unavailable: int) -> None:
    """A budget that its controller has seen."""
    spec = {"maxUnavailable": max_unavailable, "selector": {"matchLabels": {"app": name}}}
    body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}
    assert up.ask("POST", BUDGETS, body).code == 201
    path = f"{BUDGETS}/{name}"
    wait_until(lambda: up.ask("GET", path).document()["status"].get("expectedPods"), why=up.log)


def items(up: Up, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = up.ask("GET", path).document()["items"]
    return found


def nodes_of(up: Up, app: str) -> list[str]:
    pods = items(up, f"{PODS}?labelSelector=app%3D{app}")
    return sorted(pod["spec"].get("nodeName", "") for pod in pods)


def cordoned(up: Up) -> list[str]:
    return [node["metadata"]["name"] for node in items(up, NODES) if node["spec"].get("unschedulable")]


def words(up: Up) -> list[str]:
    return ["plan", "--defragment", "--execute", "--kubeconfig", str(up.kubeconfig)]


def test_all_moves_are_carried_out_one_after_the_other(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--nodes", "4") as up:
        deploy(up, "web", 4, "2")
        protect(up, "web", 1)
        # A pod that was pending before must not keep the command waiting.
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "large"}, "spec": pod_spec("99")}
        assert up.ask("POST", PODS, body).code == 201

        result = run(*words(up))
        assert result.exit_code == 0, result.output
        assert "3. evict default/web-" in result.output
        assert "3 pods moved." in result.output
        (node,) = set(nodes_of(up, "web"))
        others = [f"node-{number}" for number in range(4) if f"node-{number}" != node]
        assert cordoned(up) == others
        assert f"kubectl uncordon {' '.join(others)}" in result.output

        again = run(*words(up))
        assert (again.exit_code, again.output) == (0, "0 pods moved.\n")


def test_room_is_made_for_a_pod(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--nodes", "2") as up:
        deploy(up, "web", 2, "6")  # one on each node of 32 cpu
        file = tmp_path / "large.yaml"
        head = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "large", "namespace": "default"}}
        file.write_text(yaml.dump({**head, "spec": pod_spec("28")}))
        assert len(set(nodes_of(up, "web"))) == 2

        result = run(*words(up), "--for", str(file))
        assert result.exit_code == 0, result.output
        (node,) = set(nodes_of(up, "web"))
        free = "node-0" if node == "node-1" else "node-1"
        assert f"1 pod moved. Node {free} has room." in result.output
        assert cordoned(up) == []
        assert "cordoned" not in result.output

        file.write_text(yaml.dump({**head, "spec": pod_spec("64")}))
        impossible = run(*words(up), "--for", str(file))
        assert impossible.exit_code == 2
        assert "no moves make room for default/large" in impossible.output


def test_a_budget_forbids_an_eviction(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--nodes", "2") as up:
        deploy(up, "web", 2, "1")
        protect(up, "web", 0)
        plan = run(*words(up))
        assert (plan.exit_code, plan.output) == (0, "0 pods moved.\n")  # the plan respects the budget

        mover = Mover(connect(str(up.kubeconfig), "", SystemClock()), SystemClock())
        pod = items(up, PODS)[0]["metadata"]["name"]
        with pytest.raises(InputError, match="not evicted, because a disruption budget forbids it: Cannot evict pod"):
            mover.carry_out(f"default/{pod}", ())
        assert len(nodes_of(up, "web")) == 2
        assert not mover.carry_out("default/gone", ())


def test_a_pod_that_does_not_settle(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--nodes", "2") as up:
        deploy(up, "web", 2, "1")
        mover = Mover(connect(str(up.kubeconfig), "", SystemClock()), SystemClock(), settled_s_max=0.0)
        pod = items(up, PODS)[0]["metadata"]["name"]
        up.ask("PATCH", f"{PODS}/{pod}", {"metadata": {"finalizers": [FINALIZER]}}, headers=MERGE)
        with pytest.raises(InputError, match=f"default/{pod} was evicted, but default/{pod} has not ended after 0 s"):
            mover.carry_out(f"default/{pod}", ("node-0",))
        assert mover.cordoned == ["node-0"]
        mover.uncordon("node-0")
        assert cordoned(up) == []


def test_an_interrupted_command_goes_on_when_it_is_called_again(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--nodes", "3") as up:
        deploy(up, "web", 3, "1")
        held = [pod["metadata"]["name"] for pod in items(up, PODS)]
        for name in held:  # an evicted pod then does not end, so that the command waits for it
            up.ask("PATCH", f"{PODS}/{name}", {"metadata": {"finalizers": [FINALIZER]}}, headers=MERGE)
        command = [sys.executable, "-m", "mooring", *words(up)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            wait_until(lambda: any(pod["metadata"].get("deletionTimestamp") for pod in items(up, PODS)))
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 130, errors
        assert output.startswith("1. evict default/web-")
        assert "stopped after 0 pods moved; the same command goes on from here" in errors
        assert f"kubectl uncordon {' '.join(cordoned(up))}" in errors

        for name in held:
            up.ask("PATCH", f"{PODS}/{name}", {"metadata": {"finalizers": None}}, headers=MERGE)
        path = f"{DEPLOYMENTS}/web"
        wait_until(lambda: json.loads(up.ask("GET", path).body)["status"].get("readyReplicas") == 3)
        assert run(*words(up)).exit_code == 0
        wait_until(lambda: len(set(nodes_of(up, "web"))) == 1)
