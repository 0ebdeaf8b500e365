"""Builders that speak of devices: what drivers publish, what claims ask for, and pods with claims.

gpus("n1", 4)                                        a slice with gpu-0 … gpu-3, for one node
slice_of(device("big", memory="80Gi", model="h"), node="n1")
device_class("gpu")                                  of the driver gpu.example.com; further expressions may follow
claim("c", wants("gpu", count=2), same="model")      a claim, with a constraint
claiming("p", "c")                                   a pod with claims that it names
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from mooring.api.views.devices import (
    AllocationResult,
    CapacityRequestPolicy,
    CapacityRequirements,
    CELDeviceSelector,
    Counter,
    CounterSet,
    Device,
    DeviceAllocationResult,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceConstraint,
    DeviceCounterConsumption,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from mooring.api.views.meta import NodeSelector, ObjectMeta, OwnerReference, RawQuantity
from mooring.api.views.pod import Pod, PodResourceClaim, PodResourceClaimStatus
from mooring.scheduler.devices.allocator import only_on
from tests.builders import pod

GPU = "gpu.example.com"


def device(
    name: str,
    *,
    memory: RawQuantity | None = None,
    policy: CapacityRequestPolicy | None = None,
    shared: bool | None = None,
    taints: Sequence[str] = (),
    consumes: Mapping[str, RawQuantity] | None = None,
    from_set: str = "card",
    ready_when: Sequence[str] = (),
    fails_when: Sequence[str] = (),
    on: str | None = None,
    everywhere: bool | None = None,
    reached: NodeSelector | None = None,
    binds: bool = False,
    has: Mapping[str, str | int | bool] | None = None,
    **attributes: str | int | bool,
) -> Device:
    """A device. `consumes` are counters; taints are written "key=value:Effect"."""
    return Device(
        name=name,
        attributes={key: attribute(value) for key, value in {**attributes, **(has or {})}.items()},
        capacity={"memory": DeviceCapacity(value=memory, request_policy=policy)} if memory is not None else {},
        allow_multiple_allocations=shared,
        taints=tuple(_taint(text) for text in taints),
        consumes_counters=(DeviceCounterConsumption(counter_set=from_set, counters=_counters(consumes)),)
        if consumes is not None
        else (),
        binding_conditions=tuple(ready_when),
        binding_failure_conditions=tuple(fails_when),
        node_name=on,
        all_nodes=everywhere,
        node_selector=reached,
        binds_to_node=binds,
    )


def attribute(value: str | int | bool) -> DeviceAttribute:
    if isinstance(value, bool):
        return DeviceAttribute(bool_value=value)
    return DeviceAttribute(int_value=value) if isinstance(value, int) else DeviceAttribute(string=value)


def slice_of(
    *devices: Device,
    name: str = "",
    node: str | None = None,
    pool: str = "",
    driver: str = GPU,
    generation: int = 1,
    of: int = 1,
    everywhere: bool | None = None,
    reached: NodeSelector | None = None,
    per_device: bool | None = None,
    counters: Mapping[str, RawQuantity] | None = None,
    counter_set: str = "card",
) -> ResourceSlice:
    """A slice; its pool is called as its node, unless said otherwise."""
    pool = pool or node or "pool"
    sets = (CounterSet(name=counter_set, counters=_counters(counters)),) if counters is not None else ()
    return ResourceSlice(
        metadata=ObjectMeta(name=name or f"{pool}-{driver}"),
        spec=ResourceSliceSpec(
            driver=driver,
            pool=ResourcePool(name=pool, generation=generation, resource_slice_count=of),
            node_name=node,
            all_nodes=everywhere,
            node_selector=reached,
            per_device_node_selection=per_device,
            devices=devices,
            shared_counters=sets,
        ),
    )


def gpus(node: str, count: int, **attributes: str | int | bool) -> ResourceSlice:
    return slice_of(*(device(f"gpu-{number}", has=attributes) for number in range(count)), node=node)


def device_class(name: str = "gpu", *expressions: str, resource: str | None = None, created: str = "") -> DeviceClass:
    return DeviceClass(
        metadata=ObjectMeta(name=name, creation_timestamp=created or None),
        spec=DeviceClassSpec(
            selectors=selectors(f'device.driver == "{GPU}"', *expressions), extended_resource_name=resource
        ),
    )


def selectors(*expressions: str) -> tuple[DeviceSelector, ...]:
    return tuple(DeviceSelector(cel=CELDeviceSelector(expression=expression)) for expression in expressions)


def wants(
    of_class: str = "gpu",
    *expressions: str,
    name: str = "r",
    count: int = 1,
    every: bool = False,
    admin: bool | None = None,
    tolerates: Sequence[str] = (),
    capacity: Mapping[str, RawQuantity] | None = None,
) -> DeviceRequest:
    """A request for so many devices, or for every one."""
    exactly = ExactDeviceRequest(
        device_class_name=of_class,
        selectors=selectors(*expressions),
        allocation_mode="All" if every else "ExactCount",
        count=0 if every else count,
        admin_access=admin,
        tolerations=tuple(_toleration(text) for text in tolerates),
        capacity=CapacityRequirements(requests=capacity) if capacity is not None else None,
    )
    return DeviceRequest(name=name, exactly=exactly)


def first_of(*alternatives: DeviceRequest, name: str = "r") -> DeviceRequest:
    """A request with alternatives: each written as a request of its own."""
    return DeviceRequest(
        name=name,
        first_available=tuple(
            DeviceSubRequest(
                name=alternative.name,
                device_class_name=alternative.exactly.device_class_name,
                selectors=alternative.exactly.selectors,
                allocation_mode=alternative.exactly.allocation_mode,
                count=alternative.exactly.count,
                tolerations=alternative.exactly.tolerations,
                capacity=alternative.exactly.capacity,
            )
            for alternative in alternatives
            if alternative.exactly is not None
        ),
    )


def asking(*requests: DeviceRequest, same: str | None = None, distinct: str | None = None) -> ResourceClaimSpec:
    """What a claim asks for; attributes that must be the same, or must differ, without their domain."""
    constraints = []
    if same is not None:
        constraints.append(DeviceConstraint(match_attribute=f"{GPU}/{same}"))
    if distinct is not None:
        constraints.append(DeviceConstraint(distinct_attribute=f"{GPU}/{distinct}"))
    return ResourceClaimSpec(devices=DeviceClaim(requests=requests, constraints=tuple(constraints)))


def claim(
    name: str,
    *requests: DeviceRequest,
    same: str | None = None,
    distinct: str | None = None,
    has: AllocationResult | None = None,
    used_by: Sequence[str] = (),
    owner: str | None = None,
    version: str = "",
    deleted: bool = False,
) -> ResourceClaim:
    """A claim in the namespace `default`; `used_by` and `owner` are uids of pods."""
    owners = (OwnerReference(api_version="v1", kind="Pod", name=owner, uid=owner, controller=True),) if owner else ()
    return ResourceClaim(
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            uid=f"uid-{name}",
            resource_version=version,
            owner_references=owners,
            deletion_timestamp="2026-01-01T00:00:00Z" if deleted else None,
        ),
        spec=asking(*requests, same=same, distinct=distinct),
        status=ResourceClaimStatus(
            allocation=has,
            reserved_for=tuple(ResourceClaimConsumerReference(resource="pods", name=uid, uid=uid) for uid in used_by),
        ),
    )


def given(
    *devices: str,
    pool: str = "n1",
    node: str | None = None,
    request: str = "r",
    admin: bool | None = None,
    share: str | None = None,
    consumes: Mapping[str, RawQuantity] | None = None,
    ready_when: Sequence[str] = (),
    fails_when: Sequence[str] = (),
    since: str | None = None,
) -> AllocationResult:
    """An allocation of these devices of a pool; `node`: it can be reached from there only."""
    return AllocationResult(
        devices=DeviceAllocationResult(
            results=tuple(
                DeviceRequestAllocationResult(
                    request=request,
                    driver=GPU,
                    pool=pool,
                    device=name,
                    admin_access=admin,
                    share_id=share,
                    consumed_capacity=consumes or {},
                    binding_conditions=tuple(ready_when),
                    binding_failure_conditions=tuple(fails_when),
                )
                for name in devices
            )
        ),
        node_selector=only_on(node) if node is not None else None,
        allocation_timestamp=since,
    )


def claiming(name: str, *claims: str, uid: str = "", **details: object) -> Pod:
    """A pod that names its claims."""
    view = pod(name, uid=uid or name, **details)  # type: ignore[arg-type]
    uses = tuple(PodResourceClaim(name=each, resource_claim_name=each) for each in claims)
    return replace(view, spec=replace(view.spec, resource_claims=uses))


def claiming_by_template(name: str, made: str | None, *, is_made: bool = True) -> Pod:
    """A pod with one claim from a template; `made` is the claim's name, None if it needs none."""
    view = pod(name, uid=name)
    statuses = (PodResourceClaimStatus(name="gpu", resource_claim_name=made),) if is_made else ()
    return replace(
        view,
        spec=replace(view.spec, resource_claims=(PodResourceClaim(name="gpu", resource_claim_template_name="t"),)),
        status=replace(view.status, resource_claim_statuses=statuses),
    )


def _counters(amounts: Mapping[str, RawQuantity] | None) -> dict[str, Counter]:
    return {name: Counter(value=value) for name, value in (amounts or {}).items()}


def _taint(text: str) -> DeviceTaint:
    start, _, effect = text.partition(":")
    key, _, value = start.partition("=")
    return DeviceTaint(key=key, value=value, effect=effect)


def _toleration(text: str) -> DeviceToleration:
    """ "key=value:Effect", "key:Effect" (any value), "*" (everything)."""
    if text == "*":
        return DeviceToleration(operator="Exists")
    start, _, effect = text.partition(":")
    key, equals, value = start.partition("=")
    return DeviceToleration(key=key, operator="Equal" if equals else "Exists", value=value, effect=effect)
