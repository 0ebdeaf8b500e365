from __future__ import annotations

from collections.abc import Callable

import pytest

from mooring.api.document import Document
from mooring.api.schema.types import struct_named
from mooring.apiserver.openapi.schemas import V2, V3, Schemas

CORE = "io.k8s.api.core.v1"
META = "io.k8s.apimachinery.pkg.apis.meta.v1"


def v3(name: str) -> Document:
    schemas = Schemas(V3, ("v1",))
    schemas.need(struct_named("core", name))
    return schemas.found[f"{CORE}.{name}"]


def v2(name: str) -> Document:
    schemas = Schemas(V2, ("v1",))
    schemas.need(struct_named("core", name))
    return schemas.found[f"{CORE}.{name}"]


def ref(name: str) -> Document:
    return {"$ref": f"#/components/schemas/{name}"}


@pytest.mark.parametrize(
    ("struct", "field", "expected"),
    [
        pytest.param("Container", "name", {"type": "string", "default": ""}, id="always written"),
        pytest.param("Container", "image", {"type": "string"}, id="left out when empty"),
        pytest.param(
            "Container",
            "imagePullPolicy",
            {"type": "string", "enum": ["Always", "IfNotPresent", "Never"]},
            id="an enum",
        ),
        pytest.param("Container", "livenessProbe", {"allOf": [ref(f"{CORE}.Probe")]}, id="a struct that may be absent"),
        pytest.param(
            "Container",
            "resources",
            {"default": {}, "allOf": [ref(f"{CORE}.ResourceRequirements")]},
            id="a struct that is always there",
        ),
        pytest.param(
            "Container",
            "ports",
            {
                "type": "array",
                "items": {"default": {}, "allOf": [ref(f"{CORE}.ContainerPort")]},
                "x-kubernetes-list-map-keys": ["containerPort", "protocol"],
                "x-kubernetes-list-type": "map",
                "x-kubernetes-patch-merge-key": "containerPort",
                "x-kubernetes-patch-strategy": "merge",
            },
            id="a list that is merged by keys",
        ),
        pytest.param(
            "ContainerPort",
            "protocol",
            {"type": "string", "default": "TCP", "enum": ["SCTP", "TCP", "UDP"]},
            id="a default of its own",
        ),
        pytest.param(
            "ResourceRequirements",
            "limits",
            {
                "type": "object",
                "additionalProperties": ref("io.k8s.apimachinery.pkg.api.resource.Quantity"),
            },
            id="a map of quantities",
        ),
        pytest.param(
            "Secret",
            "data",
            {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}},
            id="a map of bytes",
        ),
        pytest.param("Secret", "kind", {"type": "string"}, id="a field of every object"),
        pytest.param(
            "PodSpec",
            "nodeSelector",
            {
                "type": "object",
                "additionalProperties": {"type": "string", "default": ""},
                "x-kubernetes-map-type": "atomic",
            },
            id="a map that is written as a whole",
        ),
        pytest.param("HostPathVolumeSource", "path", {"type": "string", "default": ""}),
    ],
)
def test_field_schemas(struct: str, field: str, expected: Document) -> None:
    found = v3(struct)["properties"][field]
    found.pop("description", None)
    assert found == expected


def test_struct_schemas() -> None:
    pod = v3("Pod")
    assert pod["type"] == "object"
    assert list(pod["properties"]) == ["apiVersion", "kind", "metadata", "spec", "status"]
    assert pod["x-kubernetes-group-version-kind"] == [{"group": "", "kind": "Pod", "version": "v1"}]
    assert v3("Container")["required"] == ["name"]
    assert v3("ConfigMapKeySelector")["x-kubernetes-map-type"] == "atomic"
    assert v3("SeccompProfile")["x-kubernetes-unions"][0]["discriminator"] == "type"


@pytest.mark.parametrize("document", [v3, v2])
def test_structs_and_fields_have_descriptions(document: Callable[[str], Document]) -> None:
    pod = document("Pod")
    assert pod["description"].startswith("One or more containers")
    assert all(field["description"] for field in pod["properties"].values())
    spread = document("TopologySpreadConstraint")["properties"]
    assert all(field["description"] for field in spread.values())
    assert "allOf" in document("PodSpec")["properties"]["affinity"] or document is v2
    assert document("PodSpec")["properties"]["affinity"]["description"].startswith("Which nodes the pod needs")
    assert document("LimitRange")["properties"]["spec"]["description"] == "The desired state."


def test_an_enum_may_contain_the_empty_string() -> None:
    assert v3("HostPathVolumeSource")["properties"]["type"]["enum"][0] == ""


def test_openapi_v2_schemas_have_no_defaults_and_no_all_of() -> None:
    container = v2("Container")["properties"]
    about = "Unique in the pod."
    assert container["name"] == {"type": "string", "description": about}
    about = "What the container needs, and what it may use at most."
    assert container["resources"] == {"$ref": f"#/definitions/{CORE}.ResourceRequirements", "description": about}
    assert container["env"]["items"] == {"$ref": f"#/definitions/{CORE}.EnvVar"}


@pytest.mark.parametrize(
    ("name", "of_v3", "of_v2"),
    [
        (
            "io.k8s.apimachinery.pkg.api.resource.Quantity",
            {"oneOf": [{"type": "string"}, {"type": "number"}]},
            {"type": "string"},
        ),
        (
            "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
            {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
            {"type": "string", "format": "int-or-string"},
        ),
        (f"{META}.Time", {"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
    ],
)
def test_special_types_have_their_own_schemas(name: str, of_v3: Document, of_v2: Document) -> None:
    for version, expected in ((V3, of_v3), (V2, of_v2)):
        schemas = Schemas(version, ())
        schemas.need_special(name)
        assert schemas.found[name] == expected


def test_a_schema_includes_the_schemas_it_references() -> None:
    schemas = Schemas(V3, ())
    schemas.need_special(f"{META}.APIGroupList")
    assert set(schemas.found) == {
        f"{META}.{name}"
        for name in ("APIGroupList", "APIGroup", "GroupVersionForDiscovery", "ServerAddressByClientCIDR")
    }


def test_delete_options_list_every_group_of_the_document() -> None:
    schemas = Schemas(V3, ("apps/v1",))
    schemas.need(struct_named("meta", "DeleteOptions"))
    found = schemas.found[f"{META}.DeleteOptions"]["x-kubernetes-group-version-kind"]
    assert [each["group"] for each in found] == ["", "apps"]
