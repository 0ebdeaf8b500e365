"""Delete: immediate and graceful deletion, finalizers, preconditions, and the response.

Also the validation of delete options, and the first delete of a CustomResourceDefinition, which only marks it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from mooring.api.document import Document
from mooring.api.kinds import (
    CONFIG_MAP,
    CORE_EVENT,
    CUSTOM_RESOURCE_DEFINITION,
    POD,
    REPLICATION_CONTROLLER,
    SERVICE,
    Kind,
)
from mooring.apiserver.admission.interface import AdmissionChain, Attempt
from mooring.apiserver.call import Call
from mooring.apiserver.registry.delete import (
    CLEANUP_FINALIZER,
    Deleted,
    DeleteOptions,
    checked_delete_options,
    delete,
    mark_definition,
)
from mooring.apiserver.registry.object_storage import StoredObject
from mooring.client.errors import ConflictError, InvalidError, NotFoundError, StatusError
from mooring.kit.clock import format_rfc3339
from mooring.kit.loop import run
from mooring.serving.users import User
from tests.apiserver.custom.definitions import definition
from tests.apiserver.registry.fixture import NOW, NOW_S, NS, RegistryFixture, call

ORPHAN, FOREGROUND, OWN = "orphan", "foregroundDeletion", "example.com/mine"
PLAIN = DeleteOptions()


class After(NamedTuple):
    answer: Deleted
    left: Document | None
    """The stored object; None if it was deleted."""
    warnings: list[str]


def deleted(
    kind: Kind = CONFIG_MAP,
    options: DeleteOptions = PLAIN,
    metadata: Document | None = None,
    *,
    is_dry_run: bool = False,
    **parts: Any,
) -> After:
    """Create one object, delete it, and return the result."""

    async def main() -> After:
        api_server = RegistryFixture()
        await api_server.put(kind, "o", metadata, **parts)
        api_call = call(kind, "o", is_dry_run=is_dry_run)
        answer = await delete(api_server.context, api_server.context.resources.of_kind(kind), api_call, options)
        found = await api_server.context.object_storage.find(kind, NS, "o")
        return After(answer, found.document if found is not None else None, api_call.warnings)

    return run(main())


def running(metadata: Document | None = None, grace_s: int | None = None, **how: Any) -> After:
    """Delete a pod on a node. Its grace period is 30 seconds unless the request has another one."""
    spec = {"containers": [], "nodeName": "n", "terminationGracePeriodSeconds": 30}
    return deleted(POD, DeleteOptions(grace_s=grace_s), metadata, spec=spec, status={"phase": "Running"}, **how)


# --- immediate deletion -----------------------------------------------------------------------------------------------


def test_delete_removes_an_object_without_finalizers_and_returns_a_status() -> None:
    after = deleted()
    assert after.left is None
    assert after.answer == Deleted(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {"name": "o", "kind": "configmaps", "uid": "uid-o"},
        },
        is_gone=True,
    )


def test_delete_of_a_service_returns_the_deleted_object() -> None:
    answer = deleted(SERVICE, spec={}).answer
    assert answer.is_gone
    assert (answer.document["metadata"]["name"], answer.document["metadata"]["resourceVersion"]) == ("o", "3")


@pytest.mark.parametrize(
    ("spec", "phase"),
    [
        pytest.param({}, "Pending", id="not bound"),
        pytest.param({"nodeName": "n"}, "Succeeded", id="succeeded"),
        pytest.param({"nodeName": "n"}, "Failed", id="failed"),
    ],
)
def test_a_pod_that_does_not_run_is_deleted_immediately(spec: Document, phase: str) -> None:
    spec = {"containers": [], "terminationGracePeriodSeconds": 30, **spec}
    after = deleted(POD, spec=spec, status={"phase": phase})
    assert after.left is None
    assert after.answer.is_gone
    assert after.answer.document["metadata"]["deletionGracePeriodSeconds"] == 0


# --- graceful deletion ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grace_s", "stamp", "given_s"),
    [
        pytest.param(None, "2026-01-02T03:04:35Z", 30, id="grace period of the pod"),
        pytest.param(5, "2026-01-02T03:04:10Z", 5, id="shorter grace period in the request"),
        pytest.param(60, "2026-01-02T03:05:05Z", 60, id="longer grace period in the request"),
        pytest.param(-7, "2026-01-02T03:04:06Z", 1, id="negative grace period becomes one second"),
    ],
)
def test_delete_marks_a_running_pod_with_its_grace_period(grace_s: int | None, stamp: str, given_s: int) -> None:
    after = running({"generation": 4}, grace_s)
    assert after.left is not None
    metadata = after.left["metadata"]
    assert (metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"]) == (stamp, given_s)
    assert metadata["generation"] == 5
    assert not after.answer.is_gone
    assert after.answer.document["metadata"]["deletionTimestamp"] == stamp
    assert after.answer.document["metadata"]["resourceVersion"] == "3"


def test_a_grace_period_of_zero_deletes_a_running_pod_immediately() -> None:
    after = running(grace_s=0)
    assert (after.left, after.answer.is_gone) == (None, True)


def begun(s_ago: int = 0) -> Document:
    """Metadata of a pod whose deletion began `s_ago` seconds ago with a grace period of 30 seconds."""
    at = format_rfc3339(NOW_S + 30 - s_ago)
    return {"deletionTimestamp": at, "deletionGracePeriodSeconds": 30, "generation": 5}


@pytest.mark.parametrize(
    ("grace_s", "began_s_ago", "stamp", "left_s"),
    [
        pytest.param(None, 0, "2026-01-02T03:04:35Z", 30, id="no grace period in the request"),
        pytest.param(30, 0, "2026-01-02T03:04:35Z", 30, id="same grace period"),
        pytest.param(60, 0, "2026-01-02T03:04:35Z", 30, id="longer grace period is ignored"),
        pytest.param(10, 0, "2026-01-02T03:04:15Z", 10, id="shortened at once, counted from the start of the deletion"),
        pytest.param(10, 4, "2026-01-02T03:04:11Z", 10, id="shortened later, counted from the start of the deletion"),
        pytest.param(10, 20, "2026-01-02T03:04:05Z", 1, id="shortened to a time that has passed"),
        pytest.param(-7, 0, "2026-01-02T03:04:06Z", 1, id="negative grace period becomes one second"),
    ],
)
def test_a_repeated_delete_can_only_shorten_the_grace_period(
    grace_s: int | None, began_s_ago: int, stamp: str, left_s: int
) -> None:
    after = running(begun(began_s_ago), grace_s)
    assert after.left is not None
    metadata = after.left["metadata"]
    assert (metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"]) == (stamp, left_s)
    assert metadata["generation"] == 5, "generation is incremented only once"
    assert not after.answer.is_gone


def test_a_grace_period_of_zero_deletes_a_terminating_pod() -> None:
    after = running(begun(), grace_s=0)
    assert (after.left, after.answer.is_gone) == (None, True)


# --- finalizers and dependents ----------------------------------------------------------------------------------------


def test_delete_marks_an_object_with_finalizers_once() -> None:
    after = deleted(metadata={"finalizers": [OWN], "generation": 2})
    assert after.left is not None
    metadata = after.left["metadata"]
    assert (metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"]) == (NOW, 0)
    assert (metadata["finalizers"], metadata["generation"]) == ([OWN], 3)
    assert not after.answer.is_gone
    again = deleted(metadata={key: metadata[key] for key in metadata if key != "resourceVersion"})
    assert again.left is not None
    assert again.left["metadata"]["generation"] == 3
    assert again.left["metadata"]["resourceVersion"] == "2", "nothing was written"


@pytest.mark.parametrize(
    ("kind", "have", "options", "finalizers"),
    [
        pytest.param(CONFIG_MAP, [OWN], PLAIN, [OWN], id="no policy"),
        pytest.param(CONFIG_MAP, [], DeleteOptions(propagation="Orphan"), [ORPHAN], id="Orphan"),
        pytest.param(CONFIG_MAP, [], DeleteOptions(orphans=True), [ORPHAN], id="orphanDependents"),
        pytest.param(CONFIG_MAP, [OWN], DeleteOptions(propagation="Foreground"), [OWN, FOREGROUND], id="Foreground"),
        pytest.param(
            CONFIG_MAP,
            [ORPHAN],
            DeleteOptions(propagation="Foreground"),
            [FOREGROUND],
            id="Foreground replaces the orphan finalizer",
        ),
        pytest.param(CONFIG_MAP, [FOREGROUND], PLAIN, [FOREGROUND], id="existing finalizer without a policy"),
        pytest.param(
            CONFIG_MAP,
            [ORPHAN],
            DeleteOptions(propagation="Background"),
            None,
            id="Background removes the orphan finalizer",
        ),
        pytest.param(
            CONFIG_MAP,
            [ORPHAN],
            DeleteOptions(orphans=False),
            None,
            id="orphanDependents of false removes the orphan finalizer",
        ),
        pytest.param(REPLICATION_CONTROLLER, [], PLAIN, [ORPHAN], id="replication controllers default to Orphan"),
        pytest.param(
            REPLICATION_CONTROLLER,
            [],
            DeleteOptions(propagation="Background"),
            None,
            id="replication controller with Background",
        ),
        pytest.param(
            CORE_EVENT, [], DeleteOptions(propagation="Foreground"), None, id="Foreground of a kind without dependents"
        ),
    ],
)
def test_the_propagation_policy_sets_the_deletion_finalizers(
    kind: Kind, have: list[str], options: DeleteOptions, finalizers: list[str] | None
) -> None:
    after = deleted(kind, options, {"finalizers": have} if have else {}, spec={})
    assert (None if after.left is None else after.left["metadata"]["finalizers"]) == finalizers
    assert after.answer.is_gone is (finalizers is None)


# --- preconditions, dry runs, admission, options ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "why"),
    [
        pytest.param(
            DeleteOptions(uid="x"),
            "the UID in the precondition (x) does not match the UID in record (uid-o). The object might have been "
            "deleted and then recreated",
            id="uid",
        ),
        pytest.param(
            DeleteOptions(uid="uid-o", revision="1"),
            "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (2). The object "
            "might have been modified",
            id="resourceVersion",
        ),
    ],
)
def test_delete_with_a_failed_precondition_is_a_conflict(options: DeleteOptions, why: str) -> None:
    with pytest.raises(ConflictError) as caught:
        deleted(CONFIG_MAP, options)
    assert caught.value.message == f'Operation cannot be fulfilled on ConfigMap "o": {why}'
    assert deleted(CONFIG_MAP, DeleteOptions(uid="uid-o", revision="2")).left is None


def test_delete_of_a_missing_object_is_not_found() -> None:
    async def main() -> None:
        api_server = RegistryFixture()
        await delete(api_server.context, api_server.context.resources.of_kind(CONFIG_MAP), call(CONFIG_MAP, "o"), PLAIN)

    with pytest.raises(NotFoundError, match='configmaps "o" not found'):
        run(main())


@pytest.mark.parametrize("kind", [CONFIG_MAP, POD], ids=["config map", "pod"])
def test_a_dry_run_delete_returns_a_response_and_changes_nothing(kind: Kind) -> None:
    real, tried = deleted(kind, spec={"containers": []}), deleted(kind, spec={"containers": []}, is_dry_run=True)
    assert (real.answer.is_gone, tried.answer.is_gone) == (True, True)
    assert tried.left is not None
    assert "deletionTimestamp" not in tried.left["metadata"]
    assert running(is_dry_run=True).left is not None
    assert "deletionTimestamp" not in running(is_dry_run=True).left["metadata"]  # type: ignore[index]


def test_a_delete_rejected_by_admission_changes_nothing() -> None:
    class RejectDeletion(AdmissionChain):
        async def check_deletion(self, attempt: Attempt) -> None:
            assert attempt.old is not None
            raise StatusError(f"not {attempt.old['metadata']['name']}", code=403)

    async def main() -> None:
        api_server = RegistryFixture()
        await api_server.put(CONFIG_MAP, "o")
        parts = replace(api_server.context, admission=RejectDeletion((), (), api_server.context.lookup))
        with pytest.raises(StatusError, match="not o"):
            await delete(parts, parts.resources.of_kind(CONFIG_MAP), call(CONFIG_MAP, "o"), PLAIN)
        await api_server.get(CONFIG_MAP, "o")

    run(main())


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({}, (DeleteOptions(), False)),
        ({"gracePeriodSeconds": 0, "dryRun": ["All"]}, (DeleteOptions(grace_s=0), True)),
        ({"preconditions": {"uid": "u", "resourceVersion": "1"}}, (DeleteOptions(uid="u", revision="1"), False)),
        ({"propagationPolicy": "Orphan"}, (DeleteOptions(propagation="Orphan"), False)),
        ({"orphanDependents": True}, (DeleteOptions(orphans=True), False)),
    ],
    ids=["none", "no grace period, dry run", "preconditions", "propagationPolicy", "orphanDependents"],
)
def test_delete_options_are_read(document: Document, expected: tuple[DeleteOptions, bool]) -> None:
    assert checked_delete_options(document) == expected


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        (
            {"orphanDependents": True, "propagationPolicy": "Orphan"},
            'propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set',
        ),
        (
            {"propagationPolicy": "x"},
            'propagationPolicy: Unsupported value: "x": supported values: "Foreground", "Background", "Orphan", "nil"',
        ),
        ({"dryRun": ["x"]}, 'dryRun: Unsupported value: ["x"]: supported values: "All"'),
    ],
    ids=["orphanDependents and propagationPolicy", "unknown policy", "unknown dryRun value"],
)
def test_invalid_delete_options_are_rejected(document: Document, fault: str) -> None:
    with pytest.raises(InvalidError) as caught:
        checked_delete_options(document)
    assert caught.value.message == f'DeleteOptions.meta.k8s.io "" is invalid: {fault}'


def test_the_first_delete_of_a_custom_resource_definition_only_marks_it() -> None:
    async def main(*, is_dry_run: bool) -> tuple[Document, Any]:
        api_server = RegistryFixture()
        object_storage, resource = (
            api_server.context.object_storage,
            api_server.context.resources.of_kind(CUSTOM_RESOURCE_DEFINITION),
        )
        revision = (await object_storage.create(CUSTOM_RESOURCE_DEFINITION, definition())).revision
        call = Call("delete", CUSTOM_RESOURCE_DEFINITION, User("u"), 0.0, NOW, is_dry_run=is_dry_run)
        marked = await mark_definition(api_server.context, resource, call, StoredObject(definition(), revision, b""))
        found = await object_storage.find(CUSTOM_RESOURCE_DEFINITION, "", "widgets.example.com")
        return marked, found

    marked, found = run(main(is_dry_run=False))
    assert marked["metadata"]["finalizers"] == [CLEANUP_FINALIZER]
    assert marked["metadata"]["deletionTimestamp"] == NOW
    assert marked["status"]["conditions"][-1]["reason"] == "InstanceDeletionPending"
    assert found.document["metadata"]["deletionTimestamp"] == NOW
    _, untouched = run(main(is_dry_run=True))
    assert "deletionTimestamp" not in untouched.document["metadata"]
