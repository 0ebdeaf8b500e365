from __future__ import annotations

import json
from typing import Any

import pytest

from mooring.apiserver.wire.custom_bodies import decode_custom, go_numbers
from mooring.apiserver.wire.decode import NamedKind
from mooring.client.errors import BadRequestError, StatusError

WIDGET = NamedKind("example.com/v1", "Widget")
SELF = {"apiVersion": "example.com/v1", "kind": "Widget"}
REJECTED = 'Widget in version "v1" cannot be handled as a Widget: '
UNRECOGNIZED = "the object provided is unrecognized (must be of type Widget): "


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
        ({}, UNRECOGNIZED + "Object 'Kind' is missing in '{}' ({})"),
        (b"null", UNRECOGNIZED + "Object 'Kind' is missing in 'null' (6e756c6c)"),
        (b"{", UNRECOGNIZED + "couldn't get version/kind; json parse error: unexpected end of JSON input ({)"),
        ({**SELF, "metadata": "x"}, REJECTED + "json: cannot unmarshal string into Go value of type v1.ObjectMeta"),
        (
            {**SELF, "metadata": {"labels": {"a": 1}}},
            REJECTED + "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
        ),
        (
            {**SELF, "apiVersion": "a/b/c"},
            UNRECOGNIZED + 'unexpected GroupVersion string: a/b/c ({"apiVersion": "a/b/c", "kind" ...)',
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
