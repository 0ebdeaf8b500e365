"""The items of a List come out whole and unread."""

from __future__ import annotations

import pytest

from mooring.api.kinds import POD, REPLICA_SET, Kind
from mooring.client.errors import ServerError
from mooring.client.http_lists import listing_of
from mooring.client.promise import Listing


@pytest.mark.parametrize(
    ("kind", "answer", "expected"),
    [
        pytest.param(
            POD,
            b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}',
            Listing([b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}'], "7"),
            id="items get their kind back",
        ),
        pytest.param(
            REPLICA_SET,
            b'{"metadata":{"resourceVersion":"7","continue":"t","remainingItemCount":3},'
            b'"items":[{"kind":"ReplicaSet","apiVersion":"apps/v1"},{"apiVersion":"apps/v1","kind":"ReplicaSet"},{}]}',
            Listing(
                [
                    b'{"kind":"ReplicaSet","apiVersion":"apps/v1"}',
                    b'{"apiVersion":"apps/v1","kind":"ReplicaSet"}',
                    b"{}",
                ],
                "7",
                "t",
                3,
            ),
            id="those that have it keep it",
        ),
        pytest.param(POD, b'{"metadata":{"resourceVersion":"7"},"items":null}', Listing([], "7"), id="null is none"),
    ],
)
def test_listings(kind: Kind, answer: bytes, expected: Listing) -> None:
    assert listing_of(kind, answer) == expected


@pytest.mark.parametrize("answer", [b"", b"<html>", b"[]", b'{"items":3}'])
def test_what_is_no_list(answer: bytes) -> None:
    with pytest.raises(ServerError, match="something else than a list of pods"):
        listing_of(POD, answer)
