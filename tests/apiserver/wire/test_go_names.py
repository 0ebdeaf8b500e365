from __future__ import annotations

import pytest

from mooring.api.schema.tables import struct_named
from mooring.apiserver.wire.go_names import go_name_of_field, go_name_of_item


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("core.PodSpec.containers", "[]v1.Container"),
        ("core.PodSpec.nodeSelector", "map[string]string"),
        ("core.PodSpec.overhead", "v1.ResourceList"),
        ("core.ConfigMap.binaryData", "map[string][]uint8"),
        ("core.ObjectReference.uid", "types.UID"),
        ("node.Overhead.podFixed", "v1.ResourceList"),
        ("resource.Device.capacity", "map[v1.QualifiedName]v1.DeviceCapacity"),
        ("resource.DeviceRequestAllocationResult.shareID", "types.UID"),
        ("resource.AllocatedDeviceStatus.shareID", "string"),
        ("authentication.UserInfo.extra", "map[string]v1.ExtraValue"),
        ("apiextensions.JSONSchemaProps.default", "interface {}"),
    ],
)
def test_go_has_a_name_for_every_type(field: str, name: str) -> None:
    package, struct_name, field_name = field.split(".")
    struct = struct_named(package, struct_name)
    assert go_name_of_field(struct, struct.fields[field_name]) == name


@pytest.mark.parametrize(
    ("container", "name"),
    [("[]types.UID", "types.UID"), ("map[v1.QualifiedName]resource.Quantity", "resource.Quantity")],
)
def test_what_is_in_a_container_is_named_by_it(container: str, name: str) -> None:
    item = struct_named("core", "Pod")
    assert go_name_of_item(container, item) == name
    assert go_name_of_item("v1.Named", item) == "v1.Pod"
