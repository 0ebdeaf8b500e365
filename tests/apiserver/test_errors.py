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
    ("error", "status", "message", "details"),
    [
        pytest.param(
            invalid_kind(POD, "p", [ONE]),
            (422, "Invalid"),
            'Pod "p" is invalid: spec.containers: Required value',
            {"name": "p", "kind": "Pod"},
            id="one error",
        ),
        pytest.param(
            invalid_kind(DEPLOYMENT, "d", [ONE, TWO]),
            (422, "Invalid"),
            'Deployment.apps "d" is invalid: [spec.containers: Required value, spec.replicas: Invalid value: -1: '
            "must be positive]",
            {"name": "d", "group": "apps", "kind": "Deployment"},
            id="several errors, and a group",
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
            id="an object without a name",
        ),
        pytest.param(
            revision_required(DEPLOYMENT, "d"),
            (422, "Invalid"),
            'deployments.apps "d" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an '
            "update",
            {"name": "d", "group": "apps", "kind": "deployments"},
            id="an update without a resource version",
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
            id="forbidden, without a name",
        ),
        pytest.param(
            internal("oops"),
            (500, "InternalError"),
            "Internal error occurred: oops",
            {},
            id="an internal error",
        ),
        pytest.param(plain_error("oops"), (500, ""), "oops", {}, id="an unexpected error"),
        pytest.param(
            uid_mismatch_on_create(NODE, "n", "u"),
            (409, "Conflict"),
            'Operation cannot be fulfilled on nodes "n": uid mismatch: the provided object specified uid u, and no '
            "existing object was found",
            {"name": "n", "kind": "nodes"},
            id="a PUT with a uid of a missing object",
        ),
        pytest.param(
            no_such_thing(),
            (404, "NotFound"),
            "the server could not find the requested resource",
            {},
            id="an unknown path",
        ),
        pytest.param(
            method_not_allowed(),
            (405, "MethodNotAllowed"),
            "the server does not allow this method on the requested resource",
            {},
            id="an unsupported method",
        ),
        pytest.param(
            method_not_supported(DEPLOYMENT, "create"),
            (405, "MethodNotAllowed"),
            'create is not supported on resources of kind "deployments.apps"',
            {"group": "apps", "kind": "deployments"},
            id="an unsupported method of a custom kind",
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
    error: StatusError, status: tuple[int, str], message: str, details: dict[str, str]
) -> None:
    assert ((error.code, error.reason), error.message, error.details) == (status, message, details)


def test_every_field_error_is_a_cause() -> None:
    assert invalid_kind(POD, "p", [ONE, TWO]).causes == (
        StatusCause("FieldValueRequired", "Required value", "spec.containers"),
        StatusCause("FieldValueInvalid", "Invalid value: -1: must be positive", "spec.replicas"),
    )


def test_the_message_of_an_internal_error_is_its_cause() -> None:
    assert internal("oops").causes == (StatusCause("", "oops", ""),)


@pytest.mark.parametrize(
    ("error", "has_details"),
    [
        pytest.param(no_such_thing(), True, id="an unknown path"),
        pytest.param(method_not_allowed(), True, id="an unsupported method"),
        pytest.param(other_namespace(), False, id="another namespace"),
        pytest.param(plain_error("oops"), False, id="an unexpected error"),
    ],
)
def test_errors_with_empty_details_or_without_details(error: StatusError, has_details: bool) -> None:
    assert error.has_details is has_details


def test_field_errors_beyond_the_limit_are_counted_but_not_listed() -> None:
    errors = [required(f"spec.a[{index}]") for index in range(FIELD_ERRORS_LISTED_MAX + 5)]
    error = invalid_object("Pod", "", "web", errors)
    assert len(error.causes) == FIELD_ERRORS_LISTED_MAX + 1
    assert error.causes[-1].message == "Invalid value: 5 more errors are not listed"
    assert f"spec.a[{FIELD_ERRORS_LISTED_MAX}]" not in error.message


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
            id="too large",
        ),
        pytest.param(StoreBusy("busy"), 429, "TooManyRequests", "busy", True, STORE_RETRY_S, id="busy"),
        pytest.param(StoreClosed("shut"), 503, "ServiceUnavailable", "shut", True, STORE_RETRY_S, id="closed"),
        pytest.param(
            StoreUnreachable("away"), 503, "ServiceUnavailable", "away", True, STORE_RETRY_S, id="unreachable"
        ),
        pytest.param(OutcomeUnknown("lost"), 504, "Timeout", "Timeout: lost", True, None, id="an unknown outcome"),
        pytest.param(WriteRefused("full"), 507, "InsufficientStorage", "full", True, None, id="a refused write"),
        pytest.param(
            StoreError("oops"), 500, "InternalError", "Internal error occurred: oops", True, None, id="another error"
        ),
    ],
)
def test_status_of_store_errors(
    error: StoreError, code: int, reason: str, message: str, may_retry: bool, after_s: float | None
) -> None:
    status = store_error_status(error)
    assert (status.code, status.reason, status.message) == (code, reason, message)
    assert (status.can_help_to_retry, status.retry_after_s) == (may_retry, after_s)


@pytest.mark.parametrize(
    ("error", "code", "reason", "message"),
    [
        pytest.param(not_found(POD, "a"), 404, "NotFound", 'pods "a" not found', id="not found"),
        pytest.param(
            not_found(DEPLOYMENT, "a"), 404, "NotFound", 'deployments.apps "a" not found', id="not found, with a group"
        ),
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
            id="a failed uid precondition",
        ),
        pytest.param(
            other_revision_in_deletion(POD, "a", "4", 5),
            409,
            "Conflict",
            'Operation cannot be fulfilled on Pod "a": the ResourceVersion in the precondition (4) does not match the '
            "ResourceVersion in record (5). The object might have been modified",
            id="a failed resource version precondition",
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
            id="a future revision",
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
