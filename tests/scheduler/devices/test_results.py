"""Allocations as results, and requests of extended resources that devices fulfil."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from mooring.api.views.devices import (
    AllocationResult,
    DeviceClaimConfiguration,
    DeviceClass,
    DeviceClassConfiguration,
    OpaqueDeviceConfiguration,
    ResourceClaimSpec,
    ResourceSlice,
)
from mooring.api.views.meta import NodeSelector
from mooring.api.views.pod import Container, ResourceRequirements
from mooring.kit.clock import VirtualClock
from mooring.scheduler.cache.objects import ObjectStore
from mooring.scheduler.devices.allocator import Allocator, Deadline, allocation_of, only_on
from mooring.scheduler.devices.claims import AllocatedState, DeviceClassResolver, claim_for
from mooring.scheduler.devices.pools import DeviceKinds, PooledSlice, view_of
from mooring.scheduler.devices.requests import AllocationRequest, DeviceAllocationError
from tests.api.builders import node_selector, term
from tests.builders import pod
from tests.device_builders import asking, device, device_class, first_of, slice_of, wants


def settings(text: str) -> OpaqueDeviceConfiguration:
    return OpaqueDeviceConfiguration(driver="gpu.example.com", parameters={"mode": text})


def allocated(spec: ResourceClaimSpec, published: ResourceSlice, *classes: DeviceClass) -> AllocationResult:
    store: ObjectStore[DeviceClass] = ObjectStore()
    for each in classes or (device_class(),):
        store.put(each)
    pooled = PooledSlice(published, DeviceKinds())
    matching = (True,) * len(pooled.devices) if pooled.selects_per_device else None
    pool = view_of(pooled.pool_id, [pooled], {pooled.name: matching})
    wanted = AllocationRequest([spec], store)
    assert pool is not None
    found = Allocator([pool], AllocatedState(), wanted, Deadline(VirtualClock(), 10.0)).run()
    assert found is not None
    return allocation_of(spec, wanted.claims[0], found.alternatives[0], found.claims[0], "n1", lambda: "share-1")


def test_a_result_says_what_the_kubelet_needs() -> None:
    published = slice_of(
        device("d", memory="8Gi", shared=True, taints=["sick:NoSchedule"], ready_when=["up"], fails_when=["down"]),
        node="n1",
    )
    spec = asking(wants(tolerates=["sick"], capacity={"memory": "2Gi"}))
    assert msgspec.to_builtins(allocated(spec, published).devices) == {
        "results": (
            {
                "request": "r",
                "driver": "gpu.example.com",
                "pool": "n1",
                "device": "d",
                "tolerations": ({"key": "sick", "operator": "Exists"},),
                "bindingConditions": ("up",),
                "bindingFailureConditions": ("down",),
                "shareID": "share-1",
                "consumedCapacity": {"memory": "2Gi"},
            },
        )
    }


def test_an_alternative_is_named_with_its_request() -> None:
    spec = asking(first_of(wants(name="x", count=2), wants(name="y")))
    results = allocated(spec, slice_of(device("d"), node="n1")).devices.results
    assert [(each.request, each.admin_access, each.share_id) for each in results] == [("r/y", None, None)]


def test_configuration_of_classes_comes_before_that_of_the_claim() -> None:
    configured = device_class()
    configured = replace(
        configured, spec=replace(configured.spec, config=(DeviceClassConfiguration(opaque=settings("class")),))
    )
    spec = asking(wants(name="a"), wants(name="b"), first_of(wants(name="x"), name="c"))
    spec = replace(
        spec,
        devices=replace(
            spec.devices,
            config=(
                DeviceClaimConfiguration(opaque=settings("all")),
                DeviceClaimConfiguration(requests=("b",), opaque=settings("b")),
                DeviceClaimConfiguration(requests=("c/x",), opaque=settings("x")),
                DeviceClaimConfiguration(requests=("c/y",), opaque=settings("y")),
            ),
        ),
    )
    found = allocated(spec, slice_of(*(device(f"d{number}") for number in range(3)), node="n1"), configured)
    reported = [(each.source, each.requests, each.opaque) for each in found.devices.config]
    assert reported == [
        ("FromClass", ("a", "b", "c/x"), settings("class")),
        ("FromClaim", (), settings("all")),
        ("FromClaim", ("b",), settings("b")),
        ("FromClaim", ("c/x",), settings("x")),
    ]


IN_ZONE_A = node_selector(term("zone In a"))


@pytest.mark.parametrize(
    ("published", "nodes"),
    [
        pytest.param(slice_of(device("d"), node="n1"), only_on("n1"), id="a device of one node"),
        pytest.param(slice_of(device("d"), everywhere=True), None, id="a device that all reach"),
        pytest.param(slice_of(device("d", binds=True), everywhere=True), only_on("n1"), id="that binds to its node"),
        pytest.param(slice_of(device("d"), reached=IN_ZONE_A), IN_ZONE_A, id="a device that some reach"),
        pytest.param(
            slice_of(device("d", reached=IN_ZONE_A), device("e", reached=IN_ZONE_A), per_device=True),
            IN_ZONE_A,
            id="two that say the same, each for itself",
        ),
        pytest.param(
            slice_of(device("d", on="n1"), device("e", everywhere=True), per_device=True),
            only_on("n1"),
            id="one of them of one node",
        ),
    ],
)
def test_where_the_devices_can_be_reached(published: ResourceSlice, nodes: NodeSelector | None) -> None:
    count = len(published.spec.devices)
    assert allocated(asking(wants(count=count)), published).node_selector == nodes


def test_a_selector_with_several_terms_cannot_be_added_up() -> None:
    published = slice_of(device("d"), reached=node_selector(term("zone In a"), term("zone In b")))
    with pytest.raises(DeviceAllocationError, match=r"unsupported ResourceSlice\.NodeSelector with 2 terms"):
        allocated(asking(wants()), published)


# --- Extended resources behind which a device class stands


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
    assert classes.device_backed_requests(pod(cpu=1, others={GPUS: 2, "example.com/disk": 1})) == {
        GPUS: 2,
        "example.com/disk": 1,
    }
    assert classes.device_backed_requests(pod(cpu=1, others={"example.com/disk": 1})) == {}
    assert classes.device_backed_requests(pod(others={GPUS: 0})) == {}


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
