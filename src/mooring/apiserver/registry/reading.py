"""Get, list and watch objects.

Input: a call and its options. Output: stored bytes with their resourceVersion, as storage returns them.

 1. A resourceVersion means "not older than", except in a request with `Exact`, or with a limit and
    without `resourceVersionMatch`.
 2. `0` means any version, which here is the last one, whatever the limit.
 3. Field selectors name only the fields that the strategy of a kind allows.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from dataclasses import replace

from mooring.api import kinds
from mooring.api.kinds import Kind
from mooring.apiserver.resources import Resource
from mooring.apiserver.storage.selection import parse_field_selector
from mooring.apiserver.storage.storage import INCONSISTENT, Storage, read_continue_token
from mooring.apiserver.storage.storage import continue_token as continue_token_of
from mooring.apiserver.validation.fields import go_value
from mooring.apiserver.wire.json_text import json_syntax_error
from mooring.client.errors import BadRequestError, ExpiredError, ServerError
from mooring.client.interface import Listing, Selection, Watch

_EVERYWHERE = ("metadata.name", "metadata.namespace")
_UINT64_MAX = (1 << 64) - 1

_ABOVE_ASCII = re.compile(r"'\\u00([0-9a-f]{2})'")
"""Go's decoder of tokens prints such a byte in another way than its decoder of bodies."""

_PATHS = {
    kinds.CORE_EVENT: {"source": "source.component|reportingComponent"},
    kinds.JOB: {"status.successful": "status.succeeded"},
    kinds.POD: {"spec.host": "spec.nodeName"},
}
"""Names in field selectors that are no paths. Of several paths, the first one with a value counts."""

_REFUSALS = {
    kinds.JOB: 'field label "{field}" not supported for Job',
    kinds.RESOURCE_SLICE: "field label not supported for {api_version}, Kind=ResourceSlice: {field}",
}
"""The messages about unsupported field selectors of kinds that differ from the common message."""


class ObjectReader:
    """Reads from storage."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def get(self, resource: Resource, namespace: str, name: str, revision: str = "") -> bytes:
        number = watch_revision(revision)
        if number:
            await self._storage.check_reached(number)
        return await self._storage.get(resource.kind, namespace, name)

    async def list(
        self,
        resource: Resource,
        selection: Selection,
        *,
        limit: int,
        continue_token: str,
        revision: str,
        is_exact: bool | None,
    ) -> Listing:
        """`is_exact` is None without `resourceVersionMatch`."""
        kind = resource.kind
        selection = self.checked(resource, selection)
        if continue_token:
            if revision not in ("", "0"):
                raise BadRequestError("specifying resource version is not allowed when using continue")
            check_continue_token(continue_token)
            try:
                return await self._storage.list_at(kind, selection, limit=limit, continue_token=continue_token)
            except ExpiredError:
                raise _expired_token(kind.keys_prefix(selection.namespace), continue_token) from None
        number = _list_revision(revision)
        if revision == "0":
            return await self._storage.list_at(kind, selection)
        if number and (is_exact or (is_exact is None and limit)):
            try:
                return await self._storage.list_at(kind, selection, limit=limit, at=number)
            except ExpiredError:
                raise ExpiredError("The resourceVersion for the provided list is too old.") from None
        if number:
            await self._storage.check_reached(number)
        return await self._storage.list_at(kind, selection, limit=limit)

    def watch(self, resource: Resource, selection: Selection, *, since: int, bookmarks: bool) -> Watch:
        return self._storage.watch(
            resource.kind, self.checked(resource, selection), since=str(since), bookmarks=bookmarks
        )

    def checked(self, resource: Resource, selection: Selection) -> Selection:
        """The selection; raises if the kind does not have these selectors."""
        if not selection.fields:
            return selection
        allowed = resource.selectable_fields
        is_typed = resource.struct is not None
        everywhere = _EVERYWHERE if resource.kind.is_namespaced or (is_typed and not allowed) else _EVERYWHERE[:1]
        for term in parse_field_selector(selection.fields):
            if term.path not in allowed and term.path not in everywhere:
                raise BadRequestError(_refusal(resource.kind, term.path, bool(allowed) or not is_typed))
        fields = selection.fields
        for name, path in _PATHS.get(resource.kind, {}).items():
            fields = re.sub(rf"(^|,){re.escape(name)}(?=[=!])", rf"\1{path}", fields)
        return replace(selection, fields=fields)


def check_continue_token(text: str) -> None:
    """Raises `BadRequestError` with Go's message if the token is not base64."""
    strange = _strange_byte(text)
    if strange is not None:
        error: str | None = f"illegal base64 data at input byte {strange}"
    else:
        error = json_syntax_error(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        error = error and _ABOVE_ASCII.sub(r"'\\x\1'", error)
    if error is not None:
        raise BadRequestError(f"invalid continue token: continue key is not valid: {error}")


def _expired_token(folder: str, text: str) -> ExpiredError:
    """The list cannot continue at its revision. The client may continue it at the current one."""
    start, _ = read_continue_token(folder, text)
    error = ExpiredError(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
        "modified, or deleted between the time the first chunk was returned and now may show up in the list."
    )
    error.continue_token = continue_token_of(folder, start, INCONSISTENT)
    return error


def _strange_byte(text: str) -> int | None:
    """The byte at which Go stops reading base64. Go's tokens have no padding, and Python accepts more."""
    for index, letter in enumerate(text):  # up to the first strange one every letter is one byte
        if not (letter.isascii() and (letter.isalnum() or letter in "-_")):
            return index
    return len(text) - 1 if len(text) % 4 == 1 else None


def watch_revision(revision: str) -> int:
    """The revision at which a watch or a get starts; 0 for any. The messages differ from those of a list."""
    try:
        return _revision_number(revision)
    except BadRequestError as error:
        raise ServerError(error.message, reason="") from None


def _list_revision(revision: str) -> int:
    try:
        return _revision_number(revision)
    except BadRequestError as error:
        raise BadRequestError(f"invalid resource version: {error.message}") from None


def _revision_number(text: str) -> int:
    if not text:
        return 0
    why = ""
    if not (text.isascii() and text.isdecimal()):
        why = "invalid syntax"
    elif int(text) > _UINT64_MAX:
        why = "value out of range"
    if why:
        quoted = go_value(text)
        raise BadRequestError(f"resourceVersion: Invalid value: {quoted}: strconv.ParseUint: parsing {quoted}: {why}")
    return int(text)


def _refusal(kind: Kind, field: str, has_fields: bool) -> str:
    if kind in _REFUSALS:
        return _REFUSALS[kind].format(field=field, api_version=kind.api_version)
    if has_fields:
        return f"field label not supported: {field}"
    known = ", ".join(f'"{name}"' for name in _EVERYWHERE)
    return f'"{field}" is not a known field selector: only {known}'
