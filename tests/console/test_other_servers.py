"""The console of `mooring scheduler --console`, and of `mooring console` for a cluster with another scheduler."""

from __future__ import annotations

import http.client
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
import yaml

from tests.cluster.running import LIMITED_TOKEN, Up, running
from tests.console.browser import Browser
from tests.console.clusters import MANIFEST, create_pod
from tests.waiting import LIMIT_S, wait_until

WITHOUT_SCHEDULER = ("--ephemeral", "--nodes", "3", "--cpu", "4", "--without", "scheduler")
RBAC = "/apis/rbac.authorization.k8s.io/v1"


class Served:
    """A process that serves the console, and its session."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self.printed: list[str] = []
        for line in process.stdout:
            self.printed.append(line)
            if "/console/login?token=" in line:
                break
        words = self.printed[-1].split() if self.printed else []
        self.link = next((word for word in words if "/console/login" in word), "")
        assert self.link, self.printed
        self.login = self.link.removeprefix(f"https://{urlsplit(self.link).netloc}")

    def ask(
        self, path: str, headers: Mapping[str, str] | None = None, method: str = "GET", body: object = None
    ) -> tuple[int, Mapping[str, str], bytes]:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(urlsplit(self.link).netloc, timeout=LIMIT_S, context=context)
        try:
            sent = None if body is None else msgspec.json.encode(body)
            connection.request(method, path, sent, headers=dict(headers or {}))
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()
        finally:
            connection.close()

    def post(self, path: str, session: Mapping[str, str], body: object) -> tuple[int, Any]:
        """A request of the page, with the header and the origin that the server wants."""
        own = {**session, "X-Mooring-Console": "1", "Origin": f"https://{urlsplit(self.link).netloc}"}
        code, _, answer = self.ask(f"/console/data/{path}", own, "POST", body)
        return code, msgspec.json.decode(answer) if code == 200 else answer

    def logged_in(self) -> dict[str, str]:
        code, headers, _ = self.ask(self.login)
        assert code == 200
        return {"Cookie": headers["Set-Cookie"].partition(";")[0]}

    def data(self, path: str, session: Mapping[str, str]) -> Any:
        code, _, body = self.ask(f"/console/data/{path}", session)
        return msgspec.json.decode(body) if code == 200 else None


@contextmanager
def serving(*arguments: str) -> Iterator[Served]:
    command = [sys.executable, "-m", "mooring", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield Served(process)
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT_S) == 0
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def test_a_scheduler_serves_its_console_to_the_link_in_its_log(tmp_path: Path) -> None:
    with running(tmp_path, *WITHOUT_SCHEDULER) as up:
        create_pod(up, "large", "99")
        options = ("--kubeconfig", str(up.kubeconfig), "--leader-elect=false", "--console")
        with serving("scheduler", *options, "--bind-address=127.0.0.1", f"--secure-port={free_port()}") as scheduler:
            session = scheduler.logged_in()
            assert scheduler.ask(scheduler.login)[0] == 401, "a link is used once"
            assert scheduler.data("about", session) == {
                "recomputed": False,
                "server": "",
                "notRead": [],
                "leads": True,
                "canPause": False,
                "paused": None,
            }
            wait_until(lambda: (scheduler.data("overview", session) or {}).get("rejections"))
            assert scheduler.data("learn", session) is None
            assert (scheduler.ask("/metrics", session)[0], scheduler.ask("/console/")[0]) == (403, 401)


@pytest.mark.parametrize(
    "options",
    [
        ("scheduler", "--leader-elect=false", "--console", "--bind-address=127.0.0.1", "--secure-port={port}"),
        ("console", "--port", "0"),
    ],
    ids=["of a scheduler", "of another scheduler"],
)
def test_a_manifest_is_planned_with_nodes_that_are_removed(tmp_path: Path, options: Sequence[str]) -> None:
    with running(tmp_path, *WITHOUT_SCHEDULER) as up:
        arguments = [option.format(port=free_port()) for option in options]
        with serving(*arguments, "--kubeconfig", str(up.kubeconfig)) as console:
            session = console.logged_in()
            code, _, _ = console.ask("/console/data/pods", session, "POST", {"manifest": MANIFEST})
            assert code == 403, "not from the page"
            wait_until(lambda: (console.data("overview", session) or {}).get("nodes") == 3)
            code, found = console.post("pods", session, {"manifest": MANIFEST, "requests": {"cpu": "3"}})
            assert code == 200, found
            [pod] = found["pods"]
            assert (pod["spec"]["priority"], found["copies"], found["notes"]) == (0, [2], [])
            request = {"pods": found["pods"], "copies": found["copies"]}
            code, plan = console.post("plan", session, {**request, "question": "removeNodes", "nodes": ["node-0"]})
            assert code == 200, plan
            assert sorted(placement["node"] for placement in plan["placements"]) == ["node-1", "node-2"]
            code, wrong = console.post("pods", session, {"manifest": MANIFEST.replace("image: i,", "image: '',")})
            assert (code, b"image" in wrong) == (422, True)
        assert up.ask("GET", "/apis/apps/v1/deployments").document()["items"] == []
        assert up.ask("GET", "/api/v1/pods").document()["items"] == []


def test_any_cluster_can_be_watched_and_nothing_in_it_changes(tmp_path: Path, browser: Browser) -> None:
    with running(tmp_path, *WITHOUT_SCHEDULER) as up:
        create_pod(up, "large", "99")
        create_pod(up, "small", "1")
        with serving("console", "--kubeconfig", str(up.kubeconfig), "--port", "0") as console:
            assert any("3 nodes, 0 pods on them, 2 pending" in line for line in console.printed)
            browser.open(console.link)
            browser.wait("document.querySelector('.notice')?.innerText.startsWith('Recomputed.')")
            browser.wait("document.body.innerText.includes('Insufficient cpu')")
            browser.evaluate("location.hash = '#/pod/default/small'")
            browser.wait("document.body.innerText.includes('it fits; its scheduler has not bound it yet')")
            browser.evaluate("location.hash = '#/learn'")
            browser.wait("document.body.innerText.includes('can be paused')")
            assert browser.problems == []
        pods = up.ask("GET", "/api/v1/pods").document()["items"]
        assert all("nodeName" not in pod["spec"] and "conditions" not in pod["status"] for pod in pods)
        events = up.ask("GET", "/apis/events.k8s.io/v1/events").document()["items"]
        assert not any(event["regarding"]["kind"] == "Pod" for event in events)


def let_read_nodes_and_pods(up: Up) -> None:
    head = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "viewer"}}
    rules = [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list", "watch"]}]
    assert up.ask("POST", f"{RBAC}/clusterroles", {**head, "kind": "ClusterRole", "rules": rules}).code == 201
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "viewer"}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "limited"}]
    binding = {**head, "kind": "ClusterRoleBinding", "roleRef": role, "subjects": subjects}
    assert up.ask("POST", f"{RBAC}/clusterrolebindings", binding).code == 201
    wait_until(lambda: up.ask("GET", "/api/v1/nodes", token=LIMITED_TOKEN).code == 200)


def test_kinds_that_may_not_be_read_are_named(tmp_path: Path) -> None:
    with running(tmp_path, *WITHOUT_SCHEDULER) as up:
        limited = tmp_path / "limited"
        kubeconfig = yaml.safe_load(up.kubeconfig.read_text(encoding="utf-8"))
        kubeconfig["users"][0]["user"] = {"token": LIMITED_TOKEN}
        limited.write_text(yaml.safe_dump(kubeconfig), encoding="utf-8")
        refused = subprocess.run(
            [sys.executable, "-m", "mooring", "console", "--kubeconfig", str(limited), "--port", "0"],
            capture_output=True,
            text=True,
        )
        assert (refused.returncode, 'cannot list resource "nodes"' in refused.stderr) == (2, True)
        let_read_nodes_and_pods(up)
        with serving("console", "--kubeconfig", str(limited), "--port", "0") as console:
            about = console.data("about", console.logged_in())
            assert (about["recomputed"], "namespaces" in about["notRead"]) == (True, True)
            assert any("rules about them are ignored" in line for line in console.printed)


def test_a_taken_port_is_reported(tmp_path: Path) -> None:
    with running(tmp_path, *WITHOUT_SCHEDULER) as up, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "mooring", "console", "--kubeconfig", str(up.kubeconfig), "--port", str(port)]
        ended = subprocess.run(command, capture_output=True, text=True)
        assert ended.returncode == 2
        message = f"mooring: cannot listen on 127.0.0.1:{port}: address already in use; choose another port"
        assert ended.stderr.splitlines()[-1] == message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(("scheduler", "--secure-port=0", "--console"), "--console needs the secure port", id="no port"),
        pytest.param(("console", "--kubeconfig", "/nothing"), "/nothing", id="no kubeconfig"),
        pytest.param(("console", "--port", "70000"), "70000", id="no such port"),
    ],
)
def test_wrong_options_are_reported(arguments: tuple[str, ...], message: str) -> None:
    ended = subprocess.run([sys.executable, "-m", "mooring", *arguments], capture_output=True, text=True)
    assert (ended.returncode, message in ended.stderr) == (2, True), ended.stderr
