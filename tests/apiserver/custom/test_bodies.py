"""Bodies of custom objects: decoded, pruned, defaulted."""

from __future__ import annotations

import json

import pytest

from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.apiserver.access.users import User
from mooring.apiserver.call import Call, FieldValidation
from mooring.apiserver.custom.bodies import CustomBodies
from mooring.apiserver.custom.schema import read_schema
from mooring.apiserver.wire.examine import DecodingError
from mooring.client.errors import BadRequestError
from tests.apiserver.custom.definitions import fields, widget

KIND = Kind("example.com/v1", "Widget", "widgets")
SCHEMA = fields(spec=fields(size={"type": "integer"}, color={"type": "string", "default": "red"}))
BODIES = CustomBodies(KIND, {"example.com/v1": read_schema(SCHEMA)}, preserves_unknown=False)


def call(validation: FieldValidation = FieldValidation.WARN) -> Call:
    return Call("create", KIND, User("u"), 0.0, "now", field_validation=validation)


def read(body: Document, asked: Call | None = None) -> Document:
    return BODIES.read_body(json.dumps(body).encode(), "application/json", asked or call())


def test_a_body_is_pruned_defaulted_and_warned_of() -> None:
    asked = call()
    document = read({**widget(spec={"size": 1, "frob": 1}), "odd": 1, "metadata": {"name": "a", "bar": 1}}, asked)
    assert document == {**widget(spec={"size": 1, "color": "red"}), "metadata": {"name": "a"}}
    assert asked.warnings == ['unknown field "metadata.bar"', 'unknown field "odd"', 'unknown field "spec.frob"']


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
def test_errors(body: Document, message: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        read(body, call(FieldValidation.STRICT))
    assert caught.value.message == message


def test_another_kind_is_left_alone() -> None:
    assert read({**widget(spec={"frob": 1}), "kind": "Gadget"})["spec"] == {"frob": 1}


def test_the_result_of_a_patch_is_pruned() -> None:
    reading = BODIES.read_document(widget(spec={"size": 1, "frob": 1}))
    assert reading.document["spec"] == {"size": 1}
    assert reading.strict_errors == ('unknown field "spec.frob"',)
    with pytest.raises(DecodingError, match="Object 'Kind' is missing in"):
        BODIES.read_document({"apiVersion": "example.com/v1", "metadata": {"name": "a"}})
