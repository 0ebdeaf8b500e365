"""Strategic merge patch: a merge patch that merges lists by the keys of their items.

Input: an object, a patch, and the kind of the object, which determines the merged lists (`merge_fields`). Output: a new
object, as kube-apiserver v1.36 would make it, or a `PatchError`.

    {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}       changes the image of one container
    {"spec": {"volumes": [{"name": "data", "$patch": "delete"}]}}       removes one volume

 1. `null` removes a field. Objects are merged, unless the schema or `$patch: replace` demands otherwise.
 2. Items of a merged list are matched by their merge key; `in_order` determines their order.
 3. Directives (`$patch`, `$retainKeys`, `$setElementOrder/…`, `$deleteFromPrimitiveList/…`) and nulls never reach the
    result. Kubernetes drops both when it decodes the result into its types; here there are no types.
 4. Input is never changed; only the objects on the path to a change are copied.

`merge_fields` says which lists of a kind are merged item by item, and by which field: for each field with a patch
strategy in itself or below, how it is patched. They come from `patch` and `mergekey` in the schema.

 1. Any other field is ordinary: objects are merged, lists and everything else are replaced.
 2. Fields below a list that is replaced are left out, because a merge never gets there.
 3. Kinds without a schema are custom resources, which do not support strategic merge patches.

The order of the items of a merged list follows from the order in the patch and the order before:

 1. Items that the patch names are in the order of the patch, all others in their order before.
 2. An item of the second kind goes before the first item of the patch that was behind it. So a new item precedes items
    that the patch does not name, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from mooring.api.field_errors import go_text
from mooring.api.patching.json_patch import (
    BAD_REQUEST,
    UNPROCESSABLE,
    JsonDict,
    PatchError,
    cannot_decode,
    no_merge_key,
    unknown_directive,
    wrong_type,
)
from mooring.api.schema.types import CircularTable, Field, ListOf, MapOf, Scalar, Struct, Type, struct_of_kind

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
SET_ORDER = "$setElementOrder"
DELETE_FROM_LIST = "$deleteFromPrimitiveList"

_DIRECTIVES = (DIRECTIVE, RETAIN_KEYS, SET_ORDER, DELETE_FROM_LIST)
_NOTHING: Final = object()


def apply_strategic_patch(current: Mapping[str, object], patch: object, api_version: str, kind: str) -> JsonDict:
    """`current` with `patch` applied."""
    if not isinstance(patch, dict):
        raise cannot_decode(patch, "map[string]interface {}")
    fields = merge_fields(api_version, kind)
    if fields is None:
        raise PatchError("strategic merge patch format is not supported", BAD_REQUEST)
    return _merged(current, cast(JsonDict, patch), fields)


# --- objects -----------------------------------------------------------------------------------------------------


def _merged(original: Mapping[str, object], patch: JsonDict, fields: Fields) -> JsonDict:
    if DIRECTIVE in patch:
        return _by_directive(patch)
    result = dict(original)
    for name in patch:
        if name.startswith("$"):
            patch = _carry_out_directives(result, patch, fields)
            break
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            _lay_over(result, name, value, fields)
    return result


def _by_directive(patch: JsonDict) -> JsonDict:
    match patch[DIRECTIVE]:
        case "replace":
            return cast(JsonDict, _as_it_is(patch))
        case "delete":
            return {}
        case directive:
            raise unknown_directive(directive, patch)


def _lay_over(result: JsonDict, name: str, value: object, fields: Fields) -> None:
    before = result.get(name)
    if isinstance(value, dict) and isinstance(before, dict):
        field = fields.get(name)
        if field is None:
            result[name] = _merged(before, value, NO_FIELDS)
        elif field.is_replaced:
            result[name] = _as_it_is(value)
        else:
            result[name] = _merged(before, value, field.below)
    elif isinstance(value, list) and isinstance(before, list):
        field = fields.get(name)
        if field is not None and field.is_merged_list:
            result[name] = _merged_list(before, value, field)
        else:
            result[name] = _as_it_is(value)
    else:
        taken = _without_directives(value)
        if taken is _NOTHING:
            result.pop(name, None)
        else:
            result[name] = taken


# --- lists -------------------------------------------------------------------------------------------------------


def _merged_list(original: list[object], patch: list[object], field: MergeField) -> list[object]:
    if not original and not patch:
        return original
    if _element_type(original, patch) is not dict:
        return in_order(original + patch, patch, original, field.merge_key)
    if not field.merge_key:
        raise PatchError("cannot merge lists without merge key for string")
    return _merged_items(cast(list[JsonDict], original), cast(list[JsonDict], patch), field)


def _merged_items(original: list[JsonDict], patch: list[JsonDict], field: MergeField) -> list[object]:
    merge_key = field.merge_key
    original, patch = _after_special_items(original, patch, merge_key)
    merged = list(original)
    places = places_of(merged, merge_key)
    is_order_unchanged = len(places) == len(merged)
    place_max = -1
    for item in patch:
        name = required_identity(item, merge_key)
        place = places.get(name)
        if place is not None:
            merged[place] = _merged(merged[place], item, field.below)
        else:
            place = places[name] = len(merged)
            merged.append(cast(JsonDict, _as_it_is(item)))
            is_order_unchanged = False
        is_order_unchanged = is_order_unchanged and place > place_max
        place_max = place
    # Most patches change existing items in their order: then all items keep their positions.
    if is_order_unchanged:
        return cast(list[object], merged)
    return in_order(cast(list[object], merged), cast(list[object], patch), cast(list[object], original), merge_key)


def _after_special_items(
    original: list[JsonDict], patch: list[JsonDict], merge_key: str
) -> tuple[list[JsonDict], list[JsonDict]]:
    """The list without what `$patch: delete` names, and the patch without its directives."""
    ordinary: list[JsonDict] = []
    is_replaced = False
    for item in patch:
        if DIRECTIVE not in item:
            ordinary.append(item)
            continue
        match item[DIRECTIVE]:
            case "delete":
                name = required_identity(item, merge_key)
                original = [other for other in original if identity(other, merge_key) != name]
            case "replace":
                is_replaced = True
            case "merge":
                raise PatchError("merging lists cannot yet be specified in the patch")
            case directive:
                raise unknown_directive(directive, item)
    if is_replaced:
        return [cast(JsonDict, _as_it_is(item)) for item in ordinary], []
    return original, ordinary


def _element_type(*lists: list[object]) -> type:
    found: type | None = None
    for items in lists:
        for item in items:
            if found is None:
                found = type(item)
                if found is list:
                    raise PatchError("lists of lists are not supported", UNPROCESSABLE)
            elif type(item) is not found:
                raise PatchError(f"list element types are not identical: {go_text([list(items) for items in lists])}")
    if found is None:
        raise PatchError("no elements in any of the given slices")
    if found is type(None):
        raise PatchError(f"list element types are not identical: {go_text([list(items) for items in lists])}")
    return found


# --- directives --------------------------------------------------------------------------------------------------


def _carry_out_directives(result: JsonDict, patch: JsonDict, fields: Fields) -> JsonDict:
    """Apply the directives to `result`. Returns the rest of the patch, still to be merged."""
    rest = dict(patch)
    if RETAIN_KEYS in rest:
        _retain_keys(result, rest, rest.pop(RETAIN_KEYS))
    for name in patch:
        if name.startswith(SET_ORDER):
            order = rest.pop(name)
            if not isinstance(order, list):
                raise wrong_type("[]interface {}", order)
            _set_order(result, rest, _name_behind(name, SET_ORDER), order, fields)
        elif name.startswith(DELETE_FROM_LIST):
            _delete_from_list(result, _name_behind(name, DELETE_FROM_LIST), rest.pop(name), fields)
    return rest


def _retain_keys(result: JsonDict, patch: JsonDict, retained: object) -> None:
    mismatch = PatchError("invalid patch format of retainKeys", BAD_REQUEST)
    if not isinstance(retained, list):
        raise mismatch
    for name, value in patch.items():
        if value is not None and name not in retained and not name.startswith((DELETE_FROM_LIST, SET_ORDER)):
            raise mismatch
    for name in [name for name in result if name not in retained]:
        del result[name]


def _set_order(result: JsonDict, patch: JsonDict, name: str, order: list[object], fields: Fields) -> None:
    """Merge one list in the order of its directive, and remove it from the patch."""
    before, added = result.get(name), patch.get(name)
    for items in (before, added):
        if items is not None and not isinstance(items, list):
            raise wrong_type("[]interface {}", items)
    field = fields.get(name, _ORDINARY)
    original, patch_items = cast(list[object], before or []), cast(list[object], added or [])
    check_against_order(patch_items, order, field.merge_key)
    if name in result and name not in patch:
        merged = original
    elif name in patch and name not in result:
        merged = cast(list[object], _without_directives(patch_items))
    elif name in patch:
        merged = _merged_list(original, patch_items, field) if field.is_merged_list else patch_items
        original = _order_left_behind(original, merged, patch_items, field)
    else:
        return
    _element_type(original, patch_items)
    result[name] = in_order(merged, order, original, field.merge_key)
    patch.pop(name, None)


def _order_left_behind(
    original: list[object], merged: list[object], patch: list[object], field: MergeField
) -> list[object]:
    """Where items stood before, once some were deleted.

    In Kubernetes new items take the places of deleted ones before the order is read, and then count as having stood
    there. A comparison of two clusters shows it.
    """
    if not field.merge_key or not field.is_merged_list:
        return original
    names_merged = {identity(cast(JsonDict, item), field.merge_key) for item in merged}
    left = [item for item in original if identity(cast(JsonDict, item), field.merge_key) in names_merged]
    names_left = {identity(cast(JsonDict, item), field.merge_key) for item in left}
    new = [
        item
        for item in cast(list[JsonDict], patch)
        if DIRECTIVE not in item and identity(item, field.merge_key) not in names_left
    ]
    return (left + cast(list[object], new))[: len(original)]


def _delete_from_list(result: JsonDict, name: str, doomed: object, fields: Fields) -> None:
    if doomed is None:
        result.pop(name, None)
        return
    before = result.get(name)
    if not isinstance(before, list) or not isinstance(doomed, list) or not (before or doomed):
        return
    if _element_type(before, doomed) is not dict:
        plain = {item for item in doomed if not isinstance(item, list)}
        lists = [item for item in doomed if isinstance(item, list)]
        result[name] = [item for item in before if item not in (lists if isinstance(item, list) else plain)]
        return
    field = fields.get(name, _ORDINARY)
    if not field.merge_key:
        raise PatchError("cannot merge lists without merge key for struct")
    result[name] = _merged_items(cast(list[JsonDict], before), cast(list[JsonDict], doomed), field)


def _name_behind(directive: str, prefix: str) -> str:
    before, slash, name = directive.partition("/")
    if not slash or before != prefix:
        form = "setElementOrder" if prefix == SET_ORDER else "primitive"
        raise PatchError(f"invalid patch format of {form} list", BAD_REQUEST)
    return name


# --- copied values -----------------------------------------------------------------------------------------------


def _without_directives(value: object) -> object:
    """A new value. An object with a `$patch` of its own is no value: `_NOTHING`."""
    if isinstance(value, dict):
        if DIRECTIVE in value:
            return _NOTHING
        taken: JsonDict = {}
        for name, inner in value.items():
            if _is_value(name, inner):
                plain = _without_directives(inner) if isinstance(inner, (dict, list)) else inner
                if plain is not _NOTHING:
                    taken[name] = plain
        return taken
    if isinstance(value, list):
        return [plain for item in value if (plain := _without_directives(item)) is not _NOTHING]
    return value


def _as_it_is(value: object) -> object:
    """A value that replaces another, without directives."""
    if isinstance(value, dict):
        return {
            name: _as_it_is(inner) if isinstance(inner, (dict, list)) else inner
            for name, inner in value.items()
            if _is_value(name, inner)
        }
    if isinstance(value, list):
        return [_as_it_is(item) for item in value]
    return value


def _is_value(name: str, value: object) -> bool:
    return value is not None and not (name.startswith("$") and name.partition("/")[0] in _DIRECTIVES)


# --- merge keys -----------------------------------------------------------------------------------------------


Fields: TypeAlias = "Mapping[str, MergeField]"

MERGE = "merge"
REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class MergeField:
    """How one field is patched. `strategy` is `patchStrategy` of Kubernetes, empty for an ordinary field."""

    strategy: str
    merge_key: str
    below: Fields
    is_merged_list: bool
    is_replaced: bool


NO_FIELDS: Fields = {}
_ORDINARY = MergeField(strategy="", merge_key="", below=NO_FIELDS, is_merged_list=False, is_replaced=False)

_known: CircularTable[int, dict[str, MergeField]] = CircularTable()
"""By the identity of a struct, which lives as long as the process. Filled while it is looked at: types refer to each
other in circles."""


def merge_fields(api_version: str, kind: str) -> Fields | None:
    """The special fields of a kind; None for a custom resource."""
    struct = struct_of_kind(api_version, kind)
    return None if struct is None else _fields_of(struct)


def _fields_of(struct: Struct) -> Fields:
    known = _known.get(id(struct))
    return known if known is not None else _made(struct)


def _made(struct: Struct) -> Fields:
    with _known.filling() as entries:
        if id(struct) not in entries:
            known = entries[id(struct)] = {}
            for name, field in struct.fields.items():
                special = _special(field)
                if special is not None:
                    known[name] = special
        return entries[id(struct)]


def _special(field: Field) -> MergeField | None:
    """How a field is patched; None if neither it nor anything below it is special."""
    strategy = ",".join(field.patch_strategy)
    is_merged_list = isinstance(field.type, ListOf) and MERGE in field.patch_strategy
    below = _below(field.type, is_merged_list)
    if not strategy and below is None:
        return None
    return MergeField(
        strategy=strategy,
        merge_key=field.merge_key,
        below=below if below is not None else NO_FIELDS,
        is_merged_list=is_merged_list,
        is_replaced=strategy == REPLACE,
    )


def _below(kind: Type, is_merged_list: bool) -> Fields | None:
    match kind:
        case Struct():
            return _fields_of(kind)
        case ListOf(item):
            return _fields_of(item) if is_merged_list and isinstance(item, Struct) else None
        case MapOf() | Scalar():
            return None


# --- order ----------------------------------------------------------------------------------------------------


Name: TypeAlias = Hashable

_MAP = "map[string]interface {}"


def identity(item: JsonDict, merge_key: str) -> Name:
    """The identity of an item. None for an item without a merge key, which is invalid."""
    name = item.get(merge_key)
    if isinstance(name, dict | list):
        raise PatchError(f"merge key {merge_key} is no plain value in map: {go_text(item)}")
    return name


def required_identity(item: JsonDict, merge_key: str) -> Name:
    """The identity of an item that must have one."""
    name = item.get(merge_key)
    if type(name) is str:
        return name
    if merge_key not in item:
        raise no_merge_key(item, merge_key)
    return identity(item, merge_key)


def places_of(items: list[JsonDict], merge_key: str) -> dict[Name, int]:
    """The position of each item; the first position of an identity."""
    places: dict[Name, int] = {}
    for index, item in enumerate(items):
        places.setdefault(required_identity(item, merge_key), index)
    return places


def in_order(items: list[object], patch_order: list[object], before: list[object], merge_key: str) -> list[object]:
    """The items without repeated scalars, in the order of `patch_order` (the patch) and `before` (the object)."""
    patch_places = _places(patch_order, merge_key)
    places_before = _places(before, merge_key)
    of_patch: list[tuple[int, int, object]] = []
    others: list[tuple[int, object]] = []
    seen: set[Name] = set()
    for item in items:
        name = _name_of(item, merge_key)
        if not merge_key:
            if name in seen:
                continue
            seen.add(name)
        place_before = places_before.get(name, -1)
        if name in patch_places:
            of_patch.append((patch_places[name], place_before, item))
        else:
            others.append((place_before, item))
    # Sorted by place alone, and stably: equal places are repeated items, which keep their order.
    of_patch.sort(key=lambda entry: entry[0])
    others.sort(key=lambda entry: entry[0])
    return _interleaved(others, of_patch)


def check_against_order(patch: list[object], order: list[object], merge_key: str) -> None:
    """A patch may only name items that its `$setElementOrder` names, in that order."""
    if not order or not patch:
        return
    if merge_key:
        for item in patch:
            if not isinstance(item, dict):
                raise wrong_type(_MAP, item)
        names = [_required_name(item, merge_key) for item in patch if "$patch" not in cast(JsonDict, item)]
    else:
        names = [_name_of(item, "") for item in patch]
    matched = 0
    for item in order:
        if matched < len(names) and names[matched] == _required_name(item, merge_key):
            matched += 1
    if matched < len(names):
        raise PatchError(
            f"The order in patch list:\n{go_text(patch)}\n doesn't match $setElementOrder list:\n{go_text(order)}\n"
        )


def _interleaved(others: list[tuple[int, object]], of_patch: list[tuple[int, int, object]]) -> list[object]:
    result: list[object] = []
    next_other = 0
    for _, place_before, item in of_patch:
        while next_other < len(others) and 0 <= others[next_other][0] < place_before:
            result.append(others[next_other][1])
            next_other += 1
        result.append(item)
    result.extend(item for _, item in others[next_other:])
    return result


def _places(items: list[object], merge_key: str) -> dict[Name, int]:
    places: dict[Name, int] = {}
    for index, item in enumerate(items):
        places.setdefault(_required_name(item, merge_key), index)
    return places


def _required_name(item: object, merge_key: str) -> Name:
    if merge_key and isinstance(item, dict):
        return required_identity(item, merge_key)
    return _name_of(item, merge_key)


def _name_of(item: object, merge_key: str) -> Name:
    if not merge_key:
        if isinstance(item, dict | list):
            raise PatchError("lists of lists are not supported", UNPROCESSABLE)
        return item
    if not isinstance(item, dict):
        raise wrong_type(_MAP, item)
    return identity(item, merge_key)
