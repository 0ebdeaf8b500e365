from __future__ import annotations

import pytest

from mooring.api import kinds
from mooring.apiserver.discovery import BINDING
from mooring.apiserver.openapi.operations import OpenApiOperation, camel, resource_paths, tag, virtual_path
from mooring.apiserver.resources import built_in_resources

RESOURCES = {resource.kind: resource for resource in built_in_resources()}
PATHS = {path.path: path for resource in RESOURCES.values() for path in resource_paths(resource)}


def operation(path: str, method: str) -> OpenApiOperation:
    return next(each for each in PATHS[path].operations if each.method == method)


@pytest.mark.parametrize(
    ("api_version", "name", "drawer"),
    [
        ("v1", "CoreV1", "core_v1"),
        ("apps/v1", "AppsV1", "apps_v1"),
        ("rbac.authorization.k8s.io/v1", "RbacAuthorizationV1", "rbacAuthorization_v1"),
        ("tables.example.com/v1beta1", "TablesExampleComV1beta1", "tablesExampleCom_v1beta1"),
    ],
)
def test_how_operations_call_an_api_version(api_version: str, name: str, drawer: str) -> None:
    assert camel(api_version) == name
    assert tag(api_version) == drawer


DEPLOYMENTS = "/apis/apps/v1/namespaces/{namespace}/deployments"


@pytest.mark.parametrize(
    ("path", "method", "action", "name"),
    [
        ("/apis/apps/v1/deployments", "get", "list", "listAppsV1DeploymentForAllNamespaces"),
        (DEPLOYMENTS, "get", "list", "listAppsV1NamespacedDeployment"),
        (DEPLOYMENTS, "post", "post", "createAppsV1NamespacedDeployment"),
        (DEPLOYMENTS, "delete", "deletecollection", "deleteAppsV1CollectionNamespacedDeployment"),
        (f"{DEPLOYMENTS}/{{name}}", "get", "get", "readAppsV1NamespacedDeployment"),
        (f"{DEPLOYMENTS}/{{name}}", "put", "put", "replaceAppsV1NamespacedDeployment"),
        (f"{DEPLOYMENTS}/{{name}}", "patch", "patch", "patchAppsV1NamespacedDeployment"),
        (f"{DEPLOYMENTS}/{{name}}", "delete", "delete", "deleteAppsV1NamespacedDeployment"),
        (f"{DEPLOYMENTS}/{{name}}/scale", "get", "get", "readAppsV1NamespacedDeploymentScale"),
        ("/api/v1/nodes/{name}", "get", "get", "readCoreV1Node"),
        ("/api/v1/nodes/{name}/proxy/{path}", "head", "connect", "connectCoreV1HeadNodeProxyWithPath"),
        ("/api/v1/namespaces/{namespace}/pods/{name}/log", "get", "get", "readCoreV1NamespacedPodLog"),
        ("/api/v1/namespaces/{namespace}/pods/{name}/exec", "post", "connect", "connectCoreV1PostNamespacedPodExec"),
        ("/api/v1/namespaces/{namespace}/pods/{name}/eviction", "post", "post", "createCoreV1NamespacedPodEviction"),
        ("/api/v1/watch/nodes", "get", "watchlist", "watchCoreV1NodeList"),
        ("/api/v1/watch/namespaces/{namespace}/pods/{name}", "get", "watch", "watchCoreV1NamespacedPod"),
        ("/api/v1/namespaces/{name}/finalize", "put", "put", "replaceCoreV1NamespaceFinalize"),
    ],
)
def test_paths(path: str, method: str, action: str, name: str) -> None:
    found = operation(path, method)
    assert (found.action, found.name) == (action, name)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (f"{DEPLOYMENTS}/{{name}}", "Status"),
        ("/api/v1/namespaces/{namespace}/pods/{name}", "Pod"),
        ("/api/v1/namespaces/{name}", "Status"),
    ],
)
def test_what_deleting_answers_with(path: str, kind: str) -> None:
    assert operation(path, "delete").answer.kind == kind


def test_what_kubectl_looks_for() -> None:
    assert operation(f"{DEPLOYMENTS}/{{name}}", "patch").parameters == (
        "dryRun",
        "fieldManager",
        "fieldValidation",
        "force",
    )


def test_namespaces_are_not_deleted_by_the_dozen() -> None:
    methods = [each.method for each in PATHS["/api/v1/namespaces"].operations]
    assert methods == ["get", "post"]
    assert kinds.NAMESPACE in RESOURCES


def test_virtual_kinds_can_only_be_created() -> None:
    path = virtual_path(BINDING)
    assert path.path == "/api/v1/namespaces/{namespace}/bindings"
    assert [each.name for each in path.operations] == ["createCoreV1NamespacedBinding"]
