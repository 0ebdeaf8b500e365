"""The kind Plan of the API server has the fields of the requests and results of /plan."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mooring.api.schema.types import ListOf, MapOf, Scalar, Struct, Type, struct_named
from mooring.scheduler.plan.request import (
    OBJECT_BYTES_MAX,
    PlanError,
    PlanRequest,
    PlanResult,
    Question,
    RequestBody,
    decode_request,
)
from mooring.scheduler.plan.slices import run_to_end
from tests.builders import node
from tests.scheduler.harness import engine_of

_BASICS = {"string": "str", "int64": "int", "float64": "float", "bool": "bool"}
_OBJECTS = {"Pod": "raw", "Node": "raw"}


def from_schema(field_type: Type) -> Any:
    """A type of the schema as plain data: fields by name."""
    match field_type:
        case Struct(name=name) if name in _OBJECTS:
            return _OBJECTS[name]
        case Struct():
            return {field.name: from_schema(field.type) for field in field_type.fields.values()}
        case ListOf():
            return [from_schema(field_type.item)]
        case MapOf():
            return {"*": from_schema(field_type.value)}
        case Scalar():
            return sorted(field_type.choices) if field_type.choices else _BASICS[field_type.basic.value]


def from_python(info: Any) -> Any:
    """The same of a type of Python."""
    match info:
        case msgspec.inspect.StructType():
            return {field.encode_name: from_python(field.type) for field in info.fields}
        case msgspec.inspect.UnionType():
            (known,) = [field_type for field_type in info.types if not isinstance(field_type, msgspec.inspect.NoneType)]
            return from_python(known)
        case msgspec.inspect.ListType() | msgspec.inspect.VarTupleType():
            return [from_python(info.item_type)]
        case msgspec.inspect.DictType(value_type=msgspec.inspect.AnyType()):
            return "dict"
        case msgspec.inspect.DictType():
            return {"*": from_python(info.value_type)}
        case msgspec.inspect.EnumType():
            return sorted(info.cls)
        case _:
            return type(info).__name__.removesuffix("Type").lower()


@pytest.mark.parametrize(("name", "python"), [("PlanSpec", RequestBody), ("PlanStatus", PlanResult)])
def test_the_schema_has_the_same_fields(name: str, python: type) -> None:
    assert from_schema(struct_named("mooring", name)) == from_python(msgspec.inspect.type_info(python))


def test_the_schema_has_every_question() -> None:
    question = struct_named("mooring", "PlanSpec").fields["question"].type
    assert isinstance(question, Scalar)
    assert set(question.choices) == set(Question)


def decode(document: object) -> PlanRequest:
    steps = decode_request(msgspec.json.encode(document), engine_of(node("n1")).columns, tuple)
    return run_to_end(steps)


LARGE = {"metadata": {"name": "x", "namespace": "a", "labels": {"large": "x" * OBJECT_BYTES_MAX}}}


@pytest.mark.parametrize(
    ("document", "path"),
    [
        pytest.param({"pods": [LARGE]}, r"pods\[0\]", id="a pod"),
        pytest.param({"question": "addNodes", "nodeTypes": [{"node": LARGE}]}, r"nodeTypes\[0\].node", id="a node"),
    ],
)
def test_an_object_that_takes_too_long_is_refused(document: object, path: str) -> None:
    with pytest.raises(PlanError, match=f"{path}: found [0-9]+ bytes; a plan takes at most {OBJECT_BYTES_MAX}"):
        decode(document)


@pytest.mark.parametrize("pod", [None, [], "text", {"metadata": 1}])
def test_a_pod_that_is_none_is_refused(pod: object) -> None:
    with pytest.raises(PlanError, match=r"pods\[0\]: "):
        decode({"pods": [pod]})


def test_a_quantity_that_no_column_can_hold_is_refused() -> None:
    # As text: msgspec does not encode such a number.
    requests = b'{"resources": {"requests": {"cpu": 1000000000000000000000000}}}'
    body = b'{"pods": [{"metadata": {"name": "x", "namespace": "a"}, "spec": {"containers": [%b]}}]}' % requests
    with pytest.raises(PlanError, match="an integer <= 9223372036854775807"):
        run_to_end(decode_request(body, engine_of(node("n1")).columns, tuple))


def test_null_is_no_node() -> None:
    (field_type,) = decode({"question": "addNodes", "nodeTypes": [{"like": "n1", "node": None}]}).node_types
    assert field_type.name == "n1"


WRONG = "1e999999999"


@pytest.mark.parametrize(
    ("document", "path"),
    [
        pytest.param(
            {
                "pods": [
                    {
                        "metadata": {"name": "x", "namespace": "a"},
                        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": WRONG}}}]},
                    }
                ]
            },
            r"pods\[0\]",
            id="a pod",
        ),
        pytest.param(
            {"nodeTypes": [{"node": {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": WRONG}}}}]},
            r"nodeTypes\[0\].node",
            id="a node",
        ),
    ],
)
def test_an_amount_that_is_none_is_refused(document: object, path: str) -> None:
    with pytest.raises(PlanError, match=f'{path}: "1e999999999" is not a quantity'):
        decode(document)
