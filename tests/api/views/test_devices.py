"""Views of the kinds of dynamic resource allocation."""

from __future__ import annotations

import pytest

from mooring.api.decode import convert, convert_as
from mooring.api.views.devices import (
    AllocatedDeviceStatus,
    AllocationResult,
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    CapacityRequirements,
    CELDeviceSelector,
    Counter,
    CounterSet,
    Device,
    DeviceAllocationResult,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClaim,
    DeviceClaimConfiguration,
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
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from mooring.api.views.meta import NodeSelector

GROUP = {"apiVersion": "resource.k8s.io/v1"}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"int": 3}, DeviceAttribute(int_value=3)),
        ({"bool": False}, DeviceAttribute(bool_value=False)),
        ({"string": "a"}, DeviceAttribute(string="a")),
        ({"version": "1.2.3"}, DeviceAttribute(version="1.2.3")),
    ],
    ids=["int", "bool", "string", "version"],
)
def test_an_attribute_has_one_of_four_types(written: dict[str, object], read: DeviceAttribute) -> None:
    assert convert_as(DeviceAttribute, written) == read


def test_view_of_a_resource_slice() -> None:
    device = {
        "name": "gpu-0",
        "attributes": {"model": {"string": "a100"}},
        "capacity": {"memory": {"value": "40Gi", "requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi"}}}},
        "consumesCounters": [{"counterSet": "set", "counters": {"slots": {"value": "1"}}}],
        "taints": [{"key": "sick", "effect": "NoSchedule"}],
        "bindsToNode": True,
        "bindingConditions": ["ready"],
        "bindingFailureConditions": ["failed"],
        "allowMultipleAllocations": True,
        "allNodes": True,
    }
    written = {
        "driver": "d",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 2},
        "nodeName": "n1",
        "perDeviceNodeSelection": False,
        "devices": [device],
        "sharedCounters": [{"name": "set", "counters": {"slots": {"value": 4}}}],
    }
    assert convert({**GROUP, "kind": "ResourceSlice", "spec": written}) == ResourceSlice(
        spec=ResourceSliceSpec(
            driver="d",
            pool=ResourcePool(name="p", generation=1, resource_slice_count=2),
            node_name="n1",
            per_device_node_selection=False,
            devices=(
                Device(
                    name="gpu-0",
                    attributes={"model": DeviceAttribute(string="a100")},
                    capacity={
                        "memory": DeviceCapacity(
                            value="40Gi",
                            request_policy=CapacityRequestPolicy(
                                default="1Gi", valid_range=CapacityRequestPolicyRange(min="1Gi")
                            ),
                        )
                    },
                    consumes_counters=(
                        DeviceCounterConsumption(counter_set="set", counters={"slots": Counter(value="1")}),
                    ),
                    taints=(DeviceTaint(key="sick", effect="NoSchedule"),),
                    binds_to_node=True,
                    binding_conditions=("ready",),
                    binding_failure_conditions=("failed",),
                    allow_multiple_allocations=True,
                    all_nodes=True,
                ),
            ),
            shared_counters=(CounterSet(name="set", counters={"slots": Counter(value=4)}),),
        )
    )


def test_views_of_a_resource_claim_and_its_template() -> None:
    exactly = {
        "deviceClassName": "gpu",
        "selectors": [{"cel": {"expression": "true"}}],
        "allocationMode": "ExactCount",
        "count": 2,
        "adminAccess": True,
        "tolerations": [{"key": "sick", "operator": "Exists"}],
        "capacity": {"requests": {"memory": "1Gi"}},
    }
    written = {
        "devices": {
            "requests": [
                {"name": "r0", "exactly": exactly},
                {"name": "r1", "firstAvailable": [{"name": "s0", "deviceClassName": "nic", "count": 1}]},
            ],
            "constraints": [{"requests": ["r0"], "matchAttribute": "a"}, {"distinctAttribute": "b"}],
            "config": [{"opaque": {"driver": "d", "parameters": {"x": 1}}}],
        }
    }
    read = ResourceClaimSpec(
        devices=DeviceClaim(
            requests=(
                DeviceRequest(
                    name="r0",
                    exactly=ExactDeviceRequest(
                        device_class_name="gpu",
                        selectors=(DeviceSelector(cel=CELDeviceSelector(expression="true")),),
                        allocation_mode="ExactCount",
                        count=2,
                        admin_access=True,
                        tolerations=(DeviceToleration(key="sick", operator="Exists"),),
                        capacity=CapacityRequirements(requests={"memory": "1Gi"}),
                    ),
                ),
                DeviceRequest(
                    name="r1", first_available=(DeviceSubRequest(name="s0", device_class_name="nic", count=1),)
                ),
            ),
            constraints=(
                DeviceConstraint(requests=("r0",), match_attribute="a"),
                DeviceConstraint(distinct_attribute="b"),
            ),
            config=(DeviceClaimConfiguration(opaque=OpaqueDeviceConfiguration(driver="d", parameters={"x": 1})),),
        )
    )
    assert convert({**GROUP, "kind": "ResourceClaim", "spec": written}) == ResourceClaim(spec=read)
    template = convert({**GROUP, "kind": "ResourceClaimTemplate", "spec": {"spec": written}})
    assert template == ResourceClaimTemplate(spec=ResourceClaimTemplateSpec(spec=read))


def test_view_of_an_allocation() -> None:
    result = {
        "request": "r0",
        "driver": "d",
        "pool": "p",
        "device": "gpu-0",
        "shareID": "s",
        "consumedCapacity": {"memory": "1Gi"},
        "bindingConditions": ["ready"],
    }
    written = {
        "allocation": {
            "devices": {"results": [result]},
            "nodeSelector": {},
            "allocationTimestamp": "2024-06-12T22:21:21Z",
        },
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
        "devices": [{"driver": "d", "pool": "p", "device": "gpu-0", "conditions": []}],
    }
    assert convert({**GROUP, "kind": "ResourceClaim", "status": written}) == ResourceClaim(
        status=ResourceClaimStatus(
            allocation=AllocationResult(
                devices=DeviceAllocationResult(
                    results=(
                        DeviceRequestAllocationResult(
                            request="r0",
                            driver="d",
                            pool="p",
                            device="gpu-0",
                            share_id="s",
                            consumed_capacity={"memory": "1Gi"},
                            binding_conditions=("ready",),
                        ),
                    )
                ),
                node_selector=NodeSelector(),
                allocation_timestamp="2024-06-12T22:21:21Z",
            ),
            reserved_for=(ResourceClaimConsumerReference(resource="pods", name="p", uid="u"),),
            devices=(AllocatedDeviceStatus(driver="d", pool="p", device="gpu-0"),),
        )
    )


def test_view_of_a_device_class() -> None:
    written = {"selectors": [{"cel": {"expression": "true"}}], "extendedResourceName": "example.com/gpu"}
    assert convert({**GROUP, "kind": "DeviceClass", "spec": written}) == DeviceClass(
        spec=DeviceClassSpec(
            selectors=(DeviceSelector(cel=CELDeviceSelector(expression="true")),),
            extended_resource_name="example.com/gpu",
        )
    )
