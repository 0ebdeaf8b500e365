"""The table of kinds, and owner references."""

from __future__ import annotations

import pytest

from mooring.api.decode import KINDS
from mooring.api.errors import UnknownKindError
from mooring.api.kinds import (
    CORE_EVENT,
    CUSTOM_RESOURCE_DEFINITION,
    DEPLOYMENT,
    ENDPOINTS,
    EVENT,
    NODE,
    POD,
    REPLICATION_CONTROLLER,
    SERVICE,
    STORAGE_CLASS,
    Kind,
    all_kinds,
    kind_named,
    kind_of_view,
)
from mooring.api.views.meta import ApiObject, ObjectMeta, OwnerReference, controller_of
from mooring.api.views.pod import Pod


@pytest.mark.parametrize(
    ("kind", "resource", "key"),
    [
        pytest.param(POD, "pods", "/registry/pods/default/a", id="pods"),
        pytest.param(NODE, "nodes", "/registry/minions/a", id="nodes have an old name"),
        pytest.param(SERVICE, "services", "/registry/services/specs/default/a", id="services share a folder"),
        pytest.param(ENDPOINTS, "endpoints", "/registry/services/endpoints/default/a", id="with endpoints"),
        pytest.param(
            REPLICATION_CONTROLLER,
            "replicationcontrollers",
            "/registry/controllers/default/a",
            id="the first controllers",
        ),
        pytest.param(DEPLOYMENT, "deployments.apps", "/registry/deployments/default/a", id="the group is no folder"),
        pytest.param(
            STORAGE_CLASS, "storageclasses.storage.k8s.io", "/registry/storageclasses/a", id="without a namespace"
        ),
        pytest.param(CORE_EVENT, "events", "/registry/events/default/a", id="events"),
        pytest.param(EVENT, "events.events.k8s.io", "/registry/events/default/a", id="both events in one folder"),
        pytest.param(
            CUSTOM_RESOURCE_DEFINITION,
            "customresourcedefinitions.apiextensions.k8s.io",
            "/registry/apiextensions.k8s.io/customresourcedefinitions/a",
            id="definitions have a folder for their group",
        ),
        pytest.param(
            Kind("example.com/v1", "Boat", "boats", folder="example.com/boats"),
            "boats.example.com",
            "/registry/example.com/boats/default/a",
            id="a kind of our own",
        ),
    ],
)
def test_resources_and_storage_keys_of_kinds(kind: Kind, resource: str, key: str) -> None:
    assert (kind.resource, kind.key("default", "a")) == (resource, key)
    assert key.startswith(kind.keys_prefix("default"))
    assert kind.keys_prefix("") == kind.key_prefix


@pytest.mark.parametrize("view", [pytest.param(view, id=view.__name__) for view in KINDS])
def test_a_kind_is_found_by_its_view_and_by_its_name(view: type[ApiObject]) -> None:
    row = kind_of_view(view)
    assert row.view is view
    assert kind_named(view.api_version, view.kind) is row


def test_a_kind_that_is_not_in_the_table_is_unknown() -> None:
    with pytest.raises(UnknownKindError) as raised:
        kind_named("v2", "Pod")
    assert "v1" in str(raised.value)


def test_rows_are_compared_by_identity() -> None:
    assert Kind("v1", "Pod", "pods", True, Pod, True, True) != POD
    assert str(DEPLOYMENT) == "apps/v1 Deployment"
    assert len({row.key_prefix for row in all_kinds()}) == len(list(all_kinds())) - 1  # the two events


# --- Who owns an object ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("owners", "controller"),
    [
        ([], None),
        ([("a", False)], None),
        ([("a", True)], "a"),
        ([("a", False), ("b", True)], "b"),
        ([("a", True), ("b", True)], "a"),
    ],
    ids=["nobody", "a mere owner", "one", "one of two", "the first"],
)
def test_the_controller_is_the_owner_marked_as_controller(
    owners: list[tuple[str, bool]], controller: str | None
) -> None:
    references = tuple(OwnerReference(name=name, controller=is_controller) for name, is_controller in owners)
    found = controller_of(ObjectMeta(owner_references=references))
    assert (found.name if found is not None else None) == controller
