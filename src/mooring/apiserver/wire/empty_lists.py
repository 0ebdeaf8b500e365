"""Empty lists of an object that is about to be stored.

Input: a canonical document and its type. Output: the same, with `null` for empty lists that are always written.

Go distinguishes an empty list from an absent one while a request is handled: a client that sends `rules: []` becomes
the manager of the rules. In the store there is no difference: the stored value is null.

1. Lists with omitempty do not get here: `canonical` drops them.
2. Only branches that can contain such a list are walked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mooring.api.document import Document
from mooring.api.schema.model import ListOf, MapOf, Scalar, Struct, Type
from mooring.api.schema.tables import CircularTable

Forget = Callable[[Any], None]

_known: CircularTable[int, tuple[Forget | None]] = CircularTable()


def forget_empty_lists(struct: Struct, obj: Document) -> None:
    """Make every empty list null."""
    forget = _of_struct(struct)
    if forget is not None:
        forget(obj)


def _of_struct(struct: Struct) -> Forget | None:
    """The walk through a type; None if there is nothing to look for."""
    found = _known.get(id(struct))
    return found[0] if found is not None else _made(struct)


def _made(struct: Struct) -> Forget | None:
    with _known.filling() as entries:
        if id(struct) not in entries:
            # Types that refer to each other in circles (the schemas of custom kinds) have no such lists.
            entries[id(struct)] = (None,)
            entries[id(struct)] = (_walk(struct),)
        return entries[id(struct)][0]


def _walk(struct: Struct) -> Forget | None:
    lists = [field.name for field in struct.fields.values() if isinstance(field.type, ListOf) and not field.omits_empty]
    branches = [
        (field.name, forget) for field in struct.fields.values() if (forget := _of_type(field.type)) is not None
    ]
    if not lists and not branches:
        return None

    def forget_below(document: Document) -> None:
        for name in lists:
            if document.get(name) == []:
                document[name] = None
        for name, forget in branches:
            value = document.get(name)
            if value:
                forget(value)

    return forget_below


def _of_type(kind: Type) -> Forget | None:
    match kind:
        case Struct():
            return _of_struct(kind)
        case ListOf(item):
            return _of_items(item)
        case MapOf(item):
            below = _of_items(item)
            return None if below is None else lambda entries: below(entries.values())
        case Scalar():
            return None


def _of_items(item: Type) -> Forget | None:
    below = _of_type(item)
    if below is None:
        return None

    def forget_in_each(values: Iterable[Any]) -> None:
        for value in values:
            if value:
                below(value)

    return forget_in_each
