"""The console over HTTP: logins, headers, data, and the files of the page."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mooring.console import STATIC, assets
from tests.cluster.running import LIMITED_TOKEN, Answer, Up, running
from tests.console.clusters import MANIFEST, create_pod, data, decoded_nodes, login_link, nodes
from tests.waiting import wait_until

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
HOSTILE = "default/<img src=x onerror=alert(1)>"


def path_of(link: str) -> str:
    return "/" + link.split("/", 3)[3]


def logged_in(up: Up, link: str) -> dict[str, str]:
    """The header of a session."""
    answer = up.ask("GET", path_of(link), token="")
    assert answer.code == 200
    return {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}


def check_headers(answer: Answer) -> None:
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'self';")
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"


def test_a_login_is_redeemed_once_for_a_session_that_opens_the_console_only(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--nodes", "1") as up:
        link = login_link(up)
        assert link.startswith(f"{up.url}/console/login?token=")
        first = up.ask("GET", path_of(link), token="")
        check_headers(first)
        assert first.headers["Cache-Control"] == "no-store"
        cookie, *attributes = first.headers["Set-Cookie"].split("; ")
        assert {*attributes} == {"Path=/console/", "Max-Age=43200", "HttpOnly", "Secure", "SameSite=Strict"}
        session = {"Cookie": f"other=1; {cookie}"}
        wait_until(lambda: up.ask("GET", "/console/data/overview", token="", headers=session).code == 200)
        assert up.ask("GET", "/console/", token="", headers=session).code == 200

        for attempt in (path_of(link), "/console/login?token=wrong", "/console/login?token=", "/console/login"):
            refused = up.ask("GET", attempt, token="")
            assert (refused.code, refused.headers["Content-Type"]) == (401, "text/html; charset=utf-8"), attempt
            assert "Set-Cookie" not in refused.headers
            check_headers(refused)

        for method, path in (
            ("GET", "/api/v1/pods"),
            ("GET", "/debug/queue"),
            ("GET", "/metrics"),
            ("GET", "/console/../api/v1/pods"),
            ("GET", "/console"),
            ("POST", "/plan"),
            ("POST", "/console/data/overview"),
            ("DELETE", "/api/v1/nodes/node-0"),
            ("POST", "/console/login"),
        ):
            answer = up.ask(method, path, token="", headers=session)
            assert answer.code in (301, 401, 403, 404, 405), (method, path)
            assert b"node-0" not in answer.body
        assert up.ask("GET", "/console/link", token="", headers=session).code == 403
        forged = {"Cookie": f"{cookie.partition('=')[0]}=wrong"}
        for path, headers, code in (
            ("/console/data/overview", forged, 401),
            ("/console/link", session, 403),
            ("/console/data/nothing", session, 404),
            ("/console/data/plan", session, 405),
        ):
            answer = up.ask("GET", path, token="", headers=headers)
            assert answer.code == code, path
            check_headers(answer)
        denied = up.ask("GET", "/console/data/overview", token=LIMITED_TOKEN)
        assert denied.code == 403
        check_headers(denied)
        assert "Content-Security-Policy" not in up.ask("GET", "/api/v1/pods", token="").headers


def test_without_a_session_there_is_a_page_that_says_how_to_get_one(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--without", "controllers,nodes") as up:
        answer = up.ask("GET", "/console/", token="")
        assert answer.code == 401
        assert b"kubectl get --raw /console/link" in answer.body
        check_headers(answer)
        assert up.ask("GET", "/console/data/overview", token="").document()["reason"] == "Unauthorized"
        moved = up.ask("GET", "/console", token="")
        assert (moved.code, moved.headers["Location"]) == (301, "/console/")


def test_a_link_logs_in_the_user_that_requested_it(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--nodes", "1") as up:
        assert up.ask("GET", "/console/link", token=LIMITED_TOKEN).code == 403
        rules = [{"nonResourceURLs": ["/console/", "/console/link", "/console/data/queue"], "verbs": ["get"]}]
        head = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "console"}}
        assert up.ask("POST", ROLES, {**head, "kind": "ClusterRole", "rules": rules}).code == 201
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "console"}
        subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "limited"}]
        binding = {**head, "kind": "ClusterRoleBinding", "roleRef": role, "subjects": subjects}
        assert up.ask("POST", BINDINGS, binding).code == 201
        wait_until(lambda: up.ask("GET", "/console/link", token=LIMITED_TOKEN).code == 200)
        link = up.ask("GET", "/console/link", token=LIMITED_TOKEN)
        assert link.headers["Cache-Control"] == "no-store"
        session = logged_in(up, link.body.decode().strip())
        wait_until(lambda: up.ask("GET", "/console/data/queue", token="", headers=session).code == 200)
        assert up.ask("GET", "/console/", token="", headers=session).code == 200
        assert up.ask("GET", "/console/data/overview", token="", headers=session).code == 403
        assert up.ask("GET", "/console/app.js", token="", headers=session).code == 403


def test_files_have_their_types_and_are_not_sent_twice(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--without", "controllers,nodes") as up:
        types = {
            "": "text/html; charset=utf-8",
            "app.js": "text/javascript; charset=utf-8",
            "vendor/preact.js": "text/javascript; charset=utf-8",
            "style.css": "text/css; charset=utf-8",
            "icon.svg": "image/svg+xml",
            "vendor/LICENSES.txt": "text/plain; charset=utf-8",
        }
        for name, content_type in types.items():
            answer = up.ask("GET", f"/console/{name}")
            assert (answer.code, answer.headers["Content-Type"]) == (200, content_type), name
            check_headers(answer)
            again = up.ask("GET", f"/console/{name}", headers={"If-None-Match": answer.headers["ETag"]})
            assert (again.code, again.body, again.headers["ETag"]) == (304, b"", answer.headers["ETag"])
        for name in ("nothing.js", "../__init__.py", "%2e%2e/__init__.py", "vendor/", "data/nothing"):
            assert up.ask("GET", f"/console/{name}").code == 404, name


@pytest.mark.parametrize("processes", ["1", "2"])
def test_the_data_show_queue_nodes_and_decisions(tmp_path: Path, processes: str) -> None:
    options = ("--ephemeral", "--nodes", "4", "--zones", "a,b", "--cpu", "10", "--processes", processes)
    with running(tmp_path, *options) as up:
        create_pod(up, "small", "5")
        create_pod(up, "large", "99")
        create_pod(up, "gated", "1", schedulingGates=[{"name": "example.com/wait"}])
        wait_until(lambda: (data(up, "overview") or {}).get("bound") == 1, why=up.log)
        reasons = {("Insufficient cpu", 1), ("gated by SchedulingGates", 1)}
        wait_until(lambda: {tuple(reason) for reason in data(up, "overview")["reasons"]} == reasons)
        overview = data(up, "overview")
        assert (overview["nodes"], overview["pods"], overview["counts"]["gated"]) == (4, 1, 1)
        assert overview["rejections"][0]["pod"] == "default/large"

        wait_until(lambda: 50 in nodes(up)["cpu"])  # answers are used again for a second
        table = nodes(up)
        assert sorted(table["names"]) == ["node-0", "node-1", "node-2", "node-3"]
        assert table["groups"] == ["a", "b"]
        assert sorted(table["group"]) == [0, 0, 1, 1]
        assert "kubernetes.io/hostname" in table["labels"]
        assert nodes(up, label="kubernetes.io/hostname")["groups"] == sorted(table["names"])
        assert sorted(table["cpu"]) == [0, 0, 0, 50]
        later = nodes(up, facts=table["facts"])
        assert (later["cpu"], "names" in later, "group" in later) == (table["cpu"], False, False)
        assert data(up, "nodes/version")["version"].startswith(table["facts"])
        answer = up.ask("GET", "/console/data/nodes")
        assert answer.headers["Content-Type"] == "application/octet-stream"
        check_headers(answer)
        wait_until(lambda: data(up, "past")["samples"][-1][3] == 1)  # pods bound
        sampled = data(up, "past")["samples"][-1][0]
        past = decoded_nodes(up.ask("GET", f"/console/data/past/nodes?time={sampled + 1}").body)
        assert (past["names"], past["cpu"]) == (table["names"], table["cpu"])
        assert up.ask("GET", "/console/data/past/nodes?time=1").code == 404

        used = table["names"][table["cpu"].index(50)]
        node = data(up, f"node?node={used}")
        assert [each["pod"] for each in node["pods"]] == ["default/small"]
        assert {"name": "cpu", "allocatable": 10000, "requested": 5000} in node["resources"]
        assert up.ask("GET", "/console/data/node?node=nothing").code == 404

        queued = {each["pod"]: each for each in data(up, "queue")["pods"]}
        assert queued["default/gated"]["gatedBy"] == "SchedulingGates"
        assert "Insufficient cpu" in queued["default/large"]["reason"]
        assert "NodeAdd" in queued["default/large"]["awaits"]
        assert queued["default/large"]["waitsSince"] <= queued["default/large"]["since"]
        assert [each["pod"] for each in data(up, "queue?filter=lar")["pods"]] == ["default/large"]
        second = data(up, "queue?sort=pod&offset=1&limit=1")
        assert ([each["pod"] for each in second["pods"]], second["total"]) == (["default/large"], 2)
        down = data(up, "queue?sort=attempts&descending=1")["pods"]
        assert [each["attempts"] for each in down] == sorted((each["attempts"] for each in down), reverse=True)
        for query in ("sort=colour", "offset=-1", "limit=x"):
            assert up.ask("GET", f"/console/data/queue?{query}").code == 400, query
        assert [each["pod"] for each in data(up, "queue?state=gated")["pods"]] == ["default/gated"]

        explained = data(up, "explain?pod=default/large")
        assert explained["nearestNodes"][0]["obstacles"][0]["plugin"] == "NodeResourcesFit"
        assert (explained["life"]["phase"], explained["candidates"]) == ("Pending", [])
        wait_until(lambda: "started" in data(up, "explain?pod=default/small")["life"])
        assert "nearestNodes" not in data(up, "explain?pod=default/small")
        assert 'cpu: "5"' in data(up, "manifest?pod=default/small")["manifest"]
        assert up.ask("GET", "/console/data/manifest?pod=default/nothing").code == 404
        fits = {pod_type["type"]: pod_type for pod_type in data(up, f"fits?node={used}")["types"]}
        assert (fits["Pod default/small"]["fits"], fits["Pod default/large"]["fits"]) == (1, 0)
        assert fits["Pod default/large"]["reason"] == "Insufficient cpu"
        assert up.ask("GET", "/console/data/fits?node=nothing").code == 404
        [unowned] = data(up, "workloads")["workloads"]
        assert (unowned["kind"], unowned["states"]) == ("Pod", {"started": 1, "pending": 2})
        numbers = data(up, "overview")["numbers"]
        assert numbers["reasons"] == {"Insufficient cpu": 1, "gated by SchedulingGates": 1}
        assert 0 <= numbers["pendingWaits"][0] <= numbers["pendingWaits"][1]
        assert data(up, "history")["samples"][0]["time"] <= numbers["time"]

        pod = data(up, "pod?pod=default/small")
        assert (pod["states"][0]["state"], pod["decisions"][0]["node"]) == ("on its node", used)
        assert up.ask("GET", "/console/data/pod?pod=small").code == 400


@pytest.mark.parametrize("processes", ["1", "2"])
def test_pausing_needs_authorization(tmp_path: Path, processes: str) -> None:
    with running(tmp_path, "--ephemeral", "--nodes", "1", "--processes", processes) as up:
        wait_until(lambda: data(up, "about"), why=up.log)
        assert up.ask("POST", "/console/do/pause", token=LIMITED_TOKEN).code == 403
        assert up.ask("GET", "/console/do/pause").code == 405
        session = logged_in(up, login_link(up))
        assert up.ask("POST", "/console/do/pause", token="", headers=session).code == 403, "not from the page"
        assert data(up, "about")["paused"] is None
        own = {**session, "X-Mooring-Console": "1", "Origin": up.url}
        assert up.ask("POST", "/console/do/pause", token="", headers=own).code == 200
        assert data(up, "about")["paused"]["until"]
        create_pod(up, "web", "1")
        wait_until(lambda: data(up, "learn?pod=default/web")["next"] == ["default/web"])
        assert up.ask("POST", "/console/do/step").code == 200
        wait_until(lambda: [each["pod"] for each in data(up, "learn?pod=default/web")["held"]] == ["default/web"])
        assert up.ask("POST", "/console/do/resume").document() == {"paused": None}
        wait_until(lambda: data(up, "learn?pod=default/web")["states"][0]["state"] == "on its node")


def test_a_stream_sends_changes_to_authorized_users(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--nodes", "1") as up:
        wait_until(lambda: data(up, "about"), why=up.log)
        assert up.ask("GET", "/console/data/live?watch=queue", token=LIMITED_TOKEN).code == 403
        assert up.ask("GET", "/console/data/live").code == 400
        assert up.ask("GET", "/console/data/live?watch=fits").code == 400
        with up.opened(
            "/console/data/live?watch=node%3Fnode%3Dnothing&watch=node%3Fnode%3Dother&watch=overview"
        ) as stream:
            assert (stream.status, stream.headers["Content-Type"]) == (200, "text/event-stream")
            assert stream.headers["Content-Security-Policy"].startswith("default-src 'self';")
            lines = [stream.readline().decode() for _ in range(9)]
            assert [json.loads(lines[place].removeprefix("data: "))["code"] for place in (1, 4)] == [404, 404]
            assert lines[6] == "event: overview\n"
            create_pod(up, "web", "1")
            wait_until(lambda: '"bound": 1' in stream.readline().decode())


def test_hostile_texts_stay_data(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--nodes", "1") as up:
        path = "/console/data/pod?pod=default/%3Cimg%20src=x%20onerror=alert(1)%3E"
        wait_until(lambda: up.ask("GET", path).code == 200)
        answer = up.ask("GET", path)
        assert (answer.headers["Content-Type"], answer.document()["pod"]) == ("application/json", HOSTILE)
        check_headers(answer)
        refused = up.ask("GET", "/console/data/node?node=%3Cscript%3E")
        assert (refused.code, refused.headers["Content-Type"]) == (404, "text/plain; charset=utf-8")
        check_headers(refused)


def test_without_a_scheduler_no_link_is_printed(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--without", "scheduler,controllers,nodes") as up:
        assert not any("console" in line for line in up.lines("Ctrl-C ends it"))
        assert up.ask("GET", "/console/data/overview").code == 404


def posted(up: Up, path: str, body: object, headers: dict[str, str]) -> Answer:
    return up.ask("POST", f"/console/data/{path}", body, token="", headers=headers)


def test_a_session_plans_with_the_header_and_the_origin_of_the_page_only(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--nodes", "1") as up:
        session = logged_in(up, login_link(up))
        own = {"Origin": up.url, "X-Mooring-Console": "1"}
        wait_until(lambda: posted(up, "plan", {}, session | own).code == 200)
        for headers, code in (
            ({}, 403),
            ({"Origin": up.url}, 403),
            ({"X-Mooring-Console": "1"}, 403),
            ({"X-Mooring-Console": "1", "Origin": "https://other.example"}, 403),
            ({"X-Mooring-Console": "1", "Origin": "null"}, 403),
            (own, 200),
        ):
            assert posted(up, "plan", {}, session | headers).code == code, headers
        assert posted(up, "plan", {}, own).code == 401, "the header alone is no login"
        assert up.ask("GET", "/console/data/plan", token="", headers=session).code == 405
        assert posted(up, "overview", {}, session | own).code == 405
        assert up.ask("POST", "/plan", {}, token="", headers=session | own).code == 401, "not below /console/"


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_manifest_is_planned_as_if_it_were_created(tmp_path: Path, processes: str) -> None:
    with running(tmp_path, "--ephemeral", "--nodes", "2", "--cpu", "4", "--processes", processes) as up:
        wait_until(lambda: data(up, "overview"))
        asked = {"manifest": MANIFEST, "replicas": 3, "requests": {"cpu": "3"}, "tolerations": ["gpu=yes:NoSchedule"]}
        answer = up.ask("POST", "/console/data/pods", asked)
        assert answer.code == 200, answer.body
        found = answer.document()
        [pod] = found["pods"]
        assert (pod["metadata"]["name"], found["copies"], pod["spec"]["priority"]) == ("web-new", [3], 0)
        assert {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"} in pod["spec"]["tolerations"]
        assert pod["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "3"}, "limits": {"cpu": "3"}}
        assert "replicas: 3" in found["manifest"]
        wait_until(lambda: nodes(up)["names"] == ["node-0", "node-1"])
        plan = up.ask("POST", "/console/data/plan", {"pods": found["pods"], "copies": found["copies"]}).document()
        assert sorted(placement["node"] for placement in plan["placements"]) == ["node-0", "node-1"]
        assert [each["pod"] for each in plan["pending"]] == ["default/web-new-2"]
        assert up.ask("GET", "/apis/apps/v1/deployments").document()["items"] == []
        assert up.ask("GET", "/api/v1/namespaces/default/pods").document()["items"] == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"manifest": "a: [1"}, "manifest:"),
        ({"manifest": ""}, "the manifest is empty"),
        ({"manifest": "kind: Service\nmetadata: {name: s}"}, "no pods to place; Service s: left out"),
        ({"manifest": MANIFEST.replace("Deployment", "DaemonSet")}, "`mooring plan FILE` does"),
        ({"manifest": MANIFEST.replace("image: i,", "image: i, ports: [{containerPort: -1}],")}, "containerPort"),
        ({"manifest": MANIFEST.replace("{name: web}", "{name: web, namespace: nowhere}")}, "nowhere"),
        ({"replicas": -1}, "replicas: found -1"),
        ({"requests": {"cpu": "much"}}, "cpu: found 'much'"),
        ({"manifest": MANIFEST.replace("replicas: 2", "replicas: many")}, "replicas"),
        ({"manifest": "kind: Pod\nmetadata: []"}, "metadata: found list, wanted an object"),
        ({"manifest": "kind: Pod\nmetadata: {name: p}\nspec: {containers: [1]}"}, "containers"),
        ({"manifest": "kind: List\nitems: [1]"}, "found an item that is no object"),
        ({"tolerations": ["a=b:Never"]}, "wanted *, KEY"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_manifest_without_pods_to_plan_is_explained(
    plain_cluster: Up, change: dict[str, object], message: str
) -> None:
    answer = plain_cluster.ask("POST", "/console/data/pods", {"manifest": MANIFEST} | change)
    assert answer.code == 422
    assert message in answer.body.decode()


@pytest.fixture(scope="module")
def plain_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with running(tmp_path_factory.mktemp("plain"), "--ephemeral", "--nodes", "1") as up:
        wait_until(lambda: up.ask("GET", "/api/v1/namespaces/default/serviceaccounts/default").code == 200)
        yield up


ROOT = Path(__file__).parents[2]
PAGE_BYTES_MAX = 300 * 1024
OWN = sorted(path for path in STATIC.iterdir() if path.suffix in (".html", ".css", ".js"))


def test_the_whole_page_is_small() -> None:
    assert sum(len(asset.body) for asset in assets().values()) <= PAGE_BYTES_MAX


def test_vendored_modules_are_those_of_the_manifest() -> None:
    checked = subprocess.run([sys.executable, "tools/vendor_console.py", "--check"], cwd=ROOT, capture_output=True)
    assert checked.returncode == 0, checked.stdout.decode()


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_no_file_loads_from_elsewhere_or_writes_html(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"https?://", text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", text)
    assert not re.search(r"<script>|<style|\son[a-z]+=\"", text), "the policy forbids inline scripts and styles"


@pytest.mark.parametrize("path", sorted(STATIC.rglob("*.js")), ids=lambda path: path.name)
def test_imports_are_files(path: Path) -> None:
    for name in re.findall(r"""\b(?:from|import)\s*["']([^"']+)["']""", path.read_text(encoding="utf-8")):
        assert (path.parent / name).is_file(), name
