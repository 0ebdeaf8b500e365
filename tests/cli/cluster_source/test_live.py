"""Reading a live cluster over HTTP: decisions equal those of the scheduler that runs there."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from mooring.cli.cluster_source import live
from mooring.cli.errors import InputError
from mooring.client.http.connection import Connection
from mooring.kit.clock import SystemClock
from mooring.kit.entropy import Entropy
from tests.cli.screens import run
from tests.cluster.running import ADMIN_TOKEN, LIMITED_TOKEN, Up, running
from tests.waiting import wait_until

ZONE = "topology.kubernetes.io/zone"
PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
DEVICE_CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def pod(name: str, *, cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "a", "resources": {"requests": {"cpu": cpu}}}
    body = {"containers": [container], "tolerations": [{"key": "busy", "operator": "Exists"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body}


def using(claim: str) -> dict[str, Any]:
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}


def claim(name: str, class_name: str, **spec: Any) -> dict[str, Any]:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    body = {**wanted, "storageClassName": class_name, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": body}


def storage_class(name: str, mode: str) -> dict[str, Any]:
    head = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
    return {**head, "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": mode}


VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "elsewhere", "labels": {ZONE: "zone-z"}},
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "now",
        "hostPath": {"path": "/tmp/elsewhere"},
        "claimRef": {"namespace": "default", "name": "far"},
    },
}
DEVICE_CLAIM = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "gpu"},
    "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
}
DEVICE_CLASS = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
STORED = [
    ("/apis/storage.k8s.io/v1/storageclasses", storage_class("late", "WaitForFirstConsumer")),
    ("/apis/storage.k8s.io/v1/storageclasses", storage_class("now", "Immediate")),
    ("/api/v1/persistentvolumes", VOLUME),
    (CLAIMS, claim("late", "late")),
    (CLAIMS, claim("now", "now", resources={"requests": {"storage": "9Ti"}})),
    (CLAIMS, claim("far", "now", volumeName="elsewhere")),
    ("/apis/resource.k8s.io/v1/deviceclasses", DEVICE_CLASS),
    (DEVICE_CLAIMS, DEVICE_CLAIM),
]
PENDING = {
    "large": pod("large", cpu="5000"),
    "claimless": pod("claimless", **using("nowhere")),
    "late": pod("late", **using("late")),
    "unbound": pod("unbound", **using("now")),
    "far": pod("far", **using("far")),
    "intolerant": pod("intolerant", tolerations=[]),
    "device": pod("device", resourceClaims=[{"name": "r", "resourceClaimName": "gpu"}]),
}


def created(up: Up, path: str, body: dict[str, Any]) -> None:
    answer = up.ask("POST", path, body)
    assert answer.code == 201, answer.body


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Three tainted nodes, and a pod for each reason not to be scheduled, which the scheduler has told."""
    with running(tmp_path_factory.mktemp("live"), "--ephemeral", "--nodes", "3") as up:
        for number in range(3):
            tainted(up, f"/api/v1/nodes/node-{number}")
        for path, body in STORED:
            created(up, path, body)
        wait_until(lambda: up.ask("GET", f"{CLAIMS}/far").document()["status"].get("phase") == "Bound")
        for body in PENDING.values():
            created(up, PODS, body)
        for name in PENDING:
            wait_until(partial(reported, up, name))
        yield up


def tainted(up: Up, path: str) -> None:
    """Taints a node once it is ready: the messages of the scheduler change no more then."""

    def is_ready() -> bool:
        answer = up.ask("GET", path)
        status = answer.document().get("status") or {} if answer.code == 200 else {}
        return any(
            (condition["type"], condition["status"]) == ("Ready", "True")
            for condition in status.get("conditions") or ()
        )

    wait_until(is_ready)
    taints = {"spec": {"taints": [{"key": "busy", "effect": "NoSchedule"}]}}
    assert up.ask("PATCH", path, taints, headers={"Content-Type": "application/merge-patch+json"}).code == 200


def reported(up: Up, name: str) -> str:
    """The message of the PodScheduled condition; empty as long as there is none."""
    conditions = up.ask("GET", f"{PODS}/{name}").document()["status"].get("conditions") or []
    return next((condition.get("message", "") for condition in conditions if condition["type"] == "PodScheduled"), "")


def explained(up: Up, *arguments: str) -> dict[str, Any]:
    result = run("explain", "--kubeconfig", str(up.kubeconfig), *arguments, "-o", "json")
    assert result.exit_code == 0, result.output
    data: dict[str, Any] = json.loads(result.stdout)
    return data


@pytest.mark.parametrize("name", PENDING)
def test_it_says_what_the_scheduler_says(cluster: Up, name: str) -> None:
    data = explained(cluster, f"default/{name}")
    (entry,) = data["pods"]
    assert (entry["pod"], entry["message"], "notJudged" in entry) == (f"default/{name}", reported(cluster, name), False)
    assert data["server"] == cluster.url


def test_several_pods_are_shown_as_they_are_named(cluster: Up) -> None:
    assert [entry["pod"] for entry in explained(cluster, "late", "large")["pods"]] == ["default/late", "default/large"]


def test_the_environment_names_the_cluster(cluster: Up, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # As kubectl: files that are not there are passed over.
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'none'}:{cluster.kubeconfig}")
    result = run("explain", "large")
    assert result.stdout.startswith("default/large goes nowhere\n  0/3 nodes are available: ")
    assert result.stderr.startswith(f"mooring: note: read {cluster.url}: ")


def test_files_are_added_to_the_cluster(cluster: Up, tmp_path: Path) -> None:
    web: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod("web")["spec"]},
        },
    }
    file = tmp_path / "web.yaml"
    file.write_text(yaml.safe_dump(web), encoding="utf-8")
    first = explained(cluster, "-f", str(file))["pods"]
    assert [entry["outcome"] for entry in first] == ["placed", "placed"]
    created(cluster, DEPLOYMENTS, web)
    status = f"{DEPLOYMENTS}/web"
    wait_until(lambda: cluster.ask("GET", status).document()["status"].get("updatedReplicas") == 2)
    web["spec"] |= {"replicas": 5}
    file.write_text(yaml.safe_dump(web), encoding="utf-8")
    # The Deployment of the cluster has two of the five pods, and the very same template.
    more = explained(cluster, "-f", str(file))["pods"]
    assert len(more) == 3
    assert {re.sub("-[^-]+$", "", entry["pod"]) for entry in more} == {re.sub("-[^-]+$", "", first[0]["pod"])}


def test_an_object_of_a_file_replaces_that_of_the_cluster(cluster: Up, tmp_path: Path) -> None:
    file = tmp_path / "large.yaml"
    file.write_text(yaml.safe_dump(pod("large")), encoding="utf-8")
    (entry,) = explained(cluster, "-f", str(file), "large")["pods"]
    assert entry["outcome"] == "placed"


def test_a_pod_of_a_file_gets_a_claim_of_a_template_of_the_cluster(cluster: Up, tmp_path: Path) -> None:
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "gpus"}}
    created(
        cluster,
        "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates",
        {**head, "spec": {"spec": DEVICE_CLAIM["spec"]}},
    )
    file = tmp_path / "templated.yaml"
    claims = [{"name": "r", "resourceClaimTemplateName": "gpus"}]
    file.write_text(yaml.safe_dump(pod("templated", resourceClaims=claims)), encoding="utf-8")
    (entry,) = explained(cluster, "-f", str(file))["pods"]
    # The claim was made: the nodes are rejected for their devices, as they are for the pod of a claim.
    assert entry["message"] == reported(cluster, "device")


# Users with few rights

READ_MOST = [
    {"apiGroups": [""], "resources": ["nodes", "pods", "namespaces", "services"], "verbs": ["list"]},
    {"apiGroups": ["apps", "policy", "storage.k8s.io", "scheduling.k8s.io"], "resources": ["*"], "verbs": ["list"]},
]
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def allowed(up: Up, name: str, rules: list[dict[str, Any]]) -> None:
    head = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name}}
    created(up, f"{RBAC}/clusterroles", {**head, "kind": "ClusterRole", "rules": rules})
    subject = {"kind": "User", "name": "limited", "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "ClusterRole", "name": name, "apiGroup": "rbac.authorization.k8s.io"}
    body = {**head, "kind": "ClusterRoleBinding", "subjects": [subject], "roleRef": role}
    created(up, f"{RBAC}/clusterrolebindings", body)


def as_limited(up: Up, directory: Path) -> str:
    file = directory / "limited"
    text = up.kubeconfig.read_text(encoding="utf-8")
    config = yaml.safe_load(text)
    config["users"][0]["user"] = {"token": LIMITED_TOKEN}
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    assert ADMIN_TOKEN not in file.read_text(encoding="utf-8")
    return str(file)


def test_without_permission_to_list_claims_the_report_names_what_was_not_judged(cluster: Up, tmp_path: Path) -> None:
    kubeconfig = as_limited(cluster, tmp_path)
    refused = run("explain", "--kubeconfig", kubeconfig)
    assert refused.exit_code == 2
    assert refused.stderr.startswith(f"mooring: cannot read the cluster at {cluster.url}: nodes is forbidden: User")
    allowed(cluster, "most", READ_MOST)
    wait_until(lambda: cluster.ask("GET", "/api/v1/nodes", token=LIMITED_TOKEN).code == 200)
    result = run("explain", "--kubeconfig", kubeconfig, "claimless", "large", "device")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].startswith("default/claimless may go to node-")
    assert lines[1] == "  you may not list PersistentVolumeClaims: its volumes were not judged"
    assert "  you may not list ResourceClaims: its devices were not judged" in lines
    assert "you may not list DeviceClasses, PersistentVolumeClaims, PersistentVolumes, " in result.stderr
    (entry,) = json.loads(run("explain", "--kubeconfig", kubeconfig, "large", "-o", "json").stdout)["pods"]
    assert entry["message"] == reported(cluster, "large")


# Pages, and kinds that a server does not have


class Lists(BaseHTTPRequestHandler):
    """A server with nodes on two pages, the second of which may have expired, and no other kinds but pods."""

    has_expired = False

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        if url.path == "/api/v1/pods":
            self.answer(200, {"kind": "PodList", "metadata": {}, "items": []})
        elif url.path != "/api/v1/nodes":
            self.answer(404, {"kind": "Status", "reason": "NotFound", "message": "no such kind", "code": 404})
        elif "continue" in query and self.has_expired:
            self.answer(410, {"kind": "Status", "reason": "Expired", "message": "too old", "code": 410})
        else:
            is_whole = "continue" in query or "limit" not in query
            metadata = {} if is_whole else {"continue": "t", "remainingItemCount": 1}
            first, second = ({"metadata": {"name": f"n{number}"}} for number in (1, 2))
            items = [second] if "continue" in query else [first, second] if is_whole else [first]
            self.answer(200, {"kind": "NodeList", "metadata": metadata, "items": items})

    def answer(self, code: int, body: dict[str, Any]) -> None:
        data = json.dumps(body, separators=(",", ":")).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize("has_expired", [False, True], ids=["all pages", "a page that has expired"])
def test_a_kind_is_read_in_pages_and_one_that_is_not_there_is_empty(has_expired: bool) -> None:
    handler = type("Handler", (Lists,), {"has_expired": has_expired})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        connection = Connection(f"http://127.0.0.1:{server.server_port}")
        found = live.read_cluster(connection, SystemClock(), Entropy(1))
        server.shutdown()
        thread.join()
    assert [view.key for view in found.objects] == ["n1", "n2"]
    assert found.kinds == {view.kind for view in live.KINDS_READ}
    assert found.denied == set()


# What can go wrong


def kubeconfig_of(server: str, directory: Path) -> str:
    file = directory / "kubeconfig"
    config = {
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    return str(file)


def test_a_server_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and does not listen: nobody else gets the port, and connections are refused
        server = f"http://127.0.0.1:{bound.getsockname()[1]}"
        result = run("explain", "--kubeconfig", kubeconfig_of(server, tmp_path))
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"mooring: cannot read the cluster at {server}: ")


def test_a_context_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = run("explain", "--kubeconfig", kubeconfig_of("http://h", tmp_path), "--context", "prod")
    assert (result.exit_code, "there is no context 'prod'; there are x" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        pytest.param(
            {"HOME": "/nowhere"},
            "found no kubeconfig ($KUBECONFIG is not set, no /nowhere/.kube/config); name one with --kubeconfig",
            id="nothing is said",
        ),
        pytest.param(
            {"KUBECONFIG": "/none:/nil"}, "found no kubeconfig ($KUBECONFIG names /none, /nil); ", id="files are named"
        ),
    ],
)
def test_no_kubeconfig_at_all(environment: dict[str, str], said: str) -> None:
    with pytest.raises(InputError) as caught:
        live.connect("", "", SystemClock(), environment, file_option="--cluster")
    assert str(caught.value).startswith(said)
    assert str(caught.value).endswith("name one with --kubeconfig, or a dump with --cluster FILE")
    with pytest.raises(InputError) as caught:
        live.connect("", "", SystemClock(), environment)
    assert str(caught.value).endswith("name one with --kubeconfig")
