"""The usage of resource quotas."""

from __future__ import annotations

from typing import Any

from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, POD, RESOURCE_QUOTA
from tests.api_servers import store_object
from tests.controllers.cluster_builders import WIDGET, definition
from tests.controllers.world import World, play


def quota(**parts: Any) -> Document:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": parts}


def pod(name: str = "p", *, phase: str = "Running", **spec: Any) -> Document:
    resources = {"requests": {"cpu": "250m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}}
    containers = [{"name": "c", "image": "a", "resources": resources}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": containers, **spec},
        "status": {"phase": phase},
    }


def config_map(name: str) -> Document:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


async def used(world: World) -> Document:
    status: Document = (await world.get(RESOURCE_QUOTA, "q"))["status"]
    return {name: status["used"][name] for name in sorted(status["used"])}


def test_a_quota_is_counted_and_counted_again_when_something_becomes_free() -> None:
    async def story(world: World) -> None:
        hard = {"pods": "5", "requests.cpu": "2", "limits.memory": "1Gi", "count/configmaps": "3", "unknown/x": "1"}
        await world.create(pod("one"), pod("two"), config_map("m"), quota(hard=hard))
        await world.settle()
        expected = {"count/configmaps": "1", "limits.memory": "256Mi", "pods": "2", "requests.cpu": "500m"}
        assert await used(world) == expected
        assert (await world.get(RESOURCE_QUOTA, "q"))["status"]["hard"] == hard
        await world.patch(POD, "one", {"status": {"phase": "Succeeded"}}, "status")
        await world.delete(CONFIG_MAP, "m")
        await world.settle()
        expected = {"count/configmaps": "0", "limits.memory": "128Mi", "pods": "1", "requests.cpu": "250m"}
        assert await used(world) == expected
        await world.create(pod("three"))
        await world.settle()
        assert (await used(world))["pods"] == "2", "the API server charges a new pod"
        await store_object(world.store, POD, "default", pod("four"))
        await world.settle()
        assert (await used(world))["pods"] == "2", "the controller does not count new pods at once"
        await world.settle(300)
        assert (await used(world))["pods"] == "3", "it counts all pods from time to time"

    play(story, controllers=["resourcequota-controller"])


def test_a_quota_with_a_scope_counts_those_in_it() -> None:
    async def story(world: World) -> None:
        hard = {"pods": "5", "count/configmaps": "3"}
        await world.create(pod("one", activeDeadlineSeconds=5), pod("two"), config_map("m"))
        await world.create(quota(hard=hard, scopes=["Terminating"]))
        await world.settle()
        assert await used(world) == {"count/configmaps": "0", "pods": "1"}

    play(story, controllers=["resourcequota-controller"])


def test_custom_resources_are_counted_once_their_kind_is_served() -> None:
    async def story(world: World) -> None:
        await world.create(quota(hard={"count/widgets.example.com": "5"}))
        await world.settle()
        assert (await world.get(RESOURCE_QUOTA, "q"))["status"].get("used", {}) == {}
        await world.create(definition())
        await world.settle()
        assert await used(world) == {"count/widgets.example.com": "0"}
        widget: Document = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
        await world.client.create(WIDGET, "default", widget)
        await world.settle()
        assert await used(world) == {"count/widgets.example.com": "1"}
        await world.delete(WIDGET, "w")
        await world.settle()
        assert await used(world) == {"count/widgets.example.com": "0"}

    play(story, controllers=["resourcequota-controller"])


def test_devices_count_under_the_extended_resource_that_their_class_stands_behind() -> None:
    async def story(world: World) -> None:
        request = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 3}}
        version = "resource.k8s.io/v1"
        device_class = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}
        claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}
        resources = {"requests": {"example.com/gpu": "2"}, "limits": {"example.com/gpu": "2"}}
        await world.create(
            {"apiVersion": version, "kind": "DeviceClass", **device_class},
            {"apiVersion": version, "kind": "ResourceClaim", **claim},
            pod(containers=[{"name": "c", "image": "a", "resources": resources}]),
            quota(hard={"requests.example.com/gpu": "9", "requests.deviceclass.resource.kubernetes.io/gpu": "9"}),
        )
        await world.settle()
        assert await used(world) == {
            "requests.deviceclass.resource.kubernetes.io/gpu": "3",
            "requests.example.com/gpu": "5",
        }

    play(story, controllers=["resourcequota-controller"])
