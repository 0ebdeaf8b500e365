"""Listings: from the bytes of a List to the bytes of its items, read once.

Comes in   the answer to a list request
Goes out   a `Listing` whose items look as they would if each had been asked for alone

 1. Items are cut out of the answer unread; whoever decodes them is the only one who does.
 2. The items of a List carry neither kind nor apiVersion, because the List says it for all. They are put back: an item
    is an object like any other.
"""

import msgspec

from mooring.api.kinds import Kind
from mooring.api.views.base import View
from mooring.client.errors import ServerError
from mooring.client.promise import Listing


class ListMetadata(View):
    resource_version: str = ""
    continue_token: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class RawList(msgspec.Struct, rename="camel"):
    metadata: ListMetadata = ListMetadata()
    items: list[msgspec.Raw] | None = None


_decoder = msgspec.json.Decoder(RawList)
_heads: dict[Kind, bytes] = {}
_TYPED = (b'{"kind":', b'{"apiVersion":')


def listing_of(kind: Kind, answer: bytes) -> Listing:
    """Raises `ServerError` if the answer is no List."""
    try:
        found = _decoder.decode(answer)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ServerError(f"the server answered with something else than a list of {kind.resource}: {error}") from None
    head = _head(kind)
    items = [_whole(head, bytes(item)) for item in found.items or ()]
    metadata = found.metadata
    return Listing(items, metadata.resource_version, metadata.continue_token, metadata.remaining_item_count)


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
