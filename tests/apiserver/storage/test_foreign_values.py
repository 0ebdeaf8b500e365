"""Values that kube-apiserver wrote to etcd are read without loss, or not at all."""

from __future__ import annotations

import json

import msgspec
import pytest

from mooring.api.document import Document
from mooring.apiserver.storage.foreign_values import read_stored_value
from mooring.store.interface import ValueUnreadable
from tests.apiserver.storage import kube_objects as kube
from tests.apiserver.storage.kube_objects import PREFIX, envelope, part, protobuf_value

POD_KEY = "/registry/pods/default/web"
CRD_KEY = "/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com"
WIDGET_KEY = "/registry/example.com/widgets/default/small"


def go_json(document: Document) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


@pytest.mark.parametrize(
    ("key", "document"),
    [
        (POD_KEY, kube.POD),
        ("/registry/secrets/default/key", kube.SECRET),
        ("/registry/deployments/default/web", kube.DEPLOYMENT),
    ],
)
def test_protobuf_and_json_give_the_same_object(key: str, document: Document) -> None:
    read = msgspec.json.decode(read_stored_value(key, protobuf_value(document)))
    assert _without_empty(read) == _without_empty(document)
    assert msgspec.json.decode(read_stored_value(key, go_json(document))) == document


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        pytest.param(kube.ONE_VERSION, kube.ONE_VERSION_V1, id="fields that all versions share"),
        pytest.param(kube.TWO_VERSIONS, kube.TWO_VERSIONS_V1, id="fields of each version, and a webhook"),
        pytest.param(kube.OLDEST, kube.OLDEST_V1, id="a version without a list, a schema and defaults"),
    ],
)
def test_a_definition_of_v1beta1_becomes_one_of_v1(stored: Document, expected: Document) -> None:
    value = read_stored_value(CRD_KEY, go_json(stored))
    assert msgspec.json.decode(value) == expected
    assert read_stored_value(CRD_KEY, value) is value


def test_metadata_comes_before_a_field_with_another_metadata() -> None:
    value = read_stored_value(WIDGET_KEY, go_json(kube.WIDGET_WITHOUT_SCHEMA))
    assert value.startswith(b'{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"uid"')
    assert not value.endswith(b"\n")
    assert msgspec.json.decode(value) == kube.WIDGET_WITHOUT_SCHEMA


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("/registry/flowschemas/exempt", PREFIX + envelope("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", b"\x0a")),
        ("/registry/ranges/serviceips", PREFIX + b"anything"),
        ("/registry/leasecandidates/default/a", b"k8s:enc:aescbc:v1:key:abc"),
        ("/registry/example.com/widgets/default/small", b"{broken"),
        ("/other/pods/default/web", b"text"),
        ("/other/pods/default/web", b'{"b": 1, "a": 2}\n'),
    ],
)
def test_a_value_of_a_kind_that_is_not_served_is_left_untouched(key: str, value: bytes) -> None:
    assert read_stored_value(key, value) is value


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        (POD_KEY, b"k8s:enc:aescbc:v1:key:abc", "neither as JSON nor as protobuf"),
        (POD_KEY, PREFIX + b"\x0a\x50", "unexpected EOF"),
        (POD_KEY, PREFIX + envelope("v1", "Secret", b""), "a Secret of v1"),
        (POD_KEY, protobuf_value(kube.POD, part(77, b"new")), "Pod.77"),
        (POD_KEY, b"{broken", "it is no object"),
        (POD_KEY, b'{"kind":"Pod","apiVersion":"v2","metadata":{"name":"web"}}', "a Pod of v2"),
        (
            "/registry/resourceclaims/default/a",
            b'{"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1beta1","metadata":{"name":"a"}}',
            "resource.k8s.io/v1 is served",
        ),
        (CRD_KEY, go_json(kube.ONE_VERSION | {"novel": 1}), "the fields novel"),
        (POD_KEY, go_json(kube.POD | {"spec": kube.POD["spec"] | {"novel": 1}}), "the fields novel"),
    ],
)
def test_the_error_for_an_unreadable_value_names_its_key(key: str, value: bytes, why: str) -> None:
    with pytest.raises(ValueUnreadable) as caught:
        read_stored_value(key, value)
    assert key in str(caught.value)
    assert why in str(caught.value)


def _without_empty(value: object) -> object:
    """The value without empty fields: protobuf writes some structs even if they are empty."""
    if isinstance(value, dict):
        parts = {key: _without_empty(item) for key, item in value.items()}
        return {key: item for key, item in parts.items() if item not in (None, {}, "")}
    return [_without_empty(item) for item in value] if isinstance(value, list) else value
