"""Views of dynamic resource allocation: `ResourceSlice`, `ResourceClaim`, `ResourceClaimTemplate`, `DeviceClass`.

1. Opaque driver configuration is not decoded: it is copied from the class or the claim to the allocation, for the
   kubelet.
"""

from collections.abc import Mapping
from typing import ClassVar

from msgspec import field

from mooring.api.views.meta import (
    NO_METADATA,
    ApiObject,
    Condition,
    Int64,
    NodeSelector,
    ObjectMeta,
    ObjectWithRaw,
    RawQuantity,
    Timestamp,
    View,
)

# --- resource slices --------------------------------------------------------------------------------------------


class DeviceAttribute(View):
    """Exactly one of these is set. The names differ from the API's where those are Python's own (`int`, `bool`)."""

    int_value: Int64 | None = field(default=None, name="int")
    bool_value: bool | None = field(default=None, name="bool")
    string: str | None = None
    version: str | None = None


class CapacityRequestPolicyRange(View):
    min: RawQuantity | None = None
    max: RawQuantity | None = None
    step: RawQuantity | None = None


class CapacityRequestPolicy(View):
    default: RawQuantity | None = None
    valid_values: tuple[RawQuantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(View):
    value: RawQuantity = 0
    request_policy: CapacityRequestPolicy | None = None


class Counter(View):
    value: RawQuantity = 0


class CounterSet(View):
    name: str = ""
    counters: Mapping[str, Counter] = field(default_factory=dict)


class DeviceCounterConsumption(View):
    counter_set: str = ""
    counters: Mapping[str, Counter] = field(default_factory=dict)


class DeviceTaint(View):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: Timestamp | None = None


class Device(View):
    name: str = ""
    attributes: Mapping[str, DeviceAttribute] = field(default_factory=dict)
    capacity: Mapping[str, DeviceCapacity] = field(default_factory=dict)
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None


class ResourcePool(View):
    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class ResourceSliceSpec(View):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(ApiObject):
    api_version: ClassVar[str] = "resource.k8s.io/v1"
    kind: ClassVar[str] = "ResourceSlice"

    spec: ResourceSliceSpec = ResourceSliceSpec()


# --- requests ---------------------------------------------------------------------------------------------------


class CELDeviceSelector(View):
    expression: str = ""


class DeviceSelector(View):
    cel: CELDeviceSelector | None = None


class DeviceToleration(View):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class CapacityRequirements(View):
    requests: Mapping[str, RawQuantity] = field(default_factory=dict)


class ExactDeviceRequest(View):
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(View):
    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceRequest(View):
    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(View):
    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class OpaqueDeviceConfiguration(View):
    """Parameters that only the driver interprets."""

    driver: str = ""
    parameters: object = None


class DeviceClaimConfiguration(View):
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(View):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(View):
    devices: DeviceClaim = DeviceClaim()


class ResourceClaimTemplateSpec(View):
    metadata: ObjectMeta = NO_METADATA
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(ObjectWithRaw):
    api_version: ClassVar[str] = "resource.k8s.io/v1"
    kind: ClassVar[str] = "ResourceClaimTemplate"

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class DeviceClassConfiguration(View):
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(View):
    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(ApiObject):
    api_version: ClassVar[str] = "resource.k8s.io/v1"
    kind: ClassVar[str] = "DeviceClass"

    spec: DeviceClassSpec = DeviceClassSpec()


# --- what was handed out ----------------------------------------------------------------------------------------


class DeviceRequestAllocationResult(View):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = field(default=None, name="shareID")
    consumed_capacity: Mapping[str, RawQuantity] = field(default_factory=dict)


class DeviceAllocationConfiguration(View):
    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(View):
    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(View):
    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: Timestamp | None = None


class ResourceClaimConsumerReference(View):
    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(View):
    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = field(default=None, name="shareID")
    conditions: tuple[Condition, ...] = ()


class ResourceClaimStatus(View):
    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(ObjectWithRaw):
    api_version: ClassVar[str] = "resource.k8s.io/v1"
    kind: ClassVar[str] = "ResourceClaim"

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()
