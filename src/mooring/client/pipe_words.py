"""The words that are spoken over a pipe between a part of Mooring and the process that holds the API server.

Comes in   calls of the client promise, and what came of them
Goes out   the same as bytes: all that is said in one turn of the loop, as one list in MessagePack

 1. A question has a number, and its answer or failure has the same one. A watch keeps its number until it is over.
 2. Objects travel as the JSON that they are everywhere. What surrounds them is packed.
 3. Both ends are the same program, so there is no version and no negotiation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from mooring.api.errors import UnknownKindError
from mooring.api.kinds import Kind, kind_named
from mooring.client import errors
from mooring.client.errors import Cause, ClientError, ExpiredError, StatusError
from mooring.client.interface import Change, Deletion, Listing, Propagation, Selection


class Word(msgspec.Struct, array_like=True, gc=False):
    """Anything that is said."""


class KindName(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A kind: the other end has a row of its own for it."""

    api_version: str
    kind: str
    plural: str
    is_namespaced: bool
    has_status: bool
    has_generation: bool
    folder: str


# --- questions ----------------------------------------------------------------------------------------------------


class Get(Word, tag=0):
    number: int
    kind: KindName
    namespace: str
    name: str


class List(Word, tag=1):
    number: int
    kind: KindName
    selection: tuple[str, str, str]
    limit: int
    continue_token: str
    revision: str


class Create(Word, tag=2):
    number: int
    kind: KindName
    namespace: str
    body: bytes
    is_answer_wanted: bool


class Update(Word, tag=3):
    number: int
    kind: KindName
    namespace: str
    name: str
    body: bytes
    subresource: str


class Patch(Word, tag=4):
    number: int
    kind: KindName
    namespace: str
    name: str
    body: bytes
    form: str
    subresource: str


class Delete(Word, tag=5):
    number: int
    kind: KindName
    namespace: str
    name: str
    how: tuple[int | None, str, str, str | None] | None


class Bind(Word, tag=6):
    number: int
    namespace: str
    name: str
    uid: str
    node_name: str


class RequestToken(Word, tag=7):
    number: int
    namespace: str
    name: str
    body: bytes


class OpenWatch(Word, tag=8):
    number: int
    kind: KindName
    selection: tuple[str, str, str]
    since: str
    bookmarks: bool


class GiveUp(Word, tag=9):
    """Nobody waits for the answer any more, or reads the watch."""

    number: int


Call: TypeAlias = Get | List | Create | Update | Patch | Delete | Bind | RequestToken | OpenWatch
Question: TypeAlias = Call | GiveUp


# --- answers ------------------------------------------------------------------------------------------------------


class Answer(Word, tag=0):
    """An object; nothing, where nothing is answered; or that a watch is open."""

    number: int
    value: bytes


class Page(Word, tag=1):
    number: int
    items: list[bytes]
    revision: str
    continue_token: str
    remaining: int | None


class Events(Word, tag=2):
    """Changes that a watch tells: what happened, the revision, and the object."""

    number: int
    changes: list[tuple[str, str, bytes]]


class End(Word, tag=3):
    """The watch is over, and nothing is wrong."""

    number: int


class Failure(Word, tag=4):
    number: int
    sort: str
    message: str
    code: int
    reason: str
    causes: list[tuple[str, str, str]]
    details: dict[str, str] | None
    retry_after_s: float | None
    continue_token: str


Reply: TypeAlias = Answer | Page | Events | End | Failure

_encode = msgspec.msgpack.Encoder().encode
_question_decoder = msgspec.msgpack.Decoder(list[Question])
_reply_decoder = msgspec.msgpack.Decoder(list[Reply])


def encoded(words: Sequence[Word]) -> bytes:
    return _encode(words)


def questions_in(frame: bytes) -> list[Question]:
    return _question_decoder.decode(frame)


def replies_in(frame: bytes) -> list[Reply]:
    return _reply_decoder.decode(frame)


# --- kinds --------------------------------------------------------------------------------------------------------


def name_of_kind(kind: Kind) -> KindName:
    return KindName(
        kind.api_version,
        kind.kind,
        kind.plural,
        kind.is_namespaced,
        kind.has_status,
        kind.has_generation,
        kind.folder,
    )


def kind_of_name(name: KindName) -> Kind:
    """The row of the table; for a kind that is not in it, a new row. Whoever asks keeps it: `is` tells kinds apart."""
    try:
        row = kind_named(name.api_version, name.kind)
    except UnknownKindError:
        row = None
    if row is not None and name_of_kind(row) == name:
        return row
    return Kind(
        name.api_version,
        name.kind,
        name.plural,
        name.is_namespaced,
        has_status=name.has_status,
        has_generation=name.has_generation,
        folder=name.folder,
    )


# --- the rest of the promise --------------------------------------------------------------------------------------


def selection_in(fields: tuple[str, str, str]) -> Selection:
    return Selection(*fields)


def fields_of(selection: Selection) -> tuple[str, str, str]:
    return selection.namespace, selection.labels, selection.fields


def deletion_in(how: tuple[int | None, str, str, str | None] | None) -> Deletion | None:
    if how is None:
        return None
    grace_s, uid, revision, propagation = how
    return Deletion(grace_s, uid, revision, Propagation(propagation) if propagation is not None else None)


def how_of(deletion: Deletion | None) -> tuple[int | None, str, str, str | None] | None:
    if deletion is None:
        return None
    propagation = deletion.propagation.value if deletion.propagation is not None else None
    return deletion.grace_s, deletion.uid, deletion.revision, propagation


def listing_in(page: Page) -> Listing:
    return Listing(page.items, page.revision, page.continue_token, page.remaining)


CHANGES: Mapping[str, Change] = {change.value: change for change in Change}


# --- failures -----------------------------------------------------------------------------------------------------


def failure_of(number: int, error: ClientError) -> Failure:
    sort = next(each.__name__ for each in type(error).__mro__ if each.__name__ in _SORTS)
    if not isinstance(error, StatusError):
        return Failure(number, sort, str(error), 0, "", [], None, None, "")
    return Failure(
        number,
        sort,
        error.message,
        error.code,
        error.reason,
        [(cause.reason, cause.message, cause.field) for cause in error.causes],
        error.details if error.has_details else None,
        error.retry_after_s,
        error.continue_token if isinstance(error, ExpiredError) else "",
    )


def error_in(failure: Failure) -> ClientError:
    sort = _SORTS[failure.sort]
    if not issubclass(sort, StatusError):
        return sort(failure.message)
    error = sort(
        failure.message,
        code=failure.code,
        reason=failure.reason,
        causes=[Cause(*cause) for cause in failure.causes],
        details=failure.details,
        retry_after_s=failure.retry_after_s,
    )
    if isinstance(error, ExpiredError) and failure.continue_token:
        error.continue_token = failure.continue_token
    return error


_SORTS: Mapping[str, type[ClientError]] = {
    name: sort for name, sort in vars(errors).items() if isinstance(sort, type) and issubclass(sort, ClientError)
}
