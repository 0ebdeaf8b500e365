"""The two dialects of OpenAPI that clients ask for, and where they differ.

1. Version 2 is one document for everything; version 3 has one for each API version.
2. Version 3 knows defaults, and values of more than one type. Nothing may stand beside a `$ref` in it, so that a
   reference with a default is wrapped in `allOf`.
"""

from __future__ import annotations

from dataclasses import dataclass

from mooring.api.document import Document


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a document is written."""

    is_third: bool
    prefix: str
    """Of references to schemas."""

    def reference(self, name: str) -> Document:
        return {"$ref": f"{self.prefix}{name}"}

    def wrapped(self, name: str, **beside: object) -> Document:
        """A reference with something beside it."""
        if not self.is_third:
            return {**self.reference(name), **{key: value for key, value in beside.items() if key != "default"}}
        return {**beside, "allOf": [self.reference(name)]}


SECOND = Dialect(is_third=False, prefix="#/definitions/")
THIRD = Dialect(is_third=True, prefix="#/components/schemas/")
