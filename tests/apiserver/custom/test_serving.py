"""From a definition to the resources that it defines."""

from __future__ import annotations

from mooring.apiserver.custom.serving import resources_of, stored_resource
from tests.apiserver.custom.definitions import definition, fields, version

V1 = version(fields(spec=fields(a={"type": "string", "default": "x"}, only1={"type": "string"})))
V2 = version(fields(spec=fields(a={"type": "string"}, only2={"type": "string"})), name="v2", deprecated=True)
UNSERVED = version(name="v3", served=False)


def test_a_resource_for_each_version_that_is_served() -> None:
    one, two = resources_of(definition(V1, V2, UNSERVED))
    assert [resource.kind.api_version for resource in (one, two)] == ["example.com/v1", "example.com/v2"]
    assert one.kind.key("n", "a") == two.kind.key("n", "a") == "/registry/example.com/widgets/n/a"
    assert (one.singular, one.list_kind, one.storage_version) == ("widget", "WidgetList", "v1")
    assert two.warnings == ("example.com/v2 Widget is deprecated",)
    assert two.kind.stored_as is not None
    assert two.kind.stored_as.api_version == "example.com/v1"


def test_nothing_is_served_before_its_names_are_accepted() -> None:
    assert resources_of(definition(accepted=False)) == []


def test_subresources_and_selectable_fields() -> None:
    scale = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}
    entry = version(subresources={"status": {}, "scale": scale}, selectableFields=[{"jsonPath": ".spec.color"}])
    (resource,) = resources_of(definition(entry))
    assert list(resource.subresources) == ["status", "scale"]
    assert list(resource.strategies) == ["status"]
    assert resource.selectable_fields == {"spec.color"}
    assert resource.scale is not None


def test_objects_are_shown_in_the_version_that_is_asked_for() -> None:
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


def test_of_an_object_nothing_is_left_that_the_stored_version_does_not_have() -> None:
    _, two = resources_of(definition(V1, V2))
    obj = {"apiVersion": "example.com/v2", "kind": "Widget", "metadata": {}, "spec": {"only2": "q"}}
    two.strategy.canonicalize(obj)
    assert obj["spec"] == {"a": "x"}


def test_what_never_changed_is_handed_out_as_it_is_stored() -> None:
    (resource,) = resources_of(definition(V1))
    assert resource.kind.served is None
    changed = definition(V1)
    changed["metadata"]["generation"] = 2
    (resource,) = resources_of(changed)
    assert resource.kind.served is not None


def test_a_definition_that_is_deleted_tells_fewer_verbs() -> None:
    ending = definition(V1)
    ending["status"]["conditions"].append({"type": "Terminating", "status": "True"})
    (resource,) = resources_of(ending)
    assert resource.verbs == ("delete", "deletecollection", "get", "list", "watch")


def test_the_stored_version_is_known_even_if_it_is_not_served() -> None:
    assert stored_resource(definition({**V1, "served": False}, V2)).kind.api_version == "example.com/v1"
