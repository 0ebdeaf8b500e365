"""Items of a List: from the bytes of the answer to single objects or views.

Input: the answer to a list request. Output: a `Listing`, whose items look as if each had been read alone; or their
views, a part at a time.

1. Items are cut out of the answer without decoding, and only when they are read as bytes. A reader of views decodes
   parts of the answer instead, without a copy of each item.
2. Items of a List have no kind and apiVersion. They are added.
3. Revision and continue token are known before any item is decoded, so that the next page can be requested meanwhile.
4. Views come in parts that fit into a processor cache: decoded at once, 500 pods take twice as long and are cold when
   they are used. A part ends where an item seems to begin like the first one. This may be wrong (an item may hold a
   list of similar objects), but is never unnoticed: a part that ends inside of an item is invalid JSON. The rest is
   then decoded item by item.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar, overload

import msgspec

from mooring.api.decode import decode_items
from mooring.api.kinds import Kind
from mooring.api.views.meta import View
from mooring.client.errors import ServerError
from mooring.client.interface import Listing

AnyView = TypeVar("AnyView", bound=View)


class ListMetadata(View):
    resource_version: str = ""
    continue_token: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class RawList(msgspec.Struct, rename="camel"):
    metadata: ListMetadata = ListMetadata()
    items: list[msgspec.Raw] | None = None


class _ListStart(msgspec.Struct, rename="camel"):
    metadata: ListMetadata


_decoder = msgspec.json.Decoder(RawList)
_start_decoder = msgspec.json.Decoder(_ListStart)
_heads: dict[Kind, bytes] = {}
_TYPED = (b'{"kind":', b'{"apiVersion":')
_ITEMS = b',"items":['
_ITEM_METADATA = b'"metadata":{'
_ITEM_START_BYTES_MAX = 256
PART_BYTES = 1 << 16
_START_BYTES_MAX = 1 << 14
"""Kubernetes writes the metadata of a List before its items. A continue token has a few hundred bytes."""


def listing_of(kind: Kind, answer: bytes) -> Listing:
    """Raises `ServerError` if the answer is not a List, now or when an item is read."""
    metadata, items = _metadata_at_start(answer), HttpItems(kind, answer)
    if metadata is None:
        metadata = items.cut().metadata
    return Listing(items, metadata.resource_version, metadata.continue_token, metadata.remaining_item_count)


class HttpItems(Sequence[bytes]):
    """The items of a List, cut out of the answer when one is read."""

    def __init__(self, kind: Kind, answer: bytes) -> None:
        self._kind = kind
        self._answer = answer
        self._whole: list[bytes] | None = None

    def parts(self, view: type[AnyView]) -> Iterator[list[AnyView] | Sequence[bytes]]:
        """All items in parts, in order: lists of views; as the last part, items that must be decoded one by one."""
        start = 0
        for end in _ends_of_parts(self._answer):
            part = self._answer[start:end] + b"]}" if end else self._answer[start:]
            part = b'{"items":[' + part if start else part
            views = decode_items(view, part)
            if views is None:
                yield HttpItems(self._kind, b'{"items":[' + self._answer[start:]) if start else self
                return
            yield views
            start = end + 1

    def cut(self) -> RawList:
        try:
            found = _decoder.decode(self._answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ServerError(
                f"the server answered with something else than a list of {self._kind.resource}: {error}"
            ) from None
        head = _head(self._kind)
        self._whole = [_whole(head, bytes(item)) for item in found.items or ()]
        return found

    @property
    def _items(self) -> list[bytes]:
        if self._whole is None:
            self.cut()
        assert self._whole is not None
        return self._whole

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._items)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        return self._items[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._items == list(other)

    __hash__ = None  # type: ignore[assignment]


def _ends_of_parts(answer: bytes) -> Iterator[int]:
    """The position of the comma behind each part; 0 for the last part, which ends with the answer."""
    start = answer.find(_ITEMS, 0, _START_BYTES_MAX) + len(_ITEMS)
    metadata = answer.find(_ITEM_METADATA, start, start + _ITEM_START_BYTES_MAX)
    if start >= len(_ITEMS) and metadata >= 0:
        boundary = b"}," + answer[start : metadata + len(_ITEM_METADATA)]
        while (found := answer.find(boundary, start + PART_BYTES)) >= 0:
            start = found + 2
            yield found + 1
    yield 0


def _metadata_at_start(answer: bytes) -> ListMetadata | None:
    """The metadata in front of the items, if it is there."""
    end = answer.find(_ITEMS, 0, _START_BYTES_MAX)
    if end < 0:
        return None
    try:
        return _start_decoder.decode(answer[:end] + b"}").metadata
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _whole(head: bytes, item: bytes) -> bytes:
    if item.startswith(_TYPED) or item == b"{}":
        return item
    return head + item[1:]


def _head(kind: Kind) -> bytes:
    head = _heads.get(kind)
    if head is None:
        head = f'{{"kind":"{kind.kind}","apiVersion":"{kind.api_version}",'.encode()
        _heads[kind] = head
    return head
