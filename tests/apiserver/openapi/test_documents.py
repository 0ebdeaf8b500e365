from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from mooring.api import kinds
from mooring.api.document import Document
from mooring.api.kinds import STATUS, Kind
from mooring.apiserver.discovery import BINDING, Discovery
from mooring.apiserver.openapi.documents import OpenApi, custom_list_schema, custom_schema, schema_name
from mooring.apiserver.openapi.operations import OpenApiOperation, camel, resource_paths, tag, virtual_path
from mooring.apiserver.openapi.schemas import V2, V3
from mooring.apiserver.resources import Resource, ResourceTable, built_in_resources
from mooring.apiserver.strategy import Strategy

KIND = Kind("example.com/v1", "Widget", "widgets")


def widget(color: str) -> Resource:
    schema = {"type": "object", "properties": {color: {"type": "string"}}}
    return Resource(KIND, Strategy(KIND), None, subresources={"status": STATUS}, schema=schema)


def fresh() -> tuple[ResourceTable, OpenApi]:
    table = ResourceTable(built_in_resources())
    return table, OpenApi(table, Discovery(table))


@cache
def shared() -> OpenApi:
    return fresh()[1]


def v3(name: str) -> dict[str, Any]:
    written = shared().v3(name)
    assert written is not None
    found = json.loads(written.body)
    assert isinstance(found, dict)
    return found


def test_the_index_has_a_hash_for_every_document() -> None:
    paths = shared().index()["paths"]
    written = shared().v3("apis/apps/v1")
    assert written is not None
    assert paths["apis/apps/v1"] == {"serverRelativeURL": f"/openapi/v3/apis/apps/v1?hash={written.digest}"}
    assert {"api", "api/v1", "apis", "apis/apps", "apis/authorization.k8s.io/v1", "version"} <= set(paths)


@pytest.mark.parametrize("name", ["apis/nope/v1", "apis/apps/v2", "api/v2", "nope", ""])
def test_an_unknown_openapi_v3_document_is_none(name: str) -> None:
    assert shared().v3(name) is None


def test_every_schema_referenced_in_openapi_v3_exists() -> None:
    for name in shared().index()["paths"]:
        text = json.dumps(v3(name))
        schemas = v3(name)["components"]["schemas"]
        expected = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}
        assert expected <= set(schemas), name


def test_the_openapi_v2_document_contains_everything_it_references() -> None:
    document = json.loads(shared().v2().body)
    assert document["swagger"] == "2.0"
    text = json.dumps(document)
    for prefix, section in (("#/definitions/", "definitions"), ("#/parameters/", "parameters")):
        expected = {part.partition('"')[0] for part in text.split(prefix)[1:]}
        assert expected <= set(document[section])
    patch = document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert patch["x-kubernetes-action"] == "patch"
    assert patch["x-kubernetes-group-version-kind"] == {"group": "", "kind": "Pod", "version": "v1"}
    assert {"$ref": "#/parameters/fieldValidation"} in patch["parameters"]


def test_operations_in_openapi_v3() -> None:
    item = v3("api/v1")["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]
    assert [parameter["name"] for parameter in item["parameters"]] == ["name", "namespace", "pretty"]
    patch = item["patch"]
    assert sorted(patch["requestBody"]["content"]) == [
        "application/apply-patch+yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    ]
    assert {"name": "force", "in": "query", "schema": {"type": "boolean", "uniqueItems": True}} in patch["parameters"]
    assert list(patch["responses"]) == ["200", "201", "401"]
    get = item["get"]["responses"]["200"]["content"]["application/json"]
    assert get == {"schema": {"$ref": "#/components/schemas/io.k8s.api.core.v1.Pod"}}


def test_documents_follow_added_changed_and_removed_custom_kinds() -> None:
    table, openapi = fresh()
    apps = openapi.v3("apis/apps/v1")
    assert openapi.v3("apis/example.com/v1") is None
    blue = widget("blue")
    table.add(blue)
    first = openapi.v3("apis/example.com/v1")
    assert first is not None
    assert b'"blue"' in first.body
    assert "com.example.v1.Widget" in json.loads(openapi.v2().body)["definitions"]
    table.add(widget("red"))
    changed = openapi.v3("apis/example.com/v1")
    assert changed is not None
    assert b'"red"' in changed.body
    assert changed.digest != first.digest
    table.remove(blue)
    assert openapi.v3("apis/example.com/v1") is None
    assert openapi.v3("apis/apps/v1") is apps  # documents of other groups stay cached


def test_the_document_of_a_custom_kind_has_its_paths_and_patch_types() -> None:
    table, openapi = fresh()
    table.add(widget("blue"))
    written = openapi.v3("apis/example.com/v1")
    assert written is not None
    document = json.loads(written.body)
    assert list(document["paths"]) == [
        "/apis/example.com/v1/namespaces/{namespace}/widgets",
        "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}",
        "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}/status",
        "/apis/example.com/v1/widgets",
    ]
    patch = document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]
    assert "apis/example.com" not in openapi.index()["paths"]


CUSTOM_KIND = Kind("stable.example.com/v1", "Widget", "widgets")
RESOURCE = Resource(
    CUSTOM_KIND, Strategy(CUSTOM_KIND), None, selectable_fields=frozenset({"spec.color", "metadata.name"})
)
META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def spec_of(schema: Document) -> Document:
    return {"type": "object", "properties": {"spec": schema}}


@pytest.mark.parametrize(
    ("given", "of_v3", "of_v2"),
    [
        pytest.param(
            {"type": "integer", "default": 3, "minimum": 1},
            {"type": "integer", "default": 3, "minimum": 1},
            {"type": "integer", "minimum": 1},
            id="a default",
        ),
        pytest.param(
            {"x-kubernetes-int-or-string": True},
            {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            {"x-kubernetes-int-or-string": True},
            id="int or string",
        ),
        pytest.param({"type": "string", "nullable": True}, {"type": "string", "nullable": True}, {}, id="nullable"),
        pytest.param(
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {"type": "string"}}},
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {"type": "string"}}},
            {"x-kubernetes-preserve-unknown-fields": True},
            id="unknown fields are preserved",
        ),
        pytest.param(
            {"type": "object", "oneOf": [{"required": ["p"]}], "properties": {"p": {"type": "string"}}},
            {"type": "object", "oneOf": [{"required": ["p"]}], "properties": {"p": {"type": "string"}}},
            {"type": "object", "properties": {"p": {"type": "string"}}},
            id="one of several",
        ),
        pytest.param(
            {"type": "object", "required": ["n", "m"], "properties": {"n": {"type": "string", "nullable": True}}},
            {"type": "object", "required": ["n", "m"], "properties": {"n": {"type": "string", "nullable": True}}},
            {"type": "object", "required": ["m"], "properties": {"n": {}}},
            id="required and nullable",
        ),
        pytest.param(
            {"type": "array", "items": {"type": "integer", "default": 1}},
            {"type": "array", "items": {"type": "integer", "default": 1}},
            {"type": "array", "items": {"type": "integer"}},
            id="a list",
        ),
    ],
)
def test_custom_schemas_are_converted_for_each_openapi_version(
    given: Document, of_v3: Document, of_v2: Document
) -> None:
    for version, expected in ((V3, of_v3), (V2, of_v2)):
        assert custom_schema(RESOURCE, spec_of(given), version)["properties"]["spec"] == expected


def test_an_embedded_resource_has_the_fields_of_every_object() -> None:
    given = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    found = custom_schema(RESOURCE, spec_of(given), V3)["properties"]["spec"]
    assert list(found["properties"]) == ["apiVersion", "kind", "metadata"]
    assert found["required"] == ["kind", "apiVersion"]
    assert "properties" not in custom_schema(RESOURCE, spec_of(given), V2)["properties"]["spec"]


def test_a_custom_schema_gets_the_fields_of_every_object() -> None:
    schema = {"type": "object", "description": "theirs", "properties": {"spec": {"type": "object"}}}
    found = custom_schema(RESOURCE, schema, V3)
    assert found["description"] == "theirs"
    assert list(found["properties"]) == ["apiVersion", "kind", "metadata", "spec"]
    assert found["properties"]["metadata"] == {"allOf": [{"$ref": f"#/components/schemas/{META}"}]}
    assert found["x-kubernetes-group-version-kind"] == [
        {"group": "stable.example.com", "kind": "Widget", "version": "v1"}
    ]
    assert found["x-kubernetes-selectable-fields"] == [{"fieldPath": "spec.color"}]
    assert schema == {"type": "object", "description": "theirs", "properties": {"spec": {"type": "object"}}}


def test_a_custom_kind_without_a_schema_is_an_object() -> None:
    assert custom_schema(RESOURCE, None, V2)["type"] == "object"
    assert "properties" not in custom_schema(RESOURCE, None, V2)
    keeps_everything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert "properties" not in custom_schema(RESOURCE, keeps_everything, V2)
    assert "metadata" in custom_schema(RESOURCE, keeps_everything, V3)["properties"]


def test_schema_names_and_list_schemas_of_custom_kinds() -> None:
    assert schema_name(RESOURCE, "Widget") == "com.example.stable.v1.Widget"
    items = custom_list_schema(RESOURCE, V2)["properties"]["items"]
    assert items == {"type": "array", "items": {"$ref": "#/definitions/com.example.stable.v1.Widget"}}


RESOURCES = {resource.kind: resource for resource in built_in_resources()}
PATHS = {path.path: path for resource in RESOURCES.values() for path in resource_paths(resource)}


def operation(path: str, method: str) -> OpenApiOperation:
    return next(each for each in PATHS[path].operations if each.method == method)


@pytest.mark.parametrize(
    ("api_version", "name", "expected_tag"),
    [
        ("v1", "CoreV1", "core_v1"),
        ("apps/v1", "AppsV1", "apps_v1"),
        ("rbac.authorization.k8s.io/v1", "RbacAuthorizationV1", "rbacAuthorization_v1"),
        ("tables.example.com/v1beta1", "TablesExampleComV1beta1", "tablesExampleCom_v1beta1"),
    ],
)
def test_operation_names_and_tags_contain_the_api_version(api_version: str, name: str, expected_tag: str) -> None:
    assert camel(api_version) == name
    assert tag(api_version) == expected_tag


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
def test_operations_have_the_action_and_name_of_kubernetes(path: str, method: str, action: str, name: str) -> None:
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
def test_delete_operations_return_a_status_or_the_object(path: str, kind: str) -> None:
    assert operation(path, "delete").answer.kind == kind


def test_patch_operations_have_the_parameters_that_kubectl_requires() -> None:
    assert operation(f"{DEPLOYMENTS}/{{name}}", "patch").parameters == (
        "dryRun",
        "fieldManager",
        "fieldValidation",
        "force",
    )


def test_namespaces_have_no_deletecollection_operation() -> None:
    methods = [each.method for each in PATHS["/api/v1/namespaces"].operations]
    assert methods == ["get", "post"]
    assert kinds.NAMESPACE in RESOURCES


def test_virtual_kinds_can_only_be_created() -> None:
    path = virtual_path(BINDING)
    assert path.path == "/api/v1/namespaces/{namespace}/bindings"
    assert [each.name for each in path.operations] == ["createCoreV1NamespacedBinding"]
