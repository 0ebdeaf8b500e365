"""What a server adds to what is sent, keeps of it, and refuses in it."""

from __future__ import annotations

import pytest

from mooring.api.kinds import CONFIG_MAP, NODE, POD, REPLICA_SET, Kind
from mooring.apiserver.storage.stored_form import PlainObject
from mooring.client.errors import BadRequestError, ConflictError, InvalidError, NotFoundError, ServerError, StatusError
from mooring.client.interface import PatchForm
from tests.fakes.raw_pods import part_of
from tests.fakes.raw_write import is_finished, metadata_of, new_metadata, patched, updated

NOW = "2026-01-01T00:00:00Z"


def stored(kind: Kind = POD, **parts: object) -> PlainObject:
    metadata: PlainObject = {"name": "web", "namespace": "default", "uid": "u1", "creationTimestamp": NOW}
    if kind.has_generation:
        metadata["generation"] = 3
    metadata.update(parts.pop("metadata", {}))  # type: ignore[call-overload]
    return {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata, **parts}


def update(current: PlainObject, body: PlainObject, kind: Kind = POD, subresource: str = "") -> PlainObject:
    return updated(kind, current, 5, body, key="/registry/pods/default/web", subresource=subresource)


@pytest.mark.parametrize(
    ("kind", "given", "metadata"),
    [
        pytest.param(
            POD,
            {"name": "web", "labels": {"a": "b"}},
            {
                "name": "web",
                "namespace": "default",
                "uid": "u1",
                "generation": 1,
                "creationTimestamp": NOW,
                "labels": {"a": "b"},
            },
            id="a pod",
        ),
        pytest.param(
            CONFIG_MAP,
            {"name": "web", "uid": "mine", "generation": 9, "deletionTimestamp": NOW, "namespace": "default"},
            {"name": "web", "namespace": "default", "uid": "u1", "creationTimestamp": NOW},
            id="the system's fields are the system's; a config map counts no generations",
        ),
        pytest.param(
            NODE,
            {"name": "n1", "namespace": "elsewhere"},
            {"name": "n1", "uid": "u1", "creationTimestamp": NOW},
            id="a node lives in no namespace",
        ),
        pytest.param(
            CONFIG_MAP,
            {"generateName": "web-"},
            {"name": "", "namespace": "default", "uid": "u1", "creationTimestamp": NOW, "generateName": "web-"},
            id="the name is still to be made",
        ),
    ],
)
def test_a_new_object_gets_its_identity(kind: Kind, given: PlainObject, metadata: PlainObject) -> None:
    assert new_metadata(kind, "default", {"metadata": given}, uid="u1", now=NOW) == metadata


@pytest.mark.parametrize(
    ("namespace", "given", "error", "words"),
    [
        pytest.param("", {"name": "a"}, BadRequestError, "an empty namespace may not be set", id="no namespace"),
        pytest.param("default", {"name": "a", "namespace": "b"}, BadRequestError, "does not match", id="another one"),
        pytest.param("default", {}, InvalidError, "name or generateName is required", id="no name"),
        pytest.param("default", {"name": "a/b"}, InvalidError, "may not contain '/'", id="a name that is a path"),
        pytest.param(
            "default", {"name": "a", "resourceVersion": "4"}, BadRequestError, "should not be set", id="a revision"
        ),
    ],
)
def test_an_object_that_is_none_is_refused(
    namespace: str, given: PlainObject, error: type[StatusError], words: str
) -> None:
    with pytest.raises(error) as refusal:
        new_metadata(POD, namespace, {"metadata": given}, uid="u1", now=NOW)
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    ("kind", "current", "body", "result"),
    [
        pytest.param(
            POD,
            stored(spec={"a": 1}, status={"phase": "Running"}),
            {"metadata": {"name": "web", "labels": {"x": "y"}}, "spec": {"a": 1}, "status": {"phase": "Failed"}},
            stored(metadata={"labels": {"x": "y"}}, spec={"a": 1}, status={"phase": "Running"}),
            id="labels change, the status does not, and nothing else is wanted",
        ),
        pytest.param(
            POD,
            stored(spec={"a": 1}),
            {"spec": {"a": 2}},
            stored(metadata={"generation": 4}, spec={"a": 2}),
            id="something else is wanted",
        ),
        pytest.param(
            NODE,
            stored(NODE, spec={"a": 1}, status={"x": 1}),
            {"spec": {"a": 2}},
            stored(NODE, spec={"a": 2}, status={"x": 1}),
            id="a node counts no generations",
        ),
        pytest.param(
            CONFIG_MAP,
            stored(CONFIG_MAP, data={"a": "1"}, status={"odd": 1}),
            {"data": {"b": "2"}, "status": {"odd": 2}},
            stored(CONFIG_MAP, data={"b": "2"}, status={"odd": 2}),
            id="where there is no status subresource a status is a field like others",
        ),
        pytest.param(
            POD,
            stored(metadata={"deletionTimestamp": NOW, "deletionGracePeriodSeconds": 30}, spec={}),
            {"metadata": {"deletionTimestamp": "never", "generation": 99}, "spec": {}},
            stored(metadata={"deletionTimestamp": NOW, "deletionGracePeriodSeconds": 30}, spec={}),
            id="what is ending goes on ending",
        ),
    ],
)
def test_an_update(kind: Kind, current: PlainObject, body: PlainObject, result: PlainObject) -> None:
    assert update(current, body, kind) == result


def test_a_status_update_changes_annotations_too() -> None:
    body = {"metadata": {"name": "web", "labels": {"x": "y"}, "annotations": {"a": "b"}}, "status": {"phase": "Failed"}}
    result = update(stored(spec={"a": 1}, status={"phase": "Running"}), body, subresource="status")
    assert result["metadata"] == stored(metadata={"annotations": {"a": "b"}})["metadata"]
    assert result["status"] == {"phase": "Failed"}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(
            {"status": {"phase": "Failed"}, "spec": {"a": 2}}, {"phase": "Failed"}, id="the status is replaced"
        ),
        pytest.param({"spec": {"a": 2}}, None, id="a body without one clears it"),
    ],
)
def test_a_status_update_changes_only_the_status(body: PlainObject, status: object) -> None:
    result = update(stored(spec={"a": 1}, status={"phase": "Running"}), body, subresource="status")
    assert (result.get("status"), result["spec"], result["metadata"]) == (status, {"a": 1}, stored()["metadata"])


@pytest.mark.parametrize(
    ("body", "subresource", "error"),
    [
        pytest.param({"metadata": {"resourceVersion": "4"}}, "", ConflictError, id="made from an older state"),
        pytest.param({"metadata": {"uid": "u0"}}, "", ConflictError, id="made from another object"),
        pytest.param({"metadata": {"name": "www"}}, "", BadRequestError, id="with another name"),
        pytest.param({"metadata": {"namespace": "other"}}, "", BadRequestError, id="in another namespace"),
        pytest.param({"kind": "Node"}, "", BadRequestError, id="of another kind"),
        pytest.param({}, "nowhere", NotFoundError, id="through a door that is none"),
    ],
)
def test_an_update_is_refused(body: PlainObject, subresource: str, error: type[StatusError]) -> None:
    with pytest.raises(error):
        update(stored(spec={}), body, subresource=subresource)


@pytest.mark.parametrize(
    ("patch", "form", "error", "code"),
    [
        pytest.param(
            [{"op": "test", "path": "/spec", "value": 1}], PatchForm.JSON, InvalidError, 422, id="a test that fails"
        ),
        pytest.param({"spec": {}}, PatchForm.JSON, BadRequestError, 400, id="no list of steps"),
        pytest.param([], PatchForm.MERGE, BadRequestError, 400, id="no object"),
        pytest.param(
            {"spec": {"containers": [{}]}}, PatchForm.STRATEGIC, ServerError, 500, id="an item without its key"
        ),
        pytest.param({"metadata": None}, PatchForm.MERGE, InvalidError, 422, id="the metadata taken away"),
        pytest.param({"metadata": {"name": None}}, PatchForm.MERGE, BadRequestError, 400, id="the name taken away"),
        pytest.param({"metadata": {"namespace": "x"}}, PatchForm.MERGE, BadRequestError, 400, id="another namespace"),
        pytest.param({"metadata": {"resourceVersion": "4"}}, PatchForm.MERGE, ConflictError, 409, id="another state"),
        pytest.param({"kind": "Node"}, PatchForm.MERGE, BadRequestError, 400, id="another kind"),
        pytest.param({}, PatchForm.APPLY, StatusError, 415, id="apply"),
    ],
)
def test_a_patch_is_refused(patch: object, form: PatchForm, error: type[StatusError], code: int) -> None:
    with pytest.raises(error) as refusal:
        patched(POD, stored(spec={"containers": [{"name": "a"}]}), 5, patch, form, subresource="")
    assert refusal.value.code == code


def test_a_patch_sees_the_revision_and_leaves_what_comes_in_alone() -> None:
    current = stored(REPLICA_SET, spec={"replicas": 1})
    steps = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": "5"},
        {"op": "replace", "path": "/spec/replicas", "value": 2},
    ]
    result = patched(REPLICA_SET, current, 5, steps, PatchForm.JSON, subresource="")
    assert result == stored(REPLICA_SET, metadata={"generation": 4}, spec={"replicas": 2})
    assert current == stored(REPLICA_SET, spec={"replicas": 1})


@pytest.mark.parametrize(
    ("had", "has", "is_gone"),
    [
        pytest.param(
            {"deletionTimestamp": NOW, "deletionGracePeriodSeconds": 0, "finalizers": ["a"]}, {}, True, id="the last"
        ),
        pytest.param({"deletionTimestamp": NOW}, {"finalizers": ["a"]}, False, id="one is left"),
        pytest.param({"deletionTimestamp": NOW, "deletionGracePeriodSeconds": 30}, {}, False, id="it still has time"),
        pytest.param({"finalizers": ["a"]}, {}, False, id="nobody deleted it"),
    ],
)
def test_an_object_that_waited_for_its_finalizers_is_gone_without_them(
    had: PlainObject, has: PlainObject, is_gone: bool
) -> None:
    assert is_finished({"metadata": had}, {"metadata": has}) is is_gone


@pytest.mark.parametrize(
    ("plain", "found"),
    [
        pytest.param({"metadata": {"name": "a"}, "spec": {"x": 1}}, ({"name": "a"}, {"x": 1}), id="both are there"),
        pytest.param({}, ({}, {}), id="neither is"),
        pytest.param({"metadata": None, "spec": "text"}, ({}, {}), id="they are no objects"),
    ],
)
def test_parts_of_an_object_can_be_read_even_if_they_are_absent(
    plain: PlainObject, found: tuple[PlainObject, PlainObject]
) -> None:
    assert (metadata_of(plain), part_of(plain, "spec")) == found


def test_metadata_is_a_copy_to_be_changed() -> None:
    plain: PlainObject = {"metadata": {"name": "a"}}
    metadata_of(plain)["name"] = "b"
    assert plain == {"metadata": {"name": "a"}}
