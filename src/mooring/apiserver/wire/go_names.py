"""What Go calls the types of fields: kube-apiserver's error texts say so.

Comes in   a type of the schema, and where it stands
Goes out   `[]v1.Container`, `map[string]string`, `v1.ResourceList`

 1. The schema has the names of scalars and structs. What it does not need for anything else stands here: names that Go
    gives to maps, lists and keys, and texts that are `types.UID`.
"""

from __future__ import annotations

from mooring.api.schema.model import Basic, Field, ListOf, MapOf, Scalar, Struct, Type

_RESOURCE_LIST = "v1.ResourceList"
_UID = "types.UID"

_BY_FIELD = {
    ("core", "NodeAllocatableResourceClaimStatus", "resources"): "map[v1.ResourceName]resource.Quantity",
    (
        "core",
        "PersistentVolumeClaimStatus",
        "allocatedResourceStatuses",
    ): "map[v1.ResourceName]v1.ClaimResourceStatus",
    ("authentication", "UserInfo", "extra"): "map[string]v1.ExtraValue",
    ("authorization", "SubjectAccessReviewSpec", "extra"): "map[string]v1.ExtraValue",
    ("batch", "UncountedTerminatedPods", "succeeded"): "[]types.UID",
    ("batch", "UncountedTerminatedPods", "failed"): "[]types.UID",
    ("resource", "CapacityRequirements", "requests"): "map[v1.QualifiedName]resource.Quantity",
    ("resource", "Device", "attributes"): "map[v1.QualifiedName]v1.DeviceAttribute",
    ("resource", "Device", "capacity"): "map[v1.QualifiedName]v1.DeviceCapacity",
    (
        "resource",
        "Device",
        "nodeAllocatableResourceMappings",
    ): "map[v1.ResourceName]v1.NodeAllocatableResourceMapping",
    ("resource", "DeviceRequestAllocationResult", "shareID"): _UID,
    ("resource", "DeviceRequestAllocationResult", "consumedCapacity"): "map[v1.QualifiedName]resource.Quantity",
    ("apiextensions", "JSONSchemaProps", "enum"): "[]v1.JSON",
    ("apiextensions", "JSONSchemaProps", "dependencies"): "v1.JSONSchemaDependencies",
    ("apiextensions", "JSONSchemaProps", "definitions"): "v1.JSONSchemaDefinitions",
    ("apiextensions", "JSONSchemaProps", "x-kubernetes-validations"): "v1.ValidationRules",
}


def go_name_of_field(struct: Struct, field: Field) -> str:
    """The Go type of a field, without the star of a pointer."""
    special = _BY_FIELD.get((struct.package, struct.name, field.name))
    if special is not None:
        return special
    if field.name == "uid" and go_name(field.type) == "string":
        return _UID
    if _is_quantities(field.type) and struct.package in ("core", "node"):
        return _RESOURCE_LIST
    return go_name(field.type)


def go_name_of_item(container: str, item: Type) -> str:
    """The Go type of what is in a list or a map, given the name of the whole."""
    if container.startswith("[]"):
        return container[2:]
    if container.startswith("map["):
        return container.partition("]")[2]
    return go_name(item)


def go_name(kind: Type) -> str:
    """The Go type, as far as the schema tells."""
    match kind:
        case Scalar():
            return "interface {}" if kind.basic is Basic.ANY else kind.go_name
        case ListOf():
            return f"[]{go_name(kind.item)}"
        case MapOf():
            return f"map[string]{go_name(kind.value)}"
        case Struct():
            return f"v1.{kind.name}"


def _is_quantities(kind: Type) -> bool:
    return isinstance(kind, MapOf) and isinstance(kind.value, Scalar) and kind.value.basic is Basic.QUANTITY
