"""The items of a List come out whole and unread, or as views at one go."""

from __future__ import annotations

import pytest

from mooring.api.kinds import POD, REPLICA_SET, Kind
from mooring.api.views.base import View
from mooring.api.views.pod import Pod
from mooring.api.whole import Whole
from mooring.client.errors import ServerError
from mooring.client.http_lists import HttpItems, listing_of
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


PAGE = b'{"kind":"PodList","metadata":{"resourceVersion":"7","continue":"t"},"items":[%b]}\n'


def test_items_as_views_at_one_go() -> None:
    listing = listing_of(POD, PAGE % b'{"metadata":{"name":"a"}},{"metadata":{"name":"b"},"spec":{"nodeName":"n"}}')
    assert isinstance(listing.items, HttpItems)
    views = listing.items.views(Pod)
    assert views is not None
    assert [(view.metadata.name, view.spec.node_name) for view in views] == [("a", ""), ("b", "n")]
    assert (len(listing.items), listing.items[1][:14], list(listing.items[:0])) == (2, b'{"kind":"Pod",', [])


@pytest.mark.parametrize(
    ("item", "view"),
    [
        pytest.param(b'{"metadata":{"name":null}}', Pod, id="one needs a second look"),
        pytest.param(b'{"metadata":{"name":["a"]}}', Pod, id="one cannot be read"),
        pytest.param(b'{"metadata":{"name":"a"}}', Whole, id="the bytes are wanted, too"),
    ],
)
def test_items_that_have_to_be_read_one_by_one(item: bytes, view: type[View]) -> None:
    items = listing_of(POD, PAGE % item).items
    assert isinstance(items, HttpItems)
    assert items.views(view) is None
    assert len(items) == 1


@pytest.mark.parametrize(
    ("answer", "token"),
    [
        pytest.param(PAGE % b"{}", "t", id="before the items"),
        pytest.param(b'{"items":[{}],"metadata":{"resourceVersion":"7","continue":"t"}}', "t", id="behind them"),
        pytest.param(b'{"a":{"b":1,"items":[]},"metadata":{"resourceVersion":"7"},"items":[{}]}', "", id="in disguise"),
    ],
)
def test_where_the_metadata_stands_does_not_matter(answer: bytes, token: str) -> None:
    listing = listing_of(POD, answer)
    assert (listing.revision, listing.continue_token, len(listing.items)) == ("7", token, 1)


def test_a_page_that_breaks_off_is_told_when_it_is_read() -> None:
    listing = listing_of(POD, (PAGE % b'{"metadata":{"name":"a"}}')[:-4])
    with pytest.raises(ServerError, match="something else than a list of pods"):
        list(listing.items)


@pytest.mark.parametrize("answer", [b"", b"<html>", b"[]", b'{"items":3}'])
def test_what_is_no_list(answer: bytes) -> None:
    with pytest.raises(ServerError, match="something else than a list of pods"):
        listing_of(POD, answer)
