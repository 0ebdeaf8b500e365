"""Allocations, as the API server is notified of them."""

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
from mooring.kit.clock import VirtualClock
from mooring.scheduler.cache.objects import ObjectStore
from mooring.scheduler.devices.allocator import Allocator, Deadline
from mooring.scheduler.devices.claims import AllocatedState
from mooring.scheduler.devices.pools import DeviceKinds, PooledSlice, view_of
from mooring.scheduler.devices.requests import AllocationRequest, DeviceAllocationError
from mooring.scheduler.devices.results import allocation_of, only_on
from tests.api.builders import node_selector, term
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
