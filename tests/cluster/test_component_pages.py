"""The pages of the scheduler on the port of `mooring up`, in one process and in two, with authorization."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mooring.cluster.component_pages import SCHEDULER_PATHS
from tests.cluster.running import ADMIN_TOKEN, LIMITED_TOKEN, Up, running
from tests.waiting import wait_until

RBAC = "/apis/rbac.authorization.k8s.io/v1"


def create_pod(up: Up, name: str, cpu: str, namespace: str = "default") -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}
    assert up.ask("POST", f"/api/v1/namespaces/{namespace}/pods", body).code == 201


def shown(up: Up, path: str) -> Any:
    answer = up.ask("GET", path)
    return answer.document() if answer.code == 200 else None


@pytest.mark.parametrize("processes", ["1", "2"])
def test_the_scheduler_shows_its_decisions_its_queue_and_its_metrics(tmp_path: Path, processes: str) -> None:
    with running(tmp_path, "--ephemeral", "--nodes", "2", "--processes", processes) as up:
        create_pod(up, "small", "1")
        create_pod(up, "large", "99")

        def decided(pod: str, result: str) -> list[dict[str, Any]]:
            records = shown(up, f"/debug/decisions?pod=default/{pod}") or []
            return [record for record in records if record["result"] == result]

        (placed,) = wait_until(lambda: decided("small", "Success"), why=up.log)
        assert all(node["scores"]["NodeResourcesFit"] > 0 for node in placed.get("bestNodes", ()))
        rejection = {"plugin": "NodeResourcesFit", "reason": "Insufficient cpu", "nodes": 2}
        wait_until(lambda: any(rejection in each["rejections"] for each in decided("large", "Unschedulable")))

        (waiting,) = wait_until(lambda: shown(up, "/debug/queue?pod=default/large")["pods"])
        assert waiting["pod"] == "default/large"
        (near,) = shown(up, "/debug/queue?pod=default/large&nearest=1")["pods"]
        (nearest,) = near["nearestNodes"]
        assert nearest["obstacles"][0]["plugin"] == "NodeResourcesFit"
        assert up.ask("GET", "/debug/queue?pod=default/large&nearest=x").code == 400
        assert sorted(node["node"] for node in shown(up, "/debug/cache")["nodes"]) == ["node-0", "node-1"]
        wait_until(lambda: up.metric("scheduler_schedule_attempts_total") >= 2)
        assert up.metric("apiserver_request_total") > 0
        assert b'kube_pod_resource_request{namespace="default",' in up.ask("GET", "/metrics/resources").body
        assert {*SCHEDULER_PATHS} <= {*up.ask("GET", "/").document()["paths"]}
        assert up.ask("POST", "/debug/queue", {}).code == 405


@pytest.mark.parametrize("processes", ["1", "2"])
def test_the_scheduler_plans_without_changing_anything(tmp_path: Path, processes: str) -> None:
    with running(tmp_path, "--ephemeral", "--nodes", "2", "--processes", processes) as up:
        create_pod(up, "large", "99")
        nothing: dict[str, list[dict[str, Any]]] = {"pods": [{}]}
        wait_until(lambda: (shown(up, "/debug/queue?pod=default/large") or nothing)["pods"][0].get("rejectedBy"))
        pods = [
            {
                "metadata": {"name": f"p{number}", "namespace": "default"},
                "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "20"}}}]},
            }
            for number in range(3)
        ]
        answers = [up.ask("POST", "/plan", {"question": "place", "pods": pods}) for _ in range(2)]
        assert [answer.code for answer in answers] == [200, 200]
        assert answers[0].body == answers[1].body
        result = answers[0].document()
        assert sorted(placement["node"] for placement in result["placements"]) == ["node-0", "node-1"]
        assert [each["reasons"] for each in result["pending"]] == [{"Insufficient cpu": 2}]
        fixes = up.ask("POST", "/plan", {"question": "fix", "podNames": ["default/large"]}).document()["fixes"]
        assert fixes[0]["changes"] == ["request 32 cpu instead of 99"]
        assert up.ask("POST", "/plan", {"question": "fix", "podNames": ["default/none"]}).code == 422
        assert up.ask("POST", "/plan", {"question": "guess"}).code == 422
        copies = up.ask("POST", "/plan", {"pods": pods[:1], "copies": [2]}).document()
        name = "default/p0"
        planned = [each["pod"] for each in (*copies["placements"], *copies["pending"])]
        assert sorted(planned) == [f"{name}-0", f"{name}-1"]
        for wrong in ([], [1, 1], [0], [20_000]):
            assert up.ask("POST", "/plan", {"pods": pods[:1], "copies": wrong}).code == (422 if wrong else 200), wrong
        assert up.ask("GET", "/plan").code == 405
        assert up.ask("POST", "/plan", {}, token=LIMITED_TOKEN).code == 403
        assert [node["requested"] for node in shown(up, "/debug/cache")["nodes"]] == [{}, {}]


PLANS = "/apis/mooring.dev/v1alpha1/plans"


def a_plan(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "mooring.dev/v1alpha1", "kind": "Plan", "metadata": {"name": "ask"}, "spec": spec}


def pod_of(name: str, cpu: str, namespace: str = "default") -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"containers": [container]}}


def without_empty_fields(value: Any) -> Any:
    if isinstance(value, dict):
        found = {name: without_empty_fields(each) for name, each in value.items()}
        return {name: each for name, each in found.items() if each not in (None, [], "")}
    return [without_empty_fields(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_plan_is_an_object_that_is_created_only(tmp_path: Path, processes: str) -> None:
    with running(tmp_path, "--ephemeral", "--nodes", "2", "--processes", processes) as up:
        wait_until(lambda: up.ask("POST", "/plan", {}).code == 200, why=up.log)
        listed = up.ask("GET", "/apis/mooring.dev/v1alpha1").document()["resources"]
        assert [(each["name"], each["verbs"]) for each in listed] == [("plans", ["create"])]
        assert "dev.mooring.v1alpha1.Plan" in up.ask("GET", "/openapi/v2").document()["definitions"]
        assert "apis/mooring.dev/v1alpha1" in up.ask("GET", "/openapi/v3").document()["paths"]

        asked: dict[str, Any] = {"question": "addNodes", "nodeTypes": [{"like": "node-0", "price": 2.5, "count": 1}]}
        created = up.ask("POST", PLANS, a_plan(**asked))
        assert created.code == 201
        plan = created.document()
        assert (plan["metadata"]["name"], plan["spec"]) == ("ask", asked)
        result = up.ask("POST", "/plan", asked).document()
        assert plan["status"] == without_empty_fields(result)
        assert plan["status"]["nodesToAdd"] == [{"type": "node-0", "count": 1, "price": 2.5}]

        shape = {"metadata": {"name": "large"}, "status": {"capacity": {"cpu": "99", "pods": "9"}}}
        larger = a_plan(question="addNodes", nodeTypes=[{"node": shape}], pods=[pod_of("x", "40")])
        assert up.ask("POST", PLANS, larger).document()["status"]["nodesToAdd"][0]["type"] == "large"

        limit = [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "20"}}}]
        pods: list[dict[str, Any]] = [
            {"metadata": {"name": name}, "spec": {"containers": limit}} for name in ("x", "y", "z")
        ]
        pods[2]["spec"]["priorityClassName"] = "system-node-critical"
        status = up.ask("POST", PLANS, a_plan(pods=pods)).document()["status"]
        assert [placement["pod"] for placement in status["placements"]] == ["default/z", "default/x"]  # by priority
        assert [each["reasons"] for each in status["pending"]] == [
            {"Insufficient cpu": 2}
        ]  # requests default to limits

        for spec, code in (
            ({"question": "guess"}, 422),
            ({"question": "removeNodes", "nodes": ["none"]}, 422),
            ({"pods": [{"metadata": {"name": "no-containers"}}]}, 422),
            ({"pods": [{"metadata": {"name": "p"}, "spec": {"containers": limit, "priorityClassName": "none"}}]}, 403),
        ):
            assert up.ask("POST", PLANS, a_plan(**spec)).code == code, spec
        assert up.ask("POST", f"{PLANS}?fieldValidation=Strict", a_plan(unknown=1)).code == 400
        assert up.ask("GET", PLANS).code == 405
        assert up.ask("GET", f"{PLANS}/ask").code == 404
        assert up.ask("POST", PLANS, a_plan(), token=LIMITED_TOKEN).code == 403


def test_pages_need_authorization(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--nodes", "1") as up:
        wait_until(lambda: shown(up, "/debug/queue"))
        for path in SCHEDULER_PATHS:
            method = "POST" if path.endswith("/plan") else "GET"
            assert up.ask(method, path, token="").code == 401, path
            assert up.ask(method, path, token=LIMITED_TOKEN).code == 403, path
        allow(up, "queue", [{"nonResourceURLs": ["/debug/queue"], "verbs": ["get"]}])
        wait_until(lambda: up.ask("GET", "/debug/queue", token=LIMITED_TOKEN).code == 200)
        assert up.ask("GET", "/debug/decisions", token=LIMITED_TOKEN).code == 403
        allow(up, "console", [{"nonResourceURLs": ["/console/*"], "verbs": ["get"]}])
        wait_until(lambda: up.ask("GET", "/console/data/overview", token=LIMITED_TOKEN).code == 200)
        for path in ("/console/data/plan", "/console/data/pods"):
            assert up.ask("POST", path, {}, token=LIMITED_TOKEN).code == 403, path


def allow(up: Up, name: str, rules: list[dict[str, Any]], namespace: str = "") -> None:
    """A role of the limited user: in one namespace, or everywhere."""
    kind, base = (
        ("Role", f"{RBAC}/namespaces/{namespace}/role") if namespace else ("ClusterRole", f"{RBAC}/clusterrole")
    )
    head = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name}}
    assert up.ask("POST", f"{base}s", {**head, "kind": kind, "rules": rules}).code == 201
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "limited"}]
    binding = {**head, "kind": f"{kind}Binding", "roleRef": role, "subjects": subjects}
    assert up.ask("POST", f"{base}bindings", binding).code == 201


@pytest.mark.parametrize("processes", ["1", "2"])
def test_names_in_other_namespaces_are_masked(tmp_path: Path, processes: str) -> None:
    with running(tmp_path, "--ephemeral", "--nodes", "2", "--processes", processes) as up:
        secret = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "secret"}}
        assert up.ask("POST", "/api/v1/namespaces", secret).code == 201
        create_pod(up, "large", "99")
        create_pod(up, "classified", "98", "secret")
        allow(up, "asks", [{"nonResourceURLs": ["/console/*", "/debug/*", "/plan"], "verbs": ["get", "post"]}])
        allow(up, "plans", [{"apiGroups": ["mooring.dev"], "resources": ["plans"], "verbs": ["create"]}])
        allow(up, "reads", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}], "default")

        def names(path: str, token: str, method: str = "GET", body: object = None) -> set[str]:
            answer = up.ask(method, path, body, token=token)
            return set(re.findall(r'"pod": ?"([^"]+)"', answer.body.decode())) if answer.code < 300 else set()

        both = {"default/large", "secret/classified"}
        wait_until(lambda: names("/debug/decisions", ADMIN_TOKEN) >= both, why=up.log)
        wait_until(lambda: "default/large" in names("/debug/queue", LIMITED_TOKEN), why=up.log)
        for path, method, body in (
            ("/debug/decisions", "GET", None),
            ("/debug/queue", "GET", None),
            ("/plan", "POST", {"question": "place"}),
            (PLANS, "POST", a_plan(question="place")),
            ("/console/data/queue", "GET", None),
            ("/console/data/plan", "POST", {"question": "place"}),
        ):
            assert names(path, LIMITED_TOKEN, method, body) == {"default/large", "hidden/1"}, path
            assert b"classified" not in up.ask(method, path, body, token=LIMITED_TOKEN).body
            assert names(path, ADMIN_TOKEN, method, body) == both
        assert up.ask("GET", "/debug/queue?pod=secret/classified", token=LIMITED_TOKEN).code == 403
        assert up.ask("GET", "/debug/queue?pod=default/large", token=LIMITED_TOKEN).code == 200
        assert up.ask("GET", "/debug/decisions?pod=secret/none", token=LIMITED_TOKEN).code == 403
        asked: tuple[tuple[dict[str, Any], bool], ...] = (
            ({"podNames": ["secret/classified"]}, True),
            ({"podNames": ["secret/none"]}, False),
            ({"pods": [pod_of("x", "1", "secret")]}, True),
        )
        for spec, is_known in asked:
            for path, body, code in (
                ("/plan", spec, 200),
                ("/console/data/plan", spec, 200),
                (PLANS, a_plan(**spec), 201),
            ):
                answer = up.ask("POST", path, body, token=LIMITED_TOKEN)
                assert answer.code == 403
                assert b"you cannot list pods in the namespace" in answer.body
                assert up.ask("POST", path, body).code == (code if is_known else 422)
        assert up.ask("POST", "/plan", {"podNames": ["default/large"]}, token=LIMITED_TOKEN).code == 200
        for path in ("explain", "manifest", "pod"):
            for pod, code in (("secret/classified", 403), ("default/large", 200)):
                assert up.ask("GET", f"/console/data/{path}?pod={pod}", token=LIMITED_TOKEN).code == code, (path, pod)
        for path in ("overview", "workloads", "fits?node=node-0"):
            answer = up.ask("GET", f"/console/data/{path}", token=LIMITED_TOKEN)
            assert answer.code == 200, path
            assert b"secret" not in answer.body, path
        for path in ("/console/data/queue?filter=", "/console/data/queue?filter=secret/c"):
            answer = up.ask("GET", path, token=LIMITED_TOKEN)
            assert answer.code == (403 if path.endswith("c") else 200), "the number of matches would tell a hidden name"
        for namespace, code in (("secret", 422), ("default", 200)):
            metadata = {"name": "x", "namespace": namespace}
            spec = {"containers": [{"name": "c", "image": "i"}]}
            manifest = json.dumps({"kind": "Pod", "metadata": metadata, "spec": spec})
            answer = up.ask("POST", "/console/data/pods", {"manifest": manifest}, token=LIMITED_TOKEN)
            assert answer.code == code, answer.body
            assert (b"you cannot list pods in the namespace secret" in answer.body) == (code == 422)


def test_without_a_scheduler_there_is_nothing_to_show(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--without", "scheduler,controllers,nodes") as up:
        assert up.ask("GET", "/debug/queue").code == 404
        assert up.ask("POST", PLANS, a_plan()).code == 404
        assert b"mooring.dev" not in up.ask("GET", "/apis").body + up.ask("GET", "/openapi/v3").body
        assert b"scheduler_" not in up.ask("GET", "/metrics").body
