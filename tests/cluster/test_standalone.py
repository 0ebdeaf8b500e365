"""Controllers and nodes as processes of their own: a Deployment runs in a cluster that has neither."""

from __future__ import annotations

import http.client
import os
import re
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.machine import free_port
from tests.cluster.running import ADMIN_TOKEN, LIMITED_TOKEN, Up, running
from tests.kubelet.processes.process_harness import container_pid
from tests.waiting import LIMIT_S, wait_until


@contextmanager
def alone(up: Up, log: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [sys.executable, "-m", "mooring", *words, "--kubeconfig", str(up.kubeconfig)], stdout=output, stderr=output
        ) as process,
    ):
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(LIMIT_S)


def test_a_deployment_runs_on_parts_that_run_alone(tmp_path: Path) -> None:
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]},
            },
        },
    }
    ports = free_port(), free_port()
    with (
        running(tmp_path, "--ephemeral", "--without", "controllers,nodes") as up,
        alone(up, tmp_path / "controllers.log", "controllers", "--secure-port", str(ports[0])) as controllers,
        alone(up, tmp_path / "nodes.log", "nodes", "--count", "3", "--kubelet-port", str(ports[1])) as nodes,
    ):
        assert up.ask("POST", "/apis/apps/v1/namespaces/default/deployments", deployment).code == 201
        path = "/apis/apps/v1/namespaces/default/deployments/web"
        _wait(up, path, lambda web: web["status"].get("availableReplicas") == 3)
        leases = up.ask("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases").document()["items"]
        assert {lease["metadata"]["name"] for lease in leases} >= {"kube-controller-manager", "mooring-nodes-node"}
        for port, name in zip(ports, ("workqueue_adds_total", "mooring_kubelet_nodes"), strict=True):
            for path in ("/healthz", "/livez", "/readyz"):
                assert shown(port, path, "") == (200, "ok")
            assert shown(port, "/metrics", "")[0] == shown(port, "/metrics", LIMITED_TOKEN)[0] == 403
            code, text = shown(port, "/metrics", ADMIN_TOKEN)
            assert (code, f"\n{name}" in text, "leader_election_master_status" in text) == (200, True, True), text
            assert f'\nrest_client_requests_total{{code="200",host="127.0.0.1:{up.port}",method="GET"}}' in text
            assert '\nworkqueue_queue_duration_seconds_bucket{le="1e-08",name="events"}' in text, text
        assert "mooring_kubelet_nodes 3.0" in shown(ports[1], "/metrics", ADMIN_TOKEN)[1]
        for process in (controllers, nodes):
            process.send_signal(signal.SIGINT)
            assert process.wait(LIMIT_S) == 0


def shown(port: int, path: str, token: str, host: str = "127.0.0.1") -> tuple[int, str]:
    """What a component shows on its secure port."""
    context = ssl._create_unverified_context()
    connection = http.client.HTTPSConnection(host, port, timeout=LIMIT_S, context=context)
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
    response = connection.getresponse()
    said = response.read().decode()
    connection.close()
    return response.status, said


def _wait(up: Up, path: str, is_right: Callable[[Any], bool]) -> None:
    wait_until(lambda: is_right(up.ask("GET", path).document()), each_s=0.1, why=lambda: up.ask("GET", path).body)


def test_a_standalone_machine_runs_pods_and_serves_their_logs_with_authorization(tmp_path: Path) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "main", "image": "none", "command": ["/bin/sh", "-c", "echo hello"]}]},
    }
    words = ("nodes", "--runtime", "process", "--kubelet-port", "0")
    with running(tmp_path, "--ephemeral", "--without", "nodes") as up, alone(up, tmp_path / "nodes.log", *words):
        assert up.ask("POST", "/api/v1/namespaces/default/pods", pod).code == 201
        _wait(up, "/api/v1/namespaces/default/pods/web", lambda found: found["status"].get("containerStatuses"))
        status = up.ask("GET", "/api/v1/nodes").document()["items"][0]["status"]
        address, port = status["addresses"][0]["address"], status["daemonEndpoints"]["kubeletEndpoint"]["Port"]

        def log(token: str) -> tuple[int, str]:
            return shown(port, "/containerLogs/default/web/main", token, address)

        wait_until(lambda: log(ADMIN_TOKEN) == (200, "hello\n"), each_s=0.1, why=lambda: log(ADMIN_TOKEN))
        assert log(LIMITED_TOKEN)[0] == 403
        assert shown(port, "/healthz", "", address) == (200, "ok")
        assert "mooring_kubelet_pods 1.0" in shown(port, "/metrics", ADMIN_TOKEN, address)[1]
        assert shown(port, "/metrics", LIMITED_TOKEN, address)[0] == 403


def test_the_api_server_reads_logs_from_another_machine(tmp_path: Path) -> None:
    script = "trap 'echo bye; exit 3' TERM; date +%s%N; while :; do sleep 0.1; done"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": {
            "terminationGracePeriodSeconds": 60,
            "containers": [{"name": "main", "image": "none", "command": ["/bin/sh", "-c", script]}],
        },
    }
    words = ("nodes", "--runtime", "process", "--kubelet-port", "0", "--data-dir", str(tmp_path / "pods"))
    path = "/api/v1/namespaces/default/pods/web"
    with running(tmp_path, "--ephemeral", "--without", "nodes") as up:
        with alone(up, tmp_path / "nodes.log", *words):
            assert up.ask("POST", "/api/v1/namespaces/default/pods", pod).code == 201
            first = _wait_log(up, path)
            refused = up.ask("GET", f"{path}/log?previous=true")
            assert refused.code == 400
            said = 'previous terminated container "main" in pod "web" not found'
            assert refused.document()["message"] == said

            os.killpg(container_pid(tmp_path / "pods"), signal.SIGTERM)
            _wait(up, path, lambda found: found["status"]["containerStatuses"][0]["restartCount"] == 1)
            second = _wait_log(up, path)
            previous = up.ask("GET", f"{path}/log?previous=true").body.decode()
            assert previous.startswith(first)
            assert "bye\n" in previous  # the shell also says that its `sleep` was terminated
            with up.opened(f"{path}/log?follow=true") as followed:
                assert followed.readline().decode() == second
                assert up.ask("DELETE", path).code == 200
                assert b"bye\n" in followed.read()
            _wait(up, path, lambda found: found.get("code") == 404)
            assert up.ask("POST", "/api/v1/namespaces/default/pods", pod).code == 201
            _wait_log(up, path)
        refused = up.ask("GET", f"{path}/log")
        assert (refused.code, refused.document().get("reason")) == (500, None)
        words_said = r'Get "https://.+/containerLogs/default/web/main": dial tcp .+: connect: connection refused'
        assert re.fullmatch(words_said, refused.document()["message"])


def _wait_log(up: Up, path: str) -> str:
    def said() -> str:
        found = up.ask("GET", f"{path}/log")
        return found.body.decode() if found.code == 200 else ""

    return wait_until(said, each_s=0.1)
