"""System fields of metadata, and checks of name and namespace against the URL."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import NODE, POD, Kind
from mooring.apiserver.registry.metadata import (
    GENERATED_NAME_LENGTH_MAX,
    drop_duplicate_owners,
    ensure_name,
    ensure_namespace,
    fill_system_fields,
    generated_name,
    keep_system_fields,
    wipe_system_fields,
)
from mooring.client.errors import BadRequestError
from mooring.kit.entropy import SUFFIX_LENGTH, Entropy
from tests.apiserver.registry.fixture import NOW, call

FORGED: Document = {
    "uid": "mine",
    "creationTimestamp": "1999-01-01T00:00:00Z",
    "deletionTimestamp": "1999-01-01T00:00:00Z",
    "deletionGracePeriodSeconds": 5,
    "selfLink": "/here",
}


def test_create_replaces_the_system_fields_of_metadata() -> None:
    metadata = {"name": "p", "labels": {"a": "b"}, **FORGED}
    wipe_system_fields(metadata)
    assert metadata == {"name": "p", "labels": {"a": "b"}}
    fill_system_fields(metadata, call(POD, "p"), Entropy(1))
    other: Document = {}
    fill_system_fields(other, call(POD, "q"), Entropy(2))
    assert (metadata["creationTimestamp"], len(metadata["uid"])) == (NOW, 36)
    assert metadata["uid"] != other["uid"]


OLD: Document = {"name": "p", "uid": "u", "creationTimestamp": NOW}
DYING: Document = {**OLD, "deletionTimestamp": NOW, "deletionGracePeriodSeconds": 30}


@pytest.mark.parametrize(
    ("sent", "old", "kept"),
    [
        pytest.param({"name": "p"}, OLD, OLD, id="absent fields are restored"),
        pytest.param(
            {**OLD, "creationTimestamp": "1999-01-01T00:00:00Z"},
            OLD,
            OLD,
            id="another creationTimestamp is overwritten",
        ),
        pytest.param({**OLD, "selfLink": "/here"}, OLD, OLD, id="selfLink is dropped"),
        pytest.param({**OLD, "uid": "x"}, OLD, {**OLD, "uid": "x"}, id="another uid is left to validation"),
        pytest.param(OLD, DYING, DYING, id="deletionTimestamp is restored"),
        pytest.param(
            {**OLD, "deletionGracePeriodSeconds": 5},
            DYING,
            {**DYING, "deletionGracePeriodSeconds": 5},
            id="another grace period is left to validation",
        ),
    ],
)
def test_update_restores_the_system_fields_of_metadata(sent: Document, old: Document, kept: Document) -> None:
    metadata = dict(sent)
    keep_system_fields(metadata, old)
    assert metadata == kept


@pytest.mark.parametrize(
    ("kind", "sent", "kept"),
    [
        pytest.param(POD, {}, {"namespace": "team"}, id="absent"),
        pytest.param(POD, {"namespace": ""}, {"namespace": "team"}, id="empty"),
        pytest.param(POD, {"namespace": "team"}, {"namespace": "team"}, id="same namespace"),
        pytest.param(NODE, {"namespace": "team"}, {}, id="removed from a cluster-scoped object"),
    ],
)
def test_ensure_namespace_sets_the_namespace_of_the_url(kind: Kind, sent: Document, kept: Document) -> None:
    metadata = dict(sent)
    ensure_namespace(kind, metadata, "team")
    assert metadata == kept


def test_ensure_namespace_rejects_another_namespace() -> None:
    with pytest.raises(BadRequestError) as caught:
        ensure_namespace(POD, {"namespace": "other"}, "team")
    assert caught.value.message == (
        "the namespace of the provided object does not match the namespace sent on the request"
    )


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        pytest.param(
            {}, "the name of the object (p based on URL) was undeterminable: name must be provided", id="no name"
        ),
        pytest.param(
            {"name": "q"}, "the name of the object (q) does not match the name on the URL (p)", id="another name"
        ),
    ],
)
def test_ensure_name_rejects_a_name_that_differs_from_the_url(metadata: Document, message: str) -> None:
    ensure_name({"name": "p"}, call(POD, "p"))
    with pytest.raises(BadRequestError) as caught:
        ensure_name(metadata, call(POD, "p"))
    assert caught.value.message == message


@pytest.mark.parametrize("prefix", ["web-", "x" * 200], ids=["short", "too long"])
def test_a_generated_name_begins_with_its_prefix_and_is_a_label(prefix: str) -> None:
    name, other = generated_name(prefix, Entropy(1)), generated_name(prefix, Entropy(2))
    assert len(name) == min(len(prefix) + SUFFIX_LENGTH, GENERATED_NAME_LENGTH_MAX)
    assert name[:-SUFFIX_LENGTH] == prefix[: GENERATED_NAME_LENGTH_MAX - SUFFIX_LENGTH]
    assert name != other


def owner(uid: str, **more: Any) -> Document:
    return {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": uid, **more}


WARNING = (
    ".metadata.ownerReferences contains duplicate entries{after}; API server dedups owner references in 1.20+, and may "
    "reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {uids}"
)


@pytest.mark.parametrize(
    ("owners", "kept", "uids"),
    [
        pytest.param([owner("a")], [owner("a")], "", id="one"),
        pytest.param([owner("a"), owner("b")], [owner("a"), owner("b")], "", id="two"),
        pytest.param([owner("a"), owner("b"), owner("a")], [owner("a"), owner("b")], "a", id="one of them twice"),
        pytest.param(
            [owner("a")] * 3 + [owner("b")] * 2, [owner("a"), owner("b")], "a, b", id="each uid once in the warning"
        ),
        pytest.param(
            [owner("a"), owner("a", controller=True)],
            [owner("a"), owner("a", controller=True)],
            "",
            id="same uid with other content is left to validation",
        ),
    ],
)
@pytest.mark.parametrize(
    ("is_after", "after"), [(False, ""), (True, " after mutating admission happens")], ids=["before", "after"]
)
def test_duplicate_owner_references_are_dropped_with_a_warning(
    owners: list[Document], kept: list[Document], uids: str, is_after: bool, after: str
) -> None:
    api_call, metadata = call(POD, "p"), {"ownerReferences": list(owners)}
    drop_duplicate_owners(metadata, api_call, is_after_admission=is_after)
    assert metadata["ownerReferences"] == kept
    assert api_call.warnings == ([WARNING.format(after=after, uids=uids)] if uids else [])
