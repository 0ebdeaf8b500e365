"""Errors of the registry and of the store: code, reason, message and details equal those of kube-apiserver."""

from __future__ import annotations

import pytest

from mooring.api.kinds import DEPLOYMENT, EVENT, NODE, POD
from mooring.apiserver.errors import (
    FIELD_ERRORS_LISTED_MAX,
    STORE_RETRY_S,
    ahead,
    already_exists,
    conflict,
    forbidden,
    internal,
    invalid_kind,
    invalid_object,
    list_gone,
    method_not_allowed,
    method_not_supported,
    no_such_thing,
    not_found,
    other_namespace,
    other_revision_in_deletion,
    other_uid_in_deletion,
    plain_error,
    revision_required,
    store_error_status,
    uid_mismatch_on_create,
    watch_gone,
)
from mooring.apiserver.validation.fields import invalid, required
from mooring.client.errors import StatusCause, StatusError
from mooring.store.interface import (
    OutcomeUnknown,
    RevisionAhead,
    RevisionGone,
    StoreBusy,
    StoreClosed,
    StoreError,
    StoreUnreachable,
    ValueTooLarge,
    WriteRefused,
)

ONE = required("spec.containers")
TWO = invalid("spec.replicas", -1, "must be positive")


@pytest.mark.parametrize(
    ("refusal", "status", "message", "details"),
    [
        pytest.param(
            invalid_kind(POD, "p", [ONE]),
            (422, "Invalid"),
            'Pod "p" is invalid: spec.containers: Required value',
            {"name": "p", "kind": "Pod"},
            id="one fault",
        ),
        pytest.param(
            invalid_kind(DEPLOYMENT, "d", [ONE, TWO]),
            (422, "Invalid"),
            'Deployment.apps "d" is invalid: [spec.containers: Required value, spec.replicas: Invalid value: -1: '
            "must be positive]",
            {"name": "d", "group": "apps", "kind": "Deployment"},
            id="all faults, and the group",
        ),
        pytest.param(
            invalid_kind(EVENT, "e", [ONE]),
            (422, "Invalid"),
            'Event "e" is invalid: spec.containers: Required value',
            {"name": "e", "kind": "Event"},
            id="events of either API are core events",
        ),
        pytest.param(
            invalid_object("DeleteOptions", "meta.k8s.io", "", [ONE]),
            (422, "Invalid"),
            'DeleteOptions.meta.k8s.io "" is invalid: spec.containers: Required value',
            {"group": "meta.k8s.io", "kind": "DeleteOptions"},
            id="something without a name",
        ),
        pytest.param(
            revision_required(DEPLOYMENT, "d"),
            (422, "Invalid"),
            'deployments.apps "d" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an '
            "update",
            {"name": "d", "group": "apps", "kind": "deployments"},
            id="an update that does not say of what: here the resource is named",
        ),
        pytest.param(
            forbidden(POD, "p", "exceeded quota"),
            (403, "Forbidden"),
            'pods "p" is forbidden: exceeded quota',
            {"name": "p", "kind": "pods"},
            id="forbidden",
        ),
        pytest.param(
            forbidden(DEPLOYMENT, "", "no"),
            (403, "Forbidden"),
            "deployments.apps is forbidden: no",
            {"group": "apps", "kind": "deployments"},
            id="forbidden, before there is a name",
        ),
        pytest.param(
            internal("oops"),
            (500, "InternalError"),
            "Internal error occurred: oops",
            {},
            id="an internal error",
        ),
        pytest.param(plain_error("oops"), (500, ""), "oops", {}, id="an error that nobody foresaw"),
        pytest.param(
            uid_mismatch_on_create(NODE, "n", "u"),
            (409, "Conflict"),
            'Operation cannot be fulfilled on nodes "n": uid mismatch: the provided object specified uid u, and no '
            "existing object was found",
            {"name": "n", "kind": "nodes"},
            id="a PUT with a uid of something that is not there",
        ),
        pytest.param(
            no_such_thing(),
            (404, "NotFound"),
            "the server could not find the requested resource",
            {},
            id="no such address",
        ),
        pytest.param(
            method_not_allowed(),
            (405, "MethodNotAllowed"),
            "the server does not allow this method on the requested resource",
            {},
            id="no such method",
        ),
        pytest.param(
            method_not_supported(DEPLOYMENT, "create"),
            (405, "MethodNotAllowed"),
            'create is not supported on resources of kind "deployments.apps"',
            {"group": "apps", "kind": "deployments"},
            id="no such method, of a custom kind",
        ),
        pytest.param(
            other_namespace(),
            (400, "BadRequest"),
            "the namespace of the provided object does not match the namespace sent on the request",
            {},
            id="another namespace",
        ),
    ],
)
def test_errors_of_the_registry(
    refusal: StatusError, status: tuple[int, str], message: str, details: dict[str, str]
) -> None:
    assert ((refusal.code, refusal.reason), refusal.message, refusal.details) == (status, message, details)


def test_every_field_error_is_a_cause() -> None:
    assert invalid_kind(POD, "p", [ONE, TWO]).causes == (
        StatusCause("FieldValueRequired", "Required value", "spec.containers"),
        StatusCause("FieldValueInvalid", "Invalid value: -1: must be positive", "spec.replicas"),
    )


def test_the_message_of_an_internal_error_is_its_cause() -> None:
    assert internal("oops").causes == (StatusCause("", "oops", ""),)


@pytest.mark.parametrize(
    ("refusal", "has_details"),
    [
        pytest.param(no_such_thing(), True, id="empty ones, where kube-apiserver writes empty ones"),
        pytest.param(method_not_allowed(), True, id="here too"),
        pytest.param(other_namespace(), False, id="none"),
        pytest.param(plain_error("oops"), False, id="none of an error that nobody foresaw"),
    ],
)
def test_errors_with_empty_details_or_without_details(refusal: StatusError, has_details: bool) -> None:
    assert refusal.has_details is has_details


def test_field_errors_beyond_the_limit_are_counted_but_not_listed() -> None:
    errors = [required(f"spec.a[{index}]") for index in range(FIELD_ERRORS_LISTED_MAX + 5)]
    refusal = invalid_object("Pod", "", "web", errors)
    assert len(refusal.causes) == FIELD_ERRORS_LISTED_MAX + 1
    assert refusal.causes[-1].message == "Invalid value: 5 more errors are not listed"
    assert f"spec.a[{FIELD_ERRORS_LISTED_MAX}]" not in refusal.message


@pytest.mark.parametrize(
    ("error", "code", "reason", "message", "may_retry", "after_s"),
    [
        pytest.param(
            ValueTooLarge("2 MB"),
            413,
            "RequestEntityTooLarge",
            "Request entity too large: 2 MB",
            False,
            None,
            id="it will never fit",
        ),
        pytest.param(StoreBusy("busy"), 429, "TooManyRequests", "busy", True, STORE_RETRY_S, id="later"),
        pytest.param(StoreClosed("shut"), 503, "ServiceUnavailable", "shut", True, STORE_RETRY_S, id="it was shut"),
        pytest.param(StoreUnreachable("away"), 503, "ServiceUnavailable", "away", True, STORE_RETRY_S, id="it is away"),
        pytest.param(OutcomeUnknown("lost"), 504, "Timeout", "Timeout: lost", True, None, id="it may have been done"),
        pytest.param(WriteRefused("full"), 507, "InsufficientStorage", "full", True, None, id="no room"),
        pytest.param(
            StoreError("oops"), 500, "InternalError", "Internal error occurred: oops", True, None, id="anything else"
        ),
    ],
)
def test_status_of_store_errors(
    error: StoreError, code: int, reason: str, message: str, may_retry: bool, after_s: float | None
) -> None:
    told = store_error_status(error)
    assert (told.code, told.reason, told.message) == (code, reason, message)
    assert (told.can_help_to_retry, told.retry_after_s) == (may_retry, after_s)


@pytest.mark.parametrize(
    ("error", "code", "reason", "message"),
    [
        pytest.param(not_found(POD, "a"), 404, "NotFound", 'pods "a" not found', id="not found"),
        pytest.param(not_found(DEPLOYMENT, "a"), 404, "NotFound", 'deployments.apps "a" not found', id="of a group"),
        pytest.param(already_exists(POD, "a"), 409, "AlreadyExists", 'pods "a" already exists', id="already exists"),
        pytest.param(
            conflict(POD, "a"),
            409,
            "Conflict",
            'Operation cannot be fulfilled on pods "a": the object has been modified; '
            "please apply your changes to the latest version and try again",
            id="modified",
        ),
        pytest.param(
            other_uid_in_deletion(DEPLOYMENT, "a", "u0", "u1"),
            409,
            "Conflict",
            'Operation cannot be fulfilled on Deployment.apps "a": the UID in the precondition (u0) does not match the '
            "UID in record (u1). The object might have been deleted and then recreated",
            id="another object is to be deleted",
        ),
        pytest.param(
            other_revision_in_deletion(POD, "a", "4", 5),
            409,
            "Conflict",
            'Operation cannot be fulfilled on Pod "a": the ResourceVersion in the precondition (4) does not match the '
            "ResourceVersion in record (5). The object might have been modified",
            id="another state is to be deleted",
        ),
        pytest.param(
            list_gone(RevisionGone(3, 9), is_continued=False),
            410,
            "Expired",
            "too old resource version: 3",
            id="a list",
        ),
        pytest.param(watch_gone(RevisionGone(3, 9)), 410, "Expired", "too old resource version: 3 (9)", id="a watch"),
        pytest.param(
            ahead(RevisionAhead(9, 3)),
            504,
            "Timeout",
            "Timeout: Too large resource version: 9, current: 3",
            id="the future",
        ),
    ],
)
def test_errors_of_the_storage(error: StatusError, code: int, reason: str, message: str) -> None:
    assert (error.code, error.reason, str(error)) == (code, reason, message)


def test_details_name_the_kind_as_the_message_does() -> None:
    assert conflict(POD, "a", subresource="binding").details == {"name": "a", "kind": "pods/binding"}
    in_deletion = other_uid_in_deletion(DEPLOYMENT, "a", "u0", "u1")
    assert in_deletion.details == {"name": "a", "kind": "Deployment", "group": "apps"}


def test_details_name_the_object() -> None:
    assert not_found(DEPLOYMENT, "a").details == {"name": "a", "kind": "deployments", "group": "apps"}
