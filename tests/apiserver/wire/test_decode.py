"""Request bodies become canonical documents, or errors with the messages of kube-apiserver; bodies of custom kinds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api import kinds
from mooring.api.kinds import CONFIG_MAP as CONFIG_MAP_KIND
from mooring.api.kinds import Kind
from mooring.api.schema.types import struct_named, struct_of_kind
from mooring.apiserver.call import Call, FieldValidation
from mooring.apiserver.wire.custom_bodies import decode_custom, go_numbers
from mooring.apiserver.wire.decode import (
    DecodedBody,
    canonical_object,
    decode_body,
    decode_options,
    patched_strategically,
    read_patch,
)
from mooring.apiserver.wire.examine import DecodingError
from mooring.apiserver.wire.identity import TypeMeta
from mooring.client.errors import BadRequestError, StatusError
from mooring.client.interface import PatchForm
from mooring.serving.users import User
from tests.apiserver.wire.test_protobuf import part

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
UNRECOGNIZED = "the object provided is unrecognized (must be of type ConfigMap): "
PARSE = "couldn't get version/kind; json parse error: "
SCHEME = 'in scheme "pkg/api/legacyscheme/scheme.go:30"'


def read(
    body: Any,
    kind: Kind = kinds.CONFIG_MAP,
    content_type: str = JSON,
    validation: FieldValidation = FieldValidation.WARN,
) -> DecodedBody:
    data = body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()
    struct = struct_of_kind(kind.api_version, kind.kind)
    assert struct is not None
    return decode_body(data, content_type, kind, struct, validation)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}}, id="with kind and apiVersion"
        ),
        pytest.param({"metadata": {"name": "a"}}, id="without kind and apiVersion"),
        pytest.param(b' {"metadata" : {"name" : "a"}}\n', id="spaces do not matter"),
        pytest.param(b'{"metadata":{"name":"\\u0061"}}', id="escapes do not matter"),
    ],
)
def test_a_body_becomes_a_document(body: Any) -> None:
    decoded = read(body)
    assert list(decoded.document.items()) == [
        ("kind", "ConfigMap"),
        ("apiVersion", "v1"),
        ("metadata", {"name": "a"}),
    ]
    assert decoded.strict_errors == []


@pytest.mark.parametrize("body", [b"null", b"{}"])
def test_null_and_an_empty_object_become_an_empty_document(body: bytes) -> None:
    assert read(body).document == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", UNRECOGNIZED + PARSE + "unexpected end of JSON input (<empty>)"),
        (b'{"kind":', UNRECOGNIZED + PARSE + 'unexpected end of JSON input ({"kind":)'),
        (b"a: b", UNRECOGNIZED + PARSE + "invalid character 'a' looking for beginning of value (613a2062)"),
        (
            b'{"apiVersion":"v1","kind":"ConfigMap"} x',
            UNRECOGNIZED + PARSE + 'invalid character \'x\' after top-level value ({"apiVersion":"v1","kind":"Con ...)',
        ),
        (
            b"[]",
            UNRECOGNIZED + PARSE + "json: cannot unmarshal array into Go value of type struct { APIVersion string "
            '"json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" } (5b5d)',
        ),
        (
            {"kind": "Secret", "apiVersion": "v1"},
            'Secret in version "v1" cannot be handled as a ConfigMap: '
            "converting (v1.Secret) to (core.ConfigMap): unknown conversion",
        ),
        (
            {"kind": "Secret", "metadata": {"name": 5}},
            'Secret in version "v1" cannot be handled as a ConfigMap: '
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string",
        ),
        (
            {"kind": "Frob", "apiVersion": "v1"},
            'Frob in version "v1" cannot be handled as a ConfigMap: '
            f'no kind "Frob" is registered for version "v1" {SCHEME}',
        ),
        (
            {"kind": "ConfigMap", "apiVersion": "apps/v1"},
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: '
            f'no kind "ConfigMap" is registered for version "apps/v1" {SCHEME}',
        ),
        (
            {"kind": "ConfigMap", "apiVersion": "apps/"},
            'ConfigMap in version "" cannot be handled as a ConfigMap: '
            'Object \'apiVersion\' is missing in \'{"kind":"ConfigMap","apiVersion":"apps/"}\'',
        ),
        (
            {"data": {"a": 1}},
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: '
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
        (
            b'{"metadata":{"generation":1e400}}',
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number 1e400 '
            "into Go struct field ObjectMeta.metadata.generation of type int64",
        ),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_body_that_is_no_config_map_is_rejected(body: Any, message: str) -> None:
    with pytest.raises(BadRequestError) as raised:
        read(body)
    assert raised.value.message == message


def test_another_version_of_the_same_kind_is_rejected() -> None:
    with pytest.raises(BadRequestError) as raised:
        read({"kind": "Deployment", "apiVersion": "apps/v1beta1"}, kinds.DEPLOYMENT)
    assert raised.value.message == (
        "the API version in the data (apps/v1beta1) does not match the expected API version (apps/v1)"
    )


def test_an_eviction_of_policy_v1beta1_is_read_as_v1() -> None:
    struct = struct_named("policy", "Eviction")
    decoded = decode_body(
        b'{"kind":"Eviction","apiVersion":"policy/v1beta1"}',
        JSON,
        TypeMeta("policy/v1", "Eviction"),
        struct,
        FieldValidation.WARN,
        ["policy/v1beta1"],
    )
    assert decoded.document["apiVersion"] == "policy/v1"


BODY_WITH_UNKNOWN_FIELDS = b'{"frob":1,"metadata":{"name":"a","name":"b"},"data":{"a":"b"},"data":{"c":"d"}}'
UNKNOWN_FIELD_ERRORS = ['unknown field "frob"', 'duplicate field "metadata.name"', 'duplicate field "data"']


@pytest.mark.parametrize(
    ("validation", "errors"), [(FieldValidation.WARN, UNKNOWN_FIELD_ERRORS), (FieldValidation.IGNORE, [])]
)
def test_unknown_and_duplicate_fields_are_reported_unless_ignored(
    validation: FieldValidation, errors: list[str]
) -> None:
    decoded = read(BODY_WITH_UNKNOWN_FIELDS, validation=validation)
    assert decoded.document["metadata"] == {"name": "b"}
    assert decoded.document["data"] == {"a": "b", "c": "d"}
    assert decoded.strict_errors == errors


def test_strict_field_validation_rejects_unknown_and_duplicate_fields() -> None:
    with pytest.raises(BadRequestError) as raised:
        read(BODY_WITH_UNKNOWN_FIELDS, validation=FieldValidation.STRICT)
    assert raised.value.message == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
        + ", ".join(UNKNOWN_FIELD_ERRORS)
    )


def test_numbers_can_be_quantities() -> None:
    text = b'{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":1e3,"memory":0.5}}}]},"x":1}'
    decoded = read(text, kinds.POD)
    container = decoded.document["spec"]["containers"][0]
    assert container["resources"] == {"requests": {"cpu": "1e3", "memory": "500m"}}
    assert decoded.strict_errors == ['unknown field "x"']


def test_a_body_may_be_yaml() -> None:
    decoded = read(b"metadata:\n  name: a\nz: 1\nfoo: 2\n", content_type=YAML)
    assert decoded.document["metadata"] == {"name": "a"}
    assert decoded.strict_errors == ['unknown field "foo"', 'unknown field "z"']


def test_bad_yaml_is_rejected() -> None:
    with pytest.raises(BadRequestError) as raised:
        read(b"a: b: c", content_type=YAML)
    assert raised.value.message == (
        UNRECOGNIZED + "yaml: mapping values are not allowed in this context (613a20623a2063)"
    )


def envelope(api_version: str, kind: str, data: bytes) -> bytes:
    return b"k8s\x00" + part(1, part(1, api_version) + part(2, kind)) + part(2, data)


def test_a_body_may_be_protobuf() -> None:
    data = envelope("v1", "ConfigMap", part(1, part(1, "a")) + part(2, part(1, "k") + part(2, "v")))
    assert read(data, content_type=PROTOBUF).document == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "a"},
        "data": {"k": "v"},
    }


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{}", "the object provided is unrecognized"),
        (envelope("v1", "Secret", b""), "converting (v1.Secret) to (core.ConfigMap): unknown conversion"),
        (
            envelope("v1", "ConfigMap", b"\x0a"),
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: unexpected EOF',
        ),
    ],
)
def test_bad_protobuf_is_rejected(data: bytes, message: str) -> None:
    with pytest.raises(BadRequestError) as raised:
        read(data, content_type=PROTOBUF)
    assert message in raised.value.message


def test_other_content_types_are_rejected() -> None:
    with pytest.raises(StatusError) as raised:
        read(b"x", content_type="text/plain")
    assert raised.value.code == 415


OPTIONS = struct_named("meta", "DeleteOptions")


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"kind":"DeleteOptions","apiVersion":"apps/v1"}',
        b'{"kind":"DeleteOptions","apiVersion":"foo/v9","frob":1}',
    ],
)
def test_delete_options_are_accepted_in_every_group(body: bytes) -> None:
    document = decode_options(body, JSON, OPTIONS)
    assert document["kind"] == "DeleteOptions"
    assert "frob" not in document


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", PARSE + "unexpected end of JSON input"),
        (
            b'{"gracePeriodSeconds":"x"}',
            "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
        ),
        (b'{"kind":"Status","apiVersion":"v1"}', "converting (v1.Status) to (v1.DeleteOptions): unknown conversion"),
        (
            b'{"kind":"Pod","apiVersion":"v1"}',
            'no kind "Pod" is registered for version "v1" in scheme '
            '"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"',
        ),
    ],
)
def test_invalid_delete_options_are_rejected(body: bytes, message: str) -> None:
    with pytest.raises(BadRequestError) as raised:
        decode_options(body, JSON, OPTIONS)
    assert raised.value.message == message


CONFIG_MAP = struct_named("core", "ConfigMap")


def test_canonical_object_reads_a_patched_object_like_a_body() -> None:
    decoded = canonical_object(CONFIG_MAP, {"kind": "ConfigMap", "metadata": {}, "frob": 1}, kinds.CONFIG_MAP)
    assert decoded.document == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}}
    assert decoded.strict_errors == ['unknown field "frob"']


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        ({"kind": "Secret"}, "converting (v1.Secret) to (core.ConfigMap): unknown conversion"),
        ({"apiVersion": "v9"}, f'no kind "ConfigMap" is registered for version "v9" {SCHEME}'),
        ({"apiVersion": "a/b/c"}, "unexpected GroupVersion string: a/b/c"),
        ({"data": "x"}, "json: cannot unmarshal string into Go struct field ConfigMap.data of type map[string]string"),
    ],
    ids=repr,
)
def test_canonical_object_rejects_another_kind_or_type(raw: Any, error: str) -> None:
    with pytest.raises(DecodingError) as raised:
        canonical_object(CONFIG_MAP, raw, kinds.CONFIG_MAP)
    assert str(raised.value) == error


def test_patched_strategically_reads_like_the_unstructured_converter_of_go() -> None:
    raw = {"kind": "Other", "metadata": {"generation": 2.0}, "b": 1, "a": 1}
    decoded = patched_strategically(CONFIG_MAP, raw, kinds.CONFIG_MAP)
    assert decoded.document == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"generation": 2}}
    assert decoded.strict_errors == ['unknown field "a"', 'unknown field "b"']
    with pytest.raises(DecodingError, match="cannot restore map from string"):
        patched_strategically(CONFIG_MAP, {"data": "x"}, kinds.CONFIG_MAP)


_junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda children: st.lists(children, max_size=2) | st.dictionaries(st.text(max_size=2), children, max_size=2),
    max_leaves=4,
)
_fields = ["metadata", "spec", "containers", "resources", "limits", "name", "labels", "volumes", "status", "conditions"]


@given(st.recursive(_junk, lambda children: st.dictionaries(st.sampled_from(_fields), children), max_leaves=12))
def test_any_body_is_decoded_or_rejected(value: Any) -> None:
    try:
        decoded = read(json.dumps(value).encode(), kinds.POD)
    except BadRequestError:
        return
    again = read(decoded.document, kinds.POD)
    assert again.document == decoded.document
    assert again.strict_errors == []


CALL = Call(verb="patch", kind=CONFIG_MAP_KIND, user=User("tester"), now_s=0.0, now="2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("form", "data", "content"),
    [
        pytest.param(PatchForm.JSON, b"[]", [], id="an empty JSON patch"),
        pytest.param(PatchForm.JSON, b"null", [], id="null as a JSON patch"),
        pytest.param(PatchForm.MERGE, b"{}", {}, id="an empty merge patch"),
        pytest.param(PatchForm.STRATEGIC, b"null", {}, id="null as a strategic patch"),
        pytest.param(PatchForm.APPLY, b"", {}, id="an empty apply"),
        pytest.param(PatchForm.APPLY, b"null", {}, id="null as an apply"),
    ],
)
def test_patches_are_read(form: PatchForm, data: bytes, content: object) -> None:
    assert read_patch(data, form, CALL).content == content


@pytest.mark.parametrize(
    ("form", "data", "expected_message"),
    [
        pytest.param(PatchForm.MERGE, b"null", "Invalid JSON Patch", id="null as a merge patch"),
        pytest.param(
            PatchForm.MERGE,
            b"[]",
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
            id="a list as a merge patch",
        ),
        pytest.param(
            PatchForm.JSON,
            b"{}",
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
            id="an object as a JSON patch",
        ),
        pytest.param(PatchForm.STRATEGIC, b"", "unexpected end of JSON input", id="an empty strategic patch"),
    ],
)
def test_an_invalid_patch_is_rejected(form: PatchForm, data: bytes, expected_message: str) -> None:
    with pytest.raises(BadRequestError) as raised:
        read_patch(data, form, CALL)
    assert raised.value.message == expected_message


WIDGET = TypeMeta("example.com/v1", "Widget")
SELF = {"apiVersion": "example.com/v1", "kind": "Widget"}
REJECTED = 'Widget in version "v1" cannot be handled as a Widget: '
CUSTOM_UNRECOGNIZED = "the object provided is unrecognized (must be of type Widget): "


def decoded(body: Any, content_type: str = "application/json") -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return decode_custom(data, content_type, WIDGET)


def test_metadata_is_canonical_and_the_rest_is_kept() -> None:
    body = decoded({**SELF, "metadata": {"name": "a", "labels": {}, "foo": 1}, "spec": {"x": None, "y": ""}})
    assert body.document == {**SELF, "metadata": {"name": "a"}, "spec": {"x": None, "y": ""}}
    assert body.unknown_metadata == ['unknown field "metadata.foo"']
    assert body.repeated == []


def test_the_last_of_repeated_fields_counts() -> None:
    body = decoded(b'{"apiVersion":"example.com/v1","kind":"Widget","spec":{"a":1,"a":2},"spec":{"b":1}}')
    assert body.document["spec"] == {"b": 1}
    assert body.repeated == ['duplicate field "spec.a"', 'duplicate field "spec"']


def test_numbers_are_read_like_go() -> None:
    text = b'{"kind":"Widget","spec":[1.0,1e3,1.5,12345678901234567890,1e-7,1e23]}'
    spec = decoded(text).document["spec"]
    assert repr(spec) == "[1.0, 1000.0, 1.5, 1.2345678901234567e+19, 1e-07, 1e+23]"
    assert repr(go_numbers(spec)) == "[1, 1000, 1.5, 12345678901234567168, 1e-07, 1e+23]"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, CUSTOM_UNRECOGNIZED + "Object 'Kind' is missing in '{}' ({})"),
        (b"null", CUSTOM_UNRECOGNIZED + "Object 'Kind' is missing in 'null' (6e756c6c)"),
        (b"{", CUSTOM_UNRECOGNIZED + "couldn't get version/kind; json parse error: unexpected end of JSON input ({)"),
        ({**SELF, "metadata": "x"}, REJECTED + "json: cannot unmarshal string into Go value of type v1.ObjectMeta"),
        (
            {**SELF, "metadata": {"labels": {"a": 1}}},
            REJECTED + "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
        ),
        (
            {**SELF, "apiVersion": "a/b/c"},
            CUSTOM_UNRECOGNIZED + 'unexpected GroupVersion string: a/b/c ({"apiVersion": "a/b/c", "kind" ...)',
        ),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_body_that_is_no_custom_object_is_rejected(body: Any, message: str) -> None:
    with pytest.raises(BadRequestError) as raised:
        decoded(body)
    assert raised.value.message == message


@pytest.mark.parametrize("api_version", ["", "v1", "example.com/v2"])
def test_check_version_rejects_another_version(api_version: str) -> None:
    body = decoded({**SELF, "apiVersion": api_version})
    with pytest.raises(BadRequestError) as raised:
        body.check_version(WIDGET)
    assert raised.value.message == (
        f"the API version in the data ({api_version}) does not match the expected API version (example.com/v1)"
    )


def test_yaml_bodies_are_accepted_and_protobuf_bodies_are_not() -> None:
    body = decoded(b"kind: Widget\nspec:\n  a: 1\n  a: 2\n", "application/yaml")
    assert body.document["spec"] == {"a": 2}
    assert body.repeated == ['yaml: unmarshal errors:\n  line 4: key "a" already set in map']
    with pytest.raises(StatusError) as raised:
        decoded(b"k8s\x00", "application/vnd.kubernetes.protobuf")
    assert raised.value.code == 415
