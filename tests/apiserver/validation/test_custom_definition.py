"""What is wrong with definitions, in the words of kube-apiserver v1.36.4."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.apiserver.validation.custom_definition import (
    definition_faults,
    definition_update_faults,
    name_faults,
    unrecognized_formats,
)
from tests.apiserver.custom.definitions import definition, fields, version

TEXT: Document = {"type": "string"}


def messages(whole: Document) -> list[str]:
    return [fault.message for fault in definition_faults(whole)]


def in_spec(**spec: Any) -> Document:
    return definition(version(), **spec)


@pytest.mark.parametrize(
    ("whole", "found"),
    [
        pytest.param(definition(), [], id="fine"),
        pytest.param(in_spec(group=""), ["spec.group: Required value"], id="no group"),
        pytest.param(
            in_spec(group="x"),
            ['spec.group: Invalid value: "x": should be a domain with at least one dot'],
            id="a short group",
        ),
        pytest.param(
            definition(scope="Galaxy"),
            ['spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"'],
            id="a scope",
        ),
        pytest.param(definition(scope=""), ["spec.scope: Required value"], id="no scope"),
        pytest.param(
            definition({**version(), "schema": None}),
            ["spec.versions[0].schema.openAPIV3Schema: Required value"],
            id="no schema",
        ),
        pytest.param(
            in_spec(names={}),
            [f"spec.names.{name}: Required value" for name in ("plural", "singular", "kind", "listKind")],
            id="no names",
        ),
        pytest.param(
            definition(version(deprecationWarning="x")),
            ['spec.versions[0].deprecationWarning: Invalid value: "x": can only be set for deprecated versions'],
            id="a warning for nothing",
        ),
        pytest.param(
            definition(version(deprecated=True, deprecationWarning="a\nb")),
            [
                'spec.versions[0].deprecationWarning: Invalid value: "a\\nb": must only contain printable UTF-8 '
                "characters; non-printable character found at index 1"
            ],
            id="a warning that cannot be printed",
        ),
        pytest.param(
            definition(version(fields(a={"type": "thing"}))),
            [
                'spec.validation.openAPIV3Schema.properties[a].type: Unsupported value: "thing": supported values: '
                '"array", "boolean", "integer", "number", "object", "string"'
            ],
            id="what all versions share is told once",
        ),
        pytest.param(
            definition(version(), version(fields(a={"type": "thing"}), name="v2")),
            [
                'spec.versions[1].schema.openAPIV3Schema.properties[a].type: Unsupported value: "thing": supported '
                'values: "array", "boolean", "integer", "number", "object", "string"'
            ],
            id="what they do not is told of the version",
        ),
        pytest.param(
            in_spec(preserveUnknownFields=True),
            [
                "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set "
                "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
            ],
            id="keeping everything",
        ),
    ],
)
def test_definitions(whole: Document, found: list[str]) -> None:
    assert messages(whole) == found


def test_versions() -> None:
    two = definition(version(), version(name="v1", storage=True))
    assert [fault.detail for fault in definition_faults(two)] == [
        "must contain unique version names",
        "must have exactly one version marked as storage version",
    ]
    odd = definition({**version(name="V_1"), "storage": True})
    assert [fault.field for fault in definition_faults(odd)] == [
        "spec.versions[0].name",
        "spec.version",
        "status.storedVersions",
        "status.storedVersions[0]",
    ]


def test_a_definition_is_named_after_what_it_defines() -> None:
    check = name_faults(definition())
    assert check("widgets.example.com", False) == []
    assert check("other.example.com", False) == ['must be spec.names.plural+"."+spec.group']


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"scope": "Cluster"}, "spec.scope", id="the scope"),
        pytest.param({"group": "other.com"}, "spec.group", id="the group"),
        pytest.param(
            {"names": {"plural": "w", "singular": "w", "kind": "Widget", "listKind": "L"}},
            "spec.names.plural",
            id="the plural",
        ),
        pytest.param(
            {"names": {"plural": "widgets", "singular": "w", "kind": "W", "listKind": "L"}},
            "spec.names.kind",
            id="the kind",
        ),
    ],
)
def test_what_cannot_be_changed(change: Document, field: str) -> None:
    new = definition()
    new["spec"] = {**new["spec"], **change}
    assert [(fault.field, fault.detail) for fault in definition_update_faults(new, definition())] == [
        (field, "field is immutable")
    ]


def test_what_was_accepted_once_may_stay() -> None:
    old = definition(version(fields(a={"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}})))
    assert len(definition_faults(old)) == 1
    assert definition_update_faults(old, old) == []


def test_formats_that_nobody_checks() -> None:
    raw = fields(a={**TEXT, "format": "foo"}, b={**TEXT, "format": "date"}, c={"type": "boolean", "format": "x"})
    assert unrecognized_formats(definition(version(raw))) == ["foo", "x"]
