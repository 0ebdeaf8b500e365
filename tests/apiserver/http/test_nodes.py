"""Permissions of a node's credentials on a running server."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from mooring.kit.loop import run_real
from tests.apiserver.http.served import ADMIN_HEADERS, Served, served

NODE_1 = {**ADMIN_HEADERS, "Impersonate-User": "system:node:n1", "Impersonate-Group": "system:nodes"}
CORE = "/api/v1"
WEB = f"{CORE}/namespaces/default"


async def send(api: Served, method: str, path: str, body: Any = None, *, as_node: bool = False) -> tuple[int, Any]:
    headers = NODE_1 if as_node else dict(ADMIN_HEADERS)
    if method == "PATCH":
        headers = {**headers, "Content-Type": "application/merge-patch+json"}
    async with api.session.request(method, api.url(path), json=body, headers=headers) as response:
        return response.status, await response.json()


def node(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def pod(name: str, node_name: str, secret: str) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "envFrom": [{"secretRef": {"name": secret}}]}
    return {"metadata": {"name": name}, "spec": {"nodeName": node_name, "containers": [container]}}


def secret(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "stringData": {"key": name}}


async def create_objects(api: Served) -> None:
    for path, body in (
        (f"{CORE}/nodes", node("n1")),
        (f"{CORE}/nodes", node("n2")),
        (f"{WEB}/secrets", secret("mine")),
        (f"{WEB}/secrets", secret("others")),
        (f"{WEB}/pods", pod("mine", "n1", "mine")),
        (f"{WEB}/pods", pod("others", "n2", "others")),
    ):
        code, answer = await send(api, "POST", path, body)
        assert code == 201, answer


def test_proxy_requests_to_a_node_without_a_kubelet_address_fail() -> None:
    async def scenario() -> None:
        async with served() as api:
            assert (await send(api, "POST", f"{CORE}/nodes", node("n1")))[0] == 201
            code, status = await send(api, "GET", f"{CORE}/nodes/n1/proxy/stats/summary")
            assert (code, status["message"]) == (400, "no preferred addresses found; known addresses: []")
            addresses = [{"type": "Hostname", "address": "n1"}]
            await send(api, "PATCH", f"{CORE}/nodes/n1/status", {"status": {"addresses": addresses}})
            api.api_server.logs = _HollowKubelets()
            code, status = await send(api, "GET", f"{CORE}/nodes/n1/proxy/stats/summary")
            assert (code, status["message"]) == (400, "lookup n1: no such host")

    run_real(scenario())


class _HollowKubelets:
    """Kubelets in this process: they serve logs, but have no port."""

    def has_node(self, name: str) -> bool:
        return name == "n1"

    async def logs(self, pod: Any, container: str, options: Any) -> AsyncGenerator[bytes, None]:
        raise AssertionError("the test requests no logs")


def run_with_objects(scenario: Any) -> None:
    async def with_server() -> None:
        async with served() as api:
            await create_objects(api)
            await scenario(api)

    run_real(with_server())


def test_a_node_reads_only_the_secrets_of_its_pods() -> None:
    async def scenario(api: Served) -> None:
        assert (await send(api, "GET", f"{WEB}/secrets/mine", as_node=True))[0] == 200
        code, answer = await send(api, "GET", f"{WEB}/secrets/others", as_node=True)
        assert (code, "no relationship found between node 'n1' and this object" in answer["message"]) == (403, True)
        assert (await send(api, "GET", f"{WEB}/pods/others", as_node=True))[0] == 403

    run_with_objects(scenario)


def test_permissions_of_a_node_follow_its_pods() -> None:
    async def scenario(api: Served) -> None:
        assert (await send(api, "GET", f"{WEB}/secrets/others", as_node=True))[0] == 403
        assert (await send(api, "POST", f"{WEB}/pods", pod("late", "n1", "others")))[0] == 201
        assert (await send(api, "GET", f"{WEB}/secrets/others", as_node=True))[0] == 200
        await send(api, "DELETE", f"{WEB}/pods/late?gracePeriodSeconds=0")
        assert (await send(api, "GET", f"{WEB}/secrets/others", as_node=True))[0] == 403

    run_with_objects(scenario)


def test_a_node_updates_only_its_own_node() -> None:
    async def scenario(api: Served) -> None:
        label = {"metadata": {"labels": {"team": "a"}}}
        assert (await send(api, "PATCH", f"{CORE}/nodes/n1", label, as_node=True))[0] == 200
        assert (await send(api, "PATCH", f"{CORE}/nodes/n2", label, as_node=True))[0] == 403
        assert (await send(api, "PATCH", f"{CORE}/nodes/n2/status", {"status": {}}, as_node=True))[0] == 403
        assert (await send(api, "POST", f"{CORE}/nodes", node("n3"), as_node=True))[0] == 403
        restricted = {"metadata": {"labels": {"node-restriction.kubernetes.io/a": "1"}}}
        assert (await send(api, "PATCH", f"{CORE}/nodes/n1", restricted, as_node=True))[0] == 403

    run_with_objects(scenario)


def test_a_node_updates_and_deletes_only_its_own_pods() -> None:
    async def scenario(api: Served) -> None:
        running = {"status": {"phase": "Running"}}
        assert (await send(api, "PATCH", f"{WEB}/pods/mine/status", running, as_node=True))[0] == 200
        assert (await send(api, "PATCH", f"{WEB}/pods/others/status", running, as_node=True))[0] == 403
        assert (await send(api, "POST", f"{WEB}/pods", pod("new", "n1", "mine"), as_node=True))[0] == 403
        assert (await send(api, "DELETE", f"{WEB}/pods/others", as_node=True))[0] == 403
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "others"}}
        assert (await send(api, "POST", f"{WEB}/pods/others/eviction", eviction, as_node=True))[0] == 403
        assert (await send(api, "DELETE", f"{WEB}/pods/mine", as_node=True))[0] == 200

    run_with_objects(scenario)


def test_a_subject_access_review_of_a_node_uses_the_node_graph() -> None:
    async def allowed(api: Served, name: str) -> bool:
        attributes = {"verb": "get", "resource": "secrets", "namespace": "default", "name": name}
        spec = {"user": "system:node:n1", "groups": ["system:nodes"], "resourceAttributes": attributes}
        code, review = await send(api, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
        assert code == 201
        return bool(review["status"]["allowed"])

    async def scenario(api: Served) -> None:
        assert await allowed(api, "mine")
        assert not await allowed(api, "others")

    run_with_objects(scenario)
