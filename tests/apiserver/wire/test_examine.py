from __future__ import annotations

from typing import Any

import pytest

from mooring.api import kinds
from mooring.api.schema.types import struct_named
from mooring.apiserver.call import Call, FieldValidation
from mooring.apiserver.wire.examine import (
    STRICT_ERRORS_MAX,
    DecodingError,
    apply_field_validation,
    examine,
    examine_unstructured,
    go_name_of_field,
    go_name_of_item,
    repeated_fields,
    warnings,
)
from mooring.apiserver.wire.json_text import parse_carefully
from mooring.serving.users import User


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
def test_go_name_of_field_is_the_name_in_messages_of_go(field: str, name: str) -> None:
    package, struct_name, field_name = field.split(".")
    struct = struct_named(package, struct_name)
    assert go_name_of_field(struct, struct.fields[field_name]) == name


@pytest.mark.parametrize(
    ("container", "name"),
    [("[]types.UID", "types.UID"), ("map[v1.QualifiedName]resource.Quantity", "resource.Quantity")],
)
def test_go_name_of_item_comes_from_its_list_or_map(container: str, name: str) -> None:
    item = struct_named("core", "Pod")
    assert go_name_of_item(container, item) == name
    assert go_name_of_item("v1.Named", item) == "v1.Pod"


CANNOT = "json: cannot unmarshal"


def pod(**spec: Any) -> Any:
    return {"spec": spec}


def container(**fields: Any) -> Any:
    return pod(containers=[fields])


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        ({"metadata": "x"}, f"{CANNOT} string into Go struct field Pod.metadata of type v1.ObjectMeta"),
        ({"metadata": {"uid": 5}}, f"{CANNOT} number into Go struct field ObjectMeta.metadata.uid of type types.UID"),
        (
            {"metadata": {"labels": []}},
            f"{CANNOT} array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
        ),
        (
            {"metadata": {"labels": {"a": True}}},
            f"{CANNOT} bool into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            {"metadata": {"ownerReferences": ["x"]}},
            f"{CANNOT} string into Go struct field ObjectMeta.metadata.ownerReferences of type v1.OwnerReference",
        ),
        (pod(containers={}), f"{CANNOT} object into Go struct field PodSpec.spec.containers of type []v1.Container"),
        (
            pod(volumes=[{"emptyDir": {"medium": 1}}]),
            f"{CANNOT} number into Go struct field EmptyDirVolumeSource.spec.volumes.VolumeSource.emptyDir.medium"
            " of type v1.StorageMedium",
        ),
        (
            container(resources={"requests": "x"}),
            f"{CANNOT} string into Go struct field ResourceRequirements.spec.containers.resources.requests"
            " of type v1.ResourceList",
        ),
        (
            container(livenessProbe={"httpGet": {"port": 1.5}}),
            f"{CANNOT} number 1.5 into Go struct field HTTPGetAction.spec.containers.livenessProbe.ProbeHandler"
            ".httpGet.port of type int32",
        ),
        (
            pod(priority=3000000000),
            f"{CANNOT} number 3000000000 into Go struct field PodSpec.spec.priority of type int32",
        ),
        (
            {"metadata": {"creationTimestamp": 5}},
            f"{CANNOT} number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
        ),
        (
            pod(restartPolicy=5),
            f"{CANNOT} number into Go struct field PodSpec.spec.restartPolicy of type v1.RestartPolicy",
        ),
        ([], f"{CANNOT} array into Go value of type v1.Pod"),
    ],
    ids=lambda value: repr(value)[:50],
)
def test_the_error_of_a_wrong_type_has_its_path(raw: Any, error: str) -> None:
    with pytest.raises(DecodingError) as raised:
        examine(struct_named("core", "Pod"), raw)
    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        pytest.param(
            {"metadata": {"name": 5, "generation": "x"}},
            f"{CANNOT} number into Go struct field ObjectMeta.metadata.name of type string",
            id="the first wrong type is reported",
        ),
        pytest.param(
            {"metadata": {"name": 5, "creationTimestamp": "x"}},
            'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
            id="an error of a custom decoder wins",
        ),
        pytest.param(
            {"frob": 1, "data": {"a": 1}},
            f"{CANNOT} number into Go struct field ConfigMap.data of type string",
            id="a wrong type wins over unknown fields",
        ),
        pytest.param(
            {"binaryData": {"a": "!"}, "immutable": "x"},
            "illegal base64 data at input byte 0",
            id="a base64 error wins over a wrong type",
        ),
    ],
)
def test_of_several_errors_the_one_that_go_reports_is_raised(raw: Any, error: str) -> None:
    with pytest.raises(DecodingError) as raised:
        examine(struct_named("core", "ConfigMap"), raw)
    assert str(raised.value) == error


def test_errors_quote_numbers_as_written() -> None:
    raw = parse_carefully(b'{"metadata":{"generation":1.0e2}}')
    with pytest.raises(DecodingError, match=r"cannot unmarshal number 1\.0e2 into Go struct field"):
        examine(struct_named("core", "ConfigMap"), raw)


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        pytest.param(
            '{"kind":"a","kind":"b","metadata":{"foo":1,"foo":2,"labels":{"x":"1","x":"2","x":"3"}},"data":null,"data":{}}',
            [
                'duplicate field "kind"',
                'unknown field "metadata.foo"',
                'duplicate field "metadata.labels.x"',
                'duplicate field "data"',
            ],
            id="in the order of the text, each once",
        ),
        pytest.param(
            '{"metadata":{"ownerReferences":[{},{"z":1}]},"q.r":1,"a\\"b":2,"\\u0001":3}',
            [
                'unknown field "metadata.ownerReferences[1].z"',
                'unknown field "q.r"',
                'unknown field "a\\"b"',
                'unknown field "\\x01"',
            ],
            id="with indices, and quoted",
        ),
        pytest.param('{"Data":{}}', ['unknown field "Data"'], id="case matters"),
        pytest.param('{"metadata":{"managedFields":[{"fieldsV1":{"a":1,"a":2}}]}}', [], id="raw JSON is not examined"),
    ],
)
def test_unknown_and_repeated_fields_are_strict_errors(text: str, errors: list[str]) -> None:
    assert examine(struct_named("core", "ConfigMap"), parse_carefully(text.encode())) == errors


def test_the_number_of_strict_errors_is_limited() -> None:
    raw = {f"f{index}": 1 for index in range(STRICT_ERRORS_MAX + 5)}
    assert len(examine(struct_named("core", "ConfigMap"), raw)) == STRICT_ERRORS_MAX


def test_strict_errors_begin_with_the_given_path() -> None:
    assert examine(struct_named("meta", "ObjectMeta"), {"foo": 1}, "metadata") == ['unknown field "metadata.foo"']


def test_repeated_fields_are_found_without_a_schema() -> None:
    raw = parse_carefully(b'{"spec":{"size":1,"size":2,"l":[{"a":1,"a":1}]},"spec":{}}')
    assert repeated_fields(raw) == [
        'duplicate field "spec.size"',
        'duplicate field "spec.l[0].a"',
        'duplicate field "spec"',
    ]


def schema(**fields: Any) -> Any:
    return {"spec": {"versions": [{"schema": {"openAPIV3Schema": fields}}]}}


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (
            schema(items={"externalDocs": {"url": 5}}),
            f"{CANNOT} number into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.items"
            ".externalDocs.url of type string",
        ),
        (schema(additionalProperties=5), "boolean or JSON schema expected"),
        (
            schema(dependencies={"a": [5]}),
            f"{CANNOT} number into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.dependencies"
            " of type string",
        ),
    ],
    ids=["a schema in items", "neither schema nor bool", "a number among names"],
)
def test_errors_in_nested_json_schemas_have_the_messages_of_go(raw: Any, error: str) -> None:
    with pytest.raises(DecodingError) as raised:
        examine(struct_named("apiextensions", "CustomResourceDefinition"), raw)
    assert str(raised.value) == error


ERRORS = ['unknown field "a"', 'duplicate field "b"']


@pytest.mark.parametrize(
    ("validation", "raised", "warned"),
    [
        (FieldValidation.IGNORE, None, []),
        (FieldValidation.WARN, None, ERRORS),
        (FieldValidation.STRICT, 'strict decoding error: unknown field "a", duplicate field "b"', []),
    ],
    ids=lambda value: getattr(value, "value", None),
)
def test_field_validation_modes(validation: FieldValidation, raised: str | None, warned: list[str]) -> None:
    call = Call("create", kinds.POD, User("somebody"), 0.0, "", field_validation=validation)
    assert apply_field_validation(ERRORS, call) == raised
    assert call.warnings == warned


def test_warnings_split_yaml_errors_into_lines() -> None:
    error = 'yaml: unmarshal errors:\n  line 3: key "a" already set in map\n  line 5: key "b" already set in map'
    assert warnings([error, "other"]) == [
        'line 3: key "a" already set in map',
        'line 5: key "b" already set in map',
        "other",
    ]


def examined(raw: Any) -> list[str]:
    return examine_unstructured(struct_named("apps", "Deployment"), raw)


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        ({"metadata": "x"}, "cannot restore struct from: string"),
        ({"metadata": {"labels": 1.5}}, "cannot restore map from float64"),
        ({"metadata": {"labels": {"x": 5}}}, "cannot convert int64 to string"),
        ({"metadata": {"labels": {"x": True}}}, "unrecognized type: string"),
        ({"metadata": {"uid": 5}}, "cannot convert int64 to types.UID"),
        ({"metadata": {"finalizers": {}}}, "cannot restore slice from map"),
        ({"metadata": {"creationTimestamp": 5}}, "json: cannot unmarshal number into Go value of type string"),
        ({"spec": {"replicas": "x"}}, "unrecognized type: int32"),
        ({"spec": {"replicas": 1.5}}, "cannot convert float64 to int32"),
        ({"spec": {"paused": "x"}}, "unrecognized type: bool"),
        (
            {"spec": {"strategy": {"rollingUpdate": {"maxSurge": 1.5}}}},
            "json: cannot unmarshal number 1.5 into Go value of type int32",
        ),
        (
            {"spec": {"template": {"spec": {"overhead": {"cpu": "x"}}}}},
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        ({"kind": 5}, "cannot convert int64 to string"),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_type_errors_of_unstructured_objects_have_no_path(raw: Any, error: str) -> None:
    with pytest.raises(DecodingError) as raised:
        examined(raw)
    assert str(raised.value) == error


def test_unknown_fields_of_unstructured_objects_are_sorted() -> None:
    raw = {"top": 1, "spec": {"template": {"spec": {"containers": [{"imag": 1}]}}, "frob": 1}, "kind": "Deployment"}
    assert examined(raw) == [
        'unknown field "spec.frob"',
        'unknown field "spec.template.spec.containers[0].imag"',
        'unknown field "top"',
    ]


def test_bytes_of_unstructured_objects_must_be_base64() -> None:
    with pytest.raises(DecodingError, match="error decoding from json: illegal base64 data at input byte 0"):
        examine_unstructured(struct_named("core", "Secret"), {"data": {"a": "!"}})
    assert examine_unstructured(struct_named("core", "Secret"), {"data": {"a": "YQ=="}}) == []


def test_unstructured_integral_floats_are_accepted_and_large_integers_overflow() -> None:
    raw = {"spec": {"replicas": 3_000_000_000, "minReadySeconds": 2.0}}
    assert examined(raw) == []
    assert raw["spec"] == {"replicas": -1_294_967_296, "minReadySeconds": 2}


@pytest.mark.parametrize("large", [1 << 64, -(1 << 70), 1e300])
def test_unstructured_numbers_beyond_64_bits_become_the_minimum(large: float) -> None:
    security = {"supplementalGroups": [large, 7.0]}
    raw = {"spec": {"activeDeadlineSeconds": large, "priority": large, "securityContext": security, "containers": []}}
    assert examine_unstructured(struct_named("core", "Pod"), raw) == []
    assert raw["spec"]["activeDeadlineSeconds"] == -(1 << 63)
    assert raw["spec"]["priority"] == 0
    assert security["supplementalGroups"] == [-(1 << 63), 7]
