"""Refusals have the words, the code and the details of kube-apiserver."""

from __future__ import annotations

import pytest

from mooring.api.kinds import DEPLOYMENT, POD
from mooring.apiserver.errors import (
    ahead,
    already_exists,
    conflict,
    list_gone,
    not_found,
    other_revision_in_deletion,
    other_uid_in_deletion,
    watch_gone,
)
from mooring.client.errors import StatusError
from mooring.store.interface import RevisionAhead, RevisionGone


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
def test_the_words_of_kubernetes(error: StatusError, code: int, reason: str, message: str) -> None:
    assert (error.code, error.reason, str(error)) == (code, reason, message)


def test_the_details_call_the_object_as_the_message_does() -> None:
    assert conflict(POD, "a", subresource="binding").details == {"name": "a", "kind": "pods/binding"}
    in_deletion = other_uid_in_deletion(DEPLOYMENT, "a", "u0", "u1")
    assert in_deletion.details == {"name": "a", "kind": "Deployment", "group": "apps"}


def test_the_details_name_the_object() -> None:
    assert not_found(DEPLOYMENT, "a").details == {"name": "a", "kind": "deployments", "group": "apps"}
