"""Items of a List: as raw objects, or decoded as views in one step."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mooring.api.decode import UntypedObject, decode_as
from mooring.api.kinds import POD, REPLICA_SET, Kind
from mooring.api.views.meta import View
from mooring.api.views.pod import Pod
from mooring.client.errors import ServerError
from mooring.client.http.lists import HttpItems, listing_of
from mooring.client.interface import Listing


@pytest.mark.parametrize(
    ("kind", "answer", "expected"),
    [
        pytest.param(
            POD,
            b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}',
            Listing([b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}'], "7"),
            id="items without kind get it",
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
            id="items with kind keep it",
        ),
        pytest.param(POD, b'{"metadata":{"resourceVersion":"7"},"items":null}', Listing([], "7"), id="null items"),
    ],
)
def test_listing_of_a_response(kind: Kind, answer: bytes, expected: Listing) -> None:
    assert listing_of(kind, answer) == expected


PAGE = b'{"kind":"PodList","metadata":{"resourceVersion":"7","continue":"t"},"items":[%b]}\n'


def test_items_are_decoded_as_views_in_one_step() -> None:
    listing = listing_of(POD, PAGE % b'{"metadata":{"name":"a"}},{"metadata":{"name":"b"},"spec":{"nodeName":"n"}}')
    assert isinstance(listing.items, HttpItems)
    (views,) = listing.items.parts(Pod)
    assert [(view.metadata.name, view.spec.node_name) for view in views if isinstance(view, Pod)] == [
        ("a", ""),
        ("b", "n"),
    ]
    assert (len(listing.items), listing.items[1][:14], list(listing.items[:0])) == (2, b'{"kind":"Pod",', [])


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(PAGE % b"", [[]], id="no items"),
        pytest.param(PAGE % b'{"metadata":{"name":"a"}}', [["a"]], id="one"),
        pytest.param(
            PAGE % b'{"metadata":{"name":"a"}},{"metadata":{"name":"b"}},{"metadata":{"name":"c"}}',
            [["a"], ["b"], ["c"]],
            id="several",
        ),
        pytest.param(
            PAGE % b'{"kind":"Pod","metadata":{"name":"a"}},{"kind":"Pod","metadata":{"name":"b"}}',
            [["a"], ["b"]],
            id="items with kind",
        ),
        pytest.param(
            PAGE % b'{"metadata":{"name":"a"}},{"kind":"Pod","metadata":{"name":"b"}}',
            [["a", "b"]],
            id="some items with kind",
        ),
        pytest.param(PAGE % b'{},{"metadata":{"name":"b"}},{}', [["", "b", ""]], id="empty items"),
        pytest.param(
            PAGE % b'{"metadata":{"name":"a"},"x":[{"metadata":{}},{"metadata":{}}]},{"metadata":{"name":"b"}}',
            [["one by one", "a", "b"]],
            id="a nested list in the first item",
        ),
        pytest.param(
            PAGE % b'{"metadata":{"name":"a"}},{"metadata":{"name":"b"},"x":[{},{"metadata":{}}]},{"metadata":{}}',
            [["a"], ["one by one", "b", ""]],
            id="a nested list in another item",
        ),
        pytest.param(
            PAGE % b'{"metadata":{"name":"},{\\"metadata\\":{"}},{"metadata":{"name":"b"}}',
            [['},{"metadata":{'], ["b"]],
            id="a string that looks like an item boundary",
        ),
        pytest.param(
            PAGE % b'{"metadata":{"name":"a"}},{"metadata":{"name":null}},{"metadata":{"name":"c"}}',
            [["a"], ["one by one", "", "c"]],
            id="an item with null",
        ),
        pytest.param(
            b'{"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}],"metadata":{}}',
            [["a", "b"]],
            id="items before metadata",
        ),
    ],
)
def test_parts_contain_all_items_in_order(
    answer: bytes, expected: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mooring.client.http.lists.PART_BYTES", 1)
    assert [_names(part) for part in HttpItems(POD, answer).parts(Pod)] == expected


def _names(part: Sequence[Pod | bytes]) -> list[str]:
    if isinstance(part, HttpItems):
        return ["one by one", *(decode_as(Pod, raw).metadata.name for raw in part)]
    return [view.metadata.name for view in part if isinstance(view, Pod)]


def test_a_truncated_page_is_an_error_when_its_last_part_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mooring.client.http.lists.PART_BYTES", 1)
    parts = HttpItems(POD, (PAGE % b'{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}')[:-4]).parts(Pod)
    assert _names(next(parts)) == ["a"]
    with pytest.raises(ServerError, match="something else than a list of pods"):
        list(next(parts))


@pytest.mark.parametrize(
    ("item", "view"),
    [
        pytest.param(b'{"metadata":{"name":null}}', Pod, id="an item with null"),
        pytest.param(b'{"metadata":{"name":["a"]}}', Pod, id="an undecodable item"),
        pytest.param(b'{"metadata":{"name":"a"}}', UntypedObject, id="an untyped view"),
    ],
)
def test_items_that_are_decoded_one_by_one(item: bytes, view: type[View]) -> None:
    items = listing_of(POD, PAGE % item).items
    assert isinstance(items, HttpItems)
    assert list(items.parts(view)) == [items]
    assert len(items) == 1


@pytest.mark.parametrize(
    ("answer", "token"),
    [
        pytest.param(PAGE % b"{}", "t", id="before the items"),
        pytest.param(b'{"items":[{}],"metadata":{"resourceVersion":"7","continue":"t"}}', "t", id="after the items"),
        pytest.param(
            b'{"a":{"b":1,"items":[]},"metadata":{"resourceVersion":"7"},"items":[{}]}', "", id="after a nested list"
        ),
    ],
)
def test_metadata_may_be_before_or_after_the_items(answer: bytes, token: str) -> None:
    listing = listing_of(POD, answer)
    assert (listing.revision, listing.continue_token, len(listing.items)) == ("7", token, 1)


def test_a_truncated_page_is_an_error_when_it_is_read() -> None:
    listing = listing_of(POD, (PAGE % b'{"metadata":{"name":"a"}}')[:-4])
    with pytest.raises(ServerError, match="something else than a list of pods"):
        list(listing.items)


@pytest.mark.parametrize("answer", [b"", b"<html>", b"[]", b'{"items":3}'])
def test_responses_that_are_not_lists_are_rejected(answer: bytes) -> None:
    with pytest.raises(ServerError, match="something else than a list of pods"):
        listing_of(POD, answer)
