"""Server-side apply: somebody says which fields he wants how, and the server sees to the rest.

Comes in   the object as it is, and the document that was applied, as it was sent
Goes out   the object that is wanted, with its managedFields; or a `StatusError`

 1. What was applied is merged in; what the applier applied before and leaves out now is taken out, unless somebody else
    owns it, too.
 2. A field that others own may not be changed, unless the call is forced. Saying the same as they do is sharing.
 3. What comes out is not canonical yet: values stand as they were written (`1000m`), and emptied fields may be null.
    The caller makes it canonical, and fills in defaults.
 4. If nothing changes but ownership, the time of the entry stays.
"""

from __future__ import annotations

from typing import Any

from mooring.api.document import Document
from mooring.apiserver.apply.checking import misfits, misfits_text
from mooring.apiserver.apply.conflicts import conflict_error
from mooring.apiserver.apply.field_set import FieldSet, difference
from mooring.apiserver.apply.filters import Ignored, kept
from mooring.apiserver.apply.last_applied import KUBECTL, applied_by_client, renew_annotation
from mooring.apiserver.apply.managers import (
    APPLY,
    BEFORE_FIRST_APPLY,
    UPDATE,
    Entry,
    ManagerId,
    Managers,
    manageable,
    manager_id,
    stored_managers,
    written,
)
from mooring.apiserver.apply.merging import merged
from mooring.apiserver.apply.ownership import Changes, conflicts, give_up, reconcile
from mooring.apiserver.apply.pruning import pruned
from mooring.apiserver.apply.shape import Shape
from mooring.apiserver.apply.typed import GrainError, claimed_fields, is_same
from mooring.apiserver.apply.update import managed_after_update, unmanaged
from mooring.apiserver.call import Call
from mooring.client.errors import BadRequestError, ServerError


def apply_patch(shape: Shape, live: Document | None, applied: Document, call: Call, ignored: Ignored) -> Document:
    """The object that a call wants by applying a document."""
    return apply_as(
        shape,
        live,
        applied,
        manager=call.field_manager,
        api_version=call.kind.api_version,
        kind=call.kind.kind,
        subresource=call.subresource,
        now=call.now,
        ignored=ignored,
        is_forced=call.is_forced,
    )


def apply_as(
    shape: Shape,
    live: Document | None,
    applied: Document,
    *,
    manager: str,
    api_version: str,
    kind: str,
    subresource: str,
    now: str,
    ignored: Ignored,
    is_forced: bool,
) -> Document:
    """The same for a kind that is not that of the call: a Scale."""
    check_type(applied, api_version, kind)
    before = unmanaged(live)
    managers = stored_managers(live)
    if not managers and before is not None:
        first = manager_id(BEFORE_FIRST_APPLY, UPDATE, api_version, subresource)
        managers = managed_after_update(shape, None, before, managers, first, now, ignored)
    _check(shape, applied)
    if shape.may_change:
        try:
            reconcile(managers, shape, api_version)
        except GrainError as error:
            raise ServerError(str(error), reason="") from None
    applier = _Applier(shape, manager_id(manager, APPLY, api_version, subresource), api_version, now, ignored)
    wanted = applier.apply(before, applied, managers, is_forced)
    if manager == KUBECTL:
        renew_annotation(wanted, applied)
    return wanted


def check_type(applied: Document, api_version: str, kind: str) -> None:
    """Refuse a document of another kind or version."""
    given_version, given_kind = _text(applied.get("apiVersion")), _text(applied.get("kind"))
    if (given_version, given_kind) != (api_version, kind):
        raise BadRequestError(f"invalid object type: {shown_type(given_version, given_kind)}")


def shown_type(api_version: str, kind: str) -> str:
    """A kind as Go prints it: `apps/v1, Kind=Deployment`, `/v1, Kind=Pod`."""
    if api_version.count("/") > 1:
        return "/, Kind="
    group, slash, version = api_version.rpartition("/")
    return f"{group if slash else ''}/{version}, Kind={kind}"


def unreadable(applied: Document, api_version: str, kind: str, problem: str) -> ServerError:
    """The refusal of an applied document that fits its shape but cannot be read into its type."""
    type_text = shown_type(api_version, kind)
    return ServerError(
        f"failed to convert new object ({_shown_object(applied)}) to proper version: "
        f"unable to convert unstructured object to {type_text}: {problem}"
    )


class _Applier:
    """One who applies, once."""

    def __init__(self, shape: Shape, key: ManagerId, api_version: str, now: str, ignored: Ignored) -> None:
        self._shape = shape
        self._key = key
        self._api_version = api_version
        self._now = now
        self._ignored = ignored

    def apply(self, live: Document | None, applied: Document, managers: Managers, is_forced: bool) -> Document:
        last = managers.get(self._key)
        fields = kept(claimed_fields(self._shape.root, applied), self._ignored)
        managers[self._key] = Entry(self._api_version, fields, last.time if last is not None else None)
        wanted = applied if live is None else self._wanted(live, applied, managers, last)
        changes = Changes(self._shape, self._api_version, live or self._shape.empty, wanted, self._ignored)
        if not is_forced:
            self._raise_conflicts(live, managers, changes)
        give_up(managers, changes, self._key)
        if live is None or live != wanted or (self._shape.may_change and not is_same(live, wanted)):
            if self._key in managers:
                managers[self._key].time = self._now
        else:
            wanted = live
        return self._stamped(wanted, managers)

    def _wanted(self, live: Document, applied: Document, managers: Managers, last: Entry | None) -> Document:
        try:
            together = merged(self._shape.root, live, applied)
        except GrainError as error:
            raise ServerError(f"failed to merge config: {error}", reason="") from None
        return pruned(self._shape, self._api_version, together, managers, last, managers[self._key].fields)

    def _raise_conflicts(self, live: Document | None, managers: Managers, changes: Changes) -> None:
        found = conflicts(managers, changes, self._key)
        if found and self._key.name == KUBECTL and live is not None:
            allowed = applied_by_client(self._shape, self._api_version, live)
            if allowed is not None:
                found = _without(found, allowed)
        if found:
            raise conflict_error(found)

    def _stamped(self, wanted: Document, managers: Managers) -> Document:
        mine = managers.get(self._key)
        if mine is not None:
            mine.fields = manageable(mine.fields)
            if not mine.fields:
                del managers[self._key]
        metadata = dict(wanted.get("metadata") or {})
        metadata.pop("managedFields", None)
        if managers:
            metadata["managedFields"] = written(managers)
        return {**wanted, "metadata": metadata}


def _without(found: dict[ManagerId, FieldSet], allowed: FieldSet) -> dict[ManagerId, FieldSet]:
    left = {key: difference(fields, allowed) for key, fields in found.items()}
    return {key: fields for key, fields in left.items() if fields}


def _check(shape: Shape, applied: Document) -> None:
    metadata: Any = applied.get("metadata")
    given = metadata.get("managedFields") if isinstance(metadata, dict) else None
    if isinstance(given, list) and all(isinstance(entry, dict) for entry in given):
        raise BadRequestError("metadata.managedFields must be nil")
    found = misfits(shape.root, applied)
    if found:
        raise ServerError(
            f"failed to create typed patch object ({_shown_object(applied)}): {misfits_text(found)}", reason=""
        )


def _shown_object(applied: Document) -> str:
    metadata: Any = applied.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    type_text = shown_type(_text(applied.get("apiVersion")), _text(applied.get("kind")))
    return f"{_text(metadata.get('namespace'))}/{_text(metadata.get('name'))}; {type_text}"


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
