"""The table of resources follows the definitions."""

from __future__ import annotations

from mooring.api.kinds import CUSTOM_RESOURCE_DEFINITION
from mooring.apiserver.custom.kinds import CustomKinds
from mooring.apiserver.resources import ResourceTable
from tests.apiserver.custom.definitions import definition, version


def served(table: ResourceTable) -> list[str]:
    return [resource.kind.api_version for resource in table]


def test_kinds_come_change_and_go() -> None:
    table = ResourceTable()
    custom = CustomKinds(table)
    custom.put(CUSTOM_RESOURCE_DEFINITION, definition(accepted=False))
    assert served(table) == []
    custom.put(CUSTOM_RESOURCE_DEFINITION, definition())
    assert served(table) == ["example.com/v1"]
    custom.put(CUSTOM_RESOURCE_DEFINITION, definition(version(), version(name="v2")))
    assert served(table) == ["example.com/v1", "example.com/v2"]
    custom.remove(CUSTOM_RESOURCE_DEFINITION, definition())
    assert served(table) == []


def test_changes_without_effect_on_clients() -> None:
    table = ResourceTable()
    custom = CustomKinds(table)
    custom.put(CUSTOM_RESOURCE_DEFINITION, definition())
    before = table.generation
    other = definition()
    other["metadata"]["resourceVersion"] = "2"
    other["status"]["conditions"][0]["lastTransitionTime"] = "2027-01-01T00:00:00Z"
    custom.put(CUSTOM_RESOURCE_DEFINITION, other)
    assert table.generation == before


def test_a_broken_definition_does_not_stop_the_others() -> None:
    table = ResourceTable()
    custom = CustomKinds(table)
    broken = definition()
    broken["spec"]["versions"] = [{"name": "v1", "served": True, "storage": False}]
    custom.put(CUSTOM_RESOURCE_DEFINITION, broken)
    custom.put(CUSTOM_RESOURCE_DEFINITION, definition())
    assert served(table) == ["example.com/v1"]
