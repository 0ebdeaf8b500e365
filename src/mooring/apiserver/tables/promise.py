"""What tables promise: the columns of a kind, and a row for an object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mooring.api.document import Document
from mooring.apiserver.resources import Resource


class Tables(Protocol):
    """What `kubectl get` prints."""

    def columns(self, resource: Resource) -> Sequence[Document]:
        """The definitions of the columns: name, type, format, description, priority."""
        ...

    def row(self, resource: Resource, obj: Document, now_s: float) -> Document:
        """A row: `cells`, and `conditions` where the kind has them; the caller adds the object."""
        ...

    def no_rows(self, resource: Resource) -> list[Document] | None:
        """What stands in the place of the rows of an empty table."""
        ...
