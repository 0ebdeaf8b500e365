"""How custom objects behave."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.apiserver.access.users import User
from mooring.apiserver.call import Call
from mooring.apiserver.custom.strategy import CustomStrategy
from mooring.apiserver.custom.version import read_version
from mooring.client.errors import ForbiddenError, InvalidError
from tests.apiserver.custom.definitions import fields, ruled, version, widget

KIND = Kind("example.com/v1", "Widget", "widgets")
SCHEMA = fields(
    spec=ruled(
        fields(size={"type": "integer", "maximum": 5}, tags={"type": "array", "x-kubernetes-list-type": "set"}),
        "!has(self.size) || self.size > 1",
    ),
    status=fields(phase={"type": "string"}),
)
STRATEGY = CustomStrategy(KIND, read_version(version(SCHEMA, subresources={"status": {}})))
STATUS = STRATEGY.subresources["status"]


def call() -> Call:
    return Call("update", KIND, User("u"), 0.0, "now", namespace="default", name="a")


def stored(**rest: Any) -> Document:
    metadata = {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "1", "generation": 3}
    return {**widget(**rest), "metadata": metadata}


def messages(obj: Document) -> list[str]:
    return [error.message for error in STRATEGY.validate(obj, call())]


def test_creating_drops_the_status() -> None:
    obj = widget(spec={"size": 2}, status={"phase": "x"})
    STRATEGY.prepare_for_create(obj, call())
    assert "status" not in obj
    assert obj["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        pytest.param({"size": 2}, [], id="fine"),
        pytest.param(
            {"size": 9},
            ["spec.size: Invalid value: 9: spec.size in body should be less than or equal to 5"],
            id="a bound",
        ),
        pytest.param({"size": 1}, ["spec: Invalid value: failed rule: !has(self.size) || self.size > 1"], id="a rule"),
        pytest.param({"tags": [1, 1]}, ["spec.tags[1]: Duplicate value: 1"], id="a set"),
        pytest.param(
            {"size": "x"},
            [
                'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"',
                "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
                "correct the existing errors to complete validation",
            ],
            id="rules are asked only when the rest is right",
        ),
    ],
)
def test_validation(spec: Document, found: list[str]) -> None:
    assert messages(widget(spec=spec)) == found


def test_another_kind_is_rejected_under_its_own_name() -> None:
    with pytest.raises(InvalidError) as caught:
        messages({**widget(), "kind": "Gadget"})
    assert caught.value.message == 'Gadget.example.com "a" is invalid: kind: Invalid value: "Gadget": must be Widget'


@pytest.mark.parametrize(
    ("change", "generation"),
    [
        pytest.param({"spec": {"size": 3}}, 4, id="the spec"),
        pytest.param({"status": {"phase": "y"}}, 3, id="the status, which stays"),
        pytest.param({"extra": 1}, 4, id="anything else"),
    ],
)
def test_generations(change: Document, generation: int) -> None:
    old = stored(spec={"size": 2}, status={"phase": "x"})
    obj = {**stored(spec={"size": 2}, status={"phase": "x"}), **change}
    STRATEGY.prepare_for_update(obj, old, call())
    assert (obj["metadata"]["generation"], obj["status"]) == (generation, {"phase": "x"})


def test_writing_the_status_changes_nothing_else() -> None:
    old = stored(spec={"size": 2})
    obj = stored(spec={"size": 4}, status={"phase": "y"})
    obj["metadata"] |= {"labels": {"a": "b"}, "managedFields": [{"manager": "m"}]}
    STATUS.prepare_for_update(obj, old, call())
    assert obj == {
        **old,
        "metadata": {**old["metadata"], "managedFields": [{"manager": "m"}]},
        "status": {"phase": "y"},
    }
    assert STATUS.ignored_fields == (("metadata",), ("spec",))


def test_errors_of_a_status_are_below_it() -> None:
    errors = STATUS.validate_update(stored(status={"phase": 1}), stored(), call())
    assert (
        errors[0].message == 'status.phase: Invalid value: "integer": phase in body must be of type string: "integer"'
    )


def test_what_was_wrong_before_may_stay() -> None:
    old, obj = stored(spec={"size": 9}), stored(spec={"size": 9, "tags": ["x"]})
    assert STRATEGY.validate_update(obj, old, call()) == []
    assert len(STRATEGY.validate_update(stored(spec={"size": 8}), old, call())) == 1


def test_numbers_are_stored_as_go_writes_them() -> None:
    obj = widget(spec={"size": 2.0})
    STRATEGY.canonicalize(obj)
    assert repr(obj["spec"]) == "{'size': 2}"


def test_nothing_is_created_while_the_definition_is_deleted() -> None:
    ending = CustomStrategy(KIND, read_version(version(SCHEMA)), is_terminating=True)
    with pytest.raises(ForbiddenError) as caught:
        ending.prepare_for_create(widget(), call())
    assert caught.value.message == (
        'widgets.example.com "a" is forbidden: create not allowed while custom resource definition is terminating'
    )


def test_odd_finalizers_are_only_warned_of() -> None:
    obj = widget()
    obj["metadata"]["finalizers"] = ["foo"]
    assert messages(obj) == []
    assert len(STRATEGY.warnings_on_create(obj, call())) == 1
