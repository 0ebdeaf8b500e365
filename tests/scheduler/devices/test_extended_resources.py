"""Extended resources behind which a device class stands."""

from __future__ import annotations

import pytest

from mooring.api.views.devices import DeviceClass
from mooring.api.views.pod import Container, ResourceRequirements
from mooring.scheduler.cache.objects import ObjectStore
from mooring.scheduler.devices.extended_resources import DeviceClassResolver, claim_for
from tests.builders import pod
from tests.device_builders import device_class

GPUS = "example.com/gpu"


def store_of(*classes: DeviceClass) -> ObjectStore[DeviceClass]:
    store: ObjectStore[DeviceClass] = ObjectStore()
    for each in classes:
        store.put(each)
    return store


def name_behind(classes: DeviceClassResolver, resource: str) -> str | None:
    found = classes.get(resource)
    return found.metadata.name if found is not None else None


@pytest.mark.parametrize(
    ("classes", "behind"),
    [
        pytest.param([device_class("a")], None, id="no class says so"),
        pytest.param([device_class("a", resource=GPUS)], "a", id="the one that says so"),
        pytest.param(
            [device_class("a", resource=GPUS, created="2026-01-01T00:00:00Z"),
             device_class("b", resource=GPUS, created="2026-01-02T00:00:00Z")],
            "b",
            id="the newest of several",
        ),
        pytest.param(
            [device_class("b", resource=GPUS, created="2026-01-02T00:00:00Z"),
             device_class("a", resource=GPUS, created="2026-01-01T00:00:00Z")],
            "b",
            id="in whatever order they come",
        ),
        pytest.param([device_class("b", resource=GPUS), device_class("a", resource=GPUS)], "a", id="else by name"),
    ],
)  # fmt: skip
def test_which_class_stands_behind_a_resource(classes: list[DeviceClass], behind: str | None) -> None:
    assert name_behind(DeviceClassResolver(store_of(*classes)), GPUS) == behind


def test_every_class_stands_behind_a_resource_of_its_own_name() -> None:
    store = store_of(device_class("a", resource=GPUS))
    classes = DeviceClassResolver(store)
    assert name_behind(classes, "deviceclass.resource.kubernetes.io/a") == "a"
    store.put(device_class("a", resource="example.com/other"))
    assert name_behind(classes, GPUS) is None
    assert name_behind(classes, "example.com/other") == "a"
    store.remove("a")
    assert not classes


def test_which_requests_of_a_pod_concern_devices() -> None:
    classes = DeviceClassResolver(store_of(device_class("a", resource=GPUS)))
    assert classes.backed(pod(cpu=1, others={GPUS: 2, "example.com/disk": 1})) == {GPUS: 2, "example.com/disk": 1}
    assert classes.backed(pod(cpu=1, others={"example.com/disk": 1})) == {}
    assert classes.backed(pod(others={GPUS: 0})) == {}


def container(name: str, count: int | None, *, sidecar: bool = False) -> Container:
    requests = {"cpu": 1, GPUS: count} if count is not None else {"cpu": 1}
    policy = "Always" if sidecar else None
    return Container(name=name, resources=ResourceRequirements(requests=requests), restart_policy=policy)


@pytest.mark.parametrize(
    ("init", "containers", "requests", "mappings"),
    [
        pytest.param([], [container("a", 2)], {"container-0-request-1": 2}, ["a: 0"], id="one container"),
        pytest.param(
            [],
            [container("a", 1), container("b", None), container("c", 3)],
            {"container-0-request-1": 1, "container-2-request-1": 3},
            ["a: 0", "c: 2"],
            id="each its own",
        ),
        pytest.param(
            [container("i", 2)],
            [container("a", 3)],
            {"container-1-request-1": 3},
            ["a: 1", "i: 1"],
            id="an init container uses what comes later",
        ),
        pytest.param(
            [container("i", 5)],
            [container("a", 3)],
            {"container-0-request-1": 2, "container-1-request-1": 3},
            ["a: 1", "i: 1", "i: 0"],
            id="and what it lacks",
        ),
        pytest.param(
            [container("i", 2), container("j", 4)],
            [container("a", None)],
            {"container-1-request-1": 4},
            ["i: 1", "j: 1"],
            id="init containers run one after the other",
        ),
        pytest.param(
            [container("s", 1, sidecar=True), container("i", 1)],
            [container("a", None)],
            {"container-0-request-1": 1, "container-1-request-1": 1},
            ["s: 0", "i: 1"],
            id="a sidecar keeps what it has",
        ),
    ],
)
def test_the_claim_that_says_what_the_requests_say(
    init: list[Container], containers: list[Container], requests: dict[str, int], mappings: list[str]
) -> None:
    classes = DeviceClassResolver(store_of(device_class("gpu", resource=GPUS)))
    claim = claim_for(pod(init=init, containers=containers), [GPUS], classes)
    asked = [(each.name, each.exactly) for each in claim.spec.devices.requests]
    assert {name: exactly.count for name, exactly in asked if exactly is not None} == requests
    assert {exactly.device_class_name for _, exactly in asked if exactly is not None} == {"gpu"}
    assert [f"{each.container_name}: {each.request_name[10]}" for each in claim.mappings] == mappings
    assert {each.resource_name for each in claim.mappings} == {GPUS}


def test_a_fraction_of_a_device_is_nothing() -> None:
    classes = DeviceClassResolver(store_of(device_class("gpu", resource=GPUS)))
    assert claim_for(pod(others={GPUS: "500m"}), [GPUS], classes).spec.devices.requests == ()
