"""The official Python client, over TLS, with the kubeconfig that `mooring up` writes."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from mooring.api import kinds
from tests.cluster.running import LIMITED_TOKEN, WITHOUT_OTHERS, Up, running

# The client is only partly typed; use it as untyped.
client: Any = import_module("kubernetes.client")
config: Any = import_module("kubernetes.config")
dynamic: Any = import_module("kubernetes.dynamic")
watch: Any = import_module("kubernetes.watch")
ApiException: Any = client.ApiException

# The client does not close its connections.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

NAMESPACE = "harbour"
LABELS = {"app": "web"}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with running(tmp_path_factory.mktemp("client"), "--ephemeral", *WITHOUT_OTHERS) as started:
        yield started
        assert "Traceback" not in started.log()


@pytest.fixture(scope="module")
def api(up: Up) -> Iterator[Any]:
    with config.new_client_from_config(str(up.kubeconfig)) as made:
        client.CoreV1Api(made).create_namespace(
            client.V1Namespace(metadata=client.V1ObjectMeta(name=NAMESPACE, labels={"team": "red"}))
        )
        yield made


@pytest.fixture
def core(api: Any) -> Any:
    return client.CoreV1Api(api)


def pod(name: str, **labels: str) -> Any:
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name=name, labels=labels or LABELS),
        spec=client.V1PodSpec(containers=[client.V1Container(name="c", image="app:1")]),
    )


def shown(error: Any) -> tuple[int, str, str]:
    status = json.loads(error.body)
    return error.status, status["reason"], status["message"]


# ---------------------------------------------------------------------------------------------------- typed objects


def test_namespaces_are_read_patched_and_listed(core: Any) -> None:
    found = core.read_namespace(NAMESPACE)
    assert (found.status.phase, found.spec.finalizers) == ("Active", ["kubernetes"])
    core.patch_namespace(NAMESPACE, {"metadata": {"labels": {"team": None, "area": "north"}}})
    names = [item.metadata.name for item in core.list_namespace(label_selector="area=north").items]
    assert names == [NAMESPACE]


def test_deployments_and_their_subresources(api: Any) -> None:
    apps = client.AppsV1Api(api)
    template = client.V1PodTemplateSpec(metadata=client.V1ObjectMeta(labels=LABELS), spec=pod("x").spec)
    deployment = client.V1Deployment(
        metadata=client.V1ObjectMeta(name="web"),
        spec=client.V1DeploymentSpec(
            replicas=2, selector=client.V1LabelSelector(match_labels=LABELS), template=template
        ),
    )
    created = apps.create_namespaced_deployment(NAMESPACE, deployment)
    assert created.spec.strategy.rolling_update.max_surge == "25%"
    assert created.metadata.generation == 1
    scale = apps.read_namespaced_deployment_scale("web", NAMESPACE)
    assert (scale.spec.replicas, scale.status.selector) == (2, "app=web")
    scale.spec.replicas = 5
    assert apps.replace_namespaced_deployment_scale("web", NAMESPACE, scale).spec.replicas == 5
    apps.patch_namespaced_deployment_scale("web", NAMESPACE, {"spec": {"replicas": 4}})
    changed = apps.read_namespaced_deployment("web", NAMESPACE)
    assert (changed.spec.replicas, changed.metadata.generation) == (4, 3)
    changed.spec.template.spec.containers[0].image = "app:2"
    changed = apps.replace_namespaced_deployment("web", NAMESPACE, changed)
    assert changed.metadata.generation == 4
    changed.status = client.V1DeploymentStatus(observed_generation=4, replicas=4)
    assert apps.replace_namespaced_deployment_status("web", NAMESPACE, changed).status.replicas == 4
    gone = apps.delete_namespaced_deployment("web", NAMESPACE, propagation_policy="Background")
    assert (gone["status"], gone["details"]["name"]) == ("Success", "web")
    with pytest.raises(ApiException) as caught:
        apps.read_namespaced_deployment("web", NAMESPACE)
    assert shown(caught.value) == (404, "NotFound", 'deployments.apps "web" not found')


def test_pods_are_bound_once_and_eviction_respects_the_disruption_budget(api: Any, core: Any) -> None:
    core.create_node(client.V1Node(metadata=client.V1ObjectMeta(name="quay")))
    core.create_namespaced_pod(NAMESPACE, pod("bound", app="bound"))
    target = client.V1ObjectReference(kind="Node", name="quay")
    binding = client.V1Binding(metadata=client.V1ObjectMeta(name="bound"), target=target)
    core.create_namespaced_pod_binding("bound", NAMESPACE, binding, _preload_content=False)
    assert core.read_namespaced_pod("bound", NAMESPACE).spec.node_name == "quay"
    with pytest.raises(ApiException) as caught:
        core.create_namespaced_pod_binding("bound", NAMESPACE, binding, _preload_content=False)
    assert caught.value.status == 409
    with pytest.raises(ApiException) as caught:
        core.read_namespaced_pod_log("bound", NAMESPACE)
    assert caught.value.status >= 400
    core.patch_namespaced_pod_status("bound", NAMESPACE, {"status": {"phase": "Running"}})
    policy = client.PolicyV1Api(api)
    selector = client.V1LabelSelector(match_labels={"app": "bound"})
    budget = client.V1PodDisruptionBudget(
        metadata=client.V1ObjectMeta(name="budget"),
        spec=client.V1PodDisruptionBudgetSpec(min_available=1, selector=selector),
    )
    policy.create_namespaced_pod_disruption_budget(NAMESPACE, budget)
    policy.patch_namespaced_pod_disruption_budget_status(
        "budget", NAMESPACE, {"status": {"observedGeneration": 1, "disruptionsAllowed": 0, "expectedPods": 1}}
    )
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="bound"))
    with pytest.raises(ApiException) as caught:
        core.create_namespaced_pod_eviction("bound", NAMESPACE, eviction)
    assert shown(caught.value)[:2] == (429, "TooManyRequests")
    policy.delete_namespaced_pod_disruption_budget("budget", NAMESPACE)
    assert core.create_namespaced_pod_eviction("bound", NAMESPACE, eviction, _preload_content=False).status == 201


def test_a_lease_update_needs_the_latest_resource_version(api: Any) -> None:
    coordination = client.CoordinationV1Api(api)
    lease = client.V1Lease(
        metadata=client.V1ObjectMeta(name="leader"),
        spec=client.V1LeaseSpec(holder_identity="a", lease_duration_seconds=15),
    )
    old = coordination.create_namespaced_lease(NAMESPACE, lease)
    old.spec.holder_identity = "b"
    new = coordination.replace_namespaced_lease("leader", NAMESPACE, old)
    assert new.spec.holder_identity == "b"
    with pytest.raises(ApiException) as caught:
        coordination.replace_namespaced_lease("leader", NAMESPACE, old)
    code, reason, message = shown(caught.value)
    assert (code, reason) == (409, "Conflict")
    assert message.startswith(
        'Operation cannot be fulfilled on leases.coordination.k8s.io "leader": the object has been'
    )


def test_all_patch_types(core: Any) -> None:
    core.create_namespaced_config_map(
        NAMESPACE, client.V1ConfigMap(metadata=client.V1ObjectMeta(name="c"), data={"a": "1"})
    )
    core.patch_namespaced_config_map("c", NAMESPACE, [{"op": "add", "path": "/data/b", "value": "2"}])
    core.patch_namespaced_config_map("c", NAMESPACE, {"data": {"c": "3"}})
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"d": "4"}}
    core.patch_namespaced_config_map(
        "c", NAMESPACE, applied, field_manager="tests", _content_type="application/apply-patch+yaml"
    )
    assert core.read_namespaced_config_map("c", NAMESPACE).data == {"a": "1", "b": "2", "c": "3", "d": "4"}


# -------------------------------------------------------------------------------------------------- lists and watches


def test_lists_are_paginated(core: Any) -> None:
    for number in range(5):
        core.create_namespaced_secret(NAMESPACE, client.V1Secret(metadata=client.V1ObjectMeta(name=f"s{number}")))
    names: list[str] = []
    token = None
    while token != "":
        page = core.list_namespaced_secret(NAMESPACE, limit=2, _continue=token or "")
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue or ""
    assert names == [f"s{number}" for number in range(5)]


def test_a_watch_starts_at_a_resource_version_and_ends_at_its_timeout(core: Any) -> None:
    since = core.list_namespaced_pod(NAMESPACE).metadata.resource_version
    core.create_namespaced_pod(NAMESPACE, pod("seen", kind="watched"))
    core.patch_namespaced_pod("seen", NAMESPACE, {"metadata": {"labels": {"kind": "other"}}})
    events = watch.Watch().stream(
        core.list_namespaced_pod,
        NAMESPACE,
        label_selector="kind=watched",
        resource_version=since,
        timeout_seconds=1,
    )
    assert [(event["type"], event["object"].metadata.name) for event in events] == [
        ("ADDED", "seen"),
        ("DELETED", "seen"),
    ]


def test_a_watch_from_a_compacted_resource_version_is_410(core: Any, up: Up) -> None:
    up.ask("GET", "/api/v1/namespaces")
    with pytest.raises(ApiException) as caught:
        list(watch.Watch().stream(core.list_namespaced_pod, NAMESPACE, resource_version="1", timeout_seconds=1))
    assert (caught.value.status, "too old resource version" in caught.value.reason) == (410, True)


# ------------------------------------------------------------------------------------------------- custom and dynamic


def test_custom_objects_with_the_custom_objects_api_and_the_dynamic_client(api: Any, tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer", "maximum": 9}}}},
    }
    names = {"plural": "boats", "singular": "boat", "kind": "Boat"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    client.ApiextensionsV1Api(api).create_custom_resource_definition(definition)
    custom = client.CustomObjectsApi(api)
    boat = {"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "tug"}, "spec": {"size": 3}}
    made = custom.create_namespaced_custom_object("example.com", "v1", NAMESPACE, "boats", boat)
    assert made["metadata"]["generation"] == 1
    custom.patch_namespaced_custom_object("example.com", "v1", NAMESPACE, "boats", "tug", {"spec": {"size": 4}})
    with pytest.raises(ApiException) as caught:
        custom.patch_namespaced_custom_object("example.com", "v1", NAMESPACE, "boats", "tug", {"spec": {"size": 10}})
    assert shown(caught.value)[:2] == (422, "Invalid")
    found = dynamic_client(api, tmp_path).resources.get(api_version="example.com/v1", kind="Boat")
    assert found.get(name="tug", namespace=NAMESPACE).spec.size == 4
    assert [item.metadata.name for item in found.get(namespace=NAMESPACE).items] == ["tug"]
    custom.delete_namespaced_custom_object("example.com", "v1", NAMESPACE, "boats", "tug")


def dynamic_client(api: Any, directory: Path) -> Any:
    """By default the client keeps the discovery of a server by its port, in the folder for temporary files."""
    return dynamic.DynamicClient(api, cache_file=str(directory / "discovery.json"))


def test_the_dynamic_client_finds_every_built_in_kind(api: Any, tmp_path: Path) -> None:
    resources = dynamic_client(api, tmp_path).resources
    for kind in kinds.all_kinds():
        assert resources.get(api_version=kind.api_version, kind=kind.kind).name == kind.plural
    assert client.VersionApi(api).get_code().git_version.startswith("v1.36")


# ---------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("manifest", "code", "text"),
    [
        pytest.param({"metadata": {"name": "Bad_Name"}}, 422, 'Pod "Bad_Name" is invalid: ', id="a bad name"),
        pytest.param({"metadata": {}}, 422, 'Pod "" is invalid: ', id="no name"),
        pytest.param(
            {"metadata": {"name": "p"}, "spec": {"containers": []}}, 422, 'Pod "p" is invalid: spec', id="no containers"
        ),
        pytest.param(
            {"metadata": {"name": "p", "namespace": "x"}}, 400, "the namespace of the provided", id="another namespace"
        ),
    ],
)
def test_invalid_pods_are_rejected_with_a_message(core: Any, manifest: dict[str, Any], code: int, text: str) -> None:
    spec = {"containers": [{"name": "c", "image": "app:1"}]}
    with pytest.raises(ApiException) as caught:
        core.create_namespaced_pod(NAMESPACE, {"apiVersion": "v1", "kind": "Pod", "spec": spec, **manifest})
    assert caught.value.status == code
    assert shown(caught.value)[2].startswith(text)


def test_a_user_with_few_permissions_gets_403(up: Up, tmp_path: Path) -> None:
    settings = client.Configuration(host=up.url)
    authority = tmp_path / "ca.crt"
    cluster = yaml.safe_load(up.kubeconfig.read_text(encoding="utf-8"))["clusters"][0]["cluster"]
    authority.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    settings.ssl_ca_cert = str(authority)
    settings.api_key = {"authorization": f"Bearer {LIMITED_TOKEN}"}
    with client.ApiClient(settings) as api, pytest.raises(ApiException) as caught:
        client.CoreV1Api(api).list_node()
    assert shown(caught.value) == (
        403,
        "Forbidden",
        'nodes is forbidden: User "limited" cannot list resource "nodes" in API group "" at the cluster scope',
    )
