"""Server-side apply.

Input: the live object, and the applied document as the client sent it. Output: the object to store, with its
managedFields; or a `StatusError`.

1. The applied document is merged in. Fields that the applier applied before and does not apply now are removed,
   unless another manager owns them.
2. Changing a field of another manager is a conflict (409 with a cause for each field), unless the call is forced.
   Applying the same value shares the field.
3. The result is not canonical: values are as written (`1000m`), and emptied fields may be null. The caller decodes it
   and sets defaults.
4. If only ownership changes, the time of the entry stays.
5. For the manager `kubectl`, fields of the annotation last-applied-configuration do not conflict, and the annotation
   is kept up to date. This is the migration from client-side apply.

Errors of an applied document, before it is merged.

Input: a document as the client sent it, and its schema. Output: messages, each with a path.

1. Unlike in updates, two items of a list with the same keys are an error.
2. Checking of a list stops at its first item without keys, of a map at its first unknown field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mooring.api.document import Document
from mooring.api.field_errors import go_json, go_text, go_type, quoted
from mooring.api.schema.types import ListKind
from mooring.api.well_known import LAST_APPLIED
from mooring.apiserver.apply.field_set import (
    FIELD,
    INDEX,
    FieldSet,
    Ignored,
    Path,
    difference,
    paths,
    shown,
    shown_path,
    without_ignored,
)
from mooring.apiserver.apply.kind_schema import KindSchema, ListSchema, MapSchema, ScalarKind, ValueSchema
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
from mooring.apiserver.apply.merging import merged, pruned
from mooring.apiserver.apply.typed import SchemaMismatchError, claimed_fields, compare, element_at, is_same
from mooring.apiserver.apply.update import (
    VersionedChanges,
    conflicts,
    managed_after_update,
    reconcile,
    take_from_other_managers,
    unmanaged,
)
from mooring.apiserver.call import Call
from mooring.apiserver.validation.metadata import ANNOTATIONS_BYTES_MAX
from mooring.client.errors import BadRequestError, ConflictError, ServerError, StatusCause


def conflict_error(conflicts: Mapping[ManagerId, FieldSet]) -> ConflictError:
    """The 409 of an apply that changes fields of other managers."""
    managers = sorted(conflicts, key=lambda key: key.sort_text)
    listed: dict[ManagerId, list[Path]] = {key: list(paths(conflicts[key])) for key in managers}
    causes = [
        StatusCause("FieldManagerConflict", f"conflict with {shown_manager(key)}", shown_path(path))
        for key in managers
        for path in listed[key]
    ]
    if len(causes) == 1:
        return ConflictError(f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].field}", causes=causes)
    lines: list[str] = []
    for key in managers:
        lines.append(f"conflicts with {shown_manager(key)}:")
        lines += [f"- {shown_path(path)}" for path in listed[key]]
    return ConflictError(f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines), causes=causes)


def shown_manager(key: ManagerId) -> str:
    """The name of a manager in messages."""
    text = quoted(key.name)
    if key.subresource:
        text = f"{text} with subresource {quoted(key.subresource)}"
    return f"{text} using {key.api_version}" if key.operation == UPDATE else text


KUBECTL = "kubectl"


def applied_by_client(kind_schema: KindSchema, api_version: str, live: Document) -> FieldSet | None:
    """The fields that the client applied and that are unchanged since; None without the annotation."""
    text = _annotation(live)
    if not text:
        return None
    try:
        last = json.loads(text)
    except ValueError:
        return None
    if not isinstance(last, dict) or last.get("apiVersion") != api_version:
        return None
    if type_mismatches(kind_schema.root, last) or type_mismatches(kind_schema.root, live):
        return None
    fields = claimed_fields(kind_schema.root, last)
    for changed in compare(kind_schema.root, last, live, is_strict=kind_schema.may_change):
        fields = difference(fields, changed)
    return fields


def update_last_applied_annotation(document: Document, applied: Document) -> None:
    """Update the annotation `last-applied-configuration`, if there is one."""
    if not _annotation(document):
        return
    annotations = {**document["metadata"]["annotations"], LAST_APPLIED: _encoded(applied)}
    if sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items()) > ANNOTATIONS_BYTES_MAX:
        del annotations[LAST_APPLIED]
    document["metadata"] = {**document["metadata"], "annotations": annotations}


def _annotation(document: Document) -> str:
    text: str = (document["metadata"].get("annotations") or {}).get(LAST_APPLIED, "")
    return text


def _encoded(applied: Document) -> str:
    metadata: Document = applied.get("metadata") or {}
    if LAST_APPLIED in (metadata.get("annotations") or {}):
        annotations = {name: value for name, value in metadata["annotations"].items() if name != LAST_APPLIED}
        applied = {**applied, "metadata": {**metadata, "annotations": annotations}}
    return go_json(applied, is_sorted=True) + "\n"


def apply_patch(
    kind_schema: KindSchema, live: Document | None, applied: Document, call: Call, ignored: Ignored
) -> Document:
    """The object that results from applying a document."""
    return apply_as(
        kind_schema,
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
    kind_schema: KindSchema,
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
    """As `apply_patch`, for a kind that is not that of the call: a Scale."""
    check_type(applied, api_version, kind)
    before = unmanaged(live)
    managers = stored_managers(live)
    if not managers and before is not None:
        first = manager_id(BEFORE_FIRST_APPLY, UPDATE, api_version, subresource)
        managers = managed_after_update(kind_schema, None, before, managers, first, now, ignored)
    _check(kind_schema, applied)
    if kind_schema.may_change:
        try:
            reconcile(managers, kind_schema, api_version)
        except SchemaMismatchError as error:
            raise ServerError(str(error), reason="") from None
    applier = _Applier(kind_schema, manager_id(manager, APPLY, api_version, subresource), api_version, now, ignored)
    patched = applier.apply(before, applied, managers, is_forced)
    if manager == KUBECTL:
        update_last_applied_annotation(patched, applied)
    return patched


def check_type(applied: Document, api_version: str, kind: str) -> None:
    """Reject a document of another kind or version."""
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
    """The error of an applied document that matches its schema but cannot be decoded into its type."""
    type_text = shown_type(api_version, kind)
    return ServerError(
        f"failed to convert new object ({_shown_object(applied)}) to proper version: "
        f"unable to convert unstructured object to {type_text}: {problem}"
    )


class _Applier:
    """One server-side apply."""

    def __init__(self, kind_schema: KindSchema, key: ManagerId, api_version: str, now: str, ignored: Ignored) -> None:
        self._kind_schema = kind_schema
        self._key = key
        self._api_version = api_version
        self._now = now
        self._ignored = ignored

    def apply(self, live: Document | None, applied: Document, managers: Managers, is_forced: bool) -> Document:
        last = managers.get(self._key)
        fields = without_ignored(claimed_fields(self._kind_schema.root, applied), self._ignored)
        managers[self._key] = Entry(self._api_version, fields, last.time if last is not None else None)
        patched = applied if live is None else self._merged(live, applied, managers, last)
        changes = VersionedChanges(
            self._kind_schema, self._api_version, live or self._kind_schema.empty, patched, self._ignored
        )
        if not is_forced:
            self._raise_conflicts(live, managers, changes)
        take_from_other_managers(managers, changes, self._key)
        if live is None or live != patched or (self._kind_schema.may_change and not is_same(live, patched)):
            if self._key in managers:
                managers[self._key].time = self._now
        else:
            patched = live
        return self._stamped(patched, managers)

    def _merged(self, live: Document, applied: Document, managers: Managers, last: Entry | None) -> Document:
        try:
            together = merged(self._kind_schema.root, live, applied)
        except SchemaMismatchError as error:
            raise ServerError(f"failed to merge config: {error}", reason="") from None
        return pruned(self._kind_schema, self._api_version, together, managers, last, managers[self._key].fields)

    def _raise_conflicts(self, live: Document | None, managers: Managers, changes: VersionedChanges) -> None:
        found = conflicts(managers, changes, self._key)
        if found and self._key.name == KUBECTL and live is not None:
            allowed = applied_by_client(self._kind_schema, self._api_version, live)
            if allowed is not None:
                found = _without(found, allowed)
        if found:
            raise conflict_error(found)

    def _stamped(self, document: Document, managers: Managers) -> Document:
        mine = managers.get(self._key)
        if mine is not None:
            mine.fields = manageable(mine.fields)
            if not mine.fields:
                del managers[self._key]
        metadata = dict(document.get("metadata") or {})
        metadata.pop("managedFields", None)
        if managers:
            metadata["managedFields"] = written(managers)
        return {**document, "metadata": metadata}


def _without(found: dict[ManagerId, FieldSet], allowed: FieldSet) -> dict[ManagerId, FieldSet]:
    left = {key: difference(fields, allowed) for key, fields in found.items()}
    return {key: fields for key, fields in left.items() if fields}


def _check(kind_schema: KindSchema, applied: Document) -> None:
    metadata: Any = applied.get("metadata")
    given = metadata.get("managedFields") if isinstance(metadata, dict) else None
    if isinstance(given, list) and all(isinstance(entry, dict) for entry in given):
        raise BadRequestError("metadata.managedFields must be nil")
    found = type_mismatches(kind_schema.root, applied)
    if found:
        raise ServerError(
            f"failed to create typed patch object ({_shown_object(applied)}): {type_mismatches_text(found)}", reason=""
        )


def _shown_object(applied: Document) -> str:
    metadata: Any = applied.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    type_text = shown_type(_text(applied.get("apiVersion")), _text(applied.get("kind")))
    return f"{_text(metadata.get('namespace'))}/{_text(metadata.get('name'))}; {type_text}"


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


# --- errors of an applied document ----------------------------------------------------------------------------


class TypeMismatch(NamedTuple):
    """A field of an applied document with a wrong type."""

    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


NONE: Sequence[TypeMismatch] = ()


def type_mismatches(value_schema: ValueSchema, value: Any) -> Sequence[TypeMismatch]:
    """All fields of a value with a wrong type."""
    sort = value.__class__
    if sort is dict and value_schema.map is not None:
        return _mismatches_in_map(value_schema.map, value)
    if sort is list and value_schema.list is not None:
        return _mismatches_in_list(value_schema.list, value)
    return NONE if value is None else _mismatch(value_schema, value)


def type_mismatches_text(found: Sequence[TypeMismatch]) -> str:
    """The message about all fields with a wrong type."""
    return str(found[0]) if len(found) == 1 else "\n".join(["errors:", *(f"  {mismatch}" for mismatch in found)])


def _mismatches_in_map(fields: MapSchema, value: Document) -> Sequence[TypeMismatch]:
    found: list[TypeMismatch] = []
    known, item = fields.fields, fields.item
    for name, held in value.items():
        value_schema = known.get(name, item)
        if value_schema is None:
            return [*found, TypeMismatch(shown(FIELD + name), "field not declared in schema")]
        if below := type_mismatches(value_schema, held):
            found += _below(FIELD + name, below)
    return found


def _mismatches_in_list(items: ListSchema, value: list[Any]) -> Sequence[TypeMismatch]:
    found: list[TypeMismatch] = []
    seen: set[str] = set()
    for index, held in enumerate(value):
        element = ""
        if items.kind is not ListKind.ATOMIC:
            try:
                element = element_at(index, items, held)
            except SchemaMismatchError as error:
                return [*found, TypeMismatch("", str(error))]
            if element in seen:
                found.append(TypeMismatch("", f"duplicate entries for key {shown(element)}"))
            seen.add(element)
        if below := type_mismatches(items.item, held):
            found += _below(element or f"{INDEX}{index}", below)
    return found


def _below(element: str, found: Sequence[TypeMismatch]) -> list[TypeMismatch]:
    prefix = shown(element)
    return [TypeMismatch(prefix + mismatch.path, mismatch.text) for mismatch in found]


def _mismatch(value_schema: ValueSchema, value: Any) -> Sequence[TypeMismatch]:
    """The error of a value of the wrong type, with the message for the first type that it could have."""
    text = _mismatch_text(value_schema, value)
    return [TypeMismatch("", text)] if text else NONE


def _mismatch_text(value_schema: ValueSchema, value: Any) -> str:
    if value_schema.map is not None:
        return f"expected map, got {_go(value)}" if value_schema.scalar is None else ""
    match value_schema.scalar:
        case ScalarKind.TEXT:
            is_text = isinstance(value, str)
            return "" if is_text else f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}"
        case ScalarKind.NUMBER if isinstance(value, bool) or not isinstance(value, int | float):
            return f"expected numeric (int or float), got {go_type(value)}"
        case ScalarKind.FLAG if not isinstance(value, bool):
            return f"expected boolean, got {_go(value)}"
        case ScalarKind.ANY if isinstance(value, dict | list):
            return f"expected any scalar, got {_go(value)}"
        case None:
            return f"expected list, got {_go(value)}"
        case _:
            return ""


def _go(value: Any) -> str:
    """How Go prints a value inside a pointer to it: `&{x}`."""
    return f"&{{{go_text(value)}}}"


def _go_syntax(value: Any) -> str:
    """How Go would write a value in a program."""
    match value:
        case None:
            return "interface {}(nil)"
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(value)
        case dict():
            fields = [f"{quoted(name)}:{_go_syntax(value[name])}" for name in sorted(value)]
            return f"{go_type(value)}{{{', '.join(fields)}}}"
        case list():
            return f"{go_type(value)}{{{', '.join(map(_go_syntax, value))}}}"
        case _:
            return str(value)
