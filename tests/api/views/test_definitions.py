"""The view of a definition of a custom kind."""

from __future__ import annotations

from mooring.api.decode import convert_as
from mooring.api.views.definitions import (
    CustomResourceDefinition,
    CustomResourceDefinitionSpec,
    CustomResourceDefinitionStatus,
    DefinitionNames,
    DefinitionVersion,
)
from mooring.api.views.meta import Condition, ObjectMeta


def test_what_is_read_of_a_definition() -> None:
    names = {"plural": "widgets", "kind": "Widget", "listKind": "WidgetList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    written = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
        "status": {"acceptedNames": names, "conditions": [{"type": "Established", "status": "True"}]},
    }
    read = DefinitionNames(plural="widgets", kind="Widget")
    assert convert_as(CustomResourceDefinition, written) == CustomResourceDefinition(
        metadata=ObjectMeta(name="widgets.example.com"),
        spec=CustomResourceDefinitionSpec(
            group="example.com",
            scope="Namespaced",
            names=read,
            versions=(DefinitionVersion(name="v1", served=True, storage=True),),
        ),
        status=CustomResourceDefinitionStatus(
            conditions=(Condition(type="Established", status="True"),), accepted_names=read
        ),
    )
