"""ResourceClaims as stored, assumed or pending; their allocations as results; claims for extended resources."""

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
    ResourceClaim,
    ResourceClaimSpec,
    ResourceSlice,
)
from mooring.api.views.meta import NodeSelector, ObjectMeta, OwnerReference
from mooring.api.views.pod import Container, ResourceRequirements
from mooring.kit.clock import VirtualClock
from mooring.scheduler.cache.objects import ObjectStore
from mooring.scheduler.devices.allocator import Allocator, Deadline, allocation_of, only_on
from mooring.scheduler.devices.claims import (
    EXTENDED_RESOURCE_ANNOTATION,
    AllocatedState,
    ClaimTracker,
    DeviceClassResolver,
    UnknownClaimError,
    claim_for,
)
from mooring.scheduler.devices.pools import DeviceKinds, PooledSlice, view_of
from mooring.scheduler.devices.requests import AllocationRequest, DeviceAllocationError
from tests.api.builders import node_selector, term
from tests.builders import pod
from tests.device_builders import GPU, asking, claim, device, device_class, first_of, given, slice_of, wants

G0, G1 = (GPU, "n1", "gpu-0"), (GPU, "n1", "gpu-1")


class Setting:
    """A store with the book and the usage that follow from it."""

    def __init__(self, *claims: ResourceClaim) -> None:
        self.store: ObjectStore[ResourceClaim] = ObjectStore()
        for stored in claims:
            self.store.put(stored)
        self.allocated = AllocatedState()
        self.tracker = ClaimTracker(self.store, self.allocated)


PLAIN = claim("c", wants(), version="5")
ALLOCATED = claim("c", wants(), has=given("gpu-0"), version="6")


def test_allocations_of_claims_are_in_use_as_long_as_they_have_them() -> None:
    setting = Setting(ALLOCATED)
    assert setting.allocated.is_allocated(G0)
    setting.store.put(claim("c", wants(), version="7"))
    assert not setting.allocated.is_in_use(G0)
    setting.store.put(claim("c", wants(), has=given("gpu-1"), version="8"))
    assert setting.allocated.is_allocated(G1)
    setting.store.remove("default/c")
    assert not setting.allocated.is_in_use(G1)


def test_what_is_in_flight_is_in_use_until_it_has_landed() -> None:
    setting = Setting(PLAIN)
    setting.tracker.add_pending("uid-c", given("gpu-0"))
    assert setting.allocated.is_allocated(G0)
    assert setting.tracker.pending_allocation("uid-c") == given("gpu-0")
    assert setting.tracker.remove_pending("uid-c")
    assert not setting.allocated.is_in_use(G0)
    assert not setting.tracker.remove_pending("uid-c"), "there is nothing to land any more"


def test_a_flight_that_several_wait_for_lasts_until_the_last_of_them() -> None:
    setting = Setting(PLAIN)
    setting.tracker.add_pending("uid-c", given("gpu-0"))
    setting.tracker.add_pending("uid-c", given("gpu-0"))
    assert not setting.tracker.remove_pending("uid-c")
    assert setting.allocated.is_allocated(G0)
    assert setting.tracker.remove_pending("uid-c", for_all=True)
    assert not setting.allocated.is_in_use(G0)


def test_a_written_claim_is_used_before_the_watch_delivers_it() -> None:
    setting = Setting(PLAIN)
    setting.tracker.assume(ALLOCATED)
    assert setting.tracker.get("default/c") is ALLOCATED
    assert setting.allocated.is_allocated(G0)


@pytest.mark.parametrize(
    ("version", "is_believed"),
    [
        pytest.param("4", False, id="older"),
        pytest.param("6", False, id="just what was written"),
        pytest.param("10", True, id="newer, as a number"),
        pytest.param("x", True, id="a version that cannot be compared"),
    ],
)
def test_only_a_newer_version_from_the_watch_beats_what_is_assumed(version: str, is_believed: bool) -> None:
    setting = Setting(PLAIN)
    setting.tracker.assume(ALLOCATED)
    reported = claim("c", wants(), version=version)
    setting.store.put(reported)
    assert (setting.tracker.get("default/c") is reported) is is_believed
    assert setting.allocated.is_allocated(G0) is not is_believed


def test_an_assumption_can_be_taken_back() -> None:
    setting = Setting(PLAIN)
    setting.tracker.assume(ALLOCATED)
    setting.tracker.restore("default/c")
    assert setting.tracker.get("default/c") is PLAIN
    assert not setting.allocated.is_in_use(G0)


def test_an_unknown_or_newer_claim_is_not_assumed() -> None:
    with pytest.raises(UnknownClaimError, match='could not find ResourceClaim "default/c"'):
        Setting().tracker.assume(ALLOCATED)
    setting = Setting(claim("c", wants(), version="9"))
    setting.tracker.assume(ALLOCATED)
    assert not setting.allocated.is_in_use(G0)


def test_listeners_are_called_after_every_change() -> None:
    setting = Setting(PLAIN)
    heard: list[str] = []
    setting.tracker.listen(heard.append)
    setting.tracker.assume(ALLOCATED)
    setting.store.remove("default/c")
    assert heard == ["default/c", "default/c"]


def test_the_claim_for_extended_resources_is_found_by_its_pod() -> None:
    owner = OwnerReference(api_version="v1", kind="Pod", name="p", uid="p-1", controller=True)
    metadata = ObjectMeta(
        name="p-extended",
        namespace="default",
        annotations={EXTENDED_RESOURCE_ANNOTATION: "true"},
        owner_references=(owner,),
    )
    left = ResourceClaim(metadata=metadata)
    setting = Setting(left)
    assert setting.tracker.for_extended_resources("p", "p-1") is left
    assert setting.tracker.for_extended_resources("p", "p-2") is None
    assert setting.tracker.for_extended_resources("q", "p-1") is None
    setting.store.remove(left.key)
    assert setting.tracker.for_extended_resources("p", "p-1") is None


G0, G1 = (GPU, "n1", "gpu-0"), (GPU, "n1", "gpu-1")


def test_shares_and_administrators() -> None:
    allocated = AllocatedState()
    share = given("gpu-0", share="s", consumes={"memory": "2Gi"})
    allocated.add(share)
    allocated.add(given("gpu-1", admin=True))
    assert (allocated.is_allocated(G0), allocated.is_in_use(G0), allocated.is_in_use(G1)) == (False, True, False)
    assert allocated.consumed[G0] == {"memory": 2 * 2**30 * 10**9}
    allocated.add(share)
    assert allocated.consumed[G0] == {"memory": 4 * 2**30 * 10**9}
    allocated.remove(share)
    allocated.remove(share)
    assert not allocated.is_in_use(G0)
    assert G0 not in allocated.consumed


def test_a_device_that_two_claims_have_is_free_when_both_have_given_it_back() -> None:
    allocated = AllocatedState()
    allocated.add(given("gpu-0"))
    allocated.add(given("gpu-0"))
    allocated.remove(given("gpu-0"))
    assert allocated.is_allocated(G0)
    allocated.remove(given("gpu-0"))
    assert not allocated.is_allocated(G0)


def test_pools_in_which_something_changed_are_reported() -> None:
    allocated = AllocatedState()
    allocated.add(given("gpu-0", pool="n1"))
    allocated.add(given("gpu-0", pool="n2", admin=True))
    assert allocated.changed_pools == {(GPU, "n1")}


def settings(text: str) -> OpaqueDeviceConfiguration:
    return OpaqueDeviceConfiguration(driver="gpu.example.com", parameters={"mode": text})


def allocated(spec: ResourceClaimSpec, published: ResourceSlice, *classes: DeviceClass) -> AllocationResult:
    store: ObjectStore[DeviceClass] = ObjectStore()
    for device_class_ in classes or (device_class(),):
        store.put(device_class_)
    pooled = PooledSlice(published, DeviceKinds())
    matching = (True,) * len(pooled.devices) if pooled.selects_per_device else None
    pool = view_of(pooled.pool_id, [pooled], {pooled.name: matching})
    wanted = AllocationRequest([spec], store)
    assert pool is not None
    found = Allocator([pool], AllocatedState(), wanted, Deadline(VirtualClock(), 10.0)).run()
    assert found is not None
    return allocation_of(spec, wanted.claims[0], found.alternatives[0], found.claims[0], "n1", lambda: "share-1")


def test_the_fields_of_a_result() -> None:
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
    assert [(result.request, result.admin_access, result.share_id) for result in results] == [("r/y", None, None)]


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
    reported = [(config.source, config.requests, config.opaque) for config in found.devices.config]
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
    for device_class_ in classes:
        store.put(device_class_)
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
def test_the_class_of_a_resource(classes: list[DeviceClass], behind: str | None) -> None:
    assert name_behind(DeviceClassResolver(store_of(*classes)), GPUS) == behind


def test_every_class_provides_a_resource_of_its_own_name() -> None:
    store = store_of(device_class("a", resource=GPUS))
    classes = DeviceClassResolver(store)
    assert name_behind(classes, "deviceclass.resource.kubernetes.io/a") == "a"
    store.put(device_class("a", resource="example.com/other"))
    assert name_behind(classes, GPUS) is None
    assert name_behind(classes, "example.com/other") == "a"
    store.remove("a")
    assert not classes


def test_device_backed_requests_of_a_pod() -> None:
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
def test_the_claim_for_extended_resources(
    init: list[Container], containers: list[Container], requests: dict[str, int], mappings: list[str]
) -> None:
    classes = DeviceClassResolver(store_of(device_class("gpu", resource=GPUS)))
    claim = claim_for(pod(init=init, containers=containers), [GPUS], classes)
    asked = [(request.name, request.exactly) for request in claim.spec.devices.requests]
    assert {name: exactly.count for name, exactly in asked if exactly is not None} == requests
    assert {exactly.device_class_name for _, exactly in asked if exactly is not None} == {"gpu"}
    assert [f"{mapping.container_name}: {mapping.request_name[10]}" for mapping in claim.mappings] == mappings
    assert {mapping.resource_name for mapping in claim.mappings} == {GPUS}


def test_a_fraction_of_a_device_is_nothing() -> None:
    classes = DeviceClassResolver(store_of(device_class("gpu", resource=GPUS)))
    assert claim_for(pod(others={GPUS: "500m"}), [GPUS], classes).spec.devices.requests == ()
