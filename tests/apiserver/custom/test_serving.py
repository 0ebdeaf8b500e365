"""Resources, request bodies, warnings and scales of the custom kinds of a CustomResourceDefinition."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.apiserver.call import Call, FieldValidation
from mooring.apiserver.custom.scaling import ScalePaths, scale_rules, validate_spec_replicas, validate_status_replicas
from mooring.apiserver.custom.schema import read_schema
from mooring.apiserver.custom.serving import CustomBodies, deprecation_warning, resources_of, stored_resource
from mooring.apiserver.wire.examine import DecodingError
from mooring.client.errors import BadRequestError, ServerError
from mooring.serving.users import User
from tests.apiserver.custom.definitions import definition, fields, version, widget

KIND = Kind("example.com/v1", "Widget", "widgets")
SCHEMA = fields(spec=fields(size={"type": "integer"}, color={"type": "string", "default": "red"}))
BODIES = CustomBodies(KIND, {"example.com/v1": read_schema(SCHEMA)}, preserves_unknown=False)


def call(validation: FieldValidation = FieldValidation.WARN) -> Call:
    return Call("create", KIND, User("u"), 0.0, "now", field_validation=validation)


def read(body: Document, api_call: Call | None = None) -> Document:
    return BODIES.read_body(json.dumps(body).encode(), "application/json", api_call or call())


def test_a_body_is_pruned_and_defaulted_with_warnings() -> None:
    api_call = call()
    document = read({**widget(spec={"size": 1, "frob": 1}), "odd": 1, "metadata": {"name": "a", "bar": 1}}, api_call)
    assert document == {**widget(spec={"size": 1, "color": "red"}), "metadata": {"name": "a"}}
    assert api_call.warnings == ['unknown field "metadata.bar"', 'unknown field "odd"', 'unknown field "spec.frob"']


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(
            widget(spec={"frob": 1}),
            'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.frob"',
            id="unknown fields",
        ),
        pytest.param(
            {**widget(), "apiVersion": "example.com/v2"},
            "the API version in the data (example.com/v2) does not match the expected API version (example.com/v1)",
            id="another version",
        ),
    ],
)
def test_unknown_fields_and_another_version_are_rejected_by_strict_validation(body: Document, message: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        read(body, call(FieldValidation.STRICT))
    assert caught.value.message == message


def test_a_body_of_another_kind_is_not_pruned() -> None:
    assert read({**widget(spec={"frob": 1}), "kind": "Gadget"})["spec"] == {"frob": 1}


def test_the_result_of_a_patch_is_pruned() -> None:
    reading = BODIES.read_document(widget(spec={"size": 1, "frob": 1}))
    assert reading.document["spec"] == {"size": 1}
    assert reading.strict_errors == ('unknown field "spec.frob"',)
    with pytest.raises(DecodingError, match="Object 'Kind' is missing in"):
        BODIES.read_document({"apiVersion": "example.com/v1", "metadata": {"name": "a"}})


OLD = version(name="v1beta1", deprecated=True)


@pytest.mark.parametrize(
    ("others", "entry", "text"),
    [
        pytest.param([], OLD, "example.com/v1beta1 Widget is deprecated", id="no other version"),
        pytest.param(
            [version(name="v1alpha1")], OLD, "example.com/v1beta1 Widget is deprecated", id="no newer version"
        ),
        pytest.param(
            [version(name="v2")],
            OLD,
            "example.com/v1beta1 Widget is deprecated; use example.com/v2 Widget",
            id="a newer version",
        ),
        pytest.param([], {**OLD, "deprecationWarning": "go away"}, "go away", id="a warning in the definition"),
    ],
)
def test_deprecated_versions_have_a_warning(others: list[Document], entry: Document, text: str) -> None:
    assert deprecation_warning(definition(entry, *others)["spec"], entry) == text


V1 = version(fields(spec=fields(a={"type": "string", "default": "x"}, only1={"type": "string"})))
V2 = version(fields(spec=fields(a={"type": "string"}, only2={"type": "string"})), name="v2", deprecated=True)
UNSERVED = version(name="v3", served=False)


def test_resources_of_returns_a_resource_for_each_served_version() -> None:
    one, two = resources_of(definition(V1, V2, UNSERVED))
    assert [resource.kind.api_version for resource in (one, two)] == ["example.com/v1", "example.com/v2"]
    assert one.kind.key("n", "a") == two.kind.key("n", "a") == "/registry/example.com/widgets/n/a"
    assert (one.singular, one.list_kind, one.storage_version) == ("widget", "WidgetList", "v1")
    assert two.warnings == ("example.com/v2 Widget is deprecated",)
    assert two.kind.stored_as is not None
    assert two.kind.stored_as.api_version == "example.com/v1"


def test_resources_of_is_empty_before_names_are_accepted() -> None:
    assert resources_of(definition(accepted=False)) == []


def test_subresources_and_selectable_fields_come_from_the_version() -> None:
    scale = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}
    entry = version(subresources={"status": {}, "scale": scale}, selectableFields=[{"jsonPath": ".spec.color"}])
    (resource,) = resources_of(definition(entry))
    assert list(resource.subresources) == ["status", "scale"]
    assert list(resource.strategies) == ["status"]
    assert resource.selectable_fields == {"spec.color"}
    assert resource.scale is not None


def test_objects_are_served_in_the_requested_version() -> None:
    _, two = resources_of(definition(V1, V2))
    assert two.kind.served is not None
    stored: dict[str, object] = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {},
        "spec": {"only1": "q"},
    }
    assert two.kind.served(stored) == {
        "apiVersion": "example.com/v2",
        "kind": "Widget",
        "metadata": {},
        "spec": {"a": "x"},
    }


def test_canonicalize_drops_fields_that_the_storage_version_does_not_have() -> None:
    _, two = resources_of(definition(V1, V2))
    obj = {"apiVersion": "example.com/v2", "kind": "Widget", "metadata": {}, "spec": {"only2": "q"}}
    two.strategy.canonicalize(obj)
    assert obj["spec"] == {"a": "x"}


def test_objects_of_an_unchanged_definition_are_served_as_stored() -> None:
    (resource,) = resources_of(definition(V1))
    assert resource.kind.served is None
    changed = definition(V1)
    changed["metadata"]["generation"] = 2
    (resource,) = resources_of(changed)
    assert resource.kind.served is not None


def test_resources_of_a_terminating_definition_have_no_create_and_update_verbs() -> None:
    ending = definition(V1)
    ending["status"]["conditions"].append({"type": "Terminating", "status": "True"})
    (resource,) = resources_of(ending)
    assert resource.verbs == ("delete", "deletecollection", "get", "list", "watch")


def test_stored_resource_has_the_storage_version_even_if_it_is_not_served() -> None:
    assert stored_resource(definition({**V1, "served": False}, V2)).kind.api_version == "example.com/v1"


PATHS = ScalePaths(".spec.replicas", ".status.replicas", ".status.selector")
METADATA = {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7", "labels": {"x": "y"}}


def scaled_widget(spec: Document | None = None, status: Document | None = None) -> Document:
    return {"metadata": METADATA, "spec": spec or {}, "status": status or {}}


def test_scale_rules_read_and_write_the_replicas() -> None:
    rules = scale_rules(PATHS)
    assert rules.shown is not None
    shown = rules.shown(KIND, scaled_widget({"replicas": 2}, {"replicas": 1, "selector": "a=b"}))
    assert shown == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7"},
        "spec": {"replicas": 2},
        "status": {"replicas": 1, "selector": "a=b"},
    }
    scaled = rules.scaled(scaled_widget({"x": 1}), {"metadata": {"resourceVersion": "9"}, "spec": {"replicas": 5}})
    assert scaled["spec"] == {"x": 1, "replicas": 5}
    assert scaled["metadata"]["resourceVersion"] == "9"
    assert rules.replicas_path == ("f:spec", "f:replicas")


def test_absent_replicas_are_errors() -> None:
    rules = scale_rules(PATHS)
    assert rules.shown is not None
    with pytest.raises(ServerError, match=r'the spec replicas field ".spec.replicas" does not exist'):
        rules.shown(KIND, scaled_widget())
    without_replicas = rules.scale_of(KIND, scaled_widget())
    with pytest.raises(BadRequestError, match="cannot be empty"):
        rules.scaled(scaled_widget(), without_replicas)


@pytest.mark.parametrize(
    ("replicas", "message"),
    [
        pytest.param(None, "", id="null"),
        pytest.param(3, "", id="three"),
        pytest.param(-1, ".spec.replicas: Invalid value: -1: should be a non-negative integer", id="too few"),
        pytest.param(
            2**31,
            ".spec.replicas: Invalid value: 2147483648: should be less than or equal to 2147483647",
            id="too many",
        ),
    ],
)
def test_replicas_in_the_spec_are_validated(replicas: Any, message: str) -> None:
    spec = {} if replicas is None else {"replicas": replicas}
    assert [error.message for error in validate_spec_replicas(scaled_widget(spec), PATHS)] == (
        [message] if message else []
    )


def test_replicas_and_selector_in_the_status_are_validated() -> None:
    errors = validate_status_replicas(scaled_widget(status={"replicas": -1, "selector": 5}), PATHS)
    assert [error.message for error in errors] == [
        ".status.replicas: Invalid value: -1: should be a non-negative integer",
        '.status.selector: Invalid value: "": .status.selector accessor error: 5 is of the type int64, expected string',
    ]
