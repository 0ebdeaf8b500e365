"""Changing a part of an object that may be shared with the object before it.

Input: an object and the name of a field.
Output: the field's value, which now belongs to this object alone.

 1. A patched object shares what the patch did not touch with the stored one, which must not change. Code that
    changes a part copies it with `own_part` first, level by level.
"""

from __future__ import annotations

from mooring.api.document import Document


def own_part(document: Document, field: str) -> Document:
    """A map within the document, as a copy that is part of it; an empty one if there was none."""
    part: Document = dict(document.get(field) or {})
    document[field] = part
    return part


def own_items(document: Document, field: str) -> list[Document]:
    """A list of maps within the document, as copies that are part of it."""
    items: list[Document] = [dict(item) for item in document[field]]
    document[field] = items
    return items
